"""What is asked: the arms, the contexts, the budget and the time. Frozen, and validated once, here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral._cached import cached_property
from doral._given import Words
from doral.errors import InvalidValue, UnknownName, shown
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

# Beyond these sizes an input is a slip (a transposed array, rounds given in nanoseconds), not a problem to solve.
MAX_ARMS = 100_000
MAX_CONTEXTS = 10_000
MAX_FEATURES = 1_000
MAX_PAIRS = 10**8
MAX_HORIZON = 10**10
MAX_FEATURE_SIZE = 1e6

# Amounts of money and what they are multiplied with. Values per unit of cost, budgets per round and their products then
# stay between 1e-60 and 1e60, far from where floats overflow or lose digits.
MIN_AMOUNT, MAX_AMOUNT = 1e-12, 1e15
MIN_WEIGHT, MAX_WEIGHT = 1e-9, 1e9
MIN_SHARE = 1e-12
MIN_AGE, MAX_AGE = 1e-9, 1e12  # of deadlines and cut-offs: a nanosecond of a clock in seconds; longer than any horizon

# The largest reward, either way. Two things limit it. Over the longest horizon, sums of squares reach 1e18 * 1e10, and
# with features and weights squared 1e58: finite. And sums are kept in two floats of 53 bits each, so that a wrong
# reward of 1e9, whose square is 1e18, leaves an error of 1e18 * 2^-106, about 1e-14, when it is taken back: rewards
# around 1 come out of that with 14 digits. Whoever counts in smaller units than millionths should scale them.
MAX_REWARD = 1e9

MAX_TIERS = 100

SHARES_TOLERANCE = 1e-6

# `baseline="observed"`: what is done with those who are skipped is an arm of the problem, of this name.
OBSERVED, NOTHING = "observed", "nothing"

EVERYONE = "everyone"  # the one context of a problem that has none

Feedback = Literal["explicit", "silent"]
Counted = Literal["within_deadline", "by_end"]
Paid = Literal["always", "on_answer"]


CostLike: TypeAlias = float | Mapping[str, float] | Sequence[tuple[str, float]]


@dataclass(frozen=True, init=False)
class Arm:
    """Something the budget can be spent on.

    Without features, arms are told apart by what they have brought, in all contexts and in each.

    Args:
        name: What it is called.
        features: Numbers that describe it to the learner; all arms of a problem have equally many, or none.
        cost: What one use takes from the budget, 0 where it is free; a mapping from the name of every context to a
            cost where it differs by context. Default: 1.

    >>> Arm("clinic-a", features=[0.2, 0.7], cost=2.5)
    <Arm 'clinic-a': features 0.2, 0.7, cost 2.5>
    >>> Arm("taxi", features=[1.0], cost={"near": 8, "far": 20}).cost
    (('near', 8.0), ('far', 20.0))
    """

    name: str
    features: tuple[float, ...]
    cost: float | tuple[tuple[str, float], ...]  # (context, cost), where it differs by context

    # Written out, here and below, because what is accepted (any list, any array) is wider than what is stored.
    def __init__(self, name: str, *, features: _check.FloatsLike = (), cost: CostLike = 1.0) -> None:
        name = _check.name("name of an arm", name)
        label = f"features of arm {shown(name)}"
        values = _check.items(label, features, what="numbers", at_most=MAX_FEATURES, at_least=0)
        _check.set_fields(
            self,
            name=name,
            features=tuple(
                _check.finite_number(label, value, at_least=-MAX_FEATURE_SIZE, at_most=MAX_FEATURE_SIZE)
                for value in values
            ),
            cost=_checked_cost(f"cost of arm {shown(name)}", cost),
        )

    @property
    def dearest(self) -> float:
        """What one use costs at most, over all contexts."""
        return max(cost for _, cost in self.cost) if isinstance(self.cost, tuple) else self.cost

    def cost_in(self, context: str) -> float:
        """What one use costs in a context.

        Args:
            context: The name of the context.
        """
        return dict(self.cost)[context] if isinstance(self.cost, tuple) else self.cost

    def __repr__(self) -> str:
        from doral._problem_words import arm_in_words

        return arm_in_words(self)

    def _repr_html_(self) -> str:
        from doral._problem_words import arm_card

        return arm_card(self)


@dataclass(frozen=True, init=False)
class Context:
    """A class of arrivals.

    Urgency has three parts: `weight`, `deadline` and `tier`.

    Args:
        name: What it is called.
        share: The share of all arrivals that it makes up, above 0 up to 1; None: it is learned.
        weight: What one unit of reward is worth here. Default: 1.
        deadline: Replaces that of the problem, in the same unit: rounds (arrivals) in a simulation, seconds in a live
            campaign. None: that of the problem.
        tier: Orders contexts: a reserve of the problem for a tier is closed to all lower ones. Default: 0, the lowest.

    >>> Context("elderly", 0.3, weight=2)
    <Context 'elderly': share 0.3, weight 2>
    """

    name: str
    share: float | None
    weight: float
    deadline: float | None
    tier: int

    def __init__(
        self,
        name: str,
        share: float | None = None,
        *,
        weight: float = 1.0,
        deadline: float | None = None,
        tier: int = 0,
    ) -> None:
        name = _check.name("name of a context", name)
        if deadline is not None:
            deadline = _checked_deadline(f"deadline of context {shown(name)}", deadline)
        if share is not None:
            share = _check.finite_number(
                f"share of context {shown(name)}",
                share,
                at_least=MIN_SHARE,
                at_most=1,
                hint="; leave the context out if it never arrives",
            )
        _check.set_fields(
            self,
            name=name,
            share=share,
            weight=_check.finite_number(
                f"weight of context {shown(name)}", weight, at_least=MIN_WEIGHT, at_most=MAX_WEIGHT
            ),
            deadline=deadline,
            tier=_check.whole_number(f"tier of context {shown(name)}", tier, at_least=0, at_most=MAX_TIERS - 1),
        )

    def __repr__(self) -> str:
        from doral._problem_words import context_in_words

        return context_in_words(self)

    def _repr_html_(self) -> str:
        from doral._problem_words import context_card

        return context_card(self)


ContextsLike: TypeAlias = Mapping[str, float] | Mapping[str, None] | Words | Sequence[Context]


@dataclass(frozen=True, init=False)
class Problem:
    """What is asked of a policy: spend `budget` well over `horizon` arrivals, or until a date.

    Args:
        arms: What the budget can be spent on: `Arm` objects.
        contexts: Who arrives: a mapping from name to share, names alone (the shares are then learned), or `Context`
            objects. Given shares have to sum to 1 within 1e-6 and are kept as given, not rescaled. None: nobody is
            told apart but by `person`.
        budget: What can be spent in all, in the unit of the costs.
        horizon: How many arrive: rounds, one arrival each. Or give `until`.
        deadline: An answer counts only if it comes within this time: rounds (arrivals) in a simulation, seconds in a
            live campaign, unless that counts rounds, too. None: every answer counts.
        feedback: "explicit": an answer is seen also when its reward is 0; "silent": no news and a reward of 0 look the
            same, as with conversions. Default: "explicit".
        reserves: From a tier to the share of the budget that contexts of lower tiers cannot take; what is not needed
            is released towards the end. Default: none.
        reward_range: (lowest, highest): a live answer outside of it is refused as a slip. Policies do not use it.
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
        reserve: With paid="on_answer": 1 where the budget must hold whatever is paid of open decisions; below (0.999),
            only what they cost with that probability is reserved, and in one case of a thousand the budget is
            overdrawn. Default: 1.
        until: In place of `horizon` where the end is a date: how long it lasts, in the unit of the deadline.
        expected_arrivals: With `until`: a first guess of how many will arrive, which is then learned from the pace.
            None: twice as many as the budget can serve.
        person: What is known of everybody who arrives, beside a context or instead of one: names of numbers, `Number`
            and `Category` objects, or a mapping from name to "number" or "category". Default: nothing.
        missing: "error": all of `person` has to be given; "mean": what is missing is taken to be as on average.
            Default: "error".

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

    def __init__(
        self,
        *,
        arms: Sequence[Arm],
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
    ) -> None:
        features = checked_person(person)
        if contexts is None:
            if not features:
                raise InvalidValue("contexts", None, "say who arrives: contexts=[...], or person=[...] for features")
            contexts = [EVERYONE]
        checked_arms = _checked_arms(_with_nothing(arms) if _check.is_among(baseline, (OBSERVED,)) else arms)
        checked_contexts = _checked_contexts(contexts)
        n_pairs = len(checked_arms) * len(checked_contexts)
        if n_pairs > MAX_PAIRS:
            raise InvalidValue("contexts x arms", n_pairs, f"must be at most {MAX_PAIRS:,}; group contexts or arms")
        _check_named_contexts(checked_arms, checked_contexts)
        if deadline is not None:
            deadline = _checked_deadline("deadline", deadline)
        if not _check.is_among(paid, get_args(Paid)):
            raise InvalidValue("paid", paid, "must be always or on_answer")
        if paid == "on_answer" and deadline is None and any(one.deadline is None for one in checked_contexts):
            remedy = "needs a deadline for every context: what is not answered by then is not paid for"
            raise InvalidValue("paid", paid, remedy)
        reserve = _check.finite_number("reserve", reserve, at_least=0.5, at_most=1, hint=", a probability")
        if reserve < 1.0 and paid == "always":
            remedy = "must be 1 where costs are always paid: nothing comes back; or say paid='on_answer'"
            raise InvalidValue("reserve", reserve, remedy)
        if not _check.is_among(feedback, get_args(Feedback)):
            raise InvalidValue("feedback", feedback, "must be explicit or silent")
        if not _check.is_among(counted, get_args(Counted)):
            raise InvalidValue("counted", counted, "must be within_deadline or by_end")
        horizon, until, expected_arrivals = _checked_end(horizon, until, expected_arrivals)
        _check.set_fields(
            self,
            arms=checked_arms,
            contexts=checked_contexts,
            budget=_check.finite_number(
                "budget", budget, at_least=MIN_AMOUNT, at_most=MAX_AMOUNT, hint=_other_unit(budget)
            ),
            horizon=horizon,
            deadline=deadline,
            feedback=feedback,
            reserves=_checked_reserves(reserves, checked_contexts),
            reward_range=_checked_range(reward_range),
            counted=counted,
            baseline=_checked_baseline(baseline, checked_arms, checked_contexts),
            paid=paid,
            return_at_least=_check.finite_number(
                "return_at_least", return_at_least, at_least=0, at_most=MAX_AMOUNT, hint=", per unit of budget"
            ),
            reserve=reserve,
            until=until,
            expected_arrivals=expected_arrivals,
            person=features,
            missing=checked_missing(missing),
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
        columns = [_costs_of(arm, self.context_names) for arm in self.arms]
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
        """A reward of this problem, as a float; whatever is outside of `reward_range` is refused.

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
            optional=(
                "contexts",
                "person",
                "horizon",
                "until",
                "expected_arrivals",
                "deadline",
                "feedback",
                "reserves",
                "reward_range",
                "baseline",
                *_LATER,
            ),
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
        from doral._problem_words import problem_in_words

        return problem_in_words(self)

    def _repr_html_(self) -> str:
        from doral._problem_words import problem_card

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


def arm_to_dict(arm: Arm) -> dict[str, Any]:
    """Plain values that JSON can hold; `Arm(**stored)` gives an equal arm back."""
    cost = dict(arm.cost) if isinstance(arm.cost, tuple) else arm.cost
    return {"name": arm.name, "features": list(arm.features), "cost": cost}


# What problems of earlier versions do not say: written only where it is not as it was then.
_LATER: Mapping[str, Any] = {
    "counted": "within_deadline",
    "paid": "always",
    "return_at_least": 0.0,
    "reserve": 1.0,
    "missing": "error",
}

_CONTEXT_OPTIONS = ("share", "weight", "deadline", "tier")


_OTHER_UNIT = "; count in another unit"


def _other_unit(amount: object) -> str:
    """The remedy for amounts that are too large or too small; nothing of the kind helps what is negative or a text."""
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return _OTHER_UNIT if is_number and 0 < amount < math.inf else ""  # type: ignore[operator]


def _checked_cost(field: str, value: object) -> float | tuple[tuple[str, float], ...]:
    """An amount, or one for every context."""
    is_pairs = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not isinstance(value, Mapping) and not is_pairs:
        return _checked_amount(field, value)
    try:
        pairs = dict(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise InvalidValue(field, value, "must be a number, or map contexts to numbers") from None
    if not pairs:
        raise InvalidValue(field, value, "must be a number, or map contexts to numbers")
    if isinstance(value, Sequence) and len(pairs) != len(value):
        raise InvalidValue(field, value, "names a context twice; give every context one cost")
    return tuple(
        (_check.name(f"context in {field}", name), _checked_amount(f"{field} in context {shown(name)}", amount))
        for name, amount in pairs.items()
    )


def _checked_amount(field: str, value: object) -> float:
    amount = _check.finite_number(field, value, at_least=0, at_most=MAX_AMOUNT, hint=_other_unit(value))
    if 0.0 < amount < MIN_AMOUNT:
        raise InvalidValue(field, value, f"must be 0, or at least {MIN_AMOUNT:g}{_OTHER_UNIT}")
    return amount


def _costs_of(arm: Arm, contexts: Sequence[str]) -> list[float]:
    named = dict(arm.cost) if isinstance(arm.cost, tuple) else dict.fromkeys(contexts, arm.cost)
    return [named[context] for context in contexts]


def _check_named_contexts(arms: tuple[Arm, ...], contexts: tuple[Context, ...]) -> None:
    """A cost by context names all of them, and nobody else."""
    names = {context.name: None for context in contexts}
    for arm in arms:
        if isinstance(arm.cost, tuple):
            named = dict(arm.cost)
            field = f"cost of arm {shown(arm.name)}"
            for name in names:
                if name not in named:
                    raise InvalidValue(field, named, f"lacks context {shown(name)}; give every context a cost")
            for name in named:
                if name not in names:
                    raise UnknownName("context", name, names)


def _checked_deadline(field: str, value: object) -> float:
    hint = ", in units of the clock (rounds of a simulation, seconds of a campaign), or None"
    return _check.finite_number(field, value, at_least=MIN_AGE, at_most=MAX_AGE, hint=hint)


def _with_nothing(arms: object) -> object:
    """The arms and `nothing`: it has a feature of its own, which is 0 for all others, and so shares nothing with them.

    Arms that were added later, and do not have that feature yet, get it.
    """
    given = _check.items("arms", arms, what="Arm objects", at_most=MAX_ARMS)
    if not given or not all(isinstance(arm, Arm) for arm in given):
        return given
    nothing = next((arm for arm in given if arm.name == NOTHING), None)
    if nothing is None:
        _check_alike(given)
        nothing = Arm(NOTHING, features=_mark(len(given[0].features)), cost=0)
        given = [*given, nothing]
    n_features = max(0, len(nothing.features) - 1)
    if nothing.dearest != 0.0 or nothing.features != _mark(n_features):
        remedy = f"means doing nothing where baseline={OBSERVED!r}; give the arm another name"
        raise InvalidValue("name of an arm", NOTHING, remedy)
    for arm in given:
        if arm.name != NOTHING and len(arm.features) > n_features and arm.features[n_features] != 0.0:
            remedy = "is the feature of doing nothing: it must be 0 for all arms"
            raise InvalidValue(f"last feature of arm {shown(arm.name)}", arm.features[n_features], remedy)
    return [arm if len(arm.features) != n_features else _widened(arm, nothing) for arm in given]


def _mark(n_features: int) -> tuple[float, ...]:
    """Without features there is nothing to tell apart: each arm is learned by itself."""
    return (*(0.0,) * n_features, 1.0) if n_features else ()


def _widened(arm: Arm, nothing: Arm) -> Arm:
    return arm if not nothing.features else Arm(arm.name, features=(*arm.features, 0.0), cost=arm.cost)


def _checked_baseline(
    baseline: object, arms: tuple[Arm, ...], contexts: tuple[Context, ...]
) -> str | tuple[float, ...] | None:
    if isinstance(baseline, str):
        known = {arm.name: arm for arm in arms}
        name = NOTHING if baseline == OBSERVED else baseline
        if name not in known:
            remedy = f"must be a number, one for each context, {OBSERVED!r}, or the name of an arm"
            raise InvalidValue("baseline", baseline, remedy)
        control = known[name]
        if baseline == OBSERVED and OBSERVED in known:
            raise InvalidValue("baseline", baseline, "is the name of an arm, too; give the arm another name")
        if control.dearest != 0.0:
            remedy = f"is what those get who are skipped: its cost must be 0, not {control.dearest:g}"
            raise InvalidValue("baseline", baseline, remedy)
        if len(arms) == 1:
            raise InvalidValue("baseline", baseline, "is the only arm; there must be one to spend the budget on")
    if baseline is None or isinstance(baseline, str):
        return baseline
    return _known_baseline(baseline, contexts)


def _known_baseline(baseline: object, contexts: tuple[Context, ...]) -> tuple[float, ...]:
    names = [context.name for context in contexts]
    if isinstance(baseline, Mapping):
        for name in baseline:
            if name not in names:
                raise UnknownName("context of the baseline", name, names)
        for name in names:
            if name not in baseline:
                raise InvalidValue("baseline", dict(baseline), f"lacks context {shown(name)}; give every context one")
        values = [baseline[name] for name in names]
    elif isinstance(baseline, Sequence | np.ndarray):
        values = _check.items("baseline", baseline, what="numbers, one per context", at_most=MAX_CONTEXTS)
        if len(values) != len(names):
            raise InvalidValue("number of baselines", len(values), f"must be one per context, {len(names)}")
    else:
        values = [baseline] * len(names)
    return tuple(
        _check.finite_number(f"baseline of context {shown(name)}", value, at_least=-MAX_REWARD, at_most=MAX_REWARD)
        for name, value in zip(names, values, strict=True)
    )


def _checked_end(horizon: object, until: object, expected: object) -> tuple[int, float | None, int | None]:
    """A number of arrivals or a length of time; a copy of a problem that ends with a date says 0 for the former."""
    if until is None:
        if horizon is None:
            raise InvalidValue("horizon", None, "give horizon, a number of arrivals, or until, a length of time")
        if expected is not None:
            raise InvalidValue("expected_arrivals", expected, "is a guess for until=...; horizon already says how many")
        return _check.whole_number("horizon", horizon, at_least=1, at_most=MAX_HORIZON), None, None
    if horizon is not None and not (isinstance(horizon, int) and horizon == 0):
        raise InvalidValue("until", until, f"and horizon = {shown(horizon)} are two ends: give one of them")
    hint = (
        ": a length of time, in units of the clock (56 * 86_400 seconds); a date belongs into store.create(..., until=)"
    )
    length = _check.finite_number("until", until, at_least=MIN_AGE, at_most=MAX_AGE, hint=hint)
    if expected is not None:
        expected = _check.whole_number("expected_arrivals", expected, at_least=1, at_most=MAX_HORIZON)
    return 0, length, expected


def _checked_range(value: object) -> tuple[float, float]:
    ends = _check.items("reward_range", value, what="two numbers, the lowest and the highest reward", at_most=2)
    if len(ends) != 2:
        raise InvalidValue("reward_range", value, "must be two numbers, the lowest and the highest reward")
    low, high = (
        _check.finite_number(f"{which} of reward_range", end, at_least=-MAX_REWARD, at_most=MAX_REWARD)
        for which, end in zip(("lowest", "highest"), ends, strict=True)
    )
    if low >= high:
        raise InvalidValue("reward_range", value, "the lowest reward must be below the highest")
    return low, high


def _checked_reserves(reserves: object, contexts: tuple[Context, ...]) -> tuple[tuple[int, float], ...]:
    try:
        pairs = dict(reserves.items() if isinstance(reserves, Mapping) else reserves)  # type: ignore[call-overload]
    except Exception:  # noqa: BLE001  (whatever a foreign object raises, it is no mapping)
        raise InvalidValue("reserves", reserves, "must map tiers to shares of the budget, as in {1: 0.2}") from None
    checked = []
    for tier, share in pairs.items():
        tier = _check.whole_number("tier of a reserve", tier, at_least=1, at_most=MAX_TIERS - 1)
        if not any(context.tier >= tier for context in contexts):
            raise InvalidValue("tier of a reserve", tier, "no context is of this tier or above; nobody could use it")
        checked.append((tier, _check.finite_number(f"reserve of tier {tier}", share, above=0, at_most=1)))
    total = math.fsum(share for _, share in checked)
    if total > 1:
        raise InvalidValue("sum of the reserves", round(total, 9), "must be at most 1, the whole budget")
    return tuple(sorted(checked))


def _read_only(values: Sequence[float] | Sequence[Sequence[float]]) -> Floats:
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def _index(kind: str, name: object, indices: Mapping[str, int]) -> int:
    if not isinstance(name, str) or name not in indices:
        raise UnknownName(kind, name, indices)
    return indices[name]


def _checked_arms(arms: object) -> tuple[Arm, ...]:
    checked = tuple(_check.items("arms", arms, what="Arm objects", at_most=MAX_ARMS))
    for arm in checked:
        if not isinstance(arm, Arm):
            raise InvalidValue("arms", arm, "each must be an Arm; write Arm(name), or Arm(name, features=[...])")
    _check.no_duplicates("name of an arm", (arm.name for arm in checked))
    _check_alike(checked)
    return checked


def _check_alike(arms: Sequence[Arm]) -> None:
    n_features = len(arms[0].features)
    for arm in arms:
        if len(arm.features) != n_features:
            remedy = f"must be {n_features}, as for arm {shown(arms[0].name)}; all arms have equally many features"
            raise InvalidValue(f"number of features of arm {shown(arm.name)}", len(arm.features), remedy)


def _checked_contexts(contexts: object) -> tuple[Context, ...]:
    if isinstance(contexts, Mapping):
        given: object = [Context(name, share) for name, share in contexts.items()]
    else:
        given = contexts
    what = "names or of Context objects, or a mapping from name to share"
    checked = tuple(
        item if isinstance(item, Context) else Context(item)
        for item in _check.items("contexts", given, what=what, at_most=MAX_CONTEXTS)
    )
    _check.no_duplicates("name of a context", (context.name for context in checked))
    _check_shares(checked)
    return checked


def _check_shares(contexts: tuple[Context, ...]) -> None:
    shares = [context.share for context in contexts if context.share is not None]
    if not shares:
        return
    if len(shares) < len(contexts):
        without = next(context.name for context in contexts if context.share is None)
        raise InvalidValue(f"share of context {shown(without)}", None, "give every context a share, or none of them")
    total = math.fsum(shares)
    if abs(total - 1) > SHARES_TOLERANCE:
        raise InvalidValue("sum of the context shares", round(total, 9), "must be 1; divide each share by the sum")
