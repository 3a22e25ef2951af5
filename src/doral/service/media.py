"""Bodies of the API are JSON: whatever says that it is something else is refused before it is read."""

from __future__ import annotations

from fastapi import Request

from doral.wire.problems import ServiceError

_REFUSAL = "the body must be JSON, and the header Content-Type must say so: application/json"


def refuse_unless_json(request: Request) -> None:
    """ServiceError where there is a body, and it is said to be something else, or nothing is said of it."""
    kind, has_body = b"", False
    for name, value in request.scope["headers"]:
        if name == b"content-type":
            kind = value.partition(b";")[0].strip().lower()
        elif name == b"transfer-encoding" or (name == b"content-length" and value != b"0"):
            has_body = True
    is_json = kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))
    if has_body and not is_json:
        raise ServiceError(_REFUSAL, "unsupported-media-type", 415)
