"""What an observation holds, and where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from doral._arrays import Ints
from doral.problem import Problem


@dataclass(frozen=True)
class Layout:
    """The parts of an observation by name, in their order: `observation[layout["worth"]]` are the worths of the arms.

    Everything is between -1 and 1. What has no bounds is shown as x / (1 + |x|), numbers of plays as n / (n + 10).
    """

    sizes: tuple[tuple[str, int], ...]

    @property
    def size(self) -> int:
        """How many numbers an observation has."""
        return sum(size for _, size in self.sizes)

    def __getitem__(self, part: str) -> slice:
        """Where a part lies."""
        start = 0
        for name, size in self.sizes:
            if name == part:
                return slice(start, start + size)
            start += size
        raise KeyError(part)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.sizes)

    def starts(self) -> Ints:
        """Where each part begins."""
        return np.cumsum([0, *(size for _, size in self.sizes[:-1])], dtype=np.int64)


def layout_of(problem: Problem) -> Layout:
    """In the order of the parts that `steps` names."""
    n_contexts, n_arms = problem.n_contexts, problem.n_arms
    here = ("can", "cost", "plays", "heard", "mean", "worth")
    in_all = ("arm_plays", "arm_heard", "arm_mean", "arm_worth", "arm_delay")
    return Layout(
        (
            ("context", n_contexts),
            ("person", 2 * len(problem.person)),
            ("left", 3),
            ("rank", 2),
            *((name, n_arms) for name in (*here, *in_all)),
            ("context_share", n_contexts),
            ("context_best", n_contexts),
        )
    )
