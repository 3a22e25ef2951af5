"""`doral.open`: a store of campaigns."""

from __future__ import annotations

import builtins
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from doral import _check
from doral.engine.options import PolicyOptions
from doral.engine.setup import machine_bytes
from doral.errors import InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import BrokenLog
from doral.live.events.codec import encode
from doral.live.events.event import Created, Place
from doral.live.events.row import beginning, seal
from doral.live.external import ExternalCampaign
from doral.live.kinds.request import Result
from doral.live.runtime import backup
from doral.live.runtime.clock import Stamp, ending, timestamp
from doral.live.runtime.open_sessions import OpenSessions
from doral.live.runtime.replay import LogReader
from doral.live.runtime.session import CLOCK_TOLERANCE_S, Session
from doral.live.state.definition import make_definition
from doral.live.state.own_policy import OWN, Code, label_of, load_code, make_own_policy
from doral.live.state.state import CampaignState
from doral.live.storage.connection import Timeouts, refuse_child
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.storage.service_tables import ActRow, Books
from doral.live.storage.urls import redacted
from doral.live.views.report import store_card
from doral.prediction.external import External
from doral.problem import Problem

_ESTIMATES = "doral-otf"  # what makes the estimates in reports where a policy of the user's own decides
_SHARE_OF_MEMORY = 4  # states of campaigns take at most one such part of the machine's, where connections are shared


def open(  # noqa: A001  (read as `doral.open`)
    url: str,
    *,
    create: bool = True,
    lock_timeout_s: float = 60.0,
    statement_timeout_s: float = 20.0,
    connect_timeout_s: float = 10.0,
    clock_tolerance_s: float = CLOCK_TOLERANCE_S,
    code: Mapping[str, Code] | None = None,
) -> Store:
    """A store: `memory://`, `sqlite:///file.db` (made if it is not there), or `postgresql://user@host/database`.

    Args:
        url: Where the store is: one of these three. What is in `memory://` ends with the process.
        create: Whether a file that is not there is made; False: it is an error.
        lock_timeout_s: Seconds to wait for others who are writing.
        statement_timeout_s: Seconds to wait for one answer of PostgreSQL.
        connect_timeout_s: Seconds to wait for a connection to PostgreSQL.
        clock_tolerance_s: Seconds by which clocks may disagree: a time that is further ahead of this host's clock is
            refused.
        code: By campaign, a policy or a model of your own: `package.module:attribute`, a `doral.external(...)`, or a
            class or function (problem, seed). Opening such a campaign reads its whole log.

    >>> open("memory://").list()
    []
    """
    if not isinstance(create, bool):
        raise InvalidValue("create", create, "must be True or False")
    load_code(code)  # before a file is made
    timeouts = Timeouts(lock_s=lock_timeout_s, statement_s=statement_timeout_s, connect_s=connect_timeout_s)
    tolerance_s = _check.finite_number("clock_tolerance_s", clock_tolerance_s, at_least=0)
    storage = _storage(url, create=create, timeouts=timeouts)
    return Store(storage, clock_tolerance_s=tolerance_s, code=code)


def _storage(url: object, *, create: bool = True, timeouts: Timeouts | None = None) -> Storage:
    if isinstance(url, str):
        if url in ("memory://", "memory:"):
            from doral.live.storage.memory import MemoryStorage

            return MemoryStorage()
        if url.startswith(("sqlite:", "postgresql://", "postgres://")):
            from doral.live.storage.sql import SqlStorage

            return SqlStorage(url, create=create, timeouts=timeouts)
    raise InvalidValue("url", redacted(url), "must be memory://, sqlite:///file.db or postgresql://...")


class Glimpse:
    """A campaign of a store at one moment. Made by `Store.glimpses`."""

    def __init__(self, row: CampaignRow, log: Log) -> None:
        self.name = row.name
        self._row, self._log = row, log

    @property
    def last_event(self) -> int:
        """Its number: whoever has seen it need not look again. -1 where the log cannot be read."""
        if self._row.last_event is not None:
            return self._row.last_event
        try:
            return self._log.head()[0]
        except BrokenLog:
            return -1

    def read(self, ask: Callable[[Log, CampaignState], Result]) -> Result:
        """Ask something of its state, which is made of a snapshot and the events since: quick where these are few."""
        return ask(self._log, LogReader(self._row).read(self._log))


