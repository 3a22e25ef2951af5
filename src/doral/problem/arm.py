"""Arms: options that the budget can be spent on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from doral import _check
from doral.errors import InvalidValue, shown
from doral.problem.limits import MAX_AMOUNT, MAX_ARMS, MAX_FEATURE_SIZE, MAX_FEATURES, MIN_AMOUNT

CostLike: TypeAlias = float | Mapping[str, float] | Sequence[tuple[str, float]]
# Not any sequence of names: a text is one, too.
ArmsLike: TypeAlias = Sequence["Arm"] | list[str] | tuple[str, ...] | Mapping[str, CostLike]
_OTHER_UNIT = "; count in another unit"


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

    # Written out, as in contexts and problems: what is accepted (any list, any array) is wider than what is stored.
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
        from doral.problem.display import arm_in_words

        return arm_in_words(self)

    def _repr_html_(self) -> str:
        from doral.problem.display import arm_card

        return arm_card(self)


def arm_to_dict(arm: Arm) -> dict[str, Any]:
    """Plain values that JSON can hold; `Arm(**stored)` gives an equal arm back."""
    cost = dict(arm.cost) if isinstance(arm.cost, tuple) else arm.cost
    return {"name": arm.name, "features": list(arm.features), "cost": cost}


def arms_of(arms: object) -> list[Any]:
    """Return arms from `Arm` objects, names, or a mapping from name to cost; other values stay as they are."""
    if isinstance(arms, Mapping):
        _check.items("arms", list(arms), what="names", at_most=MAX_ARMS)
        return [Arm(name, cost=cost) for name, cost in arms.items()]
    given = _check.items("arms", arms, what="arms: Arm objects, or names", at_most=MAX_ARMS)
    return [Arm(one) if isinstance(one, str) else one for one in given]


def checked_arms(arms: Sequence[Any]) -> tuple[Arm, ...]:
    checked = tuple(arms)
    for arm in checked:
        if not isinstance(arm, Arm):
            raise InvalidValue("arms", arm, "each must be an Arm, or a name; write Arm(name, cost=...)")
    _check.no_duplicates("name of an arm", (arm.name for arm in checked))
    check_alike(checked)
    return checked


def check_alike(arms: Sequence[Arm]) -> None:
    n_features = len(arms[0].features)
    for arm in arms:
        if len(arm.features) != n_features:
            remedy = f"must be {n_features}, as for arm {shown(arms[0].name)}; all arms have equally many features"
            raise InvalidValue(f"number of features of arm {shown(arm.name)}", len(arm.features), remedy)


def costs_of(arm: Arm, contexts: Sequence[str]) -> list[float]:
    named = dict(arm.cost) if isinstance(arm.cost, tuple) else dict.fromkeys(contexts, arm.cost)
    return [named[context] for context in contexts]


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
    amount = _check.finite_number(field, value, at_least=0, at_most=MAX_AMOUNT, hint=other_unit(value))
    if 0.0 < amount < MIN_AMOUNT:
        raise InvalidValue(field, value, f"must be 0, or at least {MIN_AMOUNT:g}{_OTHER_UNIT}")
    return amount


def other_unit(amount: object) -> str:
    """The remedy for amounts that are too large or too small; nothing of the kind helps what is negative or a text."""
    is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
    return _OTHER_UNIT if is_number and 0 < amount < math.inf else ""  # type: ignore[operator]
