"""Data frames of runs and decisions, and the display of a result: a line, a table, a card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue
from doral.pages.names import short
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import DASH, count, number, spread
from doral.simulation.results.differences import FEWEST_RUNS, interval
from doral.simulation.results.outcome import METRICS, WITHIN_DEADLINE, ArrivalLog, DecisionLog, Outcome

if TYPE_CHECKING:
    from doral.simulation.results.result import SimulationResult

SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "scenario": pl.String,
    "policy": pl.String,
    "run": pl.Int64,
    **dict.fromkeys(METRICS, pl.Float64),
    "expected": pl.Float64,
    "oracle": pl.Float64,
    "oracle_error": pl.Float64,
    "decisions": pl.Int64,
    "spend": pl.Float64,
    "race_rounds": pl.Int64,
    "race_spend": pl.Float64,
    "race_ended": pl.Int64,
    "race_capped": pl.Boolean,
    "accepted": pl.List(pl.String),
    "cutoff": pl.Float64,
    "explored": pl.Int64,
    "explored_loss": pl.Float64,
}


SUMMARISED = (*METRICS, "expected", "oracle", "oracle_error")
UNKNOWN = float("nan")


def rows_of_runs(outcomes: Iterable[Outcome]) -> pl.DataFrame:
    """Return one row for each outcome."""
    own = [name for name in SCHEMA if name not in METRICS]
    rows = (
        {**{name: getattr(one, name) for name in own}, **dict(zip(METRICS, one.rewards, strict=True))}
        for one in outcomes
    )
    return pl.DataFrame([{**row, "accepted": list(row["accepted"])} for row in rows], schema=SCHEMA)


def summary_of(
    scenario: str, policy: str, own: Mapping[str, Floats], first: Mapping[str, Floats]
) -> Iterator[dict[str, Any]]:
    """Yield one row per metric, from the numbers of every run of a policy and of the first policy (`SUMMARISED`)."""
    best = float(own["oracle"].mean())
    runs = own["oracle"].size
    for metric in METRICS:
        reward, difference = interval(own[metric]), interval(own[metric] - first[metric])
        regret = float((own["oracle"] - own[metric]).mean())
        is_known = metric == METRICS[WITHIN_DEADLINE]  # what choices were worth, not what luck made of them
        expected = interval(own["expected"] if is_known else np.zeros(0))
        gain = interval(own["expected"] - first["expected"] if is_known else np.zeros(0))
        yield {
            "scenario": scenario,
            "policy": policy,
            "metric": metric,
            "runs": runs,
            "reward_mean": reward.mean,
            "reward_se": reward.se,
            "oracle_mean": best,
            "oracle_error": float(np.sqrt((own["oracle_error"] ** 2).sum()) / runs),
            "regret_mean": regret,
            "regret_share": regret / best if best > 0 else UNKNOWN,
            "difference_mean": difference.mean,
            "difference_low": difference.low,
            "difference_high": difference.high,
            "expected_mean": expected.mean,
            "expected_se": expected.se,
            "expected_share": expected.mean / best if best > 0 else UNKNOWN,
            "expected_difference_mean": gain.mean,
            "expected_difference_low": gain.low,
            "expected_difference_high": gain.high,
        }


_COLUMNS = (
    "scenario", "policy", "run", "round", "time", "context", "arm", "probability", "reward", "delay", "cost", "paid",
    "person",
)  # fmt: skip


def decisions_of(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """One row per arrival. Names are enums: one byte each where there are few, of any length."""
    kept = [_kept(one) for one in outcomes]
    names = {
        "scenario": _names(one.scenario for one in outcomes),
        "policy": _names(one.policy for one in outcomes),
        "context": _names(name for arrivals, _ in kept for name in arrivals.contexts),
        "arm": _names(name for arrivals, _ in kept for name in arrivals.arms),
    }
    frames = [_frame(one, arrivals, log, names) for one, (arrivals, log) in zip(outcomes, kept, strict=True)]
    return pl.concat(frames, how="diagonal")


def _kept(outcome: Outcome) -> tuple[ArrivalLog, DecisionLog]:
    if outcome.arrivals is None or outcome.log is None:
        raise InvalidValue("keep_decisions", False, "simulate with keep_decisions=True to have every decision")
    return outcome.arrivals, outcome.log


def _frame(one: Outcome, arrivals: ArrivalLog, log: DecisionLog, names: dict[str, pl.Series]) -> pl.DataFrame:
    n, cost = arrivals.arm.size, _costs(arrivals)
    return pl.DataFrame(
        {
            "scenario": _repeated(names["scenario"], one.scenario, n),
            "policy": _repeated(names["policy"], one.policy, n),
            "run": pl.repeat(one.run, n, dtype=pl.Int64, eager=True),
            "round": np.arange(1, n + 1),
            "time": arrivals.time,
            "context": _named(names["context"], arrivals.contexts, arrivals.context),
            "arm": _named(names["arm"], arrivals.arms, arrivals.arm),
            "probability": pl.Series(arrivals.probability).fill_nan(None),
            "reward": _answered(log.reward, log.round, n),
            "delay": _answered(log.delay, log.round, n),
            "cost": cost,
            **({"paid": _paid(cost, log)} if log.paid.size else {}),
            **_of_people(arrivals),
        }
    )


def _names(several: Iterable[str]) -> pl.Series:
    listed = list(dict.fromkeys(several))
    return pl.Series(listed, dtype=pl.Enum(listed))


def _repeated(known: pl.Series, name: str, n: int) -> pl.Series:
    return known.gather(pl.repeat(known.to_list().index(name), n, dtype=pl.UInt32, eager=True))


def _named(known: pl.Series, own: Sequence[str], codes: Ints) -> pl.Series:
    """The names for the numbers of one outcome (below 0: none), among those of all."""
    place = {name: i for i, name in enumerate(known.to_list())}
    of_all = np.array([place[name] for name in own], dtype=np.uint32)
    found = pl.Series(of_all[np.maximum(codes, 0)])
    if (codes < 0).any():
        found = found.set(pl.Series(codes < 0), None)
    return known.gather(found)


def _answered(values: Floats, rounds: Ints, n: int) -> pl.Series:
    """What is known of those who got something, or whose doing without is watched; of all others, nothing."""
    spread, is_known = np.zeros(n), np.zeros(n, dtype=bool)
    spread[rounds - 1], is_known[rounds - 1] = values, True
    column = pl.Series(spread)
    return column if is_known.all() else column.set(pl.Series(~is_known), None)


def _costs(arrivals: ArrivalLog) -> Floats:
    """List prices of what was done; nothing costs nothing."""
    row = np.minimum(arrivals.context, arrivals.costs.shape[0] - 1)
    return np.where(arrivals.arm < 0, 0.0, arrivals.costs[row, np.maximum(arrivals.arm, 0)])


def _paid(cost: Floats, log: DecisionLog) -> Floats:
    share = np.zeros(cost.size)
    share[log.round - 1] = log.paid
    return cost * share


def _of_people(log: ArrivalLog) -> dict[str, Any]:
    """Columns for the number and the features of a person; a feature named like another column says whose it is."""
    if log.person is None:
        return {}
    columns: dict[str, Any] = {"person": log.person}
    for name, values in log.features.items():
        shown = f"{name} of the person" if name in _COLUMNS else name
        columns[shown] = [word or None for word in values.tolist()] if values.dtype.kind == "U" else values
    return columns


_MOST_SCENARIOS = 12  # more are for `summary()`
_MOST_POLICIES = 40
TOO_LATE = "rewards came, but none within the deadline: is it in rounds (seconds where the end is a date)?"
_WIDEST_NAME = 28  # letters; with the numbers, a line has 80 of them
_HEADS = ("policy", "reward", "% of best", "paired difference [95%]")


def line(result: SimulationResult) -> str:
    """All there is, in a line."""
    scenarios, policies = result.scenarios, result.policies
    where = f"on {short(scenarios[0], 60)}" if len(scenarios) == 1 else f"on {len(scenarios)} scenarios"
    who = short(", ".join(policies), 60) if len(policies) <= 3 else f"{len(policies)} policies"
    kept = ", decisions kept" if result.outcomes and all(one.arrivals is not None for one in result.outcomes) else ""
    return f"<SimulationResult: {who} {where}, {_runs(result)}, seed {result.seed}{kept}>"


def _runs(result: SimulationResult, scenario: str | None = None) -> str:
    runs = {one.run for one in result.outcomes if scenario in (None, one.scenario)}
    return count(len(runs), "run", "runs")


def text(result: SimulationResult) -> str:
    """A table that fits a terminal of 80 columns."""
    blocks = []
    for scenario in result.scenarios[:_MOST_SCENARIOS]:
        rows = [_HEADS, *((short(name, _WIDEST_NAME), *rest) for name, *rest in _rows(result, scenario))]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
        lines = [
            "  ".join([f"{row[0]:<{widths[0]}}", *(f"{row[i]:>{widths[i]}}" for i in range(1, len(_HEADS)))]).rstrip()
            for row in rows
        ]
        title = f"{short(scenario, 50)}, {_runs(result, scenario)}, seed {result.seed}"
        blocks.append("\n".join([title, *lines, *_left_out(result, scenario)]))
    notes = _notes(result)
    return "\n\n".join([*blocks, "\n".join(notes)] if notes else blocks)


def html(result: SimulationResult) -> str:
    """The same for notebooks."""
    parts = []
    for scenario in result.scenarios[:_MOST_SCENARIOS]:
        parts += [
            note(f"{scenario}, {_runs(result, scenario)}"),
            small_table(_HEADS, _rows(result, scenario), numbers=(1, 2, 3)),
            *map(note, _left_out(result, scenario)),
        ]
    parts += [note(words) for words in _notes(result)]
    facts = [
        ("policies", short(", ".join(result.policies), 300)),
        ("scenarios", short(", ".join(result.scenarios), 300)),
        ("runs", _runs(result).split()[0]),
        ("seed", str(result.seed)),
    ]
    return card("Result of a simulation", facts, parts=parts)


def _rows(result: SimulationResult, scenario: str) -> list[tuple[str, str, str, str]]:
    """Per policy: its name, reward, percent of the oracle's, and what it earns more than the first."""
    policies, rows = result.policies_in(scenario), []
    for policy in policies[:_MOST_POLICIES]:
        rewards = result.rewards(scenario, policy)
        best = float(np.mean([one.oracle for one in result.of(scenario, policy)]))
        share = f"{number(100.0 * float(rewards.mean()) / best, 1)}%" if best > 0.0 else DASH
        rows.append((policy, number(float(rewards.mean()), 1), share, _paired(result, scenario, policies[0], policy)))
    return rows


