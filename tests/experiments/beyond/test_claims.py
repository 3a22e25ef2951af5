"""What `doral-otf` is meant to reach holds, fails or stays open as the intervals say, and never by the means alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from doral._arrays import Floats
from doral.engine.options import make_policy
from doral.experiments.beyond import analysis
from doral.experiments.beyond import analysis as targets
from doral.experiments.kit.batches import Cell, CellResult
from doral.experiments.kit.claim import Claim
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS as SCENARIOS
from doral.simulation.results.differences import interval
from doral.simulation.results.result import SimulationResult

MakeResult = Callable[..., SimulationResult]

ORACLE = 2_000.0  # of the made-up results
STEADY = np.array([0.0, 1.0, -1.0, 0.5, -0.5])
GOOD, MIDDLING, POOR = (share * ORACLE + STEADY for share in (0.997, 0.92, 0.8))
BY_ARM = "doral-otf(curves_by=arm)"


def check(
    make: MakeResult,
    rewards: Mapping[str, Floats],
    *,
    scenarios: tuple[str, ...] = tuple(SCENARIOS),
    stress: Mapping[str, Mapping[str, Floats]] | None = None,
    ingredients: Mapping[str, Floats] | None = None,
) -> dict[str, Claim]:
    """All claims by their ids; `stress` has other rewards for some scenarios."""
    own = stress or {}
    results = {name: make(own.get(name, rewards), scenarios=(name,)) for name in scenarios}
    table = SimulationResult(outcomes=tuple(one for each in results.values() for one in each.outcomes), seed=0)
    found = [
        CellResult(
            cell=Cell(
                study="table",
                scenario=SCENARIOS[name],
                policies=tuple(make_policy(one) for one in rewards),
                runs=STEADY.size,
            ),
            result=result,
        )
        for name, result in results.items()
    ]
    sides = make(ingredients, scenarios=scenarios) if ingredients else SimulationResult(outcomes=(), seed=0)
    return {claim.id: claim for claim in targets.judge(table, analysis.shares_table(found), sides)}


def verdicts(claims: Mapping[str, Claim], prefix: str) -> set[str]:
    chosen: set[str] = {claim.verdict for key, claim in claims.items() if key.startswith(prefix)}
    assert chosen, prefix
    return chosen


N_STRESS = sum(name.startswith("stress/") for name in SCENARIOS)
REACHED: dict[str, Floats] = {"doral-otf": GOOD, "doral": MIDDLING, "random": POOR}


def test_all_targets_can_be_reached(make_result: MakeResult) -> None:
    by_context = {"doral-otf": GOOD, BY_ARM: GOOD - 1.0}
    claims = check(make_result, REACHED, ingredients=by_context)
    assert {claim.verdict for claim in claims.values()} == {"holds"}
    assert len(claims) == 4 + 4 + 1 + N_STRESS + 1 + 4 + 1


def test_a_doctored_share_fails(make_result: MakeResult) -> None:
    worse = {**REACHED, "doral-otf": 0.991 * ORACLE + STEADY}
    claims = check(make_result, REACHED, stress={"paper/similar-pareto": worse})
    assert claims["1-share/similar-pareto"].verdict == "fails"
    assert claims["1-share/similar-pareto"].estimate == pytest.approx(99.1)
    assert claims["1-share/similar-geometric"].verdict == "holds"


def test_regret_that_is_only_seven_times_smaller_fails(make_result: MakeResult) -> None:
    nearly = {**REACHED, "doral-otf": (1 - 0.08 / 7) * ORACLE + STEADY / 10}
    claims = check(make_result, nearly)
    assert verdicts(claims, "2-regret") == {"fails"}
    assert claims["2-regret/similar-pareto"].estimate == pytest.approx(7.0)
    assert claims["3-mean-regret/paper"].verdict == "fails"
    assert claims["3-mean-regret/paper"].estimate == pytest.approx(7.0)


def test_one_scenario_may_be_lost_and_two_may_not(make_result: MakeResult) -> None:
    beaten = {**REACHED, "doral": GOOD + 40 + STEADY}
    one = check(make_result, REACHED, stress={"stress/drift": beaten})
    assert one["4-standing/drift"].verdict == "fails"
    assert one["4-standing/drift"].high < 0
    total = one["5-ahead-or-tied/stress"]
    assert (total.verdict, total.estimate, total.low, total.high) == ("holds", *[N_STRESS - 1] * 3)
    two = check(make_result, REACHED, stress={"stress/drift": beaten, "stress/short": beaten})
    assert two["5-ahead-or-tied/stress"].verdict == "fails"
    assert two["5-ahead-or-tied/stress"].estimate == N_STRESS - 2


def test_a_tie_counts_but_not_as_ahead(make_result: MakeResult) -> None:
    wild = np.array([10.0, -12.0, 9.0, -8.0, 2.0])
    tied = {**REACHED, "doral": GOOD + wild}
    claims = check(make_result, REACHED, stress={"stress/heavy": tied})
    assert claims["4-standing/heavy"].verdict == "holds"
    assert -1.0 < claims["4-standing/heavy"].low < 0 < claims["4-standing/heavy"].high


def test_too_wide_an_interval_is_no_tie(make_result: MakeResult) -> None:
    wild = np.array([100.0, -120.0, 90.0, -80.0, 20.0])
    open_ = {**REACHED, "doral": GOOD + wild}
    one = check(make_result, REACHED, stress={"stress/heavy": open_})
    assert one["4-standing/heavy"].verdict == "not shown"
    total = one["5-ahead-or-tied/stress"]
    assert (total.verdict, total.low, total.high) == ("holds", N_STRESS - 1, N_STRESS)
    two = check(make_result, REACHED, stress={"stress/heavy": open_, "stress/drift": open_})
    assert two["5-ahead-or-tied/stress"].verdict == "not shown"


def test_a_tie_that_is_known_exactly_stays_one(make_result: MakeResult) -> None:
    """Half a point behind is within the margin, however sure it is: more runs never take a verdict back."""
    near = {**REACHED, "doral": GOOD + 10 + STEADY}
    claims = check(make_result, REACHED, stress={"stress/drift": near})
    assert claims["4-standing/drift"].high < 0
    assert claims["4-standing/drift"].verdict == "holds"
    assert "at most 1 point behind" in claims["4-standing/drift"].statement


def test_the_best_other_policy_is_found_per_scenario(make_result: MakeResult) -> None:
    swapped = {**REACHED, "doral": POOR, "random": MIDDLING}
    claims = check(make_result, REACHED, stress={"stress/urgent": swapped})
    assert claims["4-standing/urgent"].statement.endswith("random")
    assert claims["4-standing/costs"].statement.endswith("doral")
    assert claims["4-standing/urgent"].estimate == pytest.approx(7.7)


@pytest.mark.parametrize(("loss", "verdict"), [(0.1, "holds"), (0.5, "fails")])
def test_what_curves_by_context_may_cost(make_result: MakeResult, loss: float, verdict: str) -> None:
    sides = {"doral-otf": GOOD - loss / 100 * ORACLE, BY_ARM: GOOD}
    claims = check(make_result, REACHED, ingredients=sides)
    assert verdicts(claims, "6-curves-cost") == {verdict}
    assert claims["6-curves-cost/diverse-pareto"].estimate == pytest.approx(loss)
    assert claims["7-curves-win/context-delays"].verdict == "fails"


@pytest.mark.parametrize("runs", [1, 2])
def test_one_or_two_runs_decide_nothing(make_result: MakeResult, runs: int) -> None:
    one = {name: rewards[:runs] for name, rewards in REACHED.items()}
    claims = check(make_result, one, ingredients={"doral-otf": GOOD[:runs], BY_ARM: GOOD[:runs]})
    assert {claim.verdict for claim in claims.values()} == {"not shown"}


def test_only_what_can_be_judged_is_claimed(make_result: MakeResult) -> None:
    assert check(make_result, {"doral": GOOD, "random": POOR}) == {}
    alone = check(make_result, {"doral-otf": GOOD})
    assert {key[0] for key in alone} == {"1"}
    some = check(make_result, REACHED, scenarios=("paper/similar-pareto", "stress/drift"))
    assert list(some) == ["1-share/similar-pareto", "2-regret/similar-pareto", "4-standing/drift"]


def test_the_ratio_is_of_means_and_its_interval_covers() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(60):
        theirs, ours = rng.normal(100, 10, 20), rng.normal(5, 1, 20)
        found = targets.regret_ratio([theirs], [ours])
        assert found.mean == pytest.approx(theirs.mean() / ours.mean())
        covered += found.low <= 20 <= found.high
    assert 50 <= covered < 60


def test_the_average_ratio_is_the_average_of_the_ratios() -> None:
    theirs, ours = [np.full(5, 100.0), np.full(5, 30.0)], [np.full(5, 10.0), np.full(5, 1.0)]
    found = targets.regret_ratio(theirs, ours)
    assert (found.mean, found.low, found.high) == pytest.approx((20.0, 20.0, 20.0))


def test_regret_that_may_be_nothing_has_no_upper_end() -> None:
    found = targets.regret_ratio([np.full(6, 100.0)], [np.array([9.0, -8.0, 7.0, -6.0, 5.0, -4.0])])
    assert found.high == math.inf
    assert found.mean == pytest.approx(200.0)
    assert targets.regret_ratio([np.full(6, 100.0)], [np.full(6, -1.0)]).mean == math.inf


@pytest.mark.parametrize(
    ("difference", "standing"),
    [
        ([1.0, 1.1, 0.9], "ahead"),
        ([0.1, -0.1, 0.02], "tied"),
        ([-0.5, -0.6, -0.55], "tied"),
        ([1.0, -1.0, 0.2], "unknown"),
        ([-1.0, -1.1, -0.9], "behind"),
        ([5.0], "unknown"),
        ([5.0, 5.01], "unknown"),
    ],
)
def test_where_a_policy_stands(difference: list[float], standing: str) -> None:
    assert analysis.standing_of(interval(np.array(difference))) == standing
