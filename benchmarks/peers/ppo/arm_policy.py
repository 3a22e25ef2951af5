"""The network: every arm is scored by the same layers, so that it does not matter how many arms there are.

Of each arm it sees what has come of it (`PER_ARM`), for all of them what is left of budget and time, and how the one
who is here compares to others (`SHARED`).
"""

from __future__ import annotations

import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from torch import nn

PER_ARM = (
    *("can", "cost", "plays", "heard", "mean", "worth"),
    *("arm_plays", "arm_heard", "arm_mean", "arm_worth", "arm_delay"),
)
SHARED = ("left", "rank")
N_SHARED = 5
HIDDEN = 32


class Trunk(nn.Module):
    """From an observation to the inputs of each arm, normalised, and from there to what is common."""

    def __init__(self, places: dict[str, slice], shift: list[float], scale: list[float]) -> None:
        super().__init__()
        self.places = places
        self.register_buffer("shift", torch.tensor(shift))
        self.register_buffer("scale", torch.tensor(scale))
        n_inputs = len(PER_ARM) + N_SHARED
        self.arms = nn.Sequential(nn.Linear(n_inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh())
        self.all = nn.Sequential(nn.Linear(2 * HIDDEN + N_SHARED, HIDDEN), nn.Tanh())

    def forward(self, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        by_arm = torch.stack([seen[:, self.places[name]] for name in PER_ARM], dim=2)
        shared = torch.cat([seen[:, self.places[name]] for name in SHARED], dim=1)
        inputs = torch.cat([by_arm, shared[:, None, :].expand(-1, by_arm.shape[1], -1)], dim=2)
        inputs = (inputs - self.shift) / self.scale
        hidden = self.arms(inputs)
        pooled = torch.cat([hidden.mean(dim=1), hidden.amax(dim=1), inputs[:, 0, len(PER_ARM) :]], dim=1)
        return hidden, self.all(pooled)


class Actor(Trunk):
    """A score for each arm, and one for skipping."""

    def __init__(self, places: dict[str, slice], shift: list[float], scale: list[float]) -> None:
        super().__init__(places, shift, scale)
        self.arm, self.skip = nn.Linear(HIDDEN, 1), nn.Linear(HIDDEN, 1)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        hidden, common = super().forward(seen)
        return torch.cat([self.arm(hidden)[:, :, 0], self.skip(common)], dim=1)


class Critic(Trunk):
    """What is still to come."""

    def __init__(self, places: dict[str, slice], shift: list[float], scale: list[float]) -> None:
        super().__init__(places, shift, scale)
        self.value = nn.Linear(HIDDEN, 1)

    def forward(self, seen: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return self.value(super().forward(seen)[1])


class ArmPolicy(MaskableActorCriticPolicy):
    """The library's own policy for masked actions, with these networks in the place of its own."""

    def __init__(self, *args, places, shift, scale, **options):
        self._given = (places, shift, scale)
        super().__init__(*args, **{**options, "net_arch": []})

    def _build(self, lr_schedule):
        super()._build(lr_schedule)
        self.action_net, self.value_net = Actor(*self._given), Critic(*self._given)
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)
