"""What counts at the end, and at deadlines that are no whole number of rounds: the same for everybody who counts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import doral
from doral import delays
from doral.engine.engine import Engine, Heard
from doral.engine.setup import Blueprint
from doral.errors import InvalidValue
from doral.simulation.world.oracle import true_return_table
from doral.simulation.world.truth import make_truth

HORIZON = 400


def place(law: delays.AnyLaw, **changes: Any) -> doral.Scenario:
    words: dict[str, Any] = {
        "arms": [doral.Arm("a", features=[1.0])],
        "contexts": {"x": 0.5, "y": 0.5},
        "budget": HORIZON,
        "horizon": HORIZON,
        "deadline": 50,
        **changes,
    }
    return doral.Scenario(
        name="end", problem=doral.Problem(**words), delays=law, means=[[1.0], [1.0]], noise="none", noise_sd=0.0
    )


class EveryTime:
    """Plays its arm in every round."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        pass

    def decide(self, arrival: doral.Arrival) -> int | None:
        return 0

    def observe(self, answer: doral.Answer) -> None:
        pass


@pytest.mark.parametrize("player", [doral.policy("random", label="EveryTime"), EveryTime])
def test_who_knows_everything_earns_everything(player: Any) -> None:
    """Every answer comes within its deadline, the last ones after the last arrival: the oracle counts them."""
    result = doral.simulate(player, place(delays.Fixed(40)), runs=1)
    row = result.runs().row(0, named=True)
    assert row["within_deadline"] == pytest.approx(row["oracle"]) == HORIZON
    assert row["within_cutoff"] == pytest.approx(HORIZON)
    assert row["by_end"] == HORIZON - 40
    assert result.curves()["reward_mean"][-1] == HORIZON - 40  # what has come by the last arrival
    by_end = doral.simulate(player, place(delays.Fixed(40), counted="by_end"), runs=1).runs().row(0, named=True)
    assert by_end["within_deadline"] == by_end["within_cutoff"] == by_end["by_end"] == HORIZON - 40


def test_what_comes_too_late_or_never_does_not_count_after_the_end_either() -> None:
    contexts = [doral.Context("x", 0.5, weight=3.0, deadline=20), doral.Context("y", 0.5)]
    law = delays.Never(delays.Geometric(30), 0.3)
    result = doral.simulate(EveryTime, place(law, contexts=contexts), runs=1, keep_decisions=True)
    log = result.decisions().drop_nulls("arm")
    delay, context = log["delay"].to_numpy(), (log["context"] == "y").to_numpy().astype(int)
    worth = np.array([3.0, 1.0])[context] * (delay <= np.array([20.0, 50.0])[context])
    assert result.rewards("end", "EveryTime")[0] == pytest.approx(worth.sum())
    assert (np.isinf(delay) & (log["round"].to_numpy() == HORIZON)).sum() <= 1


def test_a_policy_looks_at_the_end_only_where_it_counts() -> None:
    law = delays.Geometric(40)
    last_round = {}
    for counted in ("within_deadline", "by_end"):
        scenario = place(law, counted=counted, budget=HORIZON // 2)
        log = doral.simulate("doral-otf", scenario, runs=1, keep_decisions=True).decisions().drop_nulls("arm")
        last_round[counted] = int(log["round"].to_numpy().max())
    assert last_round["by_end"] < last_round["within_deadline"] - 10
    blind = doral.policy("doral-otf", until_end=False, label="doral-otf")
    one, other = (doral.simulate(each, place(law), runs=2) for each in (blind, "doral-otf"))
    assert one.runs().equals(other.runs())


@pytest.mark.parametrize("deadline", [0.4, 1.0, 9.9, 10.0, 10.5, 10.999, 11.0])
@pytest.mark.parametrize("law", [delays.Fixed(10.5), delays.Empirical([0.0, 0.5, 10.0, 10.5, math.inf])])
def test_fractions_of_rounds_count_alike_for_everybody(law: delays.Law, deadline: float) -> None:
    """An answer comes after whole rounds, rounded up and at least one; a deadline of 10.5 admits ten of them."""
    rounds = np.maximum(1.0, np.ceil(law.sample(np.linspace(0.0, 1.0, 500, endpoint=False))))
    chance = float((rounds <= deadline).mean())
    scenario = place(law, deadline=deadline)
    truth = make_truth(scenario, seed=0, run=0)
    assert truth.counted[0, 0, 0] == pytest.approx(chance)
    assert truth.oracle == pytest.approx(HORIZON * chance)
    table = true_return_table(scenario)[0, 0]
    assert table[int(deadline)] == pytest.approx(chance)

    log = doral.simulate(EveryTime, scenario, runs=1, keep_decisions=True)
    delay = log.decisions().drop_nulls("arm")["delay"].to_numpy()
    assert log.rewards("end", "EveryTime")[0] == (delay <= deadline).sum() == (delay <= math.floor(deadline)).sum()
    assert (delay <= deadline).mean() == pytest.approx(chance, abs=0.12)

    given = doral.policy("doral", screening="none", return_probability="oracle", cutoff=20.0)
    engine = Engine(Blueprint(options=given, problem=scenario.problem, seed=0, oracle=true_return_table(scenario)))
    engine.decide(0, np.zeros((1, 0), dtype=np.uint8), 1.0)
    assert engine.state.tau[0, 0] == pytest.approx(chance)

    estimated = doral.policy("doral", screening="none", cutoff=20.0)
    engine = Engine(Blueprint(options=estimated, problem=scenario.problem, seed=0))
    due: dict[float, list[int]] = {}
    draws = iter(np.random.default_rng(1).permutation(rounds).tolist())
    for clock in range(1, 240):
        for number in due.pop(float(clock), []):
            engine.answer([Heard(number, 1.0, float(clock))])
        made = engine.decide(clock % 2, np.zeros((1, 0), dtype=np.uint8), float(clock))
        if made.arm >= 0:
            due.setdefault(clock + next(draws), []).append(made.number)
    seen = engine.state.tau[0, 0]
    assert seen == pytest.approx(chance, abs=0.15)
    assert (seen == 0.0) == (chance == 0.0)
    assert (seen == 1.0) == (chance == 1.0)


def test_what_is_counted_is_checked_and_kept() -> None:
    problem = place(delays.Fixed(1)).problem
    assert "counted" not in problem.to_dict()  # as in the logs of campaigns that do not know the word
    by_end = place(delays.Fixed(1), counted="by_end").problem
    assert by_end.to_dict()["counted"] == "by_end"
    assert doral.Problem.from_dict(by_end.to_dict()) == by_end != problem
    with pytest.raises(InvalidValue, match="counted = 'in_time': must be within_deadline or by_end"):
        place(delays.Fixed(1), counted="in_time")
