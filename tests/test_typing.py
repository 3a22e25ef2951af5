"""What a type checker says of programs that use doral: nothing of right ones, and of wrong ones in every wrong line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WRONG = "  # wrong"

PROGRAM = """\
from datetime import timedelta

import numpy as np
import polars as pl

import doral
from doral import delays

arms = [doral.Arm("a", features=[1, 0.5]), doral.Arm("b", features=np.array([0.0, 1.0]), cost={"x": 1, "y": 2.5})]
problem = doral.Problem(arms=arms, contexts=["x", "y"], budget=10, horizon=20, deadline=5)
doral.Problem(arms=["a", "b"], contexts=["x"], budget=10, horizon=20)
doral.Problem(arms={"a": 1, "b": {"x": 2.0}}, contexts=["x"], budget=10, horizon=20)
doral.Problem(arms=arms, contexts={"x": 0.3, "y": 0.7}, budget=10, until=20, person=["age", doral.Category("town")])
doral.policy("doral-otf", exploration=1, cutoff=3, learner="auto")
doral.policy("doral", reading="literal", label="printed", accept=None, cutoff="adaptive")
words: dict[str, object] = {"accept": 3}
doral.PolicyOptions.named(str(problem), words)
doral.Scenario(name="s", problem=problem, means=[[1, 0.2], [0.5, 1]], delays=delays.Fixed(1))
doral.Scenario(name="s", problem=problem, means=np.ones((2, 2)), delays={"a": delays.Fixed(1), "b": delays.Fixed(2)})
doral.Scenario(name="s", problem=problem, theta=[[1, 2], [3, 4.5]], delays=[delays.Fixed(1)] * 2, shares=[0.5, 0.5])
doral.Scenario(name="s", problem=problem, rows={"x": {"a": [(1, 2.0)], "b": [(0.0, 1)]}}, availability={"a": 0.5})
doral.Scenario(name="s", problem=problem, people=pl.DataFrame({"age": [1]}), means=lambda people, features: features)
doral.Scenario(name="s", problem=problem, people={"age": [1, 2]}, means=[[1, 2], [3, 4]], classes=["x", "y"])
doral.Scenario(name="s", problem=problem, people=[{"age": 1}], means=[[1, 2]], speed=[1], frequencies=[[1], [2]])
doral.Scenario.named(str(problem))
doral.scenario("stress/costs")
doral.rival("beta-ts-lp", width=1)
doral.rival("status-quo", chances=[[0.5, 0.5], [1, 0]])
doral.read_log("log.csv", arm="offer", time=False, strata=5)
doral.read_log(pl.DataFrame({"arm": ["a"]}))
doral.plan({"arm": ["a"]}, deadline=timedelta(days=1), reward="paid")
doral.evaluate("log.csv", deadline=14, propensities="estimated", estimators=["dr"])
doral.Calendar([1, 2.5], day=24)
remote = doral.connect("https://doral.example.org", key="k", timeout_s=5).campaign("c")
spent: float = remote.decide("x", ["a"], key="k", weight=2.0).cost + float(remote.ledger().spent)
costs: list[float] = [one.cost for one in remote.decisions("pending")]


async def awaited(store: doral.AsyncStore) -> float:
    campaign = await store.create("c", problem)
    return sum([one.cost async for one in campaign.decisions()]) + (await campaign.decide("x")).cost


doral.policy("doral-oft")  # wrong
doral.policy(str(problem))  # wrong
doral.policy("doral", reading="printed")  # wrong
doral.policy("doral", lerner="auto")  # wrong
doral.policy("doral", learner="nonsense")  # wrong
doral.policy("doral", accept="3")  # wrong
doral.policy("doral", cutoff="adaptiv")  # wrong
doral.PolicyOptions(learner="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, means="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, means=["nonsense"])  # wrong
doral.Scenario(name="s", problem=problem, theta="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, baseline_means="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, availability="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, shares="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, rows="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, row_weights="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, paid="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, people="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, classes="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, speed="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, frequencies="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, noise="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, delays="nonsense")  # wrong
doral.Scenario(name="s", problem=problem, meens=[[1, 2], [3, 4]])  # wrong
doral.Scenario.from_log("log.csv", deadline=[3])  # wrong
doral.scenario("stress/cost")  # wrong
doral.rival("ab")  # wrong
doral.rival("a/b", width=0.1)  # wrong
doral.read_log(3)  # wrong
doral.read_log("log.csv", arn="offer")  # wrong
doral.plan("log.csv", arn="offer")  # wrong
doral.evaluate("log.csv", propensities="nonsense")  # wrong
doral.external(3)  # wrong
doral.Calendar("nonsense")  # wrong
doral.connect(3)  # wrong
remote.decide(3)  # wrong
remote.decide("x", contxt="x")  # wrong
remote.feedback("id", "much")  # wrong
words = remote.feedback("id", 1.0)  # wrong
doral.Arrivals(number="3")  # wrong
doral.Arrivals(number=3, hours="nonsense")  # wrong
doral.Arm("a", cost="much")  # wrong
doral.Arm("a", features="many")  # wrong
doral.Context("a", "0.3")  # wrong
doral.Number(3)  # wrong
doral.Category("a", levels="abc")  # wrong
doral.Problem(arms="ab", contexts=["x"], budget=1, horizon=1)  # wrong
doral.simulate("doral-otf", "stress/tiny").plot("pie")  # wrong
doral.simulate("doral-otf", "stress/tiny").difference("a", "b", metric="luck")  # wrong
doral.Problem(arms=arms, contexts="xy", budget=1, horizon=1)  # wrong
doral.Problem(arms=arms, contexts=["x"], budget="1", horizon=1)  # wrong
doral.Problem(arms=arms, contexts=["x"], budget=1, horizon=1, feedback="loud")  # wrong
delays.Geometric("3")  # wrong
delays.Empirical("3")  # wrong
"""


def test_a_type_checker_finds_exactly_the_wrong_lines(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # From the root, with the settings of the project: what the checker knows of doral is kept for the next time.
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = {int(line) for line in re.findall(r"program\.py:(\d+)(?::\d+)?: error:", done.stdout)}
    wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith(WRONG)}
    assert found == wrong, done.stdout + done.stderr
