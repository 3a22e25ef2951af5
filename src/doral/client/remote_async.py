"""A store and its campaigns behind a service, for programs that go on meanwhile: as `remote`, awaited."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeAlias, TypeVar

from doral._files import replacing
from doral.client.calls import Call, Page, answering
from doral.client.campaign_calls import CampaignCalls, StoreCalls
from doral.client.connection_async import AsyncConnection
from doral.client.following import CampaignEvent, Feed, count_rows, refused
from doral.engine.options import PolicyOptions
from doral.live.page.file import page_path, write_page
from doral.live.page.page import page
from doral.live.views.groups import ServedTables
from doral.live.views.report import Report
from doral.problem import Problem
from doral.wire.problems import ServiceError

Asked = ParamSpec("Asked")
Result = TypeVar("Result")
Item = TypeVar("Item")
Awaited: TypeAlias = Coroutine[Any, Any, Result]


def _sent(
    make: Callable[Concatenate[CampaignCalls, Asked], Call[Result]],
) -> Callable[Concatenate[AsyncCampaign, Asked], Awaited[Result]]:
    """A method that sends what this makes, and returns what is read of the answer."""

    @wraps(make)
    async def method(self: AsyncCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Result:
        return await self._connection.send(make(self._calls, *args, **kwargs))

    return answering(method, make, "{}")


def _paged(
    make: Callable[Concatenate[CampaignCalls, Asked], Call[Page[Item]]],
) -> Callable[Concatenate[AsyncCampaign, Asked], AsyncIterator[Item]]:
    """A method that yields all items, page by page; what is wrong with the question is said at once."""

    @wraps(make)
    def method(self: AsyncCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> AsyncIterator[Item]:
        return self._connection.pages(make(self._calls, *args, **kwargs))

    return answering(method, make, "AsyncIterator[{}]")


def _followed(
    make: Callable[Concatenate[CampaignCalls, Asked], Feed],
) -> Callable[Concatenate[AsyncCampaign, Asked], AsyncIterator[CampaignEvent]]:
    @wraps(make)
    def method(self: AsyncCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> AsyncIterator[CampaignEvent]:
        return self._connection.follow(make(self._calls, *args, **kwargs))

    return answering(method, make, "AsyncIterator[CampaignEvent]")


class AsyncCampaign:
    """A campaign behind a service, for programs that go on meanwhile: the calls of `doral.RemoteCampaign`, awaited.

    `decisions` and `events` are for `async for`, and the problem is asked for by `await campaign.problem()`.
    """

    def __init__(self, connection: AsyncConnection, calls: CampaignCalls) -> None:
        """Use `create` or `campaign` of a store that `doral.connect_async` gave.

        Args:
            connection: To the service.
            calls: The requests about this campaign.
        """
        self._connection, self._calls = connection, calls

    @property
    def name(self) -> str:
        """As it was created with."""
        return self._calls.name

    def __repr__(self) -> str:
        return f"<AsyncCampaign {self.name!r} at {self._connection.wiring.address.url}>"

    problem = _sent(CampaignCalls.problem)
    decide = _sent(CampaignCalls.decide)
    decide_many = _sent(CampaignCalls.decide_many)
    feedback = _sent(CampaignCalls.feedback)
    feedback_many = _sent(CampaignCalls.feedback_many)
    feedback_each = _sent(CampaignCalls.feedback_each)
    correct = _sent(CampaignCalls.correct)
    cancel = _sent(CampaignCalls.cancel)
    expire = _sent(CampaignCalls.expire)
    record = _sent(CampaignCalls.record)
    record_many = _sent(CampaignCalls.record_many)
    add_arm = _sent(CampaignCalls.add_arm)
    pause = _sent(CampaignCalls.pause)
    resume = _sent(CampaignCalls.resume)
    pause_arm = _sent(CampaignCalls.pause_arm)
    resume_arm = _sent(CampaignCalls.resume_arm)
    retire_arm = _sent(CampaignCalls.retire_arm)
    top_up = _sent(CampaignCalls.top_up)
    extend = _sent(CampaignCalls.extend)
    repair_clock = _sent(CampaignCalls.repair_clock)
    forget = _sent(CampaignCalls.forget)
    close = _sent(CampaignCalls.close)
    definition = _sent(CampaignCalls.definition)
    decision = _sent(CampaignCalls.decision)
    decisions = _paged(CampaignCalls.decisions)
    decision_page = _sent(CampaignCalls.decision_page)
    decision_with_key = _sent(CampaignCalls.decision_with_key)
    ledger = _sent(CampaignCalls.ledger)
    facts = _sent(CampaignCalls.facts)
    verify = _sent(CampaignCalls.verify)
    health = _sent(CampaignCalls.health)
    alarms = _sent(CampaignCalls.alarms)
    events = _followed(CampaignCalls.events)

    async def report(self) -> Report:
        """Spend, pace, pending, return curves, cut-off and values: the campaign at a glance."""
        found = await self._connection.send(self._calls.report())
        return replace(found, read_served=_not_while_awaited) if found.person else found

    async def page(self, path: str | Path | None = None) -> str:
        """The campaign as an HTML page that needs nothing but itself: returned as text, and written if asked.

        The service gathers what it shows; the page is made here.

        Args:
            path: A file ending in .html to write the page to, whole or not at all; None: it is only returned. A page
                of before is replaced; a file that is none is refused.
        """
        file = None if path is None else page_path(path)
        facts = await self.facts()
        text = await asyncio.to_thread(page, facts)
        if file is not None:
            await asyncio.to_thread(write_page, file, text)
        return text

    async def export(self, path: str | Path) -> int:
        """Every decision into a .parquet or .csv file on this host, whole or not at all; returns how many.

        Args:
            path: The file; its ending says which of the two it is. One that is there is replaced.
        """
        target, asked = self._calls.export(path)
        try:
            with replacing(target, is_private=True) as file:
                await self._connection.download(asked, file)
                file.flush()
                return await asyncio.to_thread(count_rows, file.name, asked.format)
        except OSError as error:
            raise refused(target, error) from error


class AsyncStore:
    """Campaigns behind a service, with the calls of `doral.RemoteStore`, awaited. Made by `doral.connect_async`.

    For one event loop; use it by `async with`, or `await` its `close`.
    """

    def __init__(self, connection: AsyncConnection, draw_key: Callable[[], str]) -> None:
        """Use `doral.connect_async` instead.

        Args:
            connection: To the service.
            draw_key: Gives a new key for a request whose caller has given none.
        """
        self._connection, self._draw_key = connection, draw_key
        self._calls = StoreCalls(draw_key)

    def __repr__(self) -> str:
        return f"<AsyncStore {self._connection.wiring.address.url}>"

    async def create(
        self,
        name: str,
        problem: Problem,
        policy: str | PolicyOptions = "doral-otf",
        seed: int | None = None,
        clock: str = "seconds",
        at: object = None,
        until: object = None,
    ) -> AsyncCampaign:
        """A new campaign. The seed of its coin is drawn if none is given.

        Args:
            name: Of the campaign; no other in the store may have it.
            problem: Arms, contexts, budget and end. Its deadlines are in seconds, or in rounds if `clock` says so.
            policy: A name, or a `doral.policy(...)`; a `doral.external(...)` model cannot be sent.
            seed: Of the policy's coin; None: it is drawn.
            clock: How delays are measured: in "seconds", or in "rounds" (arrivals), as in a simulation.
            at: Where a clock in seconds starts, as for `doral.Store`; None: now.
            until: Ends the campaign with a date, as for `doral.Store`; None: as the problem says.
        """
        call = self._calls.create(name, problem, policy, seed, clock, at, until)
        return self._made(await self._connection.send(call))

    async def campaign(self, name: str) -> AsyncCampaign:
        """A campaign by name; UnknownName where the service has none that the key is for.

        Args:
            name: As it was created with.
        """
        return self._made(await self._connection.send(self._calls.campaign(name)))

    async def list(self) -> builtins.list[str]:
        """The names of all campaigns that the key is for."""
        return [one async for one in self._connection.pages(self._calls.list())]

    async def alarms(self) -> builtins.list[dict[str, Any]]:
        """What the service has raised an alarm about, in plain values; of the campaigns that the key is for."""
        return await self._connection.send(self._calls.alarms())

    async def close(self) -> None:
        """Give all connections back. Campaigns stay as they are; one that is used again opens its own."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _made(self, name: str) -> AsyncCampaign:
        return AsyncCampaign(self._connection, CampaignCalls(name, self._draw_key))


def _not_while_awaited() -> ServedTables:
    words = "who is served is read from the whole log: ask campaign.facts(), or read campaign.decisions() yourself"
    raise ServiceError(words, "not-offered")