def _paired(result: SimulationResult, scenario: str, first: str, policy: str) -> str:
    if policy == first:
        return DASH
    one = result.difference(policy, first, scenario=scenario)
    mean = number(one.mean, 1, signed=True)
    return mean if one.low is None else f"{mean} {spread(one.low, one.high, 1)}"


def _left_out(result: SimulationResult, scenario: str) -> list[str]:
    left = len(result.policies_in(scenario)) - _MOST_POLICIES
    return [f"and {count(left, 'more policy', 'more policies')}: result.summary() has them"] if left > 0 else []


def _notes(result: SimulationResult) -> list[str]:
    notes = ["best: the oracle, which knows what every arm is worth; rewards in time"]
    if len(result.policies) > 1:
        few = "" if len({one.run for one in result.outcomes}) >= FEWEST_RUNS else f"; intervals from {FEWEST_RUNS} runs"
        notes.append(f"paired difference: to the first policy, in the same runs{few}")
    notes += [f"{short(name, 50)}: {TOO_LATE}" for name in result.too_late[:_MOST_SCENARIOS]]
    left = len(result.scenarios) - _MOST_SCENARIOS
    if left > 0:
        notes.append(f"and {count(left, 'more scenario', 'more scenarios')}: result.summary() has them")
    return notes
