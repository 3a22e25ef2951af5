"""What all tasks share (scenarios, policies, a log) goes to a worker once, and is unpacked there once."""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from doral.errors import InvalidValue
from doral.simulation.workers import fingerprint

KEPT = 4  # a worker that serves several experiments in turns does not unpack anew for each task

Play = Callable[[Any, Any], Any]  # of what is shared, and one piece of work

_lock = threading.Lock()
_unpacked: OrderedDict[str, tuple[Play, Any]] = OrderedDict()


@dataclass(frozen=True)
class Packed:
    """Bytes, with what whoever unpacks them must have."""

    versions: dict[str, str]
    digest: str
    content: bytes


def pack(play: Play, shared: object) -> Packed:
    """Classes of a program itself (`__main__`) travel whole, others by the name of their module."""
    content = pack_pieces((play, shared))
    return Packed(fingerprint.versions(), hashlib.sha256(content).hexdigest(), content)


def pack_pieces(pieces: object) -> bytes:
    """In bytes: a task that cannot unpack them tells so; an engine that cannot may lose its worker."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(pieces))
    except Exception as error:  # whatever a foreign object raises
        remedy = f"cannot be sent to other processes ({error}): keep files, locks and connections out of it"
        raise InvalidValue("policy or scenario", pieces, remedy) from error


def work(packed: Packed, pieces: bytes) -> bytes:
    """One task, where it is computed. What it found is one string of bytes: engines send every array by itself."""
    differs = fingerprint.difference(fingerprint.versions(), packed.versions)
    if differs:
        raise InvalidValue("worker", _place(), f"{differs}: numbers would differ; {fingerprint.REMEDY}")
    play, shared = _content(packed)
    try:
        found = [play(shared, piece) for piece in _loaded(pieces)]
    except SystemExit as error:  # it would end the worker, and the next one, and nobody would know why
        remedy = "a policy or law ends the program, which would end the worker: raise an error instead"
        raise InvalidValue("SystemExit", error.code, remedy) from error
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


def _content(packed: Packed) -> tuple[Play, Any]:
    with _lock:
        found = _unpacked.get(packed.digest)
        if found is None:
            found = _unpacked[packed.digest] = _loaded(packed.content)
        _unpacked.move_to_end(packed.digest)
        while len(_unpacked) > KEPT:
            _unpacked.popitem(last=False)
    return found


def _loaded(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        remedy = (
            f"worker {_place()} cannot read it ({error}): install the module that holds the policy or law on the "
            "workers, or write the class into the program that is run"
        )
        raise InvalidValue("policy or law", getattr(error, "name", None) or "of this program", remedy) from error


def _place() -> str:
    import os
    import socket

    return f"{socket.gethostname()}, process {os.getpid()}"
