"""Numbers for Prometheus: what is counted while the service runs, and what is looked up when it is asked.

Each replica counts for itself; Prometheus adds them up.
"""

from __future__ import annotations

import platform
import time
from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from doral._version import VERSION
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.events.event import IS_PENDING
from doral.live.state.state import CampaignState
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.service.operations.alarm_rules import RULES

MOST_CAMPAIGNS = 1_000  # with numbers of their own: names come from outside, and each costs memory here and elsewhere
MOST_CODES = 100
OTHER = "other"

# When a count began: as many series again, which nobody reads.
disable_created_metrics()  # type: ignore[no-untyped-call]

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class Metrics:
    """Called by whoever does something; cheap enough to be called for every request. Safe to share between threads."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._decisions = Counter(
            "doral_decisions",
            "Decisions that were stored; one that is only told again by its key is none.",
            ("campaign", "outcome"),
            registry=registry,
        )
        self._skips = Counter(
            "doral_skips", "Who was not served, by reason.", ("campaign", "reason"), registry=registry
        )
        self._answers = Counter(
            "doral_answers",
            "Answers that were taken, by the state that they led to; one that is told again counts again.",
            ("campaign", "state"),
            registry=registry,
        )
        self._group_size = Histogram(
            "doral_group_size", "Requests that were stored together.", buckets=_SIZES, registry=registry
        )
        self._lock_wait = Histogram(
            "doral_lock_wait_seconds", "How long the first of a group waited for its turn.", buckets=_SECONDS,
            registry=registry,
        )  # fmt: skip
        self._store = Histogram(
            "doral_store_seconds", "How long it took to store a group.", buckets=_SECONDS, registry=registry
        )
        self._requests = Histogram(
            "doral_request_seconds", "How long requests took.", ("route", "method"), buckets=_SECONDS, registry=registry
        )
        self._responses = Counter(
            "doral_responses", "Requests that were answered.", ("route", "method", "status"), registry=registry
        )
        self._errors = Counter(
            "doral_errors", "Requests that were refused or failed, by code.", ("code",), registry=registry
        )
        self._streams = Gauge("doral_event_streams", "Event streams that are open.", registry=registry)
        # What was looked up once: the library's own way takes several times as long.
        self._children: dict[tuple[object, ...], Counter] = {}
        self._latencies: dict[tuple[str, str], Histogram] = {}
        self._campaigns: set[str] = set()
        self._codes: set[str] = set()

    def campaign_label(self, campaign: str) -> str:
        """Its name; "other" for those beyond the first thousand that this process has seen."""
        if campaign in self._campaigns:
            return campaign
        if len(self._campaigns) >= MOST_CAMPAIGNS:
            return OTHER
        self._campaigns.add(campaign)
        return campaign

    def _child(self, family: Counter, *labels: str) -> Counter:
        place = (family, *labels)
        found = self._children.get(place)
        if found is None:
            found = self._children[place] = family.labels(*labels)
        return found

    def decided(self, campaign: str, decisions: Sequence[Decision]) -> None:
        """Decisions that were stored; one that is only told again by its key is none."""
        label = self.campaign_label(campaign)
        skipped = [one.reason_code for one in decisions if one.arm is None]
        served = len(decisions) - len(skipped)
        if served:
            self._child(self._decisions, label, "served").inc(served)
        if skipped:
            self._child(self._decisions, label, "skipped").inc(len(skipped))
            for reason, count in Tally(skipped).items():
                self._child(self._skips, label, reason).inc(count)

    def answered(self, campaign: str, decisions: Sequence[Decision]) -> None:
        """Answers that were taken, with the states that they led to."""
        label = self.campaign_label(campaign)
        for state, count in Tally(one.state for one in decisions).items():
            self._child(self._answers, label, state).inc(count)

    def grouped(self, campaign: str, size: int, *, waited_s: float, stored_s: float) -> None:
        """Requests that were stored together: how long the first of them waited, and how long storing took."""
        del campaign  # a histogram for each of many campaigns would be large, and say little
        self._group_size.observe(size)
        self._lock_wait.observe(waited_s)
        self._store.observe(stored_s)

    def answered_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request was answered."""
        latency = self._latencies.get((route, method))
        if latency is None:
            latency = self._latencies[route, method] = self._requests.labels(route, method)
        latency.observe(seconds)
        self._child(self._responses, route, method, str(status)).inc()

    def refused(self, code: str) -> None:
        """A request was refused, or failed, for a reason that has this code."""
        if code not in self._codes:
            if len(self._codes) >= MOST_CODES:
                code = OTHER
            self._codes.add(code)
        self._child(self._errors, code).inc()

    def stream_opened(self) -> None:
        """Somebody follows a campaign."""
        self._streams.inc()

    def stream_closed(self) -> None:
        """And does no longer."""
        self._streams.dec()


_WITHIN_S = 0.1  # for reading campaigns that this process has not seen; the others have their turn the next time


KEPT_OPEN = 50  # campaigns; each has its state in memory, and in SQLite a connection of its own


@contextmanager
def briefly(store: Store, name: str, *, of: int, most: int = KEPT_OPEN) -> Iterator[Campaign]:
    """The campaign; given back afterwards where nobody else in this process uses it, and there are many of them.

    Args:
        store: That holds it.
        name: Of the campaign.
        of: How many campaigns there are.
        most: How many are kept ready.
    """
    campaign = store.campaign(name)
    was_open = campaign.session.is_open
    try:
        yield campaign
    finally:
        if of > most and not was_open:
            campaign.session.close()


def in_turn(names: Iterable[str], after: str) -> list[str]:
    """All of them by name, beginning behind this one.

    >>> in_turn(["a", "d", "c", "b"], after="b")
    ['c', 'd', 'a', 'b']
    """
    ordered = sorted(names)
    at = bisect_right(ordered, after)
    return ordered[at:] + ordered[:at]


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
