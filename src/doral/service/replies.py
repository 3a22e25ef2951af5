"""What the API answers with: JSON, which knows neither infinity nor NaN, and problems."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from doral.errors import DoralError
from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageBusy
from doral.service.access.refusals import headers_of
from doral.wire.problems import MEDIA_TYPE, to_problem

_RETRY_S = 1  # after which trying again may help
_HELPS_TO_RETRY = (StorageBusy, ConnectionLost, OutcomeUnknown)


def reply(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document; what is not finite is null."""
    return Response(encoded(content), status, headers, media_type="application/json")


def encoded(content: object) -> bytes:
    """As JSON in UTF-8."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode(errors="replace")  # a lone surrogate is no text


def plain(value: Any) -> Any:
    """With None in place of what is not finite."""
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def problem_reply(
    error: DoralError,
    *,
    instance: str | None = None,
    status: int | None = None,
    headers: Mapping[str, str] | None = None,
    more: Mapping[str, object] | None = None,
) -> Response:
    """A problem document.

    Args:
        error: What is wrong.
        instance: The path that was asked for.
        status: If not the usual one of this error.
        headers: More headers.
        more: More members.
    """
    found = {**to_problem(error, instance=instance), **(more or {})}
    if status is not None:
        found["status"] = status
    own = {**headers_of(error), **(headers or {})}
    if isinstance(error, _HELPS_TO_RETRY):
        own.setdefault("Retry-After", str(_RETRY_S))
    return Response(encoded(found), found["status"], own, media_type=MEDIA_TYPE)
