"""Environments of Gymnasium: what its checker asks for, and the same runs as `doral.simulate` plays."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import doral
import doral.gym
from doral.errors import InvalidValue, UnknownName
from doral.experiments.kit.batches import shrunk
from doral.gym import ScenarioEnv
from doral.simulation.catalogue.lookup import ScenarioName

ROUNDS = 1_500  # about, of a shortened scenario


def short(name: str) -> doral.Scenario:
    scenario = doral.Scenario.named(name)
    return shrunk(scenario, max(1, scenario.problem.expected_rounds // ROUNDS))


def by_rule(round_: int, n_arms: int) -> int:
    """Every arm and to skip, in turns; the dear and the absent, too."""
    return (round_ * 7 + round_ // 50) % (n_arms + 1)


class ByRule:
    """The same as a policy: what cannot be had is skipped."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self._n_arms = problem.n_arms

    def decide(self, arrival: doral.Arrival) -> int | None:
        arm = by_rule(arrival.round, self._n_arms)
        return arm if arm in arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        pass


def played(env: Any, choose: Callable[[int], int], **start: Any) -> tuple[list[float], list[tuple[int, int]], Any]:
    """Rewards by step, what was done as (round, arm), and the last words."""
    env.reset(**start)
    rewards: list[float] = []
    done: list[tuple[int, int]] = []
    n_arms, is_over = int(env.action_space.n) - 1, False
    while not is_over:
        round_ = len(rewards) + 1
        action = choose(round_)
        _, reward, is_over, _, info = env.step(action)
        rewards.append(reward)
        if action < n_arms and not info["refused"]:
            done.append((round_, action))
    return rewards, done, info


@pytest.mark.parametrize("name", ["Tiny", "DiversePareto", "PayOnSuccess", "Until", "Control", "PeopleLinear"])
def test_the_checker_of_gymnasium_has_nothing_to_say(name: str) -> None:
    check_env(gymnasium.make(f"doral/{name}-v0").unwrapped)


@pytest.mark.parametrize(
    "name",
    [
        "paper/diverse-pareto",
        "stress/tiny",
        "stress/costs",
        "stress/silent",
        "stress/never-30",
        "stress/urgent",
        "stress/until",
        "stress/pay-on-success",
        "stress/control",
        "stress/drift",
        "people/linear",
        "people/silent",
        "people/categories@strata",
    ],
)
@pytest.mark.parametrize("reward", ["returned", "at_decision"])
def test_the_same_decisions_earn_what_the_simulator_says(name: str, reward: Any) -> None:
    scenario = short(name)
    n_arms = scenario.problem.n_arms
    outcome = doral.simulate(ByRule, scenario, seed=5, first_run=2, runs=1, keep_decisions=True).outcomes[0]
    env = ScenarioEnv(scenario, reward=reward)
    rewards, done, info = played(env, lambda round_: by_rule(round_, n_arms), seed=5, options={"run": 2})
    assert outcome.arrivals is not None
    assert len(rewards) == outcome.arrivals.arm.size
    served = np.flatnonzero(outcome.arrivals.arm >= 0)
    assert done == list(zip((served + 1).tolist(), outcome.arrivals.arm[served].tolist(), strict=True))
    assert info["served"] == outcome.decisions > 0
    assert info["earned"] == outcome.rewards[0]
    assert math.fsum(rewards) == pytest.approx(outcome.rewards[0], rel=1e-9)
    assert info["spend"] == outcome.spend
    assert info["oracle"] == outcome.oracle


def test_what_counts_by_the_end_is_all_that_is_rewarded() -> None:
    problem = doral.Problem(
        arms=["a"], contexts=["all"], budget=100, horizon=100, deadline=50, counted="by_end", feedback="explicit"
    )
    scenario = doral.Scenario(name="x", problem=problem, means=[[1]], noise="none", delays=doral.delays.Fixed(30))
    for reward in ("returned", "at_decision"):
        rewards, _, info = played(ScenarioEnv(scenario, reward=reward), lambda round_: 0, seed=0)
        assert sum(rewards) == info["earned"] == 70.0


