"""Problem: arms, contexts, budget and time. Frozen, and validated here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral._cached import cached_property
from doral.errors import InvalidValue, UnknownName
from doral.person import (
    MAX_PERSON,
    Category,
    Feature,
    Missing,
    PersonLike,
    checked_missing,
    checked_person,
    feature_from_dict,
    feature_to_dict,
)
from doral.problem.arm import Arm, ArmsLike, arm_to_dict, arms_of, checked_arms, costs_of, other_unit
from doral.problem.checks import (
    NOTHING,
    OBSERVED,
    Paid,
    check_named_contexts,
    checked_baseline,
    checked_end,
    checked_range,
    checked_reserve,
    checked_reserves,
    checked_word,
    with_nothing,
)
from doral.problem.context import EVERYONE, Context, ContextsLike, checked_contexts, checked_deadline
from doral.problem.limits import MAX_AMOUNT, MAX_ARMS, MAX_CONTEXTS, MAX_HORIZON, MAX_PAIRS, MAX_REWARD, MIN_AMOUNT

Feedback = Literal["explicit", "silent"]
Counted = Literal["within_deadline", "by_end"]

# What problems of earlier versions do not say: written only where it is not as it was then.
_LATER: Mapping[str, Any] = {
    "counted": "within_deadline",
    "paid": "always",
    "return_at_least": 0.0,
    "reserve": 1.0,
    "missing": "error",
    "currency": "",
    "outcome": "",
}
_CONTEXT_OPTIONS = ("share", "weight", "deadline", "tier")


@dataclass(frozen=True, init=False)
class Problem:
    """What is asked of a policy: spend `budget` well over `horizon` arrivals, or until a date.

    Args:
        arms: What the budget can be spent on: `Arm` objects; or names, where each costs 1 and has no features; or a
            mapping from name to cost.
        contexts: Who arrives: a mapping from name to share, names alone (the shares are then learned), or `Context`
            objects. Given shares have to sum to 1 within 1e-6 and are kept as given, not rescaled. None: arrivals
            differ by `person` alone.
        budget: What can be spent in all, in the unit of the costs.
        horizon: How many arrive: rounds, one arrival each. Or give `until`.
        deadline: An answer counts only if it comes within this time: rounds (arrivals) in a simulation, seconds in a
            live campaign, unless that counts rounds, too. None: every answer counts.
        feedback: "explicit": an answer is seen also when its reward is 0; "silent": no news and a reward of 0 look the
            same, as with conversions. Default: "explicit".
        reserves: From a tier to the share of the budget that contexts of lower tiers cannot take; what is not needed
            is released towards the end. Default: none.
        reward_range: (lowest, highest): a live answer outside of it is refused as a slip.
            `doral-otf` keeps its estimates inside it.
            Default: a billion either way.
        counted: Which answers count at the end: "within_deadline": every one within its deadline, also after the last
            arrival; "by_end": only those that have come by the last arrival, for which policies with `until_end`
            plan. Default: "within_deadline".
        baseline: What skipping earns, in units of reward; what arms are worth is what they bring beyond it. A number,
            or one for each context by its name, where it is known; "observed": it is learned from those who are
            skipped, who can be answered like all others, as an arm `nothing` that costs nothing; or the name of an
            arm of cost 0 that those get who are not served otherwise. None: nothing.
        paid: "always": a use costs what its arm costs; "on_answer": that is only reserved, what is paid comes with the
            answer, and nothing is paid for what is not answered within its deadline. Default: "always".
        return_at_least: Reward that a unit of budget must bring: where it is thought to bring less, it is kept back.
            Default: 0.
        reserve: With paid="on_answer": 1 where the budget must cover all pending decisions; below (0.999),
            only what they cost with that probability is reserved, and in one case of a thousand the budget is
            overdrawn. Default: 1.
        until: In place of `horizon` where the end is a date: how long it lasts, in the unit of the deadline.
        expected_arrivals: With `until`: a first guess of how many will arrive, which is then learned from the pace.
            None: twice as many as the budget can serve.
        person: What is known of every arrival, beside a context or instead of one: names of numbers, `Number`
            and `Category` objects, or a mapping from name to "number" or "category". Default: nothing.
        missing: "error": all of `person` has to be given; "mean": what is missing is taken to be as on average.
            Default: "error".
        currency: What the budget is counted in, such as "EUR" or "kits", for pages and reports. Default: units.
        outcome: What a reward of 1 is, such as "booking", for pages and reports. Default: reward.

    >>> problem = Problem(
    ...     arms=[Arm("clinic-a", features=[0.2, 0.7]), Arm("clinic-b", features=[0.9, 0.1], cost=2.5)],
    ...     contexts={"elderly": 0.3, "adult": 0.7},
    ...     budget=85_000,
    ...     horizon=170_000,
    ...     deadline=500,
    ... )
    >>> problem
    <Problem: 2 arms, 2 contexts, budget 85,000, horizon 170,000, deadline 500>
    >>> problem.rate, problem.context_index("adult")
    (0.5, 1)
    """

    arms: tuple[Arm, ...]
    contexts: tuple[Context, ...]
    budget: float
    horizon: int  # 0 where the end is a date
    deadline: float | None
    feedback: Feedback
    reserves: tuple[tuple[int, float], ...]  # (tier, share of the budget), ascending
    reward_range: tuple[float, float]
    counted: Counted
    baseline: str | tuple[float, ...] | None  # known numbers are one per context
    paid: Paid
    return_at_least: float
    reserve: float
    until: float | None
    expected_arrivals: int | None
    person: tuple[Feature, ...]
    missing: Missing
    currency: str
    outcome: str

    def __init__(
        self,
        *,
        arms: ArmsLike,
        contexts: ContextsLike | None = None,
        budget: float,
        horizon: float | None = None,
        deadline: float | None = None,
        feedback: Feedback = "explicit",
        reserves: Mapping[int, float] | Sequence[tuple[int, float]] = (),
        reward_range: Sequence[float] = (-MAX_REWARD, MAX_REWARD),
        counted: Counted = "within_deadline",
        baseline: float | Mapping[str, float] | Sequence[float] | str | None = None,
        paid: Paid = "always",
        return_at_least: float = 0.0,
        reserve: float = 1.0,
        until: float | None = None,
        expected_arrivals: float | None = None,
        person: PersonLike = (),
        missing: Missing = "error",
        currency: str = "",
        outcome: str = "",
    ) -> None:
        features = checked_person(person)
        if contexts is None:
            if not features:
                raise InvalidValue("contexts", None, "say who arrives: contexts=[...], or person=[...] for features")
            contexts = [EVERYONE]
        given_arms = arms_of(arms)
        made_arms = checked_arms(with_nothing(given_arms) if _check.is_among(baseline, (OBSERVED,)) else given_arms)
        made_contexts = checked_contexts(contexts)
        n_pairs = len(made_arms) * len(made_contexts)
        if n_pairs > MAX_PAIRS:
            raise InvalidValue("contexts x arms", n_pairs, f"must be at most {MAX_PAIRS:,}; group contexts or arms")
        check_named_contexts(made_arms, made_contexts)
        if deadline is not None:
            deadline = checked_deadline("deadline", deadline)
        has_deadlines = deadline is not None or all(one.deadline is not None for one in made_contexts)
        reserve = checked_reserve(reserve, paid=paid, has_deadlines=has_deadlines)
        if not _check.is_among(feedback, get_args(Feedback)):
            raise InvalidValue("feedback", feedback, "must be explicit or silent")
        if not _check.is_among(counted, get_args(Counted)):
            raise InvalidValue("counted", counted, "must be within_deadline or by_end")
        horizon, until, expected_arrivals = checked_end(horizon, until, expected_arrivals)
        _check.set_fields(
            self,
            arms=made_arms,
            contexts=made_contexts,
            budget=_check.finite_number(
                "budget", budget, at_least=MIN_AMOUNT, at_most=MAX_AMOUNT, hint=other_unit(budget)
            ),
            horizon=horizon,
            deadline=deadline,
            feedback=feedback,
            reserves=checked_reserves(reserves, made_contexts),
            reward_range=checked_range(reward_range),
            counted=counted,
            baseline=checked_baseline(baseline, made_arms, made_contexts),
            paid=paid,
            return_at_least=_check.finite_number(
                "return_at_least", return_at_least, at_least=0, at_most=MAX_AMOUNT, hint=", per unit of budget"
            ),
            reserve=reserve,
            until=until,
            expected_arrivals=expected_arrivals,
            person=features,
            missing=checked_missing(missing),
            currency=checked_word("currency", currency),
            outcome=checked_word("outcome", outcome),
        )

    @property
    def n_arms(self) -> int:
        """How many arms there are, that of doing nothing included."""
        return len(self.arms)

    @property
    def n_contexts(self) -> int:
        """How many contexts there are."""
        return len(self.contexts)

    @property
    def n_features(self) -> int:
        """How many features an arm has."""
        return len(self.arms[0].features)

    @property
    def n_traits(self) -> int:
        """How many features one who arrives has; 0 where there are classes alone."""
        return len(self.person)

    @cached_property
    def person_names(self) -> tuple[str, ...]:
        """The names of what is known of a person."""
        return tuple(feature.name for feature in self.person)

    @cached_property
    def category_columns(self) -> tuple[int, ...]:
        """Which features of a person are categories, by their place from 0."""
        return tuple(i for i, feature in enumerate(self.person) if isinstance(feature, Category))

    @cached_property
    def arm_names(self) -> tuple[str, ...]:
        """The names of the arms, in their order."""
        return tuple(arm.name for arm in self.arms)

    @cached_property
    def context_names(self) -> tuple[str, ...]:
        """The names of the contexts, in their order."""
        return tuple(context.name for context in self.contexts)

    @cached_property
    def features(self) -> Floats:
        """One row per arm; read-only."""
        return _read_only([arm.features for arm in self.arms])

    @property
    def idle_features(self) -> tuple[int, ...]:
        """Which features, by their place from 0, are the same for all arms, and so tell nothing of them.

        >>> Problem(
        ...     arms=[Arm("a", features=[1, 0]), Arm("b", features=[1, 2])], contexts=["all"], budget=1, horizon=1
        ... ).idle_features
        (0,)
        """
        arms = [arm for arm in self.arms if self.baseline != OBSERVED or arm.name != NOTHING]
        if len(arms) < 2:
            return ()
        return tuple(i for i in range(n_given_features(self)) if len({arm.features[i] for arm in arms}) == 1)

    @cached_property
    def costs(self) -> Floats:
        """One per arm, the largest where they differ by context; read-only."""
        return _read_only([arm.dearest for arm in self.arms])

    @cached_property
    def costs_by_context(self) -> Floats:
        """(J, A) by context and arm, or (1, A) where no cost differs by context; read-only."""
        if not any(isinstance(arm.cost, tuple) for arm in self.arms):
            return _read_only([self.costs.tolist()])
        columns = [costs_of(arm, self.context_names) for arm in self.arms]
        return _read_only(np.array(columns).T.tolist())

    @cached_property
    def shares(self) -> Floats | None:
        """One per context, read-only; None when they are learned."""
        shares = [context.share for context in self.contexts if context.share is not None]
        return _read_only(shares) if shares else None

    @cached_property
    def control(self) -> int | None:
        """The arm that those get who are skipped; None where what becomes of them is known, or not asked."""
        if not isinstance(self.baseline, str):
            return None
        return self.arm_index(NOTHING if self.baseline == OBSERVED else self.baseline)

    @property
    def expected_rounds(self) -> int:
        """The horizon; where the end is a date, a guess: what is given, or that the budget is for every second one."""
        if self.until is None:
            return self.horizon
        if self.expected_arrivals is not None:
            return self.expected_arrivals
        cost = float(self.costs.mean())
        return max(1, round(min(MAX_HORIZON, 2.0 * self.budget / cost))) if cost > 0.0 else 1

    @property
    def rate(self) -> float:
        """The budget per round, the paper's rho."""
        return self.budget / self.expected_rounds

    @cached_property
    def weights(self) -> Floats:
        """One per context; read-only."""
        return _read_only([context.weight for context in self.contexts])

    @cached_property
    def deadlines(self) -> Floats:
        """One per context, infinite where every answer counts; read-only."""
        own = [self.deadline if context.deadline is None else context.deadline for context in self.contexts]
        return _read_only([math.inf if deadline is None else deadline for deadline in own])

    def check_reward(self, value: object) -> float:
        """Return a reward of this problem as a float; values outside of `reward_range` are refused.

        Args:
            value: The reward.
        """
        low, high = self.reward_range
        return _check.finite_number(
            "reward", value, at_least=low, at_most=high, hint=" (the problem's reward_range); is it a slip?"
        )

    def arm_index(self, name: str) -> int:
        """The number of an arm, from 0, in the order of the problem.

        Args:
            name: Its name.
        """
        return _index("arm", name, self._arm_indices)

    def context_index(self, name: str) -> int:
        """The number of a context, from 0, in the order of the problem.

        Args:
            name: Its name.
        """
        return _index("context", name, self._context_indices)

    @cached_property
    def _arm_indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.arm_names)}

    @cached_property
    def _context_indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.context_names)}

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold; `from_dict` gives an equal problem back."""
        return {
            "arms": [arm_to_dict(arm) for arm in self.arms],
            "contexts": [
                {field.name: getattr(context, field.name) for field in fields(context)} for context in self.contexts
            ],
            "budget": self.budget,
            **({"horizon": self.horizon} if self.until is None else {"until": self.until}),
            **({} if self.expected_arrivals is None else {"expected_arrivals": self.expected_arrivals}),
            "deadline": self.deadline,
            "feedback": self.feedback,
            "reserves": [list(pair) for pair in self.reserves],
            "reward_range": list(self.reward_range),
            **({} if self.baseline is None else {"baseline": self._plain_baseline()}),
            **({} if not self.person else {"person": [feature_to_dict(one) for one in self.person]}),
            **{name: getattr(self, name) for name, usual in _LATER.items() if getattr(self, name) != usual},
        }

    def _plain_baseline(self) -> str | list[float]:
        assert self.baseline is not None
        return self.baseline if isinstance(self.baseline, str) else list(self.baseline)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The problem that `to_dict` wrote, with every check made again.

        Args:
            data: A mapping of plain values, as JSON holds them.
        """
        given = _check.keys(
            "problem",
            data,
            required=("arms", "budget"),
            optional=[field.name for field in fields(cls)],
        )
        arms = _check.items(
            "arms", given.pop("arms"), what="mappings such as {'name': 'kit-a', 'cost': 4}", at_most=MAX_ARMS
        )
        contexts = given.pop("contexts", None)
        if contexts is not None:
            what = "mappings such as {'name': 'adult'}"
            contexts = [
                Context(**_check.keys("context", context, required=("name",), optional=_CONTEXT_OPTIONS))
                for context in _check.items("contexts", contexts, what=what, at_most=MAX_CONTEXTS)
            ]
        person = _check.items(
            "person", given.pop("person", ()), what="mappings such as {'name': 'age'}", at_most=MAX_PERSON, at_least=0
        )
        return cls(
            arms=[Arm(**_check.keys("arm", arm, required=("name",), optional=("features", "cost"))) for arm in arms],
            contexts=contexts,
            person=[feature_from_dict(one) for one in person],
            **given,
        )

    def __repr__(self) -> str:
        from doral.problem.display import problem_in_words

        return problem_in_words(self)

    def _repr_html_(self) -> str:
        from doral.problem.display import problem_card

        return problem_card(self)

    def __getstate__(self) -> dict[str, Any]:
        # Without the cached arrays: they are quick to make again, and pickle would bring them back writable.
        return {field.name: getattr(self, field.name) for field in fields(self)}


def n_given_features(problem: Problem) -> int:
    """How many features an arm is given: one less than it has, where doing nothing has one of its own."""
    return problem.n_features - (problem.baseline == OBSERVED and problem.n_features > 0)


def reserve_depths(problem: Problem) -> NDArray[np.int64]:
    """For each context, how many reserves are closed to it: 0 is the most urgent."""
    tiers = [tier for tier, _ in problem.reserves]
    return np.array([sum(context.tier < tier for tier in tiers) for context in problem.contexts], dtype=np.int64)


def _read_only(values: Sequence[float] | Sequence[Sequence[float]]) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def _index(kind: str, name: object, indices: Mapping[str, int]) -> int:
    if not isinstance(name, str) or name not in indices:
        raise UnknownName(kind, name, indices)
    return indices[name]
