"""What policies would have brought, as far as a log can tell."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doral._arrays import Floats, Ints
from doral.errors import InvalidValue
from doral.evaluation.estimate import difference_of, interval_of, widened
from doral.evaluation.rows import Rows
from doral.evaluation.targets import STATUS_QUO

if TYPE_CHECKING:
    import polars as pl

    from doral.pages.figure import Figure


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
        from doral.evaluation.words import text_of

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
        from doral.evaluation.notebook import in_words

        return in_words(self)

    def _repr_html_(self) -> str:
        from doral.evaluation.notebook import evaluation_card

        return evaluation_card(self)


def _finite(said: Any) -> Any:
    if isinstance(said, dict):
        return {key: _finite(one) for key, one in said.items()}
    if isinstance(said, list | tuple):
        return [_finite(one) for one in said]
    return None if isinstance(said, float) and not math.isfinite(said) else said
