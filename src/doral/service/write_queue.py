"""Where the requests about one campaign are handed in: those that come together are stored together.

While one group is being stored in a thread, others gather; the next group takes what waits. So a campaign waits for the
disk once for many requests, in the order in which they came, and needs one thread however many they are.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, NamedTuple, NoReturn, TypeVar

from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.events.event import ANSWER_SCOPE
from doral.live.kinds.answer import Cancel, Cancellation, Correct, GiveAnswer, GiveAnswers, answer_of
from doral.live.kinds.decide import Arrival, Decide, DecideMany, arrival_of
from doral.live.kinds.record import Record, record_of
from doral.live.kinds.request import Request, scoped_key
from doral.live.runtime.clock import Stamp
from doral.live.runtime.group_commit import each, store_together
from doral.live.runtime.session import Session
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision
from doral.service.operations.metrics import Metrics
from doral.service.responses import Run
from doral.wire.problems import ServiceError

logger = logging.getLogger("doral.service")

Result = TypeVar("Result")

QUEUE = 10_000
_MOST_ITEMS = 2_000  # decisions, answers or records in one group, unless a single request has more
_MOST_WAITING_ITEMS = 200_000  # of all requests that wait: each may bring thousands
_MOST_READERS = 2  # threads that look at one campaign at once: one of them reads, and others need some, too
_RETRY_AFTER_S = 1.0


class _Slip:
    """One request that waits, and whoever waits for its result."""

    __slots__ = ("future", "items", "since")

    def __init__(self, items: int) -> None:
        self.items, self.since = items, time.monotonic()
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class _Asked(_Slip):
    """A request that can be stored with others."""

    __slots__ = ("ask", "tell")

    def __init__(self, ask: Callable[[], Request[Any]], tell: _Tell | None, items: int = 1) -> None:
        super().__init__(items)
        self.ask, self.tell = ask, tell


class _AskedEach(_Slip):
    """Several requests of one caller, with a result for each."""

    __slots__ = ("asks", "tell")

    def __init__(self, asks: Callable[[], list[Request[Any] | DoralError]], tell: _Tell | None, items: int) -> None:
        super().__init__(items)
        self.asks, self.tell = asks, tell


class _Work(_Slip):
    """A request that needs a transaction of its own, or several."""

    __slots__ = ("work",)

    def __init__(self, work: Callable[[Campaign], Any]) -> None:
        super().__init__(1)
        self.work = work


_Tell = Callable[[str, Sequence[Decision]], None]


class WriteQueue:
    """Requests about one campaign, in their order.

    Args:
        campaign: Which.
        run: Has something looked up in a thread.
        metrics: Are told what was done.
        turn: Waited for before something is looked up.
        store: Has something stored in a thread; None: as `run`.
        queue: How many requests may wait.
        when_stored: Called on the event loop after every group.
    """

    def __init__(
        self,
        campaign: Campaign,
        run: Run,
        metrics: Metrics,
        *,
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        store: Run | None = None,
        queue: int = QUEUE,
        when_stored: Callable[[], None] | None = None,
    ) -> None:
        self.campaign, self._run, self._metrics, self._queue = campaign, run, metrics, queue
        self._store = run if store is None else store
        self._in_seconds: bool | None = None
        self._when_stored, self._turn = when_stored, turn
        self._waiting: deque[_Slip] = deque()
        self._waiting_items = 0
        self._worker: asyncio.Task[None] | None = None
        self._readers = asyncio.Semaphore(_MOST_READERS)

    @property
    def is_in_seconds(self) -> bool:
        """Whether the campaign's clock counts seconds; False while nothing of it was read."""
        return bool(self._in_seconds)

    def _note_clock(self) -> None:
        """After something was read or stored: the state is there then."""
        if self._in_seconds is None and (state := self.campaign.session.last_seen) is not None:
            self._in_seconds = state.definition.is_in_seconds

    # --- changes, in the order in which they are handed in ----------------------------------------------------------

    async def decide(self, arrival: Mapping[str, Any]) -> Decision:
        """One arrival; stored with others that wait."""
        asked = _Asked(lambda: Decide(self._prepared([arrival])[0]), self._metrics.decided)
        found: Decision = await self._hand_in(asked)
        return found

    def _prepared(self, arrivals: Sequence[Mapping[str, Any]]) -> list[Arrival]:
        return [arrival_of(one) for one in self.campaign.prepared(arrivals)]

    async def decide_many(self, arrivals: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """All of them or none."""
        slip = _Asked(
            lambda: DecideMany(self._prepared(arrivals)),
            self._metrics.decided,
            len(arrivals),
        )
        found: list[Decision] = await self._hand_in(slip) if arrivals else []
        return found

    async def feedback(self, answer: Mapping[str, Any]) -> Decision:
        """One answer; stored with others that wait."""
        found: Decision = await self._hand_in(_Asked(lambda: _answer(answer), self._metrics.answered))
        return found

    async def feedback_many(self, answers: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """All of them or none."""
        slip = _Asked(lambda: GiveAnswers(list(map(answer_of, answers))), self._metrics.answered, len(answers))
        found: list[Decision] = await self._hand_in(slip) if answers else []
        return found

    async def feedback_each(self, answers: Sequence[Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Each for itself: what is wrong with one does not keep the others out."""
        slip = _AskedEach(lambda: each(_answer, answers), self._metrics.answered, len(answers))
        found: list[Decision | DoralError] = await self._hand_in(slip) if answers else []
        return found

    async def correct(self, answer: Mapping[str, Any]) -> Decision:
        """A later, better value for an answer."""
        found: Decision = await self._hand_in(_Asked(lambda: Correct(answer_of(answer)), None))
        return found

    async def cancel(self, decision_id: str, key: str | None, at: object) -> Decision:
        """A decision was not carried out."""
        found: Decision = await self._hand_in(
            _Asked(lambda: Cancel(Cancellation(decision_id, scoped_key(ANSWER_SCOPE, key), at)), None)
        )
        return found

    async def record_many(self, records: Sequence[Mapping[str, Any]]) -> list[Decision]:
        """All of them or none."""
        slip = _Asked(lambda: Record(list(map(record_of, records))), None, len(records))
        found: list[Decision] = await self._hand_in(slip) if records else []
        return found

    async def write(self, ask: Callable[[Campaign], Result]) -> Result:
        """Any other change, in its turn."""
        found: Result = await self._hand_in(_Work(ask))
        return found

    # --- looking ----------------------------------------------------------------------------------------------------

    async def read(self, ask: Callable[[Campaign], Result]) -> Result:
        """Look at something; it waits for what is being stored, and not for what waits to be."""
        async with self._turn(), self._readers:
            found = await self._run(lambda: ask(self.campaign))
            self._note_clock()
            return found

    async def drain(self) -> None:
        """Come back when nothing waits any more."""
        while self._worker is not None:
            await asyncio.wait((self._worker,))

    # --- groups -----------------------------------------------------------------------------------------------------

    def _hand_in(self, slip: _Slip) -> asyncio.Future[Any]:
        if len(self._waiting) >= self._queue or self._waiting_items >= _MOST_WAITING_ITEMS:
            words = f"{len(self._waiting)} requests of this campaign are waiting: try again a little later"
            raise ServiceError(words, "overloaded", 503, _RETRY_AFTER_S)
        self._waiting.append(slip)
        self._waiting_items += slip.items
        if self._worker is None:
            self._worker = asyncio.get_running_loop().create_task(self._work())
        return slip.future

    async def _work(self) -> None:
        """Group after group, until nobody waits."""
        group: list[_Slip] = []
        try:
            while self._waiting:
                group = self._next_group()
                if group:
                    await self._do(group)
        finally:
            self._worker = None
            for slip in (*group, *self._waiting):  # only where this was ended from outside
                slip.future.cancel()

    def _next_group(self) -> list[_Slip]:
        """Those that have waited longest. Whoever has gone away before anything was done for him is passed over."""
        group: list[_Slip] = []
        items = 0
        while self._waiting and (not group or items + self._waiting[0].items <= _MOST_ITEMS):
            slip = self._waiting.popleft()
            self._waiting_items -= slip.items
            if not slip.future.cancelled():
                group.append(slip)
                items += slip.items
        return group

    async def _do(self, group: list[_Slip]) -> None:
        began = time.monotonic()
        try:
            found = await self._store(lambda: _done(self.campaign, group))
            self._note_clock()
        except Exception as error:  # noqa: BLE001  (whoever waits has to hear of it)
            found = [_Done(error)] * len(group)
        for slip, one in zip(group, found, strict=True):
            if slip.future.done():  # gone away meanwhile; what was stored stays stored
                continue
            if isinstance(one.result, Exception):
                slip.future.set_exception(one.result)
            else:
                slip.future.set_result(one.result)
        # Everything is stored and answered: what goes wrong from here on is for the log alone.
        try:
            if self._when_stored is not None:
                self._when_stored()
            self._count(group, found, began)
        except Exception:
            logger.exception("campaign %r: a group was stored, and could not be counted", self.campaign.name)

    def _count(self, group: list[_Slip], found: list[_Done], began: float) -> None:
        name = self.campaign.name
        told: dict[_Tell, list[Decision]] = {}
        made: dict[str, Decision] = {}
        for slip, one in zip(group, found, strict=True):
            tell = getattr(slip, "tell", None)
            some = one.result if isinstance(one.result, list) else [one.result]
            decisions = [each for each in some if isinstance(each, Decision)]
            if tell == self._metrics.decided:
                made |= {each.id: each for each in decisions if _sequence(each) > one.since}
            elif tell is not None:
                told.setdefault(tell, []).extend(decisions)
        if made:
            self._metrics.decided(name, list(made.values()))
        for tell, decisions in told.items():
            tell(name, decisions)
        stored_s = time.monotonic() - began
        self._metrics.grouped(name, len(group), waited_s=began - group[0].since, stored_s=stored_s)


class _Done(NamedTuple):
    """What came of a request, or what went wrong with it; decisions up to event `since` were only told again."""

    result: Any
    since: int = 0


def _sequence(decision: Decision) -> int:
    """Of the event that it is in the log."""
    return int(decision.id.rpartition("-")[2])


def _answer(answer: Mapping[str, Any]) -> GiveAnswer:
    return GiveAnswer(answer_of(answer))


class _Head(DoralError):
    """The last event before a group; the error of a request that is refused, so that nothing is committed for it."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the last event is {last}")
        self.last = last


class _AskHead(Request[None]):
    """Inside the transaction: others may have written since this process last looked."""

    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> NoReturn:
        raise _Head(state.sequence)

    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> None:
        """It is always refused."""


def _done(campaign: Campaign, group: Sequence[_Slip]) -> list[_Done]:
    """In a thread: the result of each, or what went wrong with it. What can be stored together, is."""
    found: list[_Done] = []
    asked: list[tuple[_Slip, list[Request[Any] | Exception]]] = []
    for slip in group:
        if isinstance(slip, _Work):
            found += _stored(campaign, asked)
            asked = []
            found.append(_Done(_outcome(lambda slip=slip: slip.work(campaign))))  # type: ignore[misc]
        elif isinstance(slip, _AskedEach):
            asks = _outcome(slip.asks)
            asked.append((slip, [asks] if isinstance(asks, Exception) else asks))
        elif isinstance(slip, _Asked):
            asked.append((slip, [_outcome(slip.ask)]))
    found += _stored(campaign, asked)
    campaign.refit_if_due()
    return found


def _stored(campaign: Campaign, asked: Sequence[tuple[_Slip, list[Request[Any] | Exception]]]) -> list[_Done]:
    """In one transaction; where that fails, it fails for all of them."""
    everything = [one for _, asks in asked for one in asks if not isinstance(one, Exception)]
    results = _outcome(lambda: _stored_since(campaign.session, everything))
    if isinstance(results, Exception):
        return [_Done(results)] * len(asked)
    since, following = results[0], iter(results[1])
    found: list[_Done] = []
    for slip, asks in asked:
        own = [one if isinstance(one, Exception) else next(following) for one in asks]
        failure = next((one for one in own if isinstance(one, Exception) and not isinstance(one, DoralError)), None)
        result = own[0] if not isinstance(slip, _AskedEach) else own if failure is None else failure
        found.append(_Done(result, since))
    return found


def _stored_since(session: Session, asks: Sequence[Request[Any]]) -> tuple[int, list[Any]]:
    """The last event before them, and the result of each."""
    if not asks:
        return 0, []
    head, *results = store_together(session, [_AskHead(), *asks])
    return head.last if isinstance(head, _Head) else 0, results


def _outcome(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:  # noqa: BLE001  (it is handed to whoever asked)
        return error
