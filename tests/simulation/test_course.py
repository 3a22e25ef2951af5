"""How policies went about it: the cut-off and the arms in play by round, and why arms were out at the end."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest

import doral
from doral import delays
from doral.engine.certificates import Certificate
from doral.simulation.api import AnyPolicy
from doral.simulation.results import files as saved
from doral.simulation.results.outcome import COURSE_COLUMNS, Outcome

N_ARMS, HORIZON = 6, 3000


def scenario(name: str = "plain") -> doral.Scenario:
    """Arms that are far apart, so that some can be ruled out."""
    arms = [doral.Arm(f"arm-{i}", features=np.eye(N_ARMS)[i]) for i in range(N_ARMS)]
    problem = doral.Problem(arms=arms, contexts={"x": 0.25, "y": 0.75}, budget=HORIZON, horizon=HORIZON, deadline=30)
    worth = [[0.1, 0.9, 0.2, 0.5, 0.85, 0.3], [0.8, 0.1, 0.2, 0.75, 0.3, 0.4]]
    return doral.Scenario(
        name=name,
        problem=problem,
        delays=[delays.Geometric(2 + i) for i in range(N_ARMS)],
        theta=worth,
        noise_sd=0.1,
    )


class Python:
    """Plays whatever comes first."""

    cutoff = 10.0

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self.problem = problem

    def decide(self, arrival: doral.Arrival) -> int | None:
        return arrival.available[0] if arrival.available else None

    def observe(self, answer: doral.Answer) -> None:
        pass


POLICIES: list[AnyPolicy] = [
    "doral-otf",
    "doral",
    "d-linucb",
    Python,
]


@pytest.fixture(scope="module")
def result() -> doral.SimulationResult:
    return doral.simulate(POLICIES, scenario(), runs=3, seed=2, keep_decisions=True)


def test_the_course_ends_where_the_run_did(result: doral.SimulationResult) -> None:
    for one in result.outcomes:
        assert one.course.shape == (one.rounds.size, len(COURSE_COLUMNS))
        assert one.course[-1, 0] == one.cutoff
        assert ((one.course[:, 1] >= 1.0) & (one.course[:, 1] <= N_ARMS)).all()
        assert one.course[-1, 1] == (N_ARMS if one.policy != "doral" else len(one.accepted))


def test_with_the_end_in_view_all_arms_are_in_play() -> None:
    plain = scenario()
    ending = dataclasses.replace(plain, problem=dataclasses.replace(plain.problem, counted="by_end"))
    for one in doral.simulate("doral-otf", ending, runs=3, seed=2).outcomes:
        assert one.certificates == ()  # arms that answer sooner are right for a while
        assert (one.course[:, 1] == N_ARMS).all()


def test_while_the_race_runs_there_is_no_cutoff_and_no_arm_is_out(result: doral.SimulationResult) -> None:
    for one in result.of("plain", "doral"):
        racing = one.rounds < one.race_ended
        assert racing.any()
        assert np.isinf(one.course[racing, 0]).all()
        assert (one.course[racing, 1] == N_ARMS).all()
        assert np.isfinite(one.course[~racing, 0]).all()
        assert (one.course[~racing, 1] == len(one.accepted)).all()


def test_policies_that_drop_nothing_have_all_arms_in_play(result: doral.SimulationResult) -> None:
    for policy in ("d-linucb", "Python"):
        for one in result.of("plain", policy):
            assert (one.course[:, 1] == N_ARMS).all()
            assert one.certificates == ()


def test_the_frame_of_courses_is_the_mean_over_runs(result: doral.SimulationResult) -> None:
    frame = result.courses()
    for policy in result.policies:
        found = result.of("plain", policy)
        paths = np.array([one.course for one in found])
        mine = frame.filter(policy=policy)
        assert mine["round"].to_list() == found[0].rounds.tolist()
        assert mine["arms_in_play"].to_numpy() == pytest.approx(paths[:, :, 1].mean(axis=0))
        known = np.isfinite(paths[:, :, 0])
        assert mine["runs"].to_list() == known.sum(axis=0).tolist()
        for row, is_known, cutoffs in zip(mine.iter_rows(named=True), known.T, paths[:, :, 0].T, strict=True):
            if is_known.any():
                assert row["cutoff_mean"] == pytest.approx(cutoffs[is_known].mean())
            else:
                assert row["cutoff_mean"] is None
            assert (row["cutoff_low"] is None) == (is_known.sum() < 3)
    assert frame.filter(policy="doral")["runs"][0] == 0


# --- certificates --------------------------------------------------------------------------------------------------


def test_certificates_say_why_and_hold(result: doral.SimulationResult) -> None:
    decisions = result.decisions()
    seen = 0
    for one in result.of("plain", "doral-otf"):
        played = decisions.filter(policy=one.policy, run=one.run)
        for certificate in one.certificates:
            seen += 1
            assert 1 <= certificate.round <= HORIZON
            assert certificate.at_most < certificate.at_least
            assert certificate.arm != certificate.rival
            assert certificate.price >= 0.0
            assert not played.filter(context=certificate.context, arm=certificate.rival).is_empty()
            says = str(certificate)
            assert says.startswith(f"{certificate.arm} is ruled out for {certificate.context} as of round")
            assert certificate.rival in says
        assert [each.round for each in one.certificates] == sorted(each.round for each in one.certificates)
    assert seen > 3


def test_nobody_rules_out_the_best(result: doral.SimulationResult) -> None:
    """The means are known here: what is certified to be worse is worse."""
    worth = dict(zip("xy", np.asarray(scenario().theta), strict=True))
    for one in result.outcomes:
        for certificate in one.certificates:
            mine = worth[certificate.context]
            arm, rival = (int(name.removeprefix("arm-")) for name in (certificate.arm, certificate.rival))
            assert mine[arm] < mine[rival]
            assert mine[arm] < mine.max()


def test_the_frame_of_certificates_has_one_row_each(result: doral.SimulationResult) -> None:
    frame = result.certificates()
    rows = [
        {"scenario": one.scenario, "policy": one.policy, "run": one.run, **dataclasses.asdict(certificate)}
        for one in result.outcomes
        for certificate in one.certificates
    ]
    assert frame.rows(named=True) == rows
    nobody = doral.simulate("d-linucb", scenario(), runs=1).certificates()
    assert nobody.is_empty()
    assert nobody.schema == frame.schema


# --- files ---------------------------------------------------------------------------------------------------------


def test_courses_and_certificates_read_back_equal(result: doral.SimulationResult, tmp_path: Path) -> None:
    saved.save(result, tmp_path / "result.npz")
    again = saved.load(tmp_path / "result.npz")
    assert again.courses().equals(result.courses())
    assert again.certificates().equals(result.certificates())
    for mine, yours in zip(result.outcomes, again.outcomes, strict=True):
        assert mine.course.tobytes() == yours.course.tobytes()
        assert mine.certificates == yours.certificates
        assert all(isinstance(one, Certificate) for one in yours.certificates)
        assert mine.cutoff == yours.cutoff


def test_a_race_that_never_ends_has_no_cutoff_in_files_either(tmp_path: Path) -> None:
    short = dataclasses.replace(scenario(), problem=dataclasses.replace(scenario().problem, horizon=40, budget=1000))
    result = doral.simulate("doral", short, runs=2)
    saved.save(result, tmp_path / "result.npz")
    outcomes: tuple[Outcome, ...] = saved.load(tmp_path / "result.npz").outcomes
    assert all(math.isinf(one.cutoff) and np.isinf(one.course[:, 0]).all() for one in outcomes)
    frame = result.courses()
    assert frame["runs"].to_list() == [0] * len(frame)
    assert frame["cutoff_mean"].is_null().all()
