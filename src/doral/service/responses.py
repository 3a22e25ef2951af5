"""What the API answers with: JSON, which knows neither infinity nor NaN, and problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from doral.errors import DoralError
from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageBusy
from doral.live.views.decision import Decision
from doral.service.access.refusals import headers_of
from doral.wire.problems import MEDIA_TYPE, code_of, to_problem
from doral.wire.values import decision_to_dict

if TYPE_CHECKING:
    from doral.service.write_queue import WriteQueue

Result = TypeVar("Result")
_MANY = 500  # items that take about a millisecond


class Run(Protocol):
    """Has something done in a thread."""

    def __call__(self, work: Callable[[], Result]) -> Awaitable[Result]: ...


async def in_thread_if_many(run: Run, n_items: int, work: Callable[[], Result]) -> Result:
    """Something to be done for many items, such as writing them as JSON: in a thread where it takes long.

    Args:
        run: Has something done in a thread.
        n_items: How many there are.
        work: What is to be done.
    """
    return work() if n_items <= _MANY else await run(work)


_RETRY_S = 1  # after which trying again may help
_HELPS_TO_RETRY = (StorageBusy, ConnectionLost, OutcomeUnknown)


def reply(content: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A document; what is not finite is null."""
    return Response(encoded(content), status, headers, media_type="application/json")


def encoded(content: object) -> bytes:
    """As JSON in UTF-8."""
    try:
        return to_json(content, inf_nan_mode="null")
    except PydanticSerializationError:  # a lone surrogate is no text
        return to_json(_with_text(content), inf_nan_mode="null")


def _with_text(value: Any) -> Any:
    """With a question mark in place of what is no character."""
    if isinstance(value, Mapping):
        return {_with_text(key): _with_text(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text(one) for one in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


@lru_cache(maxsize=1_024)  # decisions of a batch share their time
def iso(seconds: float | None) -> str | None:
    """A time as people read it, in UTC; None where there is none, or where it is none of these thousand years."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def to_dict(decision: Decision, in_seconds: bool) -> dict[str, Any]:
    """A decision as it is sent; with its times in ISO 8601, too, where the campaign's clock counts seconds."""
    found = decision_to_dict(decision)
    found["decided_at_iso"] = iso(decision.decided_at) if in_seconds else None
    found["answered_at_iso"] = iso(decision.answered_at) if in_seconds else None
    return found


def decision_reply(queue: WriteQueue, decision: Decision) -> Response:
    """One decision."""
    return reply(to_dict(decision, queue.is_in_seconds))


def decisions_reply(queue: WriteQueue, made: Sequence[Decision], **more: object) -> Response:
    """Many decisions."""
    in_seconds = queue.is_in_seconds
    return reply({"decisions": [to_dict(one, in_seconds) for one in made], **more})


class ProblemResponse(Response):
    """A problem document. Its code is left in the request's state, for the log and the metrics."""

    media_type = MEDIA_TYPE

    def __init__(self, content: bytes, status: int, headers: Mapping[str, str], *, code: str) -> None:
        super().__init__(content, status, headers)
        self._code = code

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["problem"] = self._code
        await super().__call__(scope, receive, send)


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
    return ProblemResponse(encoded(found), found["status"], own, code=code_of(found))
