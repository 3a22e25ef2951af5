"""Checks of a problem beside its arms and contexts, and of the baseline: what skipping earns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from doral import _check
from doral.errors import InvalidValue, shown
from doral.problem.arm import Arm, check_alike
from doral.problem.context import Context
from doral.problem.limits import MAX_AGE, MAX_CONTEXTS, MAX_HORIZON, MAX_REWARD, MAX_TIERS, MIN_AGE

Paid = Literal["always", "on_answer"]


def check_named_contexts(arms: tuple[Arm, ...], contexts: tuple[Context, ...]) -> None:
    """Check that a cost by context names all contexts, and no other."""
    names = [context.name for context in contexts]
    for arm in arms:
        if isinstance(arm.cost, tuple):
            _check.by_name(f"cost of arm {shown(arm.name)}", dict(arm.cost), names, kind="context")


MAX_WORD = 20  # letters: the words stand beside every amount


def checked_word(field: str, value: object) -> str:
    """Return the unit of the budget or of a reward; "" where none is given."""
    if value is None or (isinstance(value, str) and not value):
        return ""
    word = _check.name(field, value).strip()
    if len(word) > MAX_WORD or not word.isprintable():
        raise InvalidValue(field, value, f"must be one short word, at most {MAX_WORD} letters, such as EUR or booking")
    return word


def checked_end(horizon: object, until: object, expected: object) -> tuple[int, float | None, int | None]:
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


def checked_range(value: object) -> tuple[float, float]:
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


def checked_reserves(reserves: object, contexts: tuple[Context, ...]) -> tuple[tuple[int, float], ...]:
    try:
        pairs = dict(reserves.items() if isinstance(reserves, Mapping) else reserves)  # type: ignore[call-overload]
    except Exception:  # noqa: BLE001  (a foreign object may raise anything: it is no mapping)
        raise InvalidValue("reserves", reserves, "must map tiers to shares of the budget, as in {1: 0.2}") from None
    checked = []
    for tier, share in pairs.items():
        tier = _check.whole_number("tier of a reserve", tier, at_least=1, at_most=MAX_TIERS - 1)
        if not any(context.tier >= tier for context in contexts):
            raise InvalidValue("tier of a reserve", tier, "no context is of this tier or above: it could not be used")
        checked.append((tier, _check.finite_number(f"reserve of tier {tier}", share, above=0, at_most=1)))
    total = math.fsum(share for _, share in checked)
    if total > 1:
        raise InvalidValue("sum of the reserves", round(total, 9), "must be at most 1, the whole budget")
    return tuple(sorted(checked))


def checked_reserve(reserve: object, *, paid: object, has_deadlines: bool) -> float:
    """Which part of open decisions is reserved, after what is paid for them."""
    if not _check.is_among(paid, get_args(Paid)):
        raise InvalidValue("paid", paid, "must be always or on_answer")
    if paid == "on_answer" and not has_deadlines:
        remedy = "needs a deadline for every context: what is not answered by then is not paid for"
        raise InvalidValue("paid", paid, remedy)
    checked = _check.finite_number("reserve", reserve, at_least=0.5, at_most=1, hint=", a probability")
    if checked < 1.0 and paid == "always":
        remedy = "must be 1 where costs are always paid: nothing is refunded; or say paid='on_answer'"
        raise InvalidValue("reserve", checked, remedy)
    return checked


# `baseline="observed"`: what is done with those who are skipped is an arm of the problem, of this name.
OBSERVED, NOTHING = "observed", "nothing"


def with_nothing(given: list[Any]) -> list[Any]:
    """The arms and `nothing`: it has a feature of its own, which is 0 for all others, and so shares nothing with them.

    Arms that were added later, and do not have that feature yet, get it.
    """
    if not given or not all(isinstance(arm, Arm) for arm in given):
        return given
    nothing = next((arm for arm in given if arm.name == NOTHING), None)
    if nothing is None:
        check_alike(given)
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
    if not nothing.features:
        return given
    return [
        arm if len(arm.features) != n_features else Arm(arm.name, features=(*arm.features, 0.0), cost=arm.cost)
        for arm in given
    ]


def _mark(n_features: int) -> tuple[float, ...]:
    """Without features there is nothing to tell apart: each arm is learned by itself."""
    return (*(0.0,) * n_features, 1.0) if n_features else ()


def checked_baseline(
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
        values = _check.by_name("baseline", baseline, names, kind="context")
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
