"""Results as tidy frames: one row per fact, paired differences with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue, UnknownName
from doral.simulation.results.differences import Difference, Differences, difference_of, interval, pairs_of
from doral.simulation.results.outcome import BY_END, METRICS, WITHIN_DEADLINE, Outcome
from doral.simulation.results.tables import SUMMARISED, decisions_of, html, line, rows_of_runs, summary_of, text

if TYPE_CHECKING:
    from doral.pages.figure import Figure

Metric: TypeAlias = Literal["within_deadline", "by_end", "within_cutoff"]
PlotKind: TypeAlias = Literal["reward", "regret", "difference", "share"]

_CERTIFICATE_SCHEMA = {
    "scenario": pl.String,
    "policy": pl.String,
    "run": pl.Int64,
    "context": pl.String,
    "arm": pl.String,
    "round": pl.Int64,
    "at_most": pl.Float64,
    "rival": pl.String,
    "at_least": pl.Float64,
    "price": pl.Float64,
    "price_low": pl.Float64,
    "price_high": pl.Float64,
}


@dataclass(frozen=True, repr=False)
class SimulationResult:
    """What policies did, run by run; every table below is computed from it.

    Two results are equal where everything in them is, to the bit. `print(result)` shows a table.

    Attributes:
        outcomes: What every policy did in every run, scenario by scenario.
        seed: Of the draws that all policies share.
    """

    outcomes: tuple[Outcome, ...]
    seed: int

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Names, in the order played."""
        return tuple(dict.fromkeys(outcome.scenario for outcome in self.outcomes))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names, in the order given; the first is the one that differences are taken to."""
        return tuple(dict.fromkeys(outcome.policy for outcome in self.outcomes))

    @property
    def worthless(self) -> tuple[str, ...]:
        """Scenarios in which nothing is worth its cost: the oracle spends and earns nothing, in any run."""
        earning = {outcome.scenario for outcome in self.outcomes if outcome.oracle > 0.0}
        return tuple(name for name in self.scenarios if name not in earning)

    @property
    def too_late(self) -> tuple[str, ...]:
        """Scenarios in which rewards came, but none within the deadline: it may be in the wrong unit."""
        came = {one.scenario for one in self.outcomes if one.rewards[BY_END] > 0.0}
        in_time = {one.scenario for one in self.outcomes if one.rewards[WITHIN_DEADLINE] != 0.0}
        return tuple(name for name in self.scenarios if name in came - in_time)

    def of(self, scenario: str, policy: str) -> list[Outcome]:
        """The outcomes of one policy on one scenario, by run.

        Args:
            scenario: Its name, see `scenarios`.
            policy: Its name, see `policies`.
        """
        found = [one for one in self.outcomes if one.scenario == scenario and one.policy == policy]
        if not found:
            known = sorted({f"{one.scenario} {one.policy}" for one in self.outcomes})
            raise UnknownName("combination", f"{scenario} {policy}", known)
        return sorted(found, key=lambda one: one.run)

    def rewards(self, scenario: str, policy: str, metric: str = "within_deadline") -> Floats:
        """The reward of every run.

        Args:
            scenario: The name of one that was played.
            policy: The name of one that played it.
            metric: Which rewards count: "within_deadline" (in time, whenever the run ended), "by_end" (heard by the
                last arrival, however late) or "within_cutoff" (by the age up to which the policy itself waits).
        """
        index = _metric_index(metric)
        return np.array([one.rewards[index] for one in self.of(scenario, policy)])

    def expected(self, scenario: str, policy: str) -> Floats:
        """Of every run, the expected worth of what was chosen: what `rewards` are on average, with less luck in it.

        Args:
            scenario: The name of one that was played.
            policy: The name of one that played it.
        """
        return np.array([one.expected for one in self.of(scenario, policy)])

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return dict.fromkeys((one.scenario, one.policy) for one in self.outcomes)

    def summary(self) -> pl.DataFrame:
        """Per scenario, policy and metric: reward, regret to the oracle, paired difference to the first policy.

        Where nothing is worth its cost the oracle earns nothing, and there is no share of it to speak of.
        """
        rows: list[dict[str, Any]] = []
        for scenario, policy in self._pairs():
            first = self.policies_in(scenario)[0]
            own, theirs = (rows_of_runs(self.of(scenario, one)).select(SUMMARISED) for one in (policy, first))
            rows += summary_of(scenario, policy, *({n: t[n].to_numpy() for n in SUMMARISED} for t in (own, theirs)))
        return pl.DataFrame(rows).fill_nan(None)

    def runs(self) -> pl.DataFrame:
        """One row per scenario, policy and run: rewards, decisions, spend, the race, the cut-off m, exploration."""
        return rows_of_runs(self.outcomes)

    def curves(self, metric: Metric = "within_deadline") -> pl.DataFrame:
        """Cumulative reward by round, averaged over runs, with the 95% interval of the mean.

        Args:
            metric: Which rewards count: "within_deadline", "by_end" or "within_cutoff", as in `rewards`.
        """
        index = _metric_index(metric)
        frames = []
        for scenario, policy in self._pairs():
            found = self.of(scenario, policy)
            rounds, tables = aligned(found, [one.curve for one in found])
            paths = tables[:, :, index]
            points = [interval(column) for column in paths.T]
            frames.append(
                pl.DataFrame(
                    {
                        "scenario": scenario,
                        "policy": policy,
                        "metric": metric,
                        "round": rounds,
                        "reward_mean": [point.mean for point in points],
                        "reward_low": [point.low for point in points],
                        "reward_high": [point.high for point in points],
                    }
                )
            )
        return pl.concat(frames).fill_nan(None)

    def courses(self) -> pl.DataFrame:
        """How policies went about it, by round, on average over runs: the cut-off m and the arms in play.

        A cut-off that is not known yet, because the race still looks for it, is missing; `runs` says how many had one.
        """
        frames = []
        for scenario, policy in self._pairs():
            found = self.of(scenario, policy)
            rounds, paths = aligned(found, [one.course for one in found])  # (runs, checkpoints, COURSE_COLUMNS)
            known = np.isfinite(paths[:, :, 0])
            points = [interval(column[is_known]) for column, is_known in zip(paths[:, :, 0].T, known.T, strict=True)]
            frames.append(
                pl.DataFrame(
                    {
                        "scenario": scenario,
                        "policy": policy,
                        "round": rounds,
                        "runs": known.sum(axis=0),
                        "cutoff_mean": [point.mean for point in points],
                        "cutoff_low": [point.low for point in points],
                        "cutoff_high": [point.high for point in points],
                        "arms_in_play": paths[:, :, 1].mean(axis=0),
                    }
                )
            )
        return pl.concat(frames).fill_nan(None)

    def certificates(self) -> pl.DataFrame:
        """One row per arm, context and run in which the arm was out at the end, and why."""
        rows = [
            {"scenario": one.scenario, "policy": one.policy, "run": one.run, **asdict(certificate)}
            for one in self.outcomes
            for certificate in one.certificates
        ]
        return pl.DataFrame(rows, schema=_CERTIFICATE_SCHEMA)

    def decisions(self) -> pl.DataFrame:
        """Return all arrivals in order: one row each, served or skipped. Needs `simulate(..., keep_decisions=True)`.

        Columns: scenario, policy, run, round (1 for the first who arrives), time (what the clock showed; the round
        where there is none), context, arm (null: skipped), probability (of exactly what was done; null for policies in
        Python, which do not say), reward, delay (in rounds, or in units of the clock; infinite: no answer ever comes),
        cost (list price of what was done; 0: skipped), where not all of that has to be paid also paid (what is, once
        it is known), and where people have features person (a number) and these. Who is skipped has no reward and no
        delay, unless the problem watches what doing nothing brings. Names are of type Enum: to join them with text,
        `.cast({"arm": pl.String})`. One scenario, policy and run of it is a log that `doral.read_log` reads.
        """
        return decisions_of(self.outcomes)

    def difference(
        self, policy: str, than: str, *, scenario: str | None = None, metric: Metric = "within_deadline"
    ) -> Difference:
        """How much more `policy` earns than `than`, over runs that both played with the same draws.

        `print` it for one sentence: "doral-otf earns 3.1% more than doral [2.2, 4.0], 20 paired runs".

        Args:
            policy: The name of the one.
            than: The name of the other.
            scenario: Where; may be left out where the result has only one.
            metric: Which rewards count: "within_deadline", "by_end" or "within_cutoff", as in `rewards`.
        """
        places = self.named_scenarios(scenario)
        if len(places) > 1:
            remedy = f"the result has several: name one of {', '.join(places)}, or ask differences() for all"
            raise InvalidValue("scenario", scenario, remedy)
        mine, theirs = self._paired((policy, than), places[0], metric)
        return difference_of(mine, theirs, policy=policy, than=than, scenario=places[0], metric=metric)

    def differences(
        self, *, scenario: str | Iterable[str] | None = None, metric: Metric = "within_deadline"
    ) -> Differences:
        """How much more every policy earns than every other: a matrix to look at, and a frame to work with.

        Args:
            scenario: The name of one, or of several; without it, all.
            metric: Which rewards count: "within_deadline", "by_end" or "within_cutoff", as in `rewards`.
        """
        found: list[Difference] = []
        for place in self.named_scenarios(scenario):
            policies = self.policies_in(place)
            rewards = dict(zip(policies, self._paired(policies, place, metric), strict=True))
            found += pairs_of(rewards, scenario=place, metric=metric)
        return Differences(tuple(found))

    def _paired(self, policies: Sequence[str], scenario: str, metric: str) -> list[Floats]:
        """Their rewards in the runs that all of them played."""
        index, known = _metric_index(metric), self.policies_in(scenario)
        for one in policies:
            if one not in known:
                raise UnknownName("policy", one, known)
        by_run = [{one.run: one.rewards[index] for one in self.of(scenario, policy)} for policy in policies]
        common = sorted(set.intersection(*(set(one) for one in by_run)))
        return [np.array([rewards[run] for run in common]) for rewards in by_run]

    def named_scenarios(self, scenario: str | Iterable[str] | None = None) -> tuple[str, ...]:
        """Those that are asked for, each once.

        Args:
            scenario: The name of one, or of several; without it, all.
        """
        if scenario is None:
            return self.scenarios
        try:
            chosen = tuple(dict.fromkeys([scenario] if isinstance(scenario, str) else scenario))
        except TypeError:
            remedy = "must be the name of a scenario, or a list of names"
            raise InvalidValue("scenario", scenario, remedy) from None
        for one in chosen:
            if one not in self.scenarios:
                raise UnknownName("scenario", one, self.scenarios)
        if not chosen:
            raise InvalidValue("scenario", chosen, f"must name at least one of {', '.join(self.scenarios)}")
        return chosen

    def policies_in(self, scenario: str) -> tuple[str, ...]:
        """The policies that played a scenario, in the order given.

        Args:
            scenario: Its name.
        """
        return tuple(dict.fromkeys(one.policy for one in self.outcomes if one.scenario == scenario))

    def save(self, path: str | Path) -> None:
        """Write everything to one file, the decisions included where they were kept; `doral.load` reads it.

        The file is there whole or not at all. It holds plain numbers and text, no code, and what is read back is equal
        to the bit: `doral.load(path) == result`. A file that stands there already is replaced.

        Args:
            path: Where to write it, "result.doral" for one; the folder must exist.
        """
        from doral.simulation.results.files import save  # here: it knows results

        save(self, path)

    def plot(
        self,
        kind: PlotKind = "reward",
        *,
        metric: Metric = "within_deadline",
        scenario: str | Iterable[str] | None = None,
    ) -> Figure:
        """A picture: the last line of a notebook's cell shows it, `.show()` opens it, `.savefig("a.png")` keeps it.

        It is a Matplotlib figure, to be styled further. Bands and bars are 95% intervals of the mean over runs; with
        fewer than 3 runs there are none.

        Args:
            kind: "reward": cumulative reward by round. "regret": how much the oracle, which knows what every arm is
                worth, is ahead by then. "difference": cumulative reward less that of the first policy in the same runs;
                above 0 is better. "share": what each earned in the end, in percent of the oracle.
            metric: Which rewards count: "within_deadline", "by_end" or "within_cutoff", as in `rewards`.
            scenario: The name of one, or of several; without it, all, in panels of their own.
        """
        from doral.simulation.results.plots import plot  # here: frames must not wait for Matplotlib

        return plot(self, kind=kind, metric=metric, scenario=scenario)

    def __repr__(self) -> str:
        return line(self)

    def __str__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


def aligned(found: Sequence[Outcome], tables: Sequence[Floats]) -> tuple[Ints, Floats]:
    """Checkpoints, and (runs, checkpoints, columns). Runs of different lengths meet at the same share of each."""
    rounds = [one.rounds for one in found]
    if all(np.array_equal(one, rounds[0]) for one in rounds):
        return rounds[0], np.array(tables)
    n = min(one.size for one in rounds)
    shares = np.arange(1, n + 1) / n
    paths = [
        np.column_stack([np.interp(shares, own / own[-1], column) for column in table.T])
        for own, table in zip(rounds, tables, strict=True)
    ]
    return np.round(shares * np.mean([own[-1] for own in rounds])).astype(np.int64), np.array(paths)


def _metric_index(metric: str) -> int:
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    return METRICS.index(metric)