def test_rewards_come_with_the_answers() -> None:
    problem = doral.Problem(arms=["a"], contexts=["all"], budget=100, horizon=40, deadline=10)
    scenario = doral.Scenario(name="x", problem=problem, means=[[1]], noise="none", delays=doral.delays.Fixed(7))
    rewards, _, _ = played(ScenarioEnv(scenario), lambda round_: 0 if round_ in (3, 38) else 1, seed=0)
    # What is decided in round 3 is heard when the 10th arrives, at the end of step 9; the last one after the end.
    assert [step for step, reward in enumerate(rewards, start=1) if reward] == [9, 40]
    at_once, _, _ = played(
        ScenarioEnv(scenario, reward="at_decision"), lambda round_: 0 if round_ in (3, 38) else 1, seed=0
    )
    assert [step for step, reward in enumerate(at_once, start=1) if reward] == [3, 38]


def test_an_episode_repeats_itself_and_the_next_one_is_the_next_run() -> None:
    env = ScenarioEnv(short("paper/similar-geometric"))
    actions = np.random.default_rng(1).integers(0, 11, 200)

    def episode(**start: Any) -> Any:
        seen = [env.reset(**start)[0]]
        return np.array([*seen, *(env.step(action)[0] for action in actions)])

    first, second = episode(seed=8), episode()
    assert np.array_equal(episode(seed=8), first)
    assert np.array_equal(episode(seed=8, options={"run": 1}), second)
    assert not np.array_equal(first, second)
    assert first.min() >= -1.0
    assert first.max() <= 1.0


def test_unseeded_environments_differ() -> None:
    seen = [ScenarioEnv("stress/tiny").reset()[0][:4].tolist() for _ in range(20)]
    assert any(one != seen[0] for one in seen)


def test_masks_say_what_is_refused() -> None:
    problem = doral.Problem(arms={"cheap": 0.1, "dear": 0.2}, contexts=["all"], budget=0.3, horizon=20, deadline=5)
    scenario = doral.Scenario(name="x", problem=problem, means=[[1, 1]], delays=doral.delays.Fixed(1))
    env = ScenarioEnv(scenario)
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [True, True, True]
    masks, refused = [], []
    for action in (0, 0, 1, 0, 0, 2):  # 0.3 is three times 0.1, to the last decimal
        seen, _, _, _, info = env.step(action)
        masks.append(info["action_mask"].tolist())
        refused.append(info["refused"])
        assert env.action_masks().tolist() == masks[-1]
        assert seen[env.layout["can"]].tolist() == masks[-1][:2]
    assert masks == [[True, True, True], [True, False, True], [True, False, True], *[[False, False, True]] * 3]
    assert refused == [False, False, True, False, True, False]


def test_what_is_observed_is_what_has_returned() -> None:
    problem = doral.Problem(arms=["a", "b"], contexts=["all"], budget=50, horizon=100, deadline=10)
    scenario = doral.Scenario(
        name="x",
        problem=problem,
        means=[[1, 3]],
        noise="none",
        delays=[doral.delays.Fixed(4), doral.delays.Fixed(20)],
    )
    env = ScenarioEnv(scenario)
    seen, _ = env.reset(seed=0)
    told = [{name: seen[env.layout[name]].tolist() for name in env.layout}]
    for round_ in range(1, 31):
        seen, *_ = env.step(0 if round_ <= 2 else 1 if round_ <= 4 else 2)
        told.append({name: seen[env.layout[name]].tolist() for name in env.layout})
    assert told[0]["left"][:2] == [1.0, 1.0]
    assert told[4]["plays"] == pytest.approx([2 / 12, 2 / 12])
    assert told[4]["heard"] == [0.5, 0.0]  # the first answer came with the fifth arrival
    assert told[5]["heard"] == [1.0, 0.0]
    assert told[5]["mean"] == [0.5, 0.0]  # 1, squashed
    assert told[5]["worth"] == [0.0, 0.0]  # nothing is older than the deadline
    assert told[15]["worth"] == [0.5, 0.0]  # b answers too late
    assert told[23]["heard"] == [1.0, 1.0]
    assert told[23]["mean"] == [0.5, 0.75]
    assert told[23]["worth"] == [0.5, 0.0]
    assert told[10]["left"][:2] == pytest.approx([46 / 50, 0.9])
    assert sum(size for _, size in env.layout.sizes) == seen.size


