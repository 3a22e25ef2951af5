"""What is counted while the service runs, for Prometheus. Each replica counts for itself; Prometheus adds them up."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from doral.live.views.decision import Decision

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