class Store:
    """Campaigns that are kept in one place. Safe to share between threads; use as a context manager or `close` it."""

    def __init__(
        self,
        storage: Storage,
        *,
        clock_tolerance_s: float = CLOCK_TOLERANCE_S,
        code: Mapping[str, Code] | None = None,
    ) -> None:
        """Use `doral.open` instead.

        Args:
            storage: Where the campaigns are.
            clock_tolerance_s: Seconds by which clocks may disagree.
            code: By campaign, a policy or a model of your own.
        """
        self._code, self._loaded = dict(code or {}), load_code(code)
        self._is_closed = False
        self._storage = storage
        self._clock_tolerance_s = clock_tolerance_s
        self._campaigns: dict[str, Campaign] = {}
        self._sessions: list[Session] = []
        self._opened = OpenSessions()
        if storage.shares_connections and (there := machine_bytes()) is not None:
            self._opened.most_bytes = there // _SHARE_OF_MEMORY
        self._lock = Lock()
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<Store {self._storage.url}{', closed' if self._is_closed else ''}>"

    def _repr_html_(self) -> str:
        with self._lock:
            opened = {name: one.session.last_seen for name, one in self._campaigns.items() if not one.is_gone}
        return store_card(self._storage, opened, is_closed=self._is_closed)

    def create(
        self,
        name: str,
        problem: Problem,
        policy: str | PolicyOptions | External = "doral-otf",
        seed: int | None = None,
        clock: str = "seconds",
        at: object = None,
        until: object = None,
        *,
        _act: ActRow | None = None,
    ) -> Campaign:
        """A new campaign. The seed of its coin is drawn if none is given.

        Args:
            name: Of the campaign; no other in the store may have it.
            problem: Arms, contexts, budget and end. Its deadlines are in seconds, or in rounds if `clock` says so.
            policy: A name from `doral.policies()`, a `doral.policy(...)`, or a `doral.external(...)` model; "own": what
                `doral.open(..., code=)` names for this campaign.
            seed: Of the policy's coin; None: it is drawn.
            clock: How delays are measured, and in what the deadline and the cut-off are: in "seconds", or in "rounds"
                (arrivals), as in a simulation.
            at: Where a clock in seconds starts: seconds since 1970, or a datetime with its time zone. Nothing can be
                filled in from before that. None: now.
            until: Ends the campaign with a date (a datetime, ISO text, or seconds since 1970; a date alone is the end
                of that day, in UTC) in place of the problem's end; its horizon is then what is expected. None: as the
                problem says.
        """
        name = _check.name("name of a campaign", name)
        own, maker = None, None
        if isinstance(policy, str) and policy == OWN:
            code = self._loaded.get(name)
            if code is None:
                remedy = f"needs code: doral.open(url, code={{{name!r}: 'package.module:attribute'}})"
                raise InvalidValue("policy", policy, remedy)
            if isinstance(code, External):
                policy = code
            else:
                policy, own, maker = _ESTIMATES, label_of(self._code[name]), code
        model = policy if isinstance(policy, External) else None
        if isinstance(policy, External):
            problem, policy = policy.of_campaign(problem), policy.options
        now = time.time()
        if at is not None and not _check.is_among(clock, ("seconds",)):
            raise InvalidValue("at", at, "is for a clock in seconds; one that counts rounds starts at 0")
        began = now if at is None else self._beginning(at, now)
        definition = make_definition(
            name=name,
            problem=problem if until is None or not isinstance(problem, Problem) else ending(problem, until, began),
            policy=policy,
            seed=secrets.randbits(53) if seed is None else seed,
            clock=clock,
            created_at=began,
            own=own,
        )
        if own is not None and maker is not None:
            make_own_policy(own, maker, definition.problem, definition.seed)  # before anything is stored
        tag = secrets.token_hex(4)
        created = Created(Place(1, 0.0, now, secrets.randbits(62)), definition.to_json())
        first = seal(encode(created), before=beginning(tag), salt=b"", engine=1)
        self._storage.create(name=name, tag=tag, first=first, act=_act)
        return self.campaign(name, model=None if name in self._loaded else model)

    def _beginning(self, at: object, now: float) -> float:
        began = timestamp("at", at, in_seconds=True)
        if began < 0:
            raise InvalidValue("at", at, "must not be before 1970")
        Stamp(0, now, self._clock_tolerance_s).refuse_ahead("at", began)
        return began

    def campaign(self, name: str, *, model: External | None = None) -> Campaign:
        """A campaign by name; the same object every time, as long as it was not deleted.

        Args:
            name: As it was created with.
            model: A `doral.external(...)`, which then predicts for whoever arrives: a new object every time.
        """
        if model is not None:
            if not isinstance(model, External):
                raise InvalidValue("model", model, "must be a doral.external(...)")
            return ExternalCampaign(self.campaign(name).session, model)
        name = _check.name("name of a campaign", name)
        refuse_child(self._pid)
        with self._lock:
            found = self._campaigns.get(name)
        if found is not None and not found.is_gone:
            return found
        row = self._storage.find(name)  # others need not wait for it
        if row is None:
            raise UnknownName("campaign", name, self.list())
        with self._lock:
            found = self._campaigns.get(name)
            if found is None or found.is_gone:
                self._forget_gone()
                code = self._loaded.get(name)
                session = Session(
                    self._storage,
                    row,
                    clock_tolerance_s=self._clock_tolerance_s,
                    opened=self._opened,
                    maker=None if isinstance(code, External) else code,
                )
                self._sessions.append(session)
                found = ExternalCampaign(session, code) if isinstance(code, External) else Campaign(session)
                self._campaigns[name] = found
            return found

    def _forget_gone(self) -> None:
        """Campaigns that were deleted, here or elsewhere, keep no session."""
        for session in self._sessions:
            if session.is_gone:
                session.close()
        self._sessions = [one for one in self._sessions if not one.is_gone]
        self._campaigns = {name: one for name, one in self._campaigns.items() if not one.is_gone}

    @property
    def _shares_connections(self) -> bool:
        """Whether a campaign of it holds a connection only while it is used."""
        return self._storage.shares_connections

    @property
    def books(self) -> Books:
        """What `doral serve` keeps beside the campaigns: keys, administrative acts, alarms."""
        return self._storage.books()

    def list(self) -> list[str]:
        """The names of all campaigns."""
        return [row.name for row in self._storage.campaigns()]

    def last_seen(self, name: str) -> CampaignState | None:
        """Return the state of a campaign as of its last request in this process; None: there was none.

        Nothing is read.

        Args:
            name: The name of the campaign.
        """
        found = self._campaigns.get(_check.name("name of a campaign", name))
        return None if found is None or found.is_gone else found.session.last_seen

    def _heads(self) -> dict[str, int]:
        """The number of the last event of every campaign, by name: whoever has seen it need not look again."""
        return self._storage.heads()

    @contextmanager
    def glimpses(self) -> Iterator[builtins.list[Glimpse]]:
        """All campaigns by name as they are at one moment, through one connection: none of them is opened for it.

        For those who show many; only inside the block.
        """
        with self._storage.reading() as found:
            yield [Glimpse(row, log) for row, log in found]

    def _keep_open(self, most: int) -> None:
        """So many campaigns keep their connections; others give theirs back when they are not in use.

        Where campaigns share connections, so many are in use at once.
        """
        if self._storage.shares_connections:
            self._storage.lend_at_most(most)
        else:
            self._opened.most = most

    def close(self) -> None:
        """Give all connections back. Campaigns stay as they are; one that is used again opens its own."""
        with self._lock:
            for session in self._sessions:
                session.close()
            self._storage.close()
            self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def backup(self, path: str | Path, names: Iterable[str] | None = None, *, keys: bool = False) -> int:
        """All campaigns, or those of these names, as they are at this moment, into a new SQLite file; how many.

        Others may go on writing meanwhile. The file is a store itself, whole or not there at all. Of a service it
        holds no sessions, acts or alarms, and keys only where that is asked for.

        Args:
            path: A file that is not there yet.
            names: Of the campaigns; None: all.
            keys: Whether the keys of a service are in it, as they are stored: their hashes, which open nothing.
        """
        return backup.back_up(self._storage, path, names, keys=keys)

    def restore(self, path: str | Path, name: str | None = None, *, keys: bool = False) -> builtins.list[str]:
        """The campaigns of a backup, or the one of this name, into this store, all or none; their names.

        A campaign that is there already is refused: delete it first.

        Args:
            path: A file that `backup` has written.
            name: Of one campaign; None: all that are in it.
            keys: Whether keys that it holds are put into this store, too, where they are not there yet.
        """
        return backup.restore(self._storage, path, name, keys=keys)

    def delete(self, name: str) -> None:
        """Take a campaign out for good, with all that the database holds of it.

        Args:
            name: Of the campaign.
        """
        name = _check.name("name of a campaign", name)
        rows = {row.name: row for row in self._storage.campaigns()}
        if name not in rows:
            raise UnknownName("campaign", name, rows)
        self._storage.delete(rows[name])
        with self._lock:
            found = self._campaigns.pop(name, None)
            if found is not None:
                found.session.is_gone = True
                found.session.close()
            self._forget_gone()
