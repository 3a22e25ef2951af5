"""A store and its campaigns behind a service, with the calls of local ones. `remote_async` has the same, awaited."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from doral._files import replacing
from doral.client.calls import Call, Page, answering
from doral.client.campaign_calls import CampaignCalls, StoreCalls
from doral.client.connection import Connection
from doral.client.following import CampaignEvent, Feed, count_rows, refused
from doral.engine.options import PolicyOptions
from doral.live.page.file import page_path, write_page
from doral.live.page.page import page
from doral.live.views.groups import ServedTables
from doral.live.views.report import Report
from doral.problem import Problem

Asked = ParamSpec("Asked")
Result = TypeVar("Result")
Item = TypeVar("Item")


def _sent(
    make: Callable[Concatenate[CampaignCalls, Asked], Call[Result]],
) -> Callable[Concatenate[RemoteCampaign, Asked], Result]:
    """A method that sends what this makes, and returns what is read of the answer."""

    @wraps(make)
    def method(self: RemoteCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Result:
        return self._connection.send(make(self._calls, *args, **kwargs))

    return answering(method, make, "{}")


def _paged(
    make: Callable[Concatenate[CampaignCalls, Asked], Call[Page[Item]]],
) -> Callable[Concatenate[RemoteCampaign, Asked], Iterator[Item]]:
    """A method that yields all items, page by page; what is wrong with the question is said at once."""

    @wraps(make)
    def method(self: RemoteCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Iterator[Item]:
        return self._connection.pages(make(self._calls, *args, **kwargs))

    return answering(method, make, "Iterator[{}]")


def _followed(
    make: Callable[Concatenate[CampaignCalls, Asked], Feed],
) -> Callable[Concatenate[RemoteCampaign, Asked], Iterator[CampaignEvent]]:
    @wraps(make)
    def method(self: RemoteCampaign, /, *args: Asked.args, **kwargs: Asked.kwargs) -> Iterator[CampaignEvent]:
        return self._connection.follow(make(self._calls, *args, **kwargs))

    return answering(method, make, "Iterator[CampaignEvent]")


class RemoteCampaign:
    """A campaign behind a service: the calls of `doral.Campaign`, with the same arguments, results and errors.

    Made by `create` and `campaign` of a `doral.RemoteStore`; safe to share between threads. A request that got no
    answer is sent again with its key, so that nothing is decided, spent or counted twice; where the caller gives no
    key, one is drawn, and the decision tells it.

    Not offered are `save_snapshot`, `prepared` and `refit_if_due`, which concern the service's host, and `preview`. Nor
    is `decide_each`: a service stores arrivals that come together, from several threads or awaited, together anyway.
    """

    def __init__(self, connection: Connection, calls: CampaignCalls) -> None:
        """Use `create` or `campaign` of a store that `doral.connect` gave.

        Args:
            connection: To the service.
            calls: The requests about this campaign.
        """
        self._connection, self._calls = connection, calls

    @property
    def name(self) -> str:
        """As it was created with."""
        return self._calls.name

    @property
    def problem(self) -> Problem:
        """As it is now, with the arms that were added: the service is asked."""
        return self._connection.send(self._calls.problem())

    def __repr__(self) -> str:
        return f"<RemoteCampaign {self.name!r} at {self._connection.wiring.address.url}>"

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

    def report(self) -> Report:
        """Spend, pace, pending, return curves, cut-off and values: the campaign at a glance."""
        found = self._connection.send(self._calls.report())
        if not found.person:
            return found
        return replace(found, read_served=lambda: ServedTables(self.problem.person).read(self.decisions()))

    def page(self, path: str | Path | None = None) -> str:
        """The campaign as an HTML page that needs nothing but itself: returned as text, and written if asked.

        The service gathers what it shows; the page is made here.

        Args:
            path: A file ending in .html to write the page to, whole or not at all; None: it is only returned. A page
                of before is replaced; a file that is none is refused.
        """
        file = None if path is None else page_path(path)
        text = page(self.facts())
        if file is not None:
            write_page(file, text)
        return text

    def export(self, path: str | Path) -> int:
        """Every decision into a .parquet or .csv file on this host, whole or not at all; returns how many.

        Args:
            path: The file; its ending says which of the two it is. One that is there is replaced.
        """
        target, asked = self._calls.export(path)
        try:
            with replacing(target, is_private=True) as file:
                self._connection.download(asked, file)
                file.flush()
                return count_rows(file.name, asked.format)
        except OSError as error:
            raise refused(target, error) from error


class RemoteStore:
    """Campaigns behind a service, with the calls of `doral.Store`. Made by `doral.connect`.

    Safe to share between threads; a forked child makes connections of its own. Use as a context manager or `close` it.
    What concerns files of the service's host is not offered (`backup`, `restore`, `delete`), nor a `model` that
    predicts: open the store itself there.
    """

    def __init__(self, connection: Connection, draw_key: Callable[[], str]) -> None:
        """Use `doral.connect` instead.

        Args:
            connection: To the service.
            draw_key: Gives a new key for a request whose caller has given none.
        """
        self._connection, self._draw_key = connection, draw_key
        self._calls = StoreCalls(draw_key)

    def __repr__(self) -> str:
        return f"<RemoteStore {self._connection.wiring.address.url}>"

    def create(
        self,
        name: str,
        problem: Problem,
        policy: str | PolicyOptions = "doral-otf",
        seed: int | None = None,
        clock: str = "seconds",
        at: object = None,
        until: object = None,
    ) -> RemoteCampaign:
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
        return self._made(self._connection.send(self._calls.create(name, problem, policy, seed, clock, at, until)))

    def campaign(self, name: str) -> RemoteCampaign:
        """A campaign by name; UnknownName where the service has none that the key is for.

        Args:
            name: As it was created with.
        """
        return self._made(self._connection.send(self._calls.campaign(name)))

    def list(self) -> builtins.list[str]:
        """The names of all campaigns that the key is for."""
        return [*self._connection.pages(self._calls.list())]

    def alarms(self) -> builtins.list[dict[str, Any]]:
        """What the service has raised an alarm about, in plain values; of the campaigns that the key is for."""
        return self._connection.send(self._calls.alarms())

    def close(self) -> None:
        """Give all connections back. Campaigns stay as they are; one that is used again opens its own."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _made(self, name: str) -> RemoteCampaign:
        return RemoteCampaign(self._connection, CampaignCalls(name, self._draw_key))
