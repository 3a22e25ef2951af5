"""Many runs at once: the same as one by one."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

import doral
import doral.gym
from doral.errors import InvalidValue
from doral.experiments.kit.cell import shrunk
from doral.gym import ScenarioEnv, ScenarioVectorEnv


def short(name: str, rounds: int) -> doral.Scenario:
    scenario = doral.Scenario.named(name)
    return shrunk(scenario, max(1, scenario.problem.expected_rounds // rounds))


def vectorised(mode: str, scenario: doral.Scenario, n: int) -> Any:
    return gymnasium.make_vec("doral/Scenario-v0", num_envs=n, vectorization_mode=mode, scenario=scenario)


@pytest.mark.parametrize("name", ["stress/tiny", "stress/pay-on-success", "stress/until", "people/linear"])
def test_the_same_as_one_by_one_over_several_episodes(name: str) -> None:
    scenario = short(name, 100)
    many, one_by_one = vectorised("vector_entry_point", scenario, 3), vectorised("sync", scenario, 3)
    assert type(many) is ScenarioVectorEnv
    assert many.observation_space == one_by_one.observation_space
    assert many.action_space == one_by_one.action_space
    assert many.metadata["autoreset_mode"] == one_by_one.metadata["autoreset_mode"]
    rng, ended = np.random.default_rng(0), 0
    pair = [many.reset(seed=4), one_by_one.reset(seed=4)]
    while ended < 6:
        assert_same(*pair)
        assert np.array_equal(many.action_masks(), pair[0][-1]["action_mask"])
        actions = rng.integers(0, scenario.problem.n_arms + 1, 3)
        pair = [many.step(actions), one_by_one.step(actions)]
        ended += int(pair[0][2].sum())


def assert_same(mine: Any, theirs: Any) -> None:
    for one, other in zip(mine[:-1], theirs[:-1], strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert mine[-1].keys() == theirs[-1].keys()
    for key, value in mine[-1].items():
        assert np.array_equal(value, theirs[-1][key]), key


def test_what_is_returned_is_not_changed_later() -> None:
    envs = vectorised("vector_entry_point", short("stress/tiny", 100), 2)
    before = envs.reset(seed=0)
    kept = before[0].copy(), before[1]["action_mask"].copy()
    first = envs.step(np.array([0, 1]))
    rewards = first[1].copy()
    for _ in range(150):
        envs.step(np.array([0, 1]))
    assert np.array_equal(before[0], kept[0])
    assert np.array_equal(before[1]["action_mask"], kept[1])
    assert np.array_equal(first[1], rewards)
    assert not first[2].any()


def test_wrappers_of_gymnasium_count_episodes() -> None:
    many = vectorised("vector_entry_point", short("stress/tiny", 100), 2)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(many)
    envs.reset(seed=7)
    is_over = np.zeros(2, dtype=np.bool_)
    while not is_over.any():
        _, _, is_over, _, info = envs.step(np.array([1, 2]))
    assert info["episode"]["r"] == pytest.approx(info["earned"])
    assert info["episode"]["l"].tolist() == [100, 100]


def test_single_runs_can_be_reset() -> None:
    scenario = short("stress/tiny", 100)
    envs = ScenarioVectorEnv(scenario, num_envs=3)
    envs.reset(seed=[1, 2, 3])
    for _ in range(10):
        seen, *_ = envs.step(np.array([0, 0, 0]))
    begun, _ = envs.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(begun[[0, 2]], seen[[0, 2]])
    single = ScenarioEnv(scenario)
    assert np.array_equal(begun[1], single.reset(seed=2, options={"run": 1})[0])


def test_wrong_input() -> None:
    envs = ScenarioVectorEnv("stress/tiny", num_envs=2)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(np.array([0, 0]))
    envs.reset(seed=0)
    for actions in ([0, 9], [-1, 0], [0], [0.5, 1.0], "ab"):
        with pytest.raises(InvalidValue, match="action"):
            envs.step(actions)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="one for each environment, 2"):
        envs.reset(seed=[1])
    with pytest.raises(InvalidValue, match="reset_mask"):
        envs.reset(options={"reset_mask": [True, False]})
    with pytest.raises(InvalidValue, match="num_envs"):
        ScenarioVectorEnv("stress/tiny", num_envs=0)
    wrong: list[Any] = [[], {"round": 1}]
    for options in wrong:
        with pytest.raises(InvalidValue, match="options"):
            envs.reset(options=options)
    with pytest.raises(InvalidValue, match=r"autoreset_mode.*NEXT_STEP.*vector_kwargs"):
        gymnasium.make_vec("doral/Tiny-v0", num_envs=2, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    gymnasium.make_vec("doral/Tiny-v0", num_envs=2, autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP)
    same = gymnasium.vector.AutoresetMode.SAME_STEP  # what the message proposes
    gymnasium.make_vec("doral/Tiny-v0", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": same})


def pickled(env: Any) -> Any:
    return pickle.loads(pickle.dumps(env))


@pytest.mark.parametrize("name", ["stress/until", "stress/pay-on-success", "people/linear"])
@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_a_copy_in_the_middle_of_a_run_goes_on_by_itself(name: str, copied: Callable[[Any], Any]) -> None:
    envs = ScenarioVectorEnv(short(name, 600), num_envs=2)
    envs.reset(seed=3)
    actions = np.random.default_rng(0).integers(0, envs.scenario.problem.n_arms + 1, size=(900, 2))
    for one in actions[:300]:
        envs.step(one)
    other = copied(envs)
    first, second = ([env.step(one)[:3] for one in actions[300:]] for env in (envs, other))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True) for a, b in zip(a, b, strict=True))
    assert pickled(ScenarioVectorEnv(short(name, 600), num_envs=2)).reset(seed=3)[0].shape == first[0][0].shape
