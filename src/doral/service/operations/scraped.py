"""What is looked up when somebody asks for the numbers: budgets, processes, alarms. Nothing here is counted."""

from __future__ import annotations

import platform
import time
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from functools import reduce
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from doral._version import VERSION
from doral.errors import DoralError
from doral.live.events.event import IS_PENDING
from doral.live.state.state import CampaignState
from doral.live.store import Store
from doral.service.operations.briefly import briefly
from doral.service.operations.metrics import MOST_CAMPAIGNS, OTHER, Metrics
from doral.service.operations.turns import in_turn
from doral.service.operations.watching import RULES

_WITHIN_S = 0.1  # for reading campaigns that this process has not seen; the others have their turn the next time


class Standing(NamedTuple):
    """Of one campaign, or of all that have no number of their own."""

    total: float
    spent: float
    reserved: float
    left: float
    pending: int

    @classmethod
    def of(cls, state: CampaignState) -> Standing:
        ledger = state.ledger
        return cls(
            float(ledger.total),
            float(ledger.spent),
            float(ledger.reserved),
            float(ledger.left),
            state.counts.states[IS_PENDING],
        )

    def plus(self, other: Standing) -> Standing:
        return Standing(
            self.total + other.total,
            self.spent + other.spent,
            self.reserved + other.reserved,
            self.left + other.left,
            self.pending + other.pending,
        )


def scrape(store: Store, metrics: Metrics) -> bytes:
    """All numbers as Prometheus reads them. Reads the store: not for the event loop."""
    registry = CollectorRegistry()
    process = ProcessCollector(registry=None).collect()
    registry.register(_Fixed([*metrics.registry.collect(), *_about(), *process, *_budgets(store)]))
    return generate_latest(registry)


class _Fixed(Collector):
    """Families that are made already."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        yield from self._families

    def describe(self) -> Iterator[Metric]:
        return iter(())


def _about() -> list[Metric]:
    info = InfoMetricFamily("doral_build", "What runs here.")
    info.add_metric((), {"version": VERSION, "python": platform.python_version()})
    return [info]


class _Standings:
    """Of the campaigns of one store, as they were last read: only those that have moved since are read again.

    Where there is no time for all of them, the next look goes on where this one ended: what is not read stays as it
    was, and is a few looks old.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, tuple[int, Standing]] = {}
        self._failed: set[str] = set()
        self._last = ""  # campaign that was read

    def look(self, store: Store) -> dict[str, Standing]:
        """By label: of the first campaigns by name each, and of all others together, once all of those were read."""
        with self._lock:
            heads = store._heads()
            self._known = {name: one for name, one in self._known.items() if name in heads}
            self._failed.intersection_update(heads)
            self._read(store, heads, time.monotonic() + _WITHIN_S)
            return self._labelled(sorted(heads))

    def note(self, name: str, state: CampaignState) -> None:
        """A campaign was read elsewhere in this process, up to here."""
        self._known[name] = (state.sequence, Standing.of(state))

    def _read(self, store: Store, heads: dict[str, int], until: float) -> None:
        for name in heads:  # what this process uses anyway is not read for it
            state = store.last_seen(name)
            if state is not None and self._known.get(name, (-1,))[0] != state.sequence:
                self.note(name, state)
        due = [name for name, last in heads.items() if name not in self._known or self._known[name][0] != last]
        for name in in_turn(due, after=self._last):
            if time.monotonic() > until:
                return
            self._last = name
            self._failed.discard(name)
            try:
                with briefly(store, name, of=len(heads)) as campaign:
                    self._known[name] = campaign.session.read(lambda _, state: (state.sequence, Standing.of(state)))
            except DoralError:  # its health tells of it
                self._known.pop(name, None)
                self._failed.add(name)

    def _labelled(self, names: list[str]) -> dict[str, Standing]:
        own, others = names[:MOST_CAMPAIGNS], names[MOST_CAMPAIGNS:]
        found = {name: self._known[name][1] for name in own if name in self._known}
        read = [self._known[name][1] for name in others if name in self._known]
        # A sum of some would grow with every look, though nothing has happened.
        if read and all(name in self._known or name in self._failed for name in others):
            found[OTHER] = reduce(Standing.plus, read)
        return found


_standings: WeakKeyDictionary[Store, _Standings] = WeakKeyDictionary()


def standings(store: Store) -> _Standings:
    """Of the campaigns of a store; the same object every time."""
    return _standings.setdefault(store, _Standings())


def _budgets(store: Store) -> list[Metric]:
    found = standings(store).look(store)
    families: list[Metric] = []
    for field, words in (
        ("total", "The whole budget of a campaign."),
        ("spent", "What is spent of it."),
        ("reserved", "What is reserved for open decisions."),
        ("left", "What can still be reserved."),
    ):
        family = GaugeMetricFamily(f"doral_budget_{field}", words, labels=("campaign",))
        for name, one in found.items():
            family.add_metric((name,), getattr(one, field))
        families.append(family)
    raised = GaugeMetricFamily("doral_alarms", "Alarms that are raised, by rule.", labels=("rule",))
    counts = dict.fromkeys(RULES, 0)  # those of which there is none, too: one can be told when it begins
    for rule, count in {**counts, **Tally(row.rule for row in store.books.alarms())}.items():
        raised.add_metric((rule,), count)
    pending = GaugeMetricFamily("doral_pending", "Decisions that wait for an answer.", labels=("campaign",))
    for name, one in found.items():
        pending.add_metric((name,), one.pending)
    return [*families, pending, raised]
