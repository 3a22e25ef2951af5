"""Problems made from real data: what is absent is said; on made-up data of the same shape the problems are sound."""

from __future__ import annotations

import gzip
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.real_data import aslib, hillstrom, medical_tests
from benchmarks.real_data.absent import Absent

import doral
from doral.prediction.python_policy import Answer, Arrival
from doral.problem import Problem
from doral.simulation.world.truth import make_truth

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "real_data"
SOLVERS = ("quick", "sure", "never")
TIMES = {"quick": (30.0, None), "sure": (100.0, 500.0), "never": (None, None)}  # of even and odd instances, in seconds
INSTANCES = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Made-up data of both shapes."""
    home = tmp_path / "aslib" / "QBF-2011"
    home.mkdir(parents=True)
    (home / "description.txt").write_text("algorithm_cutoff_memory: 100\nalgorithm_cutoff_time: 600\n")
    runs = ["@RELATION runs", *(f"@ATTRIBUTE {name} STRING" for name in ("instance_id", "repetition", "algorithm"))]
    runs += ["@ATTRIBUTE runtime NUMERIC", "@ATTRIBUTE runstatus {ok, timeout}", "@DATA"]
    features = ["@ATTRIBUTE instance_id STRING", "@ATTRIBUTE repetition NUMERIC", "@ATTRIBUTE odd NUMERIC"]
    features += ["@ATTRIBUTE size NUMERIC", "@DATA"]
    for i in range(INSTANCES):
        for solver in SOLVERS:
            seconds = TIMES[solver][i % 2]
            runs.append(f"i{i},1,{solver},{seconds or 600.0},{'ok' if seconds else 'timeout'}")
        features.append(f"i{i},1,{i % 2},{'?' if i == 7 else i}")
    for name, lines in (("algorithm_runs", runs), ("feature_values", features)):
        with gzip.open(home / f"{name}.arff.gz", "wt") as file:
            file.write("\n".join(lines) + "\n")
    rng = np.random.default_rng(0)
    n = 3_000
    visit = rng.random(n) < 0.3
    customers = pl.DataFrame(
        {
            "mens": rng.integers(0, 2, n),
            "womens": np.ones(n, dtype=np.int64),
            "newbie": rng.integers(0, 2, n),
            "segment": rng.choice(hillstrom.ARMS, n),
            "visit": visit.astype(np.int64),
            "conversion": (visit & (rng.random(n) < 0.1)).astype(np.int64),
            "spend": np.where(visit, 12.5, 0.0),
        }
    )
    (tmp_path / "hillstrom").mkdir()
    with gzip.open(tmp_path / "hillstrom" / "hillstrom.csv.gz", "wb") as binary:
        binary.write(customers.write_csv().encode())
    return tmp_path


class Always:
    """One solver for all, and what it hears."""

    def __init__(self, arm: int) -> None:
        self.arm, self.heard = arm, list[Answer]()

    def decide(self, arrival: Arrival) -> int | None:
        return self.arm if self.arm in arrival.available else None

    def observe(self, answer: Answer) -> None:
        self.heard.append(answer)


def test_a_replay_gives_each_instance_once_with_what_was_observed(folder: Path) -> None:
    taken = aslib.read(folder, "QBF-2011")
    assert taken.solvers == tuple(sorted(SOLVERS))
    assert taken.cutoff_s == 600.0
    scenario = aslib.scenario(taken, "as-is")
    rich = doral.Problem(
        arms={arm.name: 1.0 for arm in scenario.problem.arms},
        person=list(scenario.problem.person),
        budget=10.0 * INSTANCES,
        horizon=INSTANCES,
        deadline=scenario.problem.deadline,
    )
    scenario = doral.Scenario(
        name=scenario.name,
        problem=rich,
        people=scenario.people,
        means=scenario.means,
        noise="none",
        delays=scenario.delays[0][0],
    )
    for arm, solver in enumerate(taken.solvers):
        made: list[Always] = []

        def maker(problem: Problem, seed: int, arm: int = arm, made: list[Always] = made) -> Always:
            made.append(Always(arm))
            return made[-1]

        outcomes = aslib.replay([maker], scenario, taken, runs=2, seed=0)
        solved = [one for one in TIMES[solver] if one is not None]
        assert [one.expected for one in outcomes] == [INSTANCES // 2 * len(solved)] * 2
        assert all(one.rewards[0] == one.expected for one in outcomes)
        assert {answer.delay for policy in made for answer in policy.heard} == {math.ceil(one / 60.0) for one in solved}
        orders = [[answer.decided for answer in policy.heard] for policy in made]
        assert solver != "quick" or orders[0] != orders[1]  # another order in each run


def test_the_oracle_of_a_replay_knows_each_instance(folder: Path) -> None:
    taken = aslib.read(folder, "QBF-2011")
    scenario = aslib.scenario(taken, "as-is")
    costs = {arm.name: arm.dearest for arm in scenario.problem.arms}
    assert costs == pytest.approx({"quick": 315.0, "sure": 300.0, "never": 600.0})
    budget = 0.4 * INSTANCES * 405.0
    assert scenario.problem.budget == pytest.approx(budget)
    assert make_truth(scenario, seed=0, run=0).oracle == pytest.approx(budget / 300.0)
    for sees in (scenario, aslib.stratified(scenario)):
        outcomes = aslib.replay([doral.policy("doral-otf")], sees, taken, runs=2, seed=1)
        assert all(0.0 < one.expected <= one.oracle * 1.0001 for one in outcomes)
        assert all(one.spend <= budget for one in outcomes)


def test_a_replay_that_is_paid_on_answer_costs_run_times(folder: Path) -> None:
    taken = aslib.read(folder, "QBF-2011")
    scenario = aslib.scenario(taken, "paid")
    sure = taken.solvers.index("sure")
    (outcome,) = aslib.replay([lambda problem, seed: Always(sure)], scenario, taken, runs=1, seed=0)
    mean = 300.0  # of 100 and 500 seconds
    assert outcome.spend <= scenario.problem.budget
    assert outcome.spend == pytest.approx(mean * outcome.decisions, rel=0.35)
    never = taken.solvers.index("never")
    (outcome,) = aslib.replay([lambda problem, seed: Always(never)], scenario, taken, runs=1, seed=0)
    assert outcome.decisions > 0
    assert outcome.spend == 0.0


def test_components_are_standardised_and_take_gaps(folder: Path) -> None:
    found = aslib.components(aslib.read(folder, "QBF-2011").features)
    assert found.shape == (INSTANCES, 2)
    assert np.isfinite(found).all()
    assert found.std(axis=0) == pytest.approx(1.0, rel=1e-6)


def test_customers_without_an_e_mail_are_the_control(folder: Path) -> None:
    customers = hillstrom.read(folder)
    for variant in hillstrom.VARIANTS:
        scenario = hillstrom.scenario(customers, variant)
        problem = scenario.problem
        assert problem.control == problem.arm_index(hillstrom.CONTROL)
        assert problem.n_contexts == 4  # women's or both, new or known
        assert scenario.rows is not None
        assert scenario.rows.reward.size == customers.height
        seen = {"conversions": "conversion", "spend": "spend"}.get(variant, "visit")
        assert scenario.rows.reward.sum() == pytest.approx(customers[seen].sum())
        late = scenario.rows.delay > problem.deadlines.max()
        assert (late == ((scenario.rows.reward == 0.0) & (variant != "explicit"))).all()


def test_absent_data_are_named(tmp_path: Path) -> None:
    words = [str(PROGRAM), str(tmp_path), "--cases", "puerto-rico", "greece", "hillstrom", "bnsl-2016"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for case, home in (
        ("puerto-rico", ""),
        ("greece", "eva_greece"),
        ("hillstrom", "hillstrom"),
        ("bnsl-2016", "aslib"),
    ):
        assert f"left out: {case}: {tmp_path / home}" in done.stderr
    with pytest.raises(Absent):
        aslib.read(tmp_path, "SAT12-HAND")


def test_a_report_is_printed_and_rivals_are_kept(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    words = [
        str(PROGRAM),
        str(folder),
        "--cases",
        "qbf-2011",
        "--variants",
        "as-is",
        "--runs",
        "2",
        "--cache",
        str(kept),
    ]
    words += ["--policies", "doral-otf", "--rivals", "beta-ts-lp,d-lints"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert named[1:4] == ["doral-otf", "beta-ts-lp", "d-lints"]
    assert [path.stem for path in kept.rglob("*.jsonl")] == ["beta-ts-lp"]


def test_small_cells_follow_the_main_effects() -> None:
    """Without tests of its own a cell has the rate of its context times that of its arm; with many, its own."""
    tests = np.array([[10_000.0, 10_000.0], [10_000.0, 0.0]])
    rates = medical_tests.shrunk(tests * np.array([[0.01, 0.02], [0.03, 0.0]]), tests)
    assert rates[0] == pytest.approx([0.01, 0.02], rel=0.02)
    assert rates[1, 1] == pytest.approx(0.03, rel=0.05)  # 0.03 * 0.02 / 0.02


def test_problems_of_the_data() -> None:
    named = os.environ.get("DORAL_REAL_DATA")
    if named is None:
        pytest.skip("DORAL_REAL_DATA does not name the folder of the real data")
    for case in (medical_tests.puerto_rico(Path(named)), medical_tests.greece(Path(named))):
        for variant in ("as-is", "500"):
            scenario = case.scenario(variant)
            means = np.array(scenario.means)
            assert 0.0 < means.min() < means.max() < 0.5
            assert scenario.problem.budget < scenario.problem.horizon
    taken = aslib.read(Path(named), "QBF-2011")
    assert taken.seconds.shape == (1_368, 5)
    assert taken.seconds[np.isfinite(taken.seconds)].max() <= taken.cutoff_s
    assert hillstrom.read(Path(named)).height == 64_000
