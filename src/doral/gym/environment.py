"""A scenario as an environment: one step for each arrival."""

from __future__ import annotations

import operator
import re
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from doral import _check
from doral.errors import InvalidValue
from doral.gym.episode import (
    Credited,
    Episode,
    Layout,
    checked_reward,
    checked_run,
    checked_scenario,
    checked_seed,
    layout_of,
)
from doral.simulation.catalogue.descriptions import PEOPLE, SCENARIO_WORDS
from doral.simulation.scenario.scenario import Scenario

FIRST_RUN = 0
ANY = "doral/Scenario-v0"
_MAX_DRAWN_SEED = 2**31


def environment_name(scenario: str) -> str:
    """The name of a scenario of the catalogue as an environment.

    >>> environment_name("paper/diverse-pareto"), environment_name("people/linear@strata")
    ('doral/DiversePareto-v0', 'doral/PeopleLinearStrata-v0')
    """
    group, _, name = scenario.partition("/")
    words = re.split("[-@]", name if group != "people" else f"{group}-{name}")
    return f"doral/{''.join(word.capitalize() for word in words)}-v0"


def environments() -> dict[str, str]:
    """From the names of environments to those of their scenarios.

    >>> environments()["doral/Tiny-v0"]
    'stress/tiny'
    """
    names = [name for words in SCENARIO_WORDS.values() for name in words]
    stratified = [f"{name}@strata" for name in SCENARIO_WORDS[PEOPLE]]
    return {environment_name(name): name for name in (*names, *stratified)}


def spaces_of(scenario: Scenario) -> tuple[gymnasium.Space[NDArray[np.float32]], gymnasium.spaces.Discrete]:
    """Return the spaces of observations and of actions of one run."""
    observation: Any = gymnasium.spaces.Box(-1.0, 1.0, (layout_of(scenario.problem).size,), np.float32)
    return observation, gymnasium.spaces.Discrete(scenario.problem.n_arms + 1)


def run_of(options: dict[str, Any] | None) -> int | None:
    """Return the number of the run in the options, or None."""
    given = _check.keys("options", {} if options is None else options, required=(), optional=("run",))
    return checked_run(given["run"]) if "run" in given else None


class ScenarioEnv(gymnasium.Env[NDArray[np.float32], np.int64]):
    """A scenario as an environment of Gymnasium: one step for each arrival.

    An action is the number of an arm; the last one, `n_arms`, is to skip. What cannot be had or paid is a skip, and
    `info["refused"]` says so; `info["action_mask"]` and `action_masks()` tell before. Observations: `layout`.

    `reset(seed=s, options={"run": r})` plays run r of seed s, the tape of `doral.simulate(..., seed=s, first_run=r)`;
    without `options` run 0, and without a seed the next run.

    The last step holds what is still to come, so that the rewards of an episode sum to `within_deadline`; its `info`
    has "earned", "spend", "served" and "oracle".

    Args:
        scenario: A name (`doral scenarios` lists them) or a `doral.Scenario`.
        reward: "returned": an answer within its deadline is rewarded in the step in which it returns.
            "at_decision": in the step of its decision, before the answer is there; the sum is the same. That is for
            training in a simulator alone. Default: "returned".
        render_mode: None: there is nothing to be drawn.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012  (Gymnasium's own form)

    def __init__(
        self, scenario: str | Scenario, *, reward: Credited = "returned", render_mode: str | None = None
    ) -> None:
        self._scenario, self._credited = checked_scenario(scenario), checked_reward(reward)
        self._layout = layout_of(self._scenario.problem)
        if render_mode is not None:
            raise InvalidValue("render_mode", render_mode, "must be None: there is nothing to be drawn")
        self.observation_space, self.action_space = spaces_of(self._scenario)
        self.render_mode = None
        self._seed: int | None = None
        self._run = FIRST_RUN
        self._episode: Episode | None = None
        self._is_over = True

    @property
    def layout(self) -> Layout:
        """Where the parts of an observation are."""
        return self._layout

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played."""
        return self._scenario

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Let the first one of a run arrive.

        Args:
            seed: Of the tape. None: the seed so far; if there was none, it is drawn.
            options: {"run": number of the run}. None: run 0 of a new seed, else the next one.
        """
        seed = None if seed is None else checked_seed(seed)
        run = run_of(options)
        super().reset(seed=seed)
        if seed is not None or self._seed is None:
            self._seed = int(self.np_random.integers(_MAX_DRAWN_SEED)) if seed is None else seed
            self._run = FIRST_RUN
        else:
            self._run += 1
        self._run = self._run if run is None else run
        self._episode = Episode(self._scenario, self._layout, self._credited, seed=self._seed, run=self._run)
        self._is_over = False
        return self._episode.observation, {"action_mask": self.action_masks(), "refused": False}

    def step(self, action: np.int64 | int) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Take an action for the one who is here, and let the next one arrive.

        Args:
            action: The number of an arm, or `n_arms` to skip.
        """
        if self._episode is None or self._is_over:
            raise gymnasium.error.ResetNeeded("the run is over, or has not begun: call reset()")
        step = self._episode.act(_checked_action(action, self.scenario.problem.n_arms))
        self._is_over = step.is_over
        info: dict[str, Any] = {"action_mask": self.action_masks(), "refused": step.is_refused}
        if step.is_over:
            info.update(self._episode.summary())
        return self._episode.observation, step.reward, step.is_over, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Return what can be had and paid for the current arrival; to skip is always possible."""
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("the run has not begun: call reset()")
        return self._episode.mask.astype(np.bool_)


def _checked_action(action: object, n_arms: int) -> int:
    remedy = f"must be a whole number from 0 to {n_arms}"
    if isinstance(action, bool | np.bool_):  # a flag in a number's place is a slip, also where Python counts with it
        raise InvalidValue("action", action, remedy)
    try:
        number = operator.index(action)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidValue("action", action, remedy) from None
    if not 0 <= number <= n_arms:
        raise InvalidValue("action", action, f"must be the number of an arm, below {n_arms}, or {n_arms} to skip")
    return number
