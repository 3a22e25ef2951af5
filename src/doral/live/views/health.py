"""How a campaign is: whether its store can be used, and what somebody should look after."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from doral.errors import DoralError
from doral.live.events.event import IS_LATE, IS_PENDING, IS_RETURNED
from doral.live.kinds.expire import overdue
from doral.live.runtime.session import Session
from doral.live.state.definition import engine_name
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.text import all_late, duration

_FEW_EVENTS = 50_000  # that are read anew in about a second
_SLOW_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Health:
    """What was found; None where it could not be found out.

    Attributes:
        name: Of the campaign.
        is_readable: Whether its log could be read.
        is_writable: Whether it could be written to.
        error: What stood in the way.
        read_s: How long it took to read what is new.
        write_s: How long it took to be the only writer; nothing was written.
        schema: Revision of the tables.
        events: In the log.
        last_event_at: By the clock of the host that wrote it.
        last_event_age_s: How long ago that was, in seconds.
        clock_ahead_s: The campaign's clock, of this host's; below 0 is the rule. None: it counts rounds.
        server_ahead_s: The database server's clock, of this host's.
        clock_stood_still: Events of hosts whose clocks were behind.
        engine: Of this process.
        engines: All that have written to the log.
        snapshot: Event of the newest one that the store lists; 0: there is none.
        events_since_snapshot: That have to be read anew when it is opened.
        pending: Open decisions.
        overdue: Those that `expire` would settle.
        is_closed: Whether no more decisions are made.
        budget_left_share: Of the whole budget.
        time_left_share: Of the arrivals that are expected, or of the time until the date.
        ends_by_date: Whether its end is a date.
        warnings: What is not as it should be, and what to do.
    """

    name: str
    is_readable: bool
    is_writable: bool
    error: str | None = None
    read_s: float | None = None
    write_s: float | None = None
    schema: str | None = None
    events: int | None = None
    last_event_at: float | None = None
    last_event_age_s: float | None = None
    clock_ahead_s: float | None = None
    server_ahead_s: float | None = None
    clock_stood_still: int | None = None
    engine: str | None = None
    engines: tuple[str, ...] = ()
    snapshot: int | None = None
    events_since_snapshot: int | None = None
    pending: int | None = None
    overdue: int | None = None
    is_closed: bool | None = None
    budget_left_share: float | None = None
    time_left_share: float | None = None
    ends_by_date: bool | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        return self.is_readable and self.is_writable and not self.warnings

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        found = asdict(self)
        lists = {name: list(found[name]) for name in ("engines", "warnings")}
        return {**found, **lists, "is_well": self.is_well}

    def __str__(self) -> str:
        lines = [f"campaign {self.name}: {'well' if self.is_well else 'needs attention'}"]
        if self.events is not None and self.last_event_at is not None and self.last_event_age_s is not None:
            when = datetime.fromtimestamp(self.last_event_at, UTC).isoformat(sep=" ", timespec="seconds")
            age = duration(max(0.0, self.last_event_age_s))
            lines.append(f"log       {self.events:,} events, the last one {age} ago ({when}), schema {self.schema}")
        if self.write_s is not None and self.read_s is not None:
            lines.append(f"store     read in {self.read_s:.3g} s, locked in {self.write_s:.3g} s")
        if self.pending is not None and self.overdue is not None:
            lines.append(f"decisions {self.pending:,} pending, {self.overdue:,} of them overdue")
        if self.budget_left_share is not None and self.time_left_share is not None:
            lines.append(
                f"left      {self.budget_left_share:.1%} of the budget, {self.time_left_share:.1%} of the time"
            )
        if self.error is not None:
            lines.append(f"error     {self.error}")
        return "\n".join([*lines, *(f"warning   {one}" for one in self.warnings)])


def examine(session: Session) -> Health:
    """Never raises for what it reports on."""
    found: dict[str, Any] = {"name": session.row.name, "is_readable": False, "is_writable": False}
    try:
        found["read_s"] = _timed(lambda: session.read(lambda _, state: state.sequence))
        found |= session.read(lambda log, state: _facts(log, state))
        found["is_readable"] = True
        found["write_s"] = _timed(session.try_to_write)
        found["is_writable"] = True
    except DoralError as error:
        found["error"] = str(error)
    said = _warnings(found, session.clock_tolerance_s)
    if (late := found.pop("all_late", None)) is not None:
        said.append(late)
    return Health(**found, warnings=tuple(said))


def _timed(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _facts(log: Log, state: CampaignState) -> dict[str, Any]:
    """Whatever the log and its state say."""
    now = time.time()
    last = log.events([state.sequence])[state.sequence].place
    definition = state.definition
    server = log.server_time()
    newest = next(iter(log.snapshots()), 0)
    shows = max(state.clock, now - definition.epoch) if definition.is_in_seconds else state.clock
    _, _, late = overdue(log, state, shows)
    until = state.engine.until
    return {
        "schema": log.schema_revision(),
        "events": state.sequence,
        "last_event_at": last.at,
        "last_event_age_s": now - last.at,
        "clock_ahead_s": definition.epoch + state.clock - now if definition.is_in_seconds else None,
        "server_ahead_s": None if server is None else server - now,
        "clock_stood_still": state.counts.clock_went_back,
        "engine": engine_name(),
        "engines": tuple(state.engines),
        "snapshot": newest,
        "events_since_snapshot": state.sequence - newest,
        "pending": state.counts.states[IS_PENDING],
        "overdue": sum(count for _, _, count in late),
        "is_closed": state.closed,
        "budget_left_share": float(state.ledger.left / state.ledger.total),
        "time_left_share": max(0.0, 1.0 - (state.time_share if until is None else shows / until)),
        "ends_by_date": until is not None,
        "all_late": all_late(
            returned=state.counts.states[IS_RETURNED],
            late=state.counts.states[IS_LATE],
            deadline=state.problem.deadline,
            is_in_seconds=definition.is_in_seconds,
        ),
    }


def _warnings(found: dict[str, Any], tolerance_s: float) -> list[str]:
    """Sentences with remedies."""
    said = []
    if (found.get("clock_ahead_s") or 0.0) > tolerance_s:
        ahead = duration(found["clock_ahead_s"])
        said.append(
            f"the campaign's clock is {ahead} ahead of this host's: if the host's is right, call repair_clock()"
        )
    if abs(found.get("server_ahead_s") or 0.0) > tolerance_s:
        apart = duration(abs(found["server_ahead_s"]))
        said.append(f"the clocks of this host and of the database server are {apart} apart: set the wrong one")
    if found.get("overdue"):
        said.append(f"{found['overdue']:,} decisions are overdue, and their budget is still reserved: call expire()")
    if (found.get("events_since_snapshot") or 0) > _FEW_EVENTS:
        since = found["events_since_snapshot"]
        said.append(f"no snapshot is newer than {since:,} events, so that opening is slow: call save_snapshot()")
    if (found.get("write_s") or 0.0) > _SLOW_S:
        said.append(f"it took {found['write_s']:.1f} s to get the lock: look for who keeps the store locked")
    if found.get("is_closed") is False and found.get("time_left_share") == 0.0:
        what = (
            "the date of its end has passed"
            if found.get("ends_by_date")
            else "all arrivals that were expected have come"
        )
        said.append(f"{what}: call extend(), or close()")
    if found.get("is_closed") is False and found.get("budget_left_share") == 0.0 and found["time_left_share"] > 0.0:
        said.append("the budget is used up before the time is: call top_up(), or close()")
    return said
