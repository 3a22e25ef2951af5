"""Counts that a report shows; kept while the log is replayed, so that no report has to read the whole log."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from doral.live.events.event import IS_PENDING, IS_SKIPPED, STATE_NAMES
from doral.live.state.ledger import plus


@dataclass(slots=True)
class Counters:
    states: list[int] = field(default_factory=lambda: [0] * len(STATE_NAMES))
    reasons: dict[int, int] = field(default_factory=dict)
    reward: Decimal = Decimal(0)  # that counts; exact, so that a correction leaves no trace
    late_reward: Decimal = Decimal(0)  # that came too late to count
    arm_plays: list[int] = field(default_factory=list)
    arm_answers: list[int] = field(default_factory=list)
    arm_rewards: list[Decimal] = field(default_factory=list)
    clock_went_back: int = 0  # events for which the clock stood still instead
    corrections: int = 0
    about: int = 0  # events about a decision,
    keyed: int = 0  # and events that have, or had, a key
    outside: int = 0  # decisions that were made elsewhere and are no arrivals of this campaign

    def add_arm(self) -> None:
        self.arm_plays.append(0)
        self.arm_answers.append(0)
        self.arm_rewards.append(Decimal(0))

    def play(self, arm: int, reason: int, count: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.states[IS_PENDING] += count
        self.arm_plays[arm] += count

    def skip(self, reason: int, count: int = 1) -> None:
        self.reasons[reason] = self.reasons.get(reason, 0) + count
        self.states[IS_SKIPPED] += count

    def move(self, was: int, state: int, count: int = 1) -> None:
        """Decisions go from one state to another."""
        self.states[was] -= count
        self.states[state] += count

    def add_reward(self, arm: int, worth: Decimal, *, is_served: bool = True) -> None:
        """`is_served`: an arm has brought it, and not what people do by themselves."""
        if is_served:
            self.reward = plus(self.reward, worth)
        self.arm_rewards[arm] = plus(self.arm_rewards[arm], worth)

    def add_late_reward(self, worth: Decimal) -> None:
        self.late_reward = plus(self.late_reward, worth)

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "reasons": list(self.reasons.items()),
            "reward": str(self.reward),
            "late_reward": str(self.late_reward),
            "arm_rewards": list(map(str, self.arm_rewards)),
        }

    @property
    def arrivals(self) -> int:
        return sum(self.states) - self.outside

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Counters:
        exact = {
            "reasons": dict(stored["reasons"]),
            "reward": Decimal(stored["reward"]),
            "late_reward": Decimal(stored["late_reward"]),
            "arm_rewards": list(map(Decimal, stored["arm_rewards"])),
        }
        return cls(**{**stored, **exact})
