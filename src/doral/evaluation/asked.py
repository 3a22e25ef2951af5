"""The policies that were asked for: their names, and what each does to either half of a log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from doral import _check
from doral._arrays import Floats
from doral.evaluation.learned import Best, Lp
from doral.evaluation.rows import Rows
from doral.evaluation.targets import Learner, checked_table, from_file, table_of
from doral.evaluation.valuing import HALVES
from doral.log.log import Log

MOST_POLICIES = 1_000


def listed(policies: Any) -> list[Any]:
    """One policy, or several."""
    is_one = isinstance(policies, str | Path | Mapping | np.ndarray) or callable(policies)
    if is_one or isinstance(policies, Learner) or (isinstance(policies, tuple) and _is_named(policies)):
        return [policies]
    return _check.items("policies", policies, what="policies", at_most=MOST_POLICIES)


def _is_named(policy: tuple[Any, ...]) -> bool:
    return len(policy) == 2 and isinstance(policy[0], str) and not isinstance(policy[1], str)


def named(policy: Any) -> tuple[str, Any]:
    """Its name, and the policy without it."""
    if isinstance(policy, tuple) and len(policy) == 2 and isinstance(policy[0], str):
        name, said = _check.name("name of a policy", policy[0]), policy[1]
        return name, from_file(said) if isinstance(said, Path) else said
    if isinstance(policy, Path) or (isinstance(policy, str) and policy.endswith(".json")):
        path = Path(policy)
        return path.stem, from_file(path)
    if isinstance(policy, str):
        return policy, policy
    if isinstance(policy, Learner):
        return _check.name("name of a policy", policy.name), policy
    if callable(policy):
        return str(getattr(policy, "__name__", type(policy).__name__)), policy
    return "table" if isinstance(policy, np.ndarray) else "mapping", policy


def learns(said: Any) -> bool:
    """Whether it needs a log to know what it does."""
    return isinstance(said, Learner) or (isinstance(said, str) and said in ("best", "lp"))


def tables_of(said: Any, name: str, *, rows: Rows, halves: list[Log], deadline: float, rate: float) -> Floats:
    """(halves, J, A + 1): what is done to each half; what learns has learned it from the other."""
    if isinstance(said, str) and said == "best":
        said = Best(deadline=deadline)
    elif isinstance(said, str) and said == "lp":
        said = Lp(deadline=deadline, budget=rate)
    if isinstance(said, Learner):
        learned = [checked_table(said.allocation(half), rows.shape, name) for half in reversed(halves)]
        return np.stack(learned)
    table = table_of(said, contexts=rows.contexts, options=rows.options, name=name)
    return np.stack([table] * HALVES)
