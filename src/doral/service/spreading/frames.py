"""What workers say to each other: a head of a few lines, and a body, with a number by which answers are told apart.

Nothing of it comes from outside: both ends are processes of one service, over a socket in a folder that only its own
user may enter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ASK = 1  # a request
ANSWER = 2
REFUSED = 3  # nothing was done with the request: whoever has it may serve it
FAILED = 4  # an error that nobody foresaw
PING, PONG = 5, 6  # whether somebody is there
PART = 7  # of the body of an answer: what follows with the same number belongs behind it

_FIXED = struct.Struct(">BQII")  # kind, number, bytes of the head, bytes of the body
PART_BYTES = 1024 * 1024
MOST_BYTES = 2 * PART_BYTES  # of one message: a request that is handed on has less, and an answer comes in parts


class Frame(NamedTuple):
    """One message."""

    kind: int
    number: int
    head: tuple[bytes, ...] = ()
    body: bytes = b""


class Broken(ValueError):
    """What came is none of ours."""


def packed(kind: int, number: int, head: Sequence[bytes] = (), body: bytes = b"") -> bytes:
    """As it is sent; Broken where it cannot be. No part of a head has a line feed in it: headers cannot."""
    lines = b"\n".join(head)
    if lines.count(b"\n") != max(0, len(head) - 1):
        raise Broken("a part of the head has a line feed in it")
    if len(lines) + len(body) > MOST_BYTES:
        raise Broken("it is too large for a message")
    return _FIXED.pack(kind, number, len(lines), len(body)) + lines + body


def packed_answer(number: int, head: Sequence[bytes], body: bytes) -> list[bytes]:
    """An answer of whatever size, as messages; Broken where its head cannot be sent."""
    ends = range(0, max(0, len(body) - PART_BYTES), PART_BYTES)
    parts = [packed(PART, number, (), body[at : at + PART_BYTES]) for at in ends]
    return [*parts, packed(ANSWER, number, head, body[len(parts) * PART_BYTES :])]


class Reader:
    """Takes what a socket gives, in whatever pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()  # to which a piece is added without copying what is there

    def read(self, data: bytes) -> Iterator[Frame]:
        """All frames that are whole by now; Broken where one is too large to be one of ours."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _FIXED.size:
            kind, number, n_head, n_body = _FIXED.unpack_from(buffer)
            if not ASK <= kind <= PART or n_head + n_body > MOST_BYTES:
                raise Broken("what came is no message of a worker")
            begin, end = _FIXED.size + n_head, _FIXED.size + n_head + n_body
            if len(buffer) < end:
                return
            head, body = bytes(buffer[_FIXED.size : begin]), bytes(buffer[begin:end])
            del buffer[:end]
            yield Frame(kind, number, tuple(head.split(b"\n")) if head else (), body)
