"""Events of a campaign as they are written: server-sent events that can be taken up again where they were left."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.sse import KEEPALIVE_COMMENT, format_sse_event
from starlette.responses import Response, StreamingResponse

from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import CampaignGone
from doral.live.events.codec import decode
from doral.live.events.event import Event
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.service.access.guard import Reader
from doral.service.event_stream import Follower, OwningStream, told
from doral.service.models.decisions import EventTold
from doral.service.responses import encoded
from doral.service.service import Shared, last_event
from doral.service.write_queue import WriteQueue

router = APIRouter(tags=["looking"])

PAGE_EVENTS = 200  # that are read at a time
BEAT_S = 15.0  # after which a comment says that the stream still lives
_RETRY_MS = 1_000  # after which a browser comes again
_MOST_DIGITS = 18
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_EXAMPLE = (
    'id: 17\nevent: decided\ndata: {"sequence":17,"kind":"decided","written_at":1770000000.0,"at":1770000000.0,'
    '"context":"old","arm":"letter","state":"pending","decision_id":"3f2a9c01-17"}\n\n'
)


@router.get(
    "/v1/campaigns/{name}/events",
    summary="Follow a campaign",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events, for as long as the campaign is there and the service runs. "
            f"`data` is JSON: {EventTold.__doc__}",
            "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}},
        }
    },
)
async def events(
    request: Request,
    name: str,
    service: Shared,
    caller: Reader,
    after: Annotated[
        str | None,
        Query(description="The number of the last event that is known; without it, only what comes from now on."),
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="What browsers send when they come again; it goes before `after`.")
    ] = None,
) -> Response:
    """In order, none twice and none left out. Whoever was cut off sends the `id` of the last event that he has seen.

    A stream ends with the event `end` when the campaign is deleted, the key is revoked or has expired, or the service
    is stopped: `data` says why.
    """
    queue = await service.queue(name)
    last = await queue.read(last_event)
    start = _start("Last-Event-ID", last_event_id, last)
    if start is None:
        start = _start("after", after, last)
    async with AsyncExitStack() as stack:
        listening = service.following.listen(name, lambda: queue.read(last_event), caller.key_id)
        follower = await stack.enter_async_context(listening)
        content = stream_of(
            queue, follower, last if start is None else start, lambda: service.entrance.holds(request.scope)
        )
        return OwningStream(content, stack.pop_all(), media_type="text/event-stream", headers=_HEADERS)


def _start(field: str, given: str | None, last: int) -> int | None:
    if given is None or given == "":
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _MOST_DIGITS):
        raise InvalidValue(field, given, "must be the number of an event, 0 or more")
    if int(given) > last:
        remedy = f"the log has {last:,} events: it may have been replaced by a backup; begin anew"
        raise InvalidValue(field, int(given), remedy)
    return int(given)


async def stream_of(
    queue: WriteQueue, follower: Follower, seen: int, is_allowed: Callable[[], Awaitable[bool]]
) -> AsyncGenerator[bytes, None]:
    """The events after `seen`, and those that come, as they are sent.

    Args:
        queue: Of the campaign.
        follower: That says when there are more.
        seen: The number of the last event that is known there.
        is_allowed: Whether whoever listens still may.
    """
    yield format_sse_event(retry=_RETRY_MS)
    place = _Place(seen)
    while True:
        # Where the other side is slow, this waits for it: what is read next is not kept back until it may be sent, so
        # that a key which is forgotten meanwhile is not among it.
        yield b""
        if follower.ended is not None:
            yield _end(follower.ended)
            return
        try:
            if not await is_allowed():  # the key was revoked, or has ended, since the stream was opened
                yield _end("key")
                return
            page = await queue.read(place.next_page)
        except (CampaignGone, UnknownName):
            yield _end("deleted")
            return
        except DoralError:  # the store cannot be read now; who listens keeps his place
            yield _end("failed")
            return
        if page is None:
            yield _end("replaced")
            return
        if page:
            yield b"".join(map(_written, page))
            continue
        await follower.wait(beyond=place.seen, within_s=BEAT_S)
        if follower.last <= place.seen and follower.ended is None:
            yield KEEPALIVE_COMMENT


class _Place:
    """How far somebody has read a log, and in which one: a backup that took its place may go as far, or further."""

    def __init__(self, seen: int) -> None:
        self.seen = seen
        self._chain: bytes | None = None  # of the last event that was seen

    def next_page(self, campaign: Campaign) -> list[dict[str, Any]] | None:
        """The next events; None where the log is not the one that was read."""
        found = campaign.session.read(self._look)
        if found is None:
            return None
        page, last = found
        if last is not None:
            self.seen, self._chain = last.sequence, last.place.chain
        return page

    def _look(self, log: Log, state: CampaignState) -> tuple[list[dict[str, Any]], Event | None] | None:
        if state.sequence < self.seen:
            return None
        if self._chain is not None and state.sequence == self.seen:
            return ([], None) if state.head == self._chain else None
        last = log.events([self.seen]).get(self.seen)
        if self._chain is not None and (last is None or last.place.chain != self._chain):
            return None
        rows = log.after(self.seen, upto=state.sequence, limit=PAGE_EVENTS) if self.seen < state.sequence else []
        found = list(map(decode, rows))
        return [told(event, state.names) for event in found], found[-1] if found else last


def _written(event: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=encoded(event).decode(), event=event["kind"], id=str(event["sequence"]))


def _end(why: str) -> bytes:
    return format_sse_event(data_str=encoded({"why": why}).decode(), event="end")
