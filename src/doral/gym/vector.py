"""Many runs of a scenario as one environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from doral import _check
from doral._arrays import Floats
from doral.errors import InvalidValue
from doral.gym.environment import FIRST_RUN, run_of, spaces_of
from doral.gym.episode import Credited, Episode, Step, checked_reward, checked_scenario, checked_seed
from doral.gym.observation import Layout, layout_of
from doral.simulation.scenario.scenario import Scenario

MAX_ENVS = 65_536
_MAX_DRAWN_SEED = 2**31
_Flags = NDArray[np.bool_]
_Stepped = tuple[NDArray[np.float32], Floats, _Flags, _Flags, dict[str, Any]]


class ScenarioVectorEnv(gymnasium.vector.VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Many runs of a scenario side by side: the same episodes as so many `ScenarioEnv`.

    `reset(seed=s)` plays run 0 of the seeds s, s + 1, ...; a list has one for each. A run that has ended goes on to the
    next run of its seed, in the step after its last (`AutoresetMode.NEXT_STEP`).

    Args:
        scenario: A name (`doral scenarios` lists them) or a `doral.Scenario`.
        num_envs: How many.
        reward: As in `ScenarioEnv`. Default: "returned".
        render_mode: None: there is nothing to be drawn.
        autoreset_mode: `AutoresetMode.NEXT_STEP`, the only one.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (Gymnasium's own form)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        scenario: str | Scenario,
        *,
        num_envs: int = 1,
        reward: Credited = "returned",
        render_mode: str | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.num_envs = _check.whole_number("num_envs", num_envs, at_least=1, at_most=MAX_ENVS)
        self._scenario, self._credited = checked_scenario(scenario), checked_reward(reward)
        self._layout = layout_of(self._scenario.problem)
        if render_mode is not None:
            raise InvalidValue("render_mode", render_mode, "must be None: there is nothing to be drawn")
        if autoreset_mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP.value):
            remedy = 'must be AutoresetMode.NEXT_STEP; the others are with vectorization_mode="sync", in vector_kwargs'
            raise InvalidValue("autoreset_mode", autoreset_mode, remedy)
        self.render_mode = None
        self.single_observation_space, self.single_action_space = spaces_of(self._scenario)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._seeds: list[int] = []
        self._episodes: list[Episode] = []
        self._run_numbers = [FIRST_RUN] * self.num_envs
        self._is_over: _Flags = np.ones(self.num_envs, dtype=np.bool_)

    @property
    def layout(self) -> Layout:
        """Where the parts of an observation are."""
        return self._layout

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played."""
        return self._scenario

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Let the first one of every run arrive.

        Args:
            seed: Of the first tape, the next ones have the next; or one for each. None: the seeds so far; if there were
                none, they are drawn.
            options: {"run": number of the run}, for all; by default run 0 of new seeds, else the next ones.
                {"reset_mask": flags} resets only the runs for which it is true.
        """
        seeds = self._checked_seeds(seed)
        given = _check.keys("options", {} if options is None else options, required=(), optional=("run", "reset_mask"))
        chosen = self._checked_mask(given.pop("reset_mask", None))
        run = run_of(given)
        super().reset(seed=seeds[0])
        if not self._seeds:
            self._seeds = self.np_random.integers(_MAX_DRAWN_SEED, size=self.num_envs).tolist()
            self._run_numbers = [FIRST_RUN - 1] * self.num_envs
            chosen = np.ones(self.num_envs, dtype=np.bool_)
        self._episodes = self._episodes or [None] * self.num_envs  # type: ignore[list-item]  # all are chosen then
        for i in np.flatnonzero(chosen).tolist():
            own = seeds[i]
            self._run_numbers[i] += 1
            if own is not None:
                self._seeds[i], self._run_numbers[i] = own, FIRST_RUN
            if run is not None:
                self._run_numbers[i] = run
            self._begin(i)
        self._is_over[chosen] = False
        return self._observations(), self._info(np.zeros(self.num_envs, dtype=np.bool_))

    def _begin(self, i: int) -> None:
        seed, run = self._seeds[i], self._run_numbers[i]
        self._episodes[i] = Episode(self._scenario, self._layout, self._credited, seed=seed, run=run)

    def _observations(self) -> NDArray[np.float32]:
        return np.array([episode.observation for episode in self._episodes])

    def step(self, actions: NDArray[np.int64]) -> _Stepped:
        """Take an action in every run, and let the next ones arrive; a run that is over begins anew.

        Args:
            actions: For every run the number of an arm, or `n_arms` to skip.
        """
        if not self._seeds:
            raise gymnasium.error.ResetNeeded("the runs have not begun: call reset()")
        steps = [self._step(i, action) for i, action in enumerate(self._checked_actions(actions))]
        self._is_over = np.array([step.is_over for step in steps])
        info = self._info(np.array([step.is_refused for step in steps]))
        for i in np.flatnonzero(self._is_over).tolist():
            info = self._add_info(info, self._episodes[i].summary(), i)
        rewards = np.array([step.reward for step in steps])
        return self._observations(), rewards, self._is_over.copy(), np.zeros_like(self._is_over), info

    def _step(self, i: int, action: int) -> Step:
        """Act in a run; one that is over begins the next run of its seed instead."""
        if not self._is_over[i]:
            return self._episodes[i].act(action)
        self._run_numbers[i] += 1
        self._begin(i)
        return Step(0.0, False, False)

    def action_masks(self) -> _Flags:
        """(num_envs, n_arms + 1) what can be had and paid by those who are here; to skip is always possible."""
        return np.array([episode.mask for episode in self._episodes], dtype=np.bool_)

    def _info(self, refused: _Flags) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, dtype=np.bool_)
        return {
            "action_mask": self.action_masks(),
            "_action_mask": everywhere,
            "refused": refused,
            "_refused": everywhere.copy(),
        }

    def _checked_seeds(self, seed: object) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, Sequence | np.ndarray):
            if len(seed) != self.num_envs:
                raise InvalidValue("number of seeds", len(seed), f"must be one for each environment, {self.num_envs}")
            return [None if one is None else checked_seed(one) for one in seed]
        first = checked_seed(seed)
        return [checked_seed(first + i) for i in range(self.num_envs)]

    def _checked_mask(self, mask: object) -> _Flags:
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            raise InvalidValue("reset_mask", mask, f"must be an array of {self.num_envs} True or False")
        return mask

    def _checked_actions(self, actions: object) -> list[int]:
        array, n_arms = np.asarray(actions), self.scenario.problem.n_arms
        if array.shape != (self.num_envs,) or array.dtype.kind not in "iu":
            raise InvalidValue("actions", actions, f"must be {self.num_envs} whole numbers, one for each environment")
        if array.min() < 0 or array.max() > n_arms:
            worst = int(array.min() if array.min() < 0 else array.max())
            raise InvalidValue("action", worst, f"must be the number of an arm, below {n_arms}, or {n_arms} to skip")
        numbers: list[int] = array.tolist()
        return numbers
