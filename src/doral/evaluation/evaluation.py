"""What an evaluation says: values of policies, the best of many, sentences, and how it shows itself."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue
from doral.evaluation.policies import STATUS_QUO
from doral.evaluation.rows import Rows
from doral.evaluation.valuing import difference_of, interval_of, widened
from doral.pages.notebook import card, note, small_table
from doral.pages.numbers import count

if TYPE_CHECKING:
    import polars as pl

    from doral.pages.figure import Figure


def number(value: float, *, signed: bool = False) -> str:
    """Three digits are more than an interval ever deserves."""
    if not math.isfinite(value):
        return "unknown"
    return f"{value:+.3g}" if signed else f"{value:.3g}"


def between(low: float, high: float, *, signed: bool = False) -> str:
    if not math.isfinite(low) or not math.isfinite(high):
        return "[anything]"
    return f"[{number(low, signed=signed)}, {number(high, signed=signed)}]"


def text_of(result: Evaluation) -> str:
    """Lines: what is valued, what was done, each policy, what to know of the log."""
    lines = []
    if result.values:
        within = f" within {result.deadline_words}" if result.deadline_words else ""
        lines.append(f"Valued per arrival: what came{within}, of {result.arrivals:,} arrivals.")
        if result.complete < 1.0:
            lines.append(f"Of {1.0 - result.complete:.0%} it is not known yet: those who were watched stand for them.")
        done = result.of(STATUS_QUO)
        lines.append(
            f"What was done brought {number(done.value)} {between(done.low, done.high)} and cost {number(done.cost)}"
            f"{_per_cost(done)}."
        )
        others = [result.of(one) for one in result.policies if one != STATUS_QUO]
        lines.extend(_sentence(one, result.arrivals) for one in others)
        if sum(one.is_supported for one in others) > 1 and result.arrivals > 1:
            lines.append(_best(result))
    lines.extend(result.notes)
    return "\n".join(lines)


def _per_cost(value: Value) -> str:
    return "" if value.per_cost is None else f", {number(value.per_cost)} per unit of budget"


def _sentence(value: Value, arrivals: int) -> str:
    if not value.is_supported:
        return f"{value.policy}: {value.verdict}. No number of arrivals of the same kind would change that."
    told = (
        f"{value.policy} would have brought {number(value.value)} {between(value.low, value.high)} at a cost of "
        f"{number(value.cost)}{_per_cost(value)}: {number(value.difference, signed=True)} "
        f"{between(value.difference_low, value.difference_high, signed=True)} to what was done"
    )
    if value.is_equal:
        told += ", which the log cannot tell from 0"
        if value.needed is not None and value.needed > arrivals:
            told += (
                f" (about {value.needed:,} such arrivals would, if that is the difference; {4 * arrivals:,} halve the "
                "interval)"
            )
    return f"{told}. {value.verdict[0].upper()}{value.verdict[1:]}; worth {value.ess:,.0f} arrivals."


def _best(result: Evaluation) -> str:
    best = result.best()
    names = " and ".join(dict.fromkeys(best.policies))
    return (
        f"The best of these, chosen on one half and valued on the other ({names}): {number(best.value)} "
        f"{between(best.low, best.high)}, {number(best.difference, signed=True)} "
        f"{between(best.difference_low, best.difference_high, signed=True)} to what was done."
    )


_MOST = 30  # rows of the table


def in_words(result: Evaluation) -> str:
    """One line."""
    others = [one for one in result.policies if one != STATUS_QUO]
    within = f" within {result.deadline_words}" if result.deadline_words else ""
    size = f"{count(len(others), 'policy', 'policies')} on {result.arrivals:,} arrivals{within}"
    return f"<Evaluation of {result.log!r}: {size if result.values else 'nothing can be valued'}>"


def evaluation_card(result: Evaluation) -> str:
    """For a notebook."""
    told = result.text().splitlines()
    parts = [note(line) for line in told[: 2 + len(result.policies)]] if not result.values else []
    if result.values:
        rows = [
            (
                one.policy,
                f"{number(one.value)} {between(one.low, one.high)}",
                ""
                if one.policy == STATUS_QUO
                else f"{number(one.difference, signed=True)} "
                f"{between(one.difference_low, one.difference_high, signed=True)}",
                number(one.cost),
                one.verdict,
            )
            for one in (result.of(name) for name in result.policies[:_MOST])
        ]
        heads = ("Policy", "Brings per arrival", "More than what was done", "Costs", "The log says")
        parts.append(small_table(heads, rows, numbers=(3,)))
        parts += [note(one) for one in result.notes]
    facts = [("", told[0])] if told else []
    return card(f"Evaluation of {result.log}", facts, parts=parts)


@dataclass(frozen=True, kw_only=True)
class Value:
    """One policy by one estimator; everything is per arrival, intervals hold 95%."""

    policy: str
    estimator: str
    value: float
    low: float
    high: float
    cost: float
    cost_low: float
    cost_high: float
    per_cost: float | None  # value per unit of budget; None where nothing is paid
    per_cost_low: float | None
    per_cost_high: float | None
    difference: float  # to what was done, on the same rows
    difference_low: float
    difference_high: float
    ess: float  # effective number of arrivals that speak for it
    ess_by_arm: tuple[tuple[str, float], ...]
    largest_weight: float
    unsupported: float  # share of what it does that the log never did
    verdict: str  # "supported", "weak: why" or "not supported: why"
    needed: int | None  # arrivals that would tell it from what was done, with a power of 80%

    @property
    def is_equal(self) -> bool:
        """Whether the log cannot tell it from what was done."""
        return self.difference_low <= 0.0 <= self.difference_high

    @property
    def is_supported(self) -> bool:
        return not self.verdict.startswith("not supported")


@dataclass(frozen=True, kw_only=True)
class BestOf:
    """The best of several policies, chosen on one half of the log and valued on the other, both ways."""

    policies: tuple[str, ...]  # as chosen on each half
    value: float
    low: float
    high: float
    difference: float  # to what was done
    difference_low: float
    difference_high: float
    naive_policy: str  # which looks best on all rows, chosen and valued on the same ones: its value is too high
    naive_value: float
    naive_difference: float


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """What policies would have brought. Made by `doral.evaluate`.

    Attributes:
        log: The name of the log.
        arrivals: How many arrivals it rests on.
        complete: The share of arrivals of which the outcome is known.
        deadline: How old an answer may be to count, in the unit of the log's clock; None where nothing can be valued.
        deadline_words: The same in words.
        values: One for each policy and estimator.
        notes: What was assumed: sentences.
        allocations: By policy (halves, contexts, arms and nothing): what it does to either half of the log.
        rows: The arrivals as they were valued; None where nothing can be.
    """

    log: str
    arrivals: int
    complete: float
    deadline: float | None
    deadline_words: str
    values: tuple[Value, ...]
    notes: tuple[str, ...]
    allocations: dict[str, Floats]
    rows: Rows | None
    _half: Ints
    _added: dict[str, Floats]  # by policy: what each row adds to its value, by the main estimator

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the policies."""
        return tuple(dict.fromkeys(one.policy for one in self.values))

    @property
    def main_estimator(self) -> str:
        """The one that is told in words: the doubly robust one, where it was asked for."""
        known = [one.estimator for one in self.values if one.policy != STATUS_QUO]
        return "dr" if "dr" in known or not known else known[-1]

    def of(self, policy: str, estimator: str | None = None) -> Value:
        """One value.

        Args:
            policy: The name of a policy.
            estimator: "ips", "snips" or "dr". None: the main one.
        """
        for one in self.values:
            if one.policy == policy and one.estimator in (estimator or self.main_estimator, "mean"):
                return one
        raise InvalidValue("policy", policy, f"was not valued so; known: {', '.join(self.policies) or 'none'}")

    def best(self) -> BestOf:
        """The best of the policies that the log supports, free of the winner's curse."""
        names = [name for name in self._added if name == STATUS_QUO or self.of(name).is_supported]
        if not names:
            raise InvalidValue("policies", list(self.policies), "nothing could be valued: there is no best")
        if self.arrivals < 2:
            raise InvalidValue("arrivals", self.arrivals, "must be at least 2: one half chooses, the other values")
        base = self._added[STATUS_QUO]
        means = {name: [float(self._added[name][self._half == h].mean()) for h in (0, 1)] for name in names}
        chosen = [max(names, key=lambda name: means[name][h]) for h in (0, 1)]
        added = np.where(self._half == 0, self._added[chosen[1]], self._added[chosen[0]])
        value, difference = interval_of(added), difference_of(added, base)
        if not self._is_clear(chosen, names):
            # Each half is valued by what the luck of the other chose: two halves say no more than one of them.
            value, difference = widened(value, math.sqrt(2.0)), widened(difference, math.sqrt(2.0))
        naive = max(names, key=lambda name: float(self._added[name].mean()))
        return BestOf(
            policies=tuple(chosen),
            value=value.mean,
            low=value.low,
            high=value.high,
            difference=difference.mean,
            difference_low=difference.low,
            difference_high=difference.high,
            naive_policy=naive,
            naive_value=float(self._added[naive].mean()),
            naive_difference=float((self._added[naive] - base).mean()),
        )

    def _is_clear(self, chosen: list[str], names: list[str]) -> bool:
        """Whether both halves chose the same, and all rows together tell it from every other one."""
        one, other = chosen
        rivals = [name for name in names if name != one]
        return one == other and all(difference_of(self._added[one], self._added[name]).low > 0.0 for name in rivals)

    def table(self) -> pl.DataFrame:
        """One row for each policy and estimator."""
        import polars as pl

        names = [one.name for one in dataclasses.fields(Value) if one.name != "ess_by_arm"]
        texts = {"policy", "estimator", "verdict"}
        schema = {name: pl.String if name in texts else pl.Int64 if name == "needed" else pl.Float64 for name in names}
        return pl.DataFrame({name: [getattr(one, name) for one in self.values] for name in names}, schema=schema)

    def text(self) -> str:
        """In plain sentences."""
        return text_of(self)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: what is not finite is null."""
        values = [dataclasses.asdict(one) | {"ess_by_arm": dict(one.ess_by_arm)} for one in self.values]
        said: dict[str, Any] = {
            "log": self.log,
            "arrivals": self.arrivals,
            "complete": self.complete,
            "deadline": self.deadline,
            "deadline_words": self.deadline_words,
            "notes": list(self.notes),
            "values": values,
        }
        return _finite(said)

    def plot(self) -> Figure:
        """Values with their intervals, and how often the log did what the policies do."""
        from doral.evaluation.plots import overlap

        return overlap(self)

    def __repr__(self) -> str:
        return in_words(self)

    def _repr_html_(self) -> str:
        return evaluation_card(self)


def _finite(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _finite(one) for key, one in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(one) for one in said]
    return None if isinstance(said, float) and not math.isfinite(said) else said
