"""`Idempotency-Key`: the header serves as the key of a request whose body has none."""

from __future__ import annotations

from collections.abc import Container

from fastapi import Request

from doral.errors import InvalidValue

HEADER = "Idempotency-Key"
RAW_HEADER = b"idempotency-key"


def header_key(request: Request) -> str | None:
    """What the header says; InvalidValue where several of them say different things."""
    found = [value for name, value in request.scope["headers"] if name == RAW_HEADER]
    if not found:
        return None
    if any(one != found[0] for one in found):
        raise InvalidValue(HEADER, found[1], "was given twice: give one")
    try:
        return bytes(found[0]).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidValue(HEADER, found[0], "must be text in UTF-8") from None


def key_of(header: str | None, body: str | None) -> str | None:
    """The key of a request.

    Args:
        header: What the header says.
        body: What the body says.
    """
    if header is None or body is None:
        return header if body is None else body
    if header != body:
        raise InvalidValue("key", body, f"and the header {HEADER} says {header!r}: give one of them, or the same")
    return body


def item_key(header: str | None, index: int, body: str | None, own: Container[str | None] = ()) -> str | None:
    """The key of one of many: what the item itself says, or the header's with the place of the item.

    Args:
        header: What the header says.
        index: The place of the item, from 0 on.
        body: What the item says.
        own: What all items say: none may have the key that another gets from the header.
    """
    if body is not None or header is None:
        return body
    key = f"{header}/{index}"
    if key in own:
        raise InvalidValue(
            "key", key, f"is what item {index} gets from the header {HEADER}: give all items keys, or none"
        )
    return key
