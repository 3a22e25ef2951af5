"""Results as tidy frames: one row per fact, paired differences with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue, UnknownName
from doral.simulation.outcome import METRICS, WITHIN_DEADLINE, ArrivalLog, DecisionLog, Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE = 0.95
_COLUMNS = ("scenario", "policy", "run", "round", "context", "arm", "reward", "delay", "time", "probability", "person")
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


@dataclass(frozen=True)
class Interval:
    """A mean with its standard error and a 95% interval (Student's t); unknown (NaN) from a single run."""

    mean: float
    se: float
    low: float
    high: float


def interval(sample: Floats) -> Interval:
    """The mean of independent runs."""
    n = sample.size
    mean = float(sample.mean()) if n else float("nan")
    if n < 2:
        return Interval(mean, float("nan"), float("nan"), float("nan"))
    se = float(sample.std(ddof=1) / np.sqrt(n))
    reach = se * t_quantile(n - 1)
    return Interval(mean, se, mean - reach, mean + reach)


def t_quantile(degrees: int) -> float:
    """How many standard errors a confidence interval reaches to each side."""
    from scipy.special import stdtrit  # here: SciPy takes longer to start than a short simulation to run

    return float(stdtrit(degrees, 0.5 + CONFIDENCE / 2.0))


@dataclass(frozen=True)
class SimulationResult:
    """What policies did, run by run; every table below is computed from it."""

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
        """Scenarios in which nothing is worth its cost: the clairvoyant spends and earns nothing, in any run."""
        earning = {outcome.scenario for outcome in self.outcomes if outcome.clairvoyant > 0.0}
        return tuple(name for name in self.scenarios if name not in earning)

    def of(self, scenario: str, policy: str) -> list[Outcome]:
        """The outcomes of one policy on one scenario, by run."""
        found = [one for one in self.outcomes if one.scenario == scenario and one.policy == policy]
        if not found:
            known = sorted({f"{one.scenario} {one.policy}" for one in self.outcomes})
            raise UnknownName("combination", f"{scenario} {policy}", known)
        return sorted(found, key=lambda one: one.run)

    def rewards(self, scenario: str, policy: str, metric: str = "within_deadline") -> Floats:
        """The reward of every run."""
        index = _metric_index(metric)
        return np.array([one.rewards[index] for one in self.of(scenario, policy)])

    def expected(self, scenario: str, policy: str) -> Floats:
        """Of every run, the expected worth of what was chosen: what `rewards` are on average, with less luck in it."""
        return np.array([one.expected for one in self.of(scenario, policy)])

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return dict.fromkeys((one.scenario, one.policy) for one in self.outcomes)

    def summary(self) -> pl.DataFrame:
        """Per scenario, policy and metric: reward, regret to the clairvoyant, paired difference to the first policy.

        Where nothing is worth its cost the clairvoyant earns nothing, and there is no share of it to speak of.
        """
        rows: list[dict[str, Any]] = []
        for scenario, policy in self._pairs():
            first = next(one.policy for one in self.outcomes if one.scenario == scenario)
            best = np.array([one.clairvoyant for one in self.of(scenario, policy)])
            for metric in METRICS:
                rewards = self.rewards(scenario, policy, metric)
                reward = interval(rewards)
                regret = float((best - rewards).mean())
                difference = interval(rewards - self.rewards(scenario, first, metric))
                rows.append(
                    {
                        "scenario": scenario,
                        "policy": policy,
                        "metric": metric,
                        "runs": rewards.size,
                        "reward_mean": reward.mean,
                        "reward_se": reward.se,
                        "clairvoyant_mean": float(best.mean()),
                        "clairvoyant_error": self._clairvoyant_error(scenario, policy),
                        "regret_mean": regret,
                        "regret_share": regret / float(best.mean()) if best.mean() > 0 else float("nan"),
                        "difference_mean": difference.mean,
                        "difference_low": difference.low,
                        "difference_high": difference.high,
                        **self._expected_columns(scenario, policy, first, metric),
                    }
                )
        return pl.DataFrame(rows).fill_nan(None)

    def _clairvoyant_error(self, scenario: str, policy: str) -> float:
        """The standard error of its mean, as far as people are samples of a law; 0 where they are not."""
        errors = np.array([one.clairvoyant_error for one in self.of(scenario, policy)])
        return float(np.sqrt((errors**2).sum()) / errors.size)

    def _expected_columns(self, scenario: str, policy: str, first: str, metric: str) -> dict[str, float]:
        """The same from what choices were worth, not from what luck made of them; known for `within_deadline` only."""
        expected = self.expected(scenario, policy) if metric == METRICS[WITHIN_DEADLINE] else np.zeros(0)
        others = self.expected(scenario, first) if expected.size else expected
        best = np.array([one.clairvoyant for one in self.of(scenario, policy)]).mean()
        worth, difference = interval(expected), interval(expected - others)
        return {
            "expected_mean": worth.mean,
            "expected_se": worth.se,
            "expected_share": worth.mean / float(best) if best > 0 else float("nan"),
            "expected_difference_mean": difference.mean,
            "expected_difference_low": difference.low,
            "expected_difference_high": difference.high,
        }

    def runs(self) -> pl.DataFrame:
        """One row per scenario, policy and run: rewards, decisions, spend, the race, the cut-off m, exploration."""
        return pl.DataFrame(
            [
                {
                    "scenario": one.scenario,
                    "policy": one.policy,
                    "run": one.run,
                    **dict(zip(METRICS, one.rewards, strict=True)),
                    "expected": one.expected,
                    "clairvoyant": one.clairvoyant,
                    "clairvoyant_error": one.clairvoyant_error,
                    "decisions": one.decisions,
                    "spend": one.spend,
                    "race_rounds": one.race_rounds,
                    "race_spend": one.race_spend,
                    "race_ended": one.race_ended,
                    "race_capped": one.race_capped,
                    "accepted": list(one.accepted),
                    "cutoff": one.cutoff,
                    "explored": one.explored,
                    "explored_loss": one.explored_loss,
                }
                for one in self.outcomes
            ]
        )

    def curves(self, metric: str = "within_deadline") -> pl.DataFrame:
        """Cumulative reward by round, averaged over runs, with the 95% interval of the mean."""
        index = _metric_index(metric)
        frames = []
        for scenario, policy in self._pairs():
            found = self.of(scenario, policy)
            rounds, tables = _aligned(found, [one.curve for one in found])
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
            rounds, paths = _aligned(found, [one.course for one in found])  # (runs, checkpoints, COURSE_COLUMNS)
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
        """Every decision; needs `simulate(..., keep_decisions=True)`. Where people have features, with these."""
        frames = []
        for one in self.outcomes:
            if one.log is None:
                remedy = "simulate with keep_decisions=True to have every decision"
                raise InvalidValue("keep_decisions", False, remedy)
            head = {"scenario": one.scenario, "policy": one.policy, "run": one.run}
            frames.append(
                pl.DataFrame(
                    {
                        **head,
                        "round": one.log.round,
                        "context": one.log.context,
                        "arm": one.log.arm,
                        "reward": one.log.reward,
                        "delay": one.log.delay,
                        "time": one.log.time,
                        **_of_people(one.log),
                    }
                )
            )
        return pl.concat(frames, how="diagonal")

    def arrivals(self) -> pl.DataFrame:
        """Everybody who arrived, served or not, and the probability of what was done; for policies in Python, none.

        Needs `simulate(..., keep_arrivals=True)`. Who is skipped has no arm, no reward and no delay.
        """
        frames = []
        for one in self.outcomes:
            if one.arrivals is None or one.log is None:
                remedy = "simulate with keep_arrivals=True to have everybody who arrived"
                raise InvalidValue("keep_arrivals", False, remedy)
            n = one.arrivals.arm.size
            served = pl.DataFrame({"round": one.log.round, "reward": one.log.reward, "delay": one.log.delay})
            frames.append(
                pl.DataFrame(
                    {
                        "scenario": [one.scenario] * n,
                        "policy": [one.policy] * n,
                        "run": [one.run] * n,
                        "round": np.arange(1, n + 1),
                        "context": one.arrivals.context,
                        "arm": one.arrivals.arm,
                        "probability": one.arrivals.probability,
                        **_of_people(one.arrivals),
                    }
                )
                .with_columns(pl.when(pl.col("arm") >= 0).then(pl.col("arm")), pl.col("probability").fill_nan(None))
                .join(served, on="round", how="left", maintain_order="left")
            )
        return pl.concat(frames, how="diagonal")

    def plot(self, kind: str = "reward", *, metric: str = "within_deadline", scenario: str | None = None) -> Figure:
        """A Matplotlib figure: "reward" or "regret" (cumulative, with bands) or "share" (of the clairvoyant's)."""
        from doral.simulation.plots import plot  # here: frames must not wait for Matplotlib

        return plot(self, kind=kind, metric=metric, scenario=scenario)


def _aligned(found: Sequence[Outcome], tables: Sequence[Floats]) -> tuple[Ints, Floats]:
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


def _of_people(log: DecisionLog | ArrivalLog) -> dict[str, Any]:
    """Columns for the number and the features of a person; a feature named like another column says whose it is."""
    if log.person is None:
        return {}
    columns: dict[str, Any] = {"person": log.person}
    for name, values in log.features.items():
        shown = f"{name} of the person" if name in _COLUMNS else name
        columns[shown] = [word or None for word in values.tolist()] if values.dtype.kind == "U" else values
    return columns


def _metric_index(metric: str) -> int:
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    return METRICS.index(metric)
