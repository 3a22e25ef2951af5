"""What the API answers with: JSON, which knows neither infinity nor NaN, and problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from pydantic_core import PydanticSerializationError, to_json
from starlette.responses import Response

from doral.errors import DoralError
from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageBusy
from doral.live.views.decision import Decision
from doral.service.access.refusals import headers_of
from doral.wire.problems import MEDIA_TYPE, to_problem
from doral.wire.values import decision_to_dict

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


def decisions_reply(made: Sequence[Decision]) -> Response:
    """Many decisions."""
    return reply({"decisions": [decision_to_dict(one) for one in made]})


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
