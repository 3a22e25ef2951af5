"""The arms of a campaign as they are now: which of them are offered, and what they cost to the last digit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from doral._arrays import Bits
from doral.live.events.event import ARM_IS_ACTIVE, ARM_IS_RETIRED
from doral.live.state.ledger import exact
from doral.problem import Arm, Problem, arm_to_dict


def bits_of(mask: bytes | None) -> Bits | None:
    """Return one entry per arm of a mask; None: all."""
    return None if mask is None else np.unpackbits(np.frombuffer(mask, dtype=np.uint8))


class Arms:
    """The problem with the arms that were added to it, and their status."""

    def __init__(self, problem: Problem) -> None:
        self._n_first = problem.n_arms
        self.problem = problem
        self.status = [ARM_IS_ACTIVE] * problem.n_arms
        self._read()

    def _read(self) -> None:
        """Whatever depends on the list of arms and on their status."""
        self.control = self.problem.control
        self._costs: list[list[float]] = self.problem.costs_by_context.tolist()  # one row for all contexts, or for each
        self._exact_costs = [[exact(cost) for cost in row] for row in self._costs]
        self.dearest = max(max(row) for row in self._exact_costs)
        self.off = [arm for arm, status in enumerate(self.status) if status != ARM_IS_ACTIVE]
        self.retired = [arm for arm, status in enumerate(self.status) if status == ARM_IS_RETIRED]

    def costs(self, context: int) -> list[float]:
        """What each arm costs in a context."""
        return self._costs[min(context, len(self._costs) - 1)]

    def exact_costs(self, context: int) -> list[Decimal]:
        """The same to the last digit."""
        return self._exact_costs[min(context, len(self._costs) - 1)]

    @property
    def unit_costs(self) -> list[float | None] | None:
        """What a use costs, by context, where all arms cost the same there; None where less than that may be paid."""
        if self.problem.paid == "on_answer":
            return None
        weighed = [arm for arm in range(self.problem.n_arms) if arm != self.control]
        costs = [{row[arm] for arm in weighed} for row in self._costs]
        common = [one.pop() if len(one) == 1 else None for one in costs]
        return common * self.problem.n_contexts if len(common) == 1 else common

    def add(self, arm: Arm) -> None:
        self.problem = replace(self.problem, arms=(*self.problem.arms, arm))
        self.status.append(ARM_IS_ACTIVE)
        self._read()

    def as_it_grew(self) -> list[Problem]:
        """The problem after each arm that was added."""
        arms = self.problem.arms
        return [replace(self.problem, arms=arms[: n + 1]) for n in range(self._n_first, len(arms))]

    def set_status(self, arm: int, status: int) -> None:
        self.status[arm] = status
        self._read()

    def mask(self, names: Sequence[str]) -> bytes:
        """One bit per arm: those named are available."""
        bits = np.zeros(self.problem.n_arms, dtype=np.uint8)
        for name in names:
            bits[self.problem.arm_index(name)] = 1
        return np.packbits(bits).tobytes()

    def offered(self, masks: Sequence[bytes | None], off: Sequence[int]) -> Bits:
        """Per arrival, one entry per arm: available and not off. Without columns where that is all of them."""
        if not off and all(mask is None for mask in masks):
            return np.zeros((len(masks), 0), dtype=np.uint8)
        n_arms = self.problem.n_arms
        rows = np.ones((len(masks), n_arms), dtype=np.uint8)
        for i, mask in enumerate(masks):
            if mask is not None:
                bits = np.unpackbits(np.frombuffer(mask, dtype=np.uint8))[:n_arms]
                rows[i, : bits.size] = bits
                rows[i, bits.size :] = 0
        if off:
            rows[:, off] = 0
        return rows

    def to_json(self) -> dict[str, Any]:
        added = self.problem.arms[self._n_first :]
        return {"added": [arm_to_dict(arm) for arm in added], "status": list(self.status)}

    @classmethod
    def from_json(cls, problem: Problem, stored: dict[str, Any]) -> Arms:
        arms = cls(problem)
        for arm in stored["added"]:
            arms.add(Arm(**arm))
        arms.status = stored["status"]
        arms._read()
        return arms
