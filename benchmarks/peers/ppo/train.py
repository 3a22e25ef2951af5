"""Trains the policies that `adapter.py` plays, on other tapes than those they are judged on.

    python benchmarks/peers/ppo/train.py SETTING [--steps N] [--out FILE]

Needs an environment with `training.txt` and DORAL in it. One training for all of the paper's scenarios, shortened as
for all peers, 32 runs of each side by side; the seeds are far from those of the harness. What is played there is drawn
by the scores of the network, as in training: taking the best one earned less on tapes of other seeds.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from gymnasium.vector import SyncVectorEnv
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from arm_policy import PER_ARM, SHARED, ArmPolicy  # noqa: E402
from sb3_contrib import MaskablePPO  # noqa: E402
from scenarios import shortened  # noqa: E402

from doral.gym import ScenarioEnv  # noqa: E402

PAPER = ("paper/similar-geometric", "paper/similar-pareto", "paper/diverse-geometric", "paper/diverse-pareto")
RUNS_OF_EACH = 32
FIRST_SEED = 1_000_000
STEPS = 600_000  # one to two minutes of one core
# A decision pays hundreds of rounds later, and the budget has to last for thousands.
GAMMA = 0.9995
SETTINGS = {
    "returned": {"reward": "returned", "gae_lambda": 0.995},
    "at_decision": {"reward": "at_decision", "gae_lambda": 0.95},
}


class SideBySide(VecEnv):
    """Vectorised environments of several scenarios, as the library asks for them; runs are at different rounds."""

    def __init__(self, parts: list[SyncVectorEnv]) -> None:
        self.parts, self.ends = parts, np.cumsum([part.num_envs for part in parts])
        super().__init__(int(self.ends[-1]), parts[0].single_observation_space, parts[0].single_action_space)
        self._actions = np.zeros(self.num_envs, dtype=np.int64)

    def _each(self, values):
        return zip(self.parts, np.split(values, self.ends[:-1]), strict=True)

    def reset(self):
        return self.staggered()[-1]

    def staggered(self) -> list[np.ndarray]:
        """Random actions until each run has begun anew at another time; what was seen on the way."""
        rng, seen = np.random.default_rng(FIRST_SEED), []
        for number, part in enumerate(self.parts):
            part.reset(seed=FIRST_SEED + 1_000 * number)
        horizon = self.parts[0].envs[0].scenario.problem.horizon
        starts = np.linspace(1, horizon - 1, RUNS_OF_EACH).astype(int)
        for round_ in range(horizon):
            now = [part.step(_any_of(np.array(part.call("action_masks")), rng))[0] for part in self.parts]
            for part in self.parts:
                if (starts == round_).any():
                    part.reset(options={"reset_mask": starts == round_})
            if round_ % 50 == 0:
                seen.append(np.concatenate(now))
        return [*seen, np.concatenate(now)]

    def step_async(self, actions) -> None:
        self._actions = actions

    def step_wait(self):
        found = [part.step(actions) for part, actions in self._each(self._actions)]
        seen, rewards, over = (np.concatenate([one[k] for one in found]) for k in range(3))
        infos = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(over):
            infos[i] = {"terminal_observation": seen[i].copy(), "TimeLimit.truncated": False}
        first = 0
        for part, ended in self._each(over):
            if ended.any():
                begun = part.reset(options={"reset_mask": ended})[0]
                seen[first : first + part.num_envs][ended] = begun[ended]
            first += part.num_envs
        return seen, rewards, over, infos

    def env_method(self, method_name, *args, indices=None, **kwargs):
        return [one for part in self.parts for one in part.call(method_name)]

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks"

    def get_attr(self, attr_name, indices=None):
        return [None] * self.num_envs

    def set_attr(self, attr_name, value, indices=None) -> None:
        raise AttributeError(attr_name)

    def env_is_wrapped(self, wrapper_class, indices=None):
        return [False] * self.num_envs

    def close(self) -> None:
        pass


def _any_of(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (rng.random(masks.shape) * masks).argmax(axis=1)


def normalising(seen: list[np.ndarray], places: dict[str, slice]) -> tuple[list[float], list[float]]:
    """Mean and spread of every input of an arm, over all arms."""
    rows = np.concatenate(seen)
    inputs = [rows[:, places[name]].ravel() for name in PER_ARM]
    inputs += [column for name in SHARED for column in rows[:, places[name]].T]
    return [float(one.mean()) for one in inputs], [float(max(one.std(), 0.05)) for one in inputs]


def train(setting: str, steps: int, out: Path) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    chosen = SETTINGS[setting]
    parts = [
        SyncVectorEnv([partial(ScenarioEnv, shortened(name), reward=chosen["reward"])] * RUNS_OF_EACH) for name in PAPER
    ]
    envs = SideBySide(parts)
    places = {name: parts[0].envs[0].layout[name] for name in (*PER_ARM, *SHARED)}
    shift, scale = normalising(envs.staggered(), places)
    agent = MaskablePPO(
        ArmPolicy,
        VecNormalize(envs, norm_obs=False, norm_reward=True, gamma=GAMMA),
        policy_kwargs={"places": places, "shift": shift, "scale": scale},
        n_steps=64,
        batch_size=2048,
        n_epochs=4,
        gamma=GAMMA,
        gae_lambda=chosen["gae_lambda"],
        learning_rate=lambda left: 1e-3 * left + 1e-5,
        ent_coef=0.002,
        seed=0,
        device="cpu",
    )
    started = time.process_time()
    agent.learn(steps)
    print(f"{setting}: {steps:,} steps in {time.process_time() - started:.0f} processor seconds")
    kept = {name: value.detach().numpy() for name, value in agent.policy.action_net.state_dict().items()}
    np.savez_compressed(out, **kept)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    train(given.setting, given.steps, given.out or HERE / f"{given.setting}.npz")