def test_every_scenario_has_an_environment() -> None:
    named = doral.gym.environments()
    assert sorted(named.values()) == sorted(get_args(ScenarioName))
    assert all(name in gymnasium.registry for name in named)
    assert named["doral/DiversePareto-v0"] == "paper/diverse-pareto"
    assert gymnasium.make("doral/Scenario-v0", scenario=short("stress/tiny")).action_space.n == 5  # type: ignore[attr-defined]


def test_wrong_input() -> None:
    with pytest.raises(UnknownName, match="stress/tiny"):
        ScenarioEnv("stress/tini")
    with pytest.raises(InvalidValue, match="must be a name or a doral.Scenario"):
        ScenarioEnv(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="must be returned or at_decision"):
        ScenarioEnv("stress/tiny", reward="late")  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="nothing to be drawn"):
        ScenarioEnv("stress/tiny", render_mode="human")
    env = ScenarioEnv("stress/tiny")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    for action in (-1, 5, 1.5, "a", True, np.True_):
        with pytest.raises(InvalidValue, match="action"):
            env.step(action)  # type: ignore[arg-type]
    for seed in (-1, 2**53 + 1, 2**60, 0.5):
        with pytest.raises(InvalidValue, match="seed"):
            env.reset(seed=seed)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="run"):
        env.reset(options={"run": -1})
    wrong: list[Any] = [{"round": 1}, [], 0]
    for options in wrong:
        with pytest.raises(InvalidValue, match="options"):
            env.reset(options=options)
    with pytest.raises(InvalidValue, match='scenario.*None.*scenario="stress/tiny"'):
        gymnasium.make("doral/Scenario-v0")


def test_where_nothing_costs_anything_the_budget_is_enough_for_all() -> None:
    tiny = short("stress/tiny")
    free = tuple(replace(arm, cost=0.0) for arm in tiny.problem.arms)
    env = ScenarioEnv(replace(tiny, problem=replace(tiny.problem, arms=free)))
    seen, _ = env.reset(seed=0)
    for _ in range(5):
        assert env.observation_space.contains(seen)
        assert seen[env.layout["left"]][2] == 1.0
        seen, *_ = env.step(0)


def test_many_runs_side_by_side_are_those_of_single_environments() -> None:
    scenario = short("stress/tiny")
    many: Any = gymnasium.make_vec("doral/Scenario-v0", num_envs=3, scenario=scenario)
    single = ScenarioEnv(scenario)
    seen, info = many.reset(seed=4)
    for i in range(3):
        assert np.array_equal(seen[i], single.reset(seed=4 + i)[0])
    assert info["action_mask"].shape == (3, 5)
    for action in (0, 1, 4, 2):
        seen, rewards, *_ = many.step(np.full(3, action))
        alone, reward, *_ = single.step(action)
        assert np.array_equal(seen[2], alone)
        assert rewards[2] == reward
    begun, _ = many.reset(options={"reset_mask": np.array([False, True, False])})
    assert np.array_equal(begun[[0, 2]], seen[[0, 2]])
    assert np.array_equal(begun[1], single.reset(seed=5, options={"run": 1})[0])


@pytest.mark.parametrize("name", ["stress/until", "stress/pay-on-success", "people/linear"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_in_the_middle_of_a_run_continues_by_itself(name: str, copied: Callable[[Any], Any]) -> None:
    env = ScenarioEnv(short(name))
    env.reset(seed=3)
    actions = np.random.default_rng(0).integers(0, env.scenario.problem.n_arms + 1, size=900)
    for one in actions[:300]:
        env.step(one)
    other = copied(env)
    for action in actions[300:]:
        mine, theirs = env.step(action), other.step(action)
        assert np.array_equal(mine[0], theirs[0])
        assert mine[1:3] == theirs[1:3]
    pickle.dumps(ScenarioEnv(short(name)))


def said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_gymnasium_is_imported_by_those_who_ask_for_it() -> None:
    assert said("import doral, sys; doral.simulate; print('gymnasium' in sys.modules)").strip() == "False"
    assert "Tiny" in said("import gymnasium; print(gymnasium.make('doral.gym:doral/Tiny-v0').spec.id)")
    assert "pip install 'doral[gym]'" in said("import sys; sys.modules['gymnasium'] = None; import doral.gym")
