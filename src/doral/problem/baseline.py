"""What skipping earns: known, or learned from an arm that those get who are skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doral import _check
from doral.errors import InvalidValue, shown
from doral.problem.arm import Arm, check_alike
from doral.problem.context import Context
from doral.problem.limits import MAX_CONTEXTS, MAX_REWARD

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
