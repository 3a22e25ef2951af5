"""People in simulation: who comes, what is true of them, and what the oracle makes of it."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog
from tests.draws import delay_in

import doral
from doral import delays
from doral._arrays import Floats
from doral.compiled import Block
from doral.engine.setup import Blueprint, FirstStates, first_state
from doral.experiments.kit.batches import describe_scenario
from doral.simulation.catalogue.people import NUMBERS, SCENARIOS, Visitors, one_class_each
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth

N, N_ARMS = 40, 3
RNG = np.random.default_rng(4)
PEOPLE = np.column_stack([RNG.uniform(18.0, 90.0, N), RNG.gamma(2.0, 6.0, N)])
MEANS = 0.2 + 0.6 * RNG.random((N, N_ARMS))
CLASSES = ["urgent" if number % 3 == 0 else "usual" for number in range(N)]
CONTEXTS = [doral.Context("urgent", 0.35, weight=2.0, deadline=20.0, tier=1), doral.Context("usual", 0.65)]
LAWS = [delays.Geometric(10), delays.Pareto(5, 2), delays.Never(delays.Geometric(15), 0.3)]


def problem(**changes: Any) -> doral.Problem:
    given: dict[str, Any] = {
        "arms": [doral.Arm(f"arm-{a}", cost=cost) for a, cost in enumerate((1.0, 1.5, 2.0))],
        "person": ["age", "distance_km"],
        "budget": 300.0,
        "horizon": 600,
        "deadline": 40.0,
    }
    return doral.Problem(**(given | changes))


def scenario(of: Mapping[str, Any] | None = None, **changes: Any) -> doral.Scenario:
    given: dict[str, Any] = {"name": "people", "people": PEOPLE, "means": MEANS, "delays": LAWS}
    return doral.Scenario(problem=problem(**(of or {})), **(given | changes))


def arrivals(place: doral.Scenario, rounds: int, *, seed: int = 3) -> Any:
    truth = make_truth(place, seed=seed, run=0)
    tape = new_tape(truth.world, rounds)
    WORLD["record"](Block(tape), truth.block, seed, 0, 1)
    return tape.context


# --- who comes -------------------------------------------------------------------------------------------------------


def test_everybody_comes_as_often() -> None:
    rounds = 200_000
    counts = np.bincount(arrivals(scenario(), rounds), minlength=N)
    chi_squared = ((counts - rounds / N) ** 2 / (rounds / N)).sum()
    assert 15.0 < chi_squared < 75.0  # 39 degrees of freedom: 1 in 10,000 on either side


def test_frequencies_say_how_often_in_every_phase() -> None:
    often = np.array([np.arange(N), np.arange(N)[::-1]], dtype=np.float64)
    place = scenario({"horizon": 100_000}, phases=2, frequencies=often)
    who = arrivals(place, 100_000)
    for half, weights in zip((who[:50_000], who[50_000:]), often, strict=True):
        counts, expected = np.bincount(half, minlength=N), 50_000 * weights / weights.sum()
        assert counts[weights == 0.0].sum() == 0
        assert np.abs(counts - expected).max() < 5.0 * math.sqrt(expected.max())


def test_decisions_say_who_it_was_and_bring_what_is_true_of_them() -> None:
    by_phase = np.array([MEANS, MEANS[::-1]])
    place = scenario({"contexts": CONTEXTS}, classes=CLASSES, noise="none", phases=2, means=by_phase)
    result = doral.simulate("doral-otf", place, runs=2, keep_decisions=True)
    everybody = result.decisions()
    frame = everybody.drop_nulls("arm")
    arms = [place.problem.arm_index(name) for name in frame["arm"]]
    who, phase = frame["person"].to_numpy(), (frame["round"].to_numpy() > 300).astype(int)
    assert (frame["reward"].to_numpy() == by_phase[phase, who, arms]).all()
    assert (frame["age"].to_numpy() == PEOPLE[who, 0]).all()
    names = place.problem.context_names
    assert frame["context"].to_list() == [names[0 if one % 3 == 0 else 1] for one in who]
    assert everybody.height == 1_200
    assert (everybody["distance_km"].to_numpy() == PEOPLE[everybody["person"], 1]).all()


def test_a_law_draws_other_people_in_every_run_and_the_same_in_every_process() -> None:
    place = dataclasses.replace(SCENARIOS["people/linear"], population=500)
    one, two = (make_truth(place, seed=1, run=run) for run in (0, 1))
    assert one.people is not None
    assert two.people is not None
    assert one.world.people.shape == (500, 6)
    assert not (one.people.means == two.people.means).any()
    for name, (mean, sd) in NUMBERS.items():
        column = Visitors()(np.random.default_rng(0), 40_000)[name]
        assert abs(column.mean() - mean) < 5.0 * sd / 200.0
        assert column.std() == pytest.approx(sd, rel=0.05)
    again = make_truth(pickle.loads(pickle.dumps(place)), seed=1, run=0)
    assert (again.world.means == one.world.means).all()
    assert again.oracle == one.oracle


class Nearest:
    """Serves whoever lives near; and shows that a policy in Python knows who it is."""

    def __init__(self, problem: doral.Problem, seed: int) -> None:
        self._near = 0

    def decide(self, arrival: doral.Arrival) -> int | None:
        is_near = not arrival.features or arrival.features["distance_km"] < 12.0
        return arrival.available[0] if is_near and arrival.available else None

    def observe(self, answer: doral.Answer) -> None: ...


@pytest.mark.parametrize("policies", [["doral-otf", "oracle"], ["doral-otf", Nearest, "beta-ts-lp"]], ids=str)
def test_the_number_of_workers_changes_no_bit(policies: list[Any]) -> None:
    whole = SCENARIOS["people/linear"]
    short = dataclasses.replace(whole.problem, horizon=600, budget=280.0)
    place = dataclasses.replace(whole, problem=short, population=300)
    for each in (place, place.stratified()):
        one, two = (doral.simulate(policies, each, runs=2, n_jobs=jobs, keep_decisions=True) for jobs in (1, 2))
        assert one.decisions().equals(two.decisions())
        assert one.runs().equals(two.runs())


def test_a_policy_in_python_sees_features_and_no_more_than_its_problem_says() -> None:
    result = doral.simulate(Nearest, scenario(), runs=1, keep_decisions=True)
    assert 0.0 < result.decisions().drop_nulls("arm")["distance_km"].max() < 12.0  # type: ignore[operator]
    cut = doral.simulate(Nearest, scenario().stratified(), runs=1, keep_decisions=True)
    assert cut.decisions().drop_nulls("arm")["distance_km"].max() > 12.0  # type: ignore[operator]


# --- what is true of them --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "law", [delays.Exponential(20), delays.Pareto(4, 1.5), LAWS[2], delays.Weibull(20, 0.7)], ids=str
)
def test_speed_multiplies_the_hazard(law: Any) -> None:
    """1 - F is raised to the power of the speed, that of never answering too: in draws and in what is counted."""
    speed = np.array([0.4, 1.0, 2.5, 4.0])
    place = scenario(people=PEOPLE[:4], means=np.ones((4, 3)), delays=law, speed=speed)
    truth = make_truth(place, seed=0, run=0)
    world = truth.world
    uniforms = ((np.arange(20_000) + 0.5) / 20_000).tolist()
    for who, power in enumerate(speed):
        drawn = np.array([delay_in(truth.block, who, 0, 1.0, u) for u in uniforms])
        for age in (8.0, 40.0, math.inf):
            usual = float(law.return_probability(age))
            returned = np.isfinite(drawn).mean() if math.isinf(age) else (drawn <= age).mean()
            assert returned == pytest.approx(1.0 - (1.0 - usual) ** power, abs=2e-4)
        usual = float(law.return_probability(40.0))
        assert world.counted[0, who, 0] == pytest.approx(1.0 - (1.0 - usual) ** power, rel=1e-12)


def _lp(values: Floats, costs: Floats, shares: Floats, rate: float) -> float:
    """LP_m by a solver."""
    n_rows, n_arms = values.shape
    use = np.kron(np.eye(n_rows), np.ones((1, n_arms)))
    spend = (shares[:, None] * costs).reshape(1, -1)
    found = linprog(
        -(shares[:, None] * values).ravel(),
        A_ub=np.vstack([use, spend]),
        b_ub=np.append(np.ones(n_rows), rate),
        bounds=(0, 1),
        method="highs",
    )
    return -float(found.fun or 0.0)


def _in_time(deadlines: Floats) -> Floats:
    return np.array([[float(law.return_probability(deadline)) for law in LAWS] for deadline in deadlines])


def test_the_oracle_solves_the_lp_over_people() -> None:
    prices: list[Any] = [{"urgent": 1.0, "usual": 1.2}, 1.5, 2.0]
    arms = [doral.Arm(f"arm-{a}", cost=cost) for a, cost in enumerate(prices)]
    often = 1.0 + np.arange(N) % 4
    paid = RNG.random((N, N_ARMS))
    of = {"contexts": CONTEXTS, "arms": arms, "paid": "on_answer", "budget": 120.0}
    place = scenario(of, classes=CLASSES, frequencies=often, paid=paid)
    urgent = np.array([one == "urgent" for one in CLASSES])
    chance = _in_time(np.where(urgent, 20.0, 40.0))
    costs = np.where(urgent, 1.0, 1.2)[:, None] * [1.0, 0.0, 0.0] + [0.0, 1.5, 2.0]
    found = make_truth(place, seed=0, run=0)
    best = _lp(np.where(urgent, 2.0, 1.0)[:, None] * MEANS * chance, costs * paid * chance, often / often.sum(), 0.2)
    assert found.oracle == pytest.approx(600.0 * best, rel=1e-9)
    assert found.oracle_error == 0.0


def test_with_arms_that_may_be_missing_it_is_the_lp_over_sets_of_arms() -> None:
    there = np.array([0.9, 0.5, 0.7])
    place = scenario(availability=there)
    values, costs = MEANS * _in_time(np.full(N, 40.0)), np.array([1.0, 1.5, 2.0])
    rows, weights = [], []
    for chosen in itertools.product([0.0, 1.0], repeat=N_ARMS):
        is_here = np.array(chosen)
        rows.append(np.where(is_here > 0.0, values, -1.0))
        weights.append(np.full(N, np.where(is_here > 0.0, there, 1.0 - there).prod() / N))
    best = _lp(np.vstack(rows), np.tile(costs, (8 * N, 1)), np.concatenate(weights), 0.5)
    assert make_truth(place, seed=0, run=0).oracle == pytest.approx(600.0 * best, rel=1e-7)


@dataclass(frozen=True)
class FixedLines:
    """The same in all runs, so that only the sample differs."""

    def __call__(self, people: Any, features: Floats) -> Floats:
        age = (people["age"] - 54.0) / 20.0
        return np.asarray(0.5 + np.outer(age, [0.2, -0.1, 0.05]) + [0.0, 0.1, -0.1])


@pytest.mark.parametrize("of", [{}, {"contexts": CONTEXTS, "reserves": {1: 0.6}}], ids=["one price", "reserves"])
def test_the_error_of_the_oracle_is_its_spread_over_samples(of: dict[str, Any]) -> None:
    people: Any = Visitors(names=("age", "distance_km"))
    if of:
        people = WithClasses()
    place = scenario(of, people=people, means=FixedLines(), population=400)
    truths = [make_truth(place, seed=0, run=run) for run in range(80)]
    spread = np.std([one.oracle for one in truths], ddof=1)
    assert np.mean([one.oracle_error for one in truths]) == pytest.approx(spread, rel=0.3)
    result = doral.simulate("oracle", place, runs=4)
    errors = [one.oracle_error for one in result.outcomes]
    assert result.summary()["oracle_error"][0] == pytest.approx(math.hypot(*errors) / 4.0)


@dataclass(frozen=True)
class WithClasses:
    def __call__(self, rng: np.random.Generator, n: int) -> dict[str, Any]:
        names = np.where(rng.random(n) < 0.35, "urgent", "usual")
        return {**Visitors(names=("age", "distance_km"))(rng, n), "context": names}


COMBINED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "chances": ({}, {"noise": "bernoulli"}),
    "speed": ({}, {"speed": np.linspace(0.5, 2.0, N)}),
    "missing arms": ({}, {"availability": [0.9, 0.5, 0.8]}),
    "reserves": ({"contexts": CONTEXTS, "reserves": {1: 0.3}}, {"classes": CLASSES}),
    "known baseline": ({"baseline": 0.1}, {}),
    "observed baseline": (
        {"baseline": "observed"},
        {"baseline_means": np.linspace(0.1, 0.3, N), "delays": [*LAWS, delays.Geometric(10)]},
    ),
    "paid on success": ({"paid": "on_answer"}, {"noise": "bernoulli", "paid": "on_success"}),
    "paid by chance": (
        {"paid": "on_answer", "contexts": CONTEXTS},
        {"classes": CLASSES, "paid": [[0.2] * 3, [0.6] * 3]},
    ),
    "a date": ({"until": 600.0, "horizon": None, "expected_arrivals": 600}, {"arrivals": doral.Arrivals(number=600)}),
    "phases": ({}, {"phases": 2, "means": [MEANS, MEANS[::-1]]}),
}


@pytest.mark.parametrize("name", COMBINED)
def test_who_knows_the_truth_earns_what_the_oracle_expects(name: str) -> None:
    """Whatever a scenario combines people with: the loop plays what the oracle reckons with, for strata, too."""
    of, changes = COMBINED[name]
    of = {"horizon": 4_000, "budget": 2_000.0, **of}
    if name == "a date":
        of, changes = {**of, "until": 4_000.0, "expected_arrivals": 4_000}, {"arrivals": doral.Arrivals(number=4_000)}
    place = scenario(of, **changes)
    result = doral.simulate("oracle", place, runs=4)
    summary = result.summary().filter(metric="within_deadline")
    assert 0.92 < summary["expected_share"][0] < 1.02  # what is paid is learned, also by who knows the truth
    assert summary["reward_mean"][0] == pytest.approx(summary["expected_mean"][0], rel=0.06)
    assert all(one.spend <= 2_000.0 * (1.0 + 1e-9) for one in result.outcomes)
    cut = doral.simulate("oracle", place.stratified(), runs=4)
    assert [one.oracle for one in cut.outcomes] == pytest.approx([one.oracle for one in result.outcomes])
    if place.paid == "always":  # else what it costs is not known, but learned, and by stratum better
        assert cut.summary()["expected_mean"][0] < 1.005 * summary["expected_mean"][0]


# --- strata ----------------------------------------------------------------------------------------------------------


def test_where_people_are_classes_strata_are_these() -> None:
    shares = [0.4, 0.3, 0.2, 0.1]
    words = ["north", "east", "south", "west"]
    means = RNG.random((4, N_ARMS))
    of_people = scenario({"person": {"where": "category"}}, people={"where": words}, means=means, frequencies=shares)
    strata = of_people.stratified()
    contexts = {f"where={word}": share for word, share in zip(words, shares, strict=True)}
    classes = doral.Scenario(
        name="people@strata", problem=problem(person=(), contexts=contexts), means=means, delays=LAWS
    )
    assert strata.problem == classes.problem
    for policy in ("doral-otf", "beta-ts-lp"):
        one, two = (doral.simulate(policy, place, runs=3, keep_decisions=True) for place in (strata, classes))
        assert one.decisions().drop("person", "where").equals(two.decisions())
        assert [each.oracle for each in one.outcomes] == pytest.approx([each.oracle for each in two.outcomes])


def test_strata_are_quarters_of_the_features_that_come_first() -> None:
    place = SCENARIOS["people/linear"].stratified()
    assert place.strata is not None
    assert [cut.name for cut in place.strata.cuts] == ["age", "distance_km", "visits"]
    assert place.problem.n_contexts == 64
    ages = place.strata.cuts[0].edges
    assert np.allclose(ages, [36.0, 54.0, 72.0], atol=1.5)
    few = SCENARIOS["people/linear"].stratified(by=["returning", "age"], bins=2)
    assert few.problem.n_contexts == 4
    assert max(few.problem.shares.tolist()) == pytest.approx(0.35, abs=0.01)  # type: ignore[union-attr]


def test_one_indicator_for_each_class_makes_the_classes_again() -> None:
    place = SCENARIOS["people/one-class-each"].stratified()
    assert place.problem.n_contexts == 10
    assert sorted(place.problem.shares.tolist()) == pytest.approx(  # type: ignore[union-attr]
        sorted((0.09, 0.15, 0.11, 0.05, 0.1, 0.05, 0.08, 0.14, 0.13, 0.1))
    )


def test_rare_words_are_one_stratum_and_nobody_is_without_one() -> None:
    place = SCENARIOS["people/categories"].stratified(at_most=20)
    shares = place.problem.shares
    assert shares is not None
    assert shares.size == 10  # nine that are common, and all others
    truth = make_truth(place, seed=5, run=0)
    counts = np.bincount(truth.classes, minlength=10) / truth.classes.size
    assert np.abs(counts - shares).max() < 0.02


# --- as given --------------------------------------------------------------------------------------------------------


def test_people_may_be_given_in_many_ways() -> None:
    words = ["a" if number % 2 else "b" for number in range(N)]
    person = [doral.Number("age"), doral.Category("where")]
    rows = [{"age": float(age), "where": word} for age, word in zip(PEOPLE[:, 0], words, strict=True)]
    given: list[Any] = [
        np.array([[age, word] for age, word in zip(PEOPLE[:, 0], words, strict=True)], dtype=object),
        pl.DataFrame(rows),
        pl.DataFrame(rows).select("where", "age"),
        rows,
        {"age": PEOPLE[:, 0], "where": words},
        pytest.importorskip("pandas").DataFrame(rows),
    ]
    places = [scenario({"person": person}, people=people) for people in given]
    assert all(place == places[0] and hash(place) == hash(places[0]) for place in places)
    assert make_truth(places[0], seed=0, run=0).world.people[:3, 1].tolist() == [0.0, 1.0, 0.0]
    assert places[0] != scenario({"person": person}, people=[*rows[1:], rows[0]])


def test_what_is_missing_is_missing() -> None:
    people: Any = {"age": [30.0, None], "where": ["a", None]}
    of = {"person": [doral.Number("age"), doral.Category("where")], "missing": "mean"}
    place = scenario(of, people=people, means=np.ones((2, 3)))
    assert np.isnan(make_truth(place, seed=0, run=0).world.people[1, :2]).all()
    doral.simulate("doral-otf", place.stratified(), runs=1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenarios_can_be_kept_sent_and_described(name: str) -> None:
    place = SCENARIOS[name]
    sent = pickle.loads(pickle.dumps(place))
    assert sent == place
    assert hash(sent) == hash(place)
    assert dataclasses.replace(place, name=place.name) == place
    words = json.dumps(describe_scenario(place), sort_keys=True)
    assert words == json.dumps(describe_scenario(sent), sort_keys=True)
    assert "object at 0x" not in words
    other = dataclasses.replace(place, means=np.zeros((place.population or 0, place.problem.n_arms)), noise="none")
    assert other != place
    assert json.dumps(describe_scenario(other), sort_keys=True) != words
    assert doral.Scenario.named(f"{name}@strata").problem.person == ()


def _changed(row: int, value: float) -> Floats:
    people = PEOPLE.copy()
    people[row, 0] = value
    return people


WRONG: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("say who may come", {}, {"people": None}),
    ("says what is known|does not say what is known", {"person": (), "contexts": ["all"]}, {}),
    ("feature 'age' of person 7 = nan: is missing", {}, {"people": _changed(7, math.nan)}),
    ("feature 'age' of person 3 = inf", {}, {"people": _changed(3, math.inf)}),
    ("columns of people = 1: must be 2: age, distance_km", {}, {"people": PEOPLE[:, :1]}),
    ("unknown feature 'agee'; did you mean 'age'", {}, {"people": {"agee": PEOPLE[:, 0], "distance_km": PEOPLE[:, 1]}}),
    ("lack the feature 'distance_km'", {}, {"people": pl.DataFrame({"age": PEOPLE[:, 0]})}),
    ("length of column 'distance_km' = 3", {}, {"people": {"age": PEOPLE[:, 0], "distance_km": [1.0, 2.0, 3.0]}}),
    ("if it is a category", {}, {"people": {"age": ["old"] * N, "distance_km": PEOPLE[:, 1]}}),
    ("must be a data frame", {}, {"people": 3}),
    ("number of people = 0", {}, {"people": np.zeros((0, 2))}),
    ("means = None: say what the arms bring", {}, {"means": None}),
    (r"shape of means = \(40, 2\): must be \(40, 3\)", {}, {"means": MEANS[:, :2]}),
    ("say phases=2", {}, {"means": [MEANS, MEANS]}),
    ("means = .*finite", {}, {"means": np.full((N, 3), math.nan)}),
    (
        "mean reward = 1.5: must be between 0 and 1 for bernoulli",
        {},
        {"means": np.full((N, 3), 1.5), "noise": "bernoulli"},
    ),
    ("mean reward = -1", {}, {"means": np.full((N, 3), -1.0), "noise": "poisson"}),
    (r"shape of speed = \(3,\)", {}, {"speed": [1.0, 2.0, 3.0]}),
    ("speed = 0.0: must be from 0.01", {}, {"speed": np.zeros(N)}),
    ("shape of frequencies", {}, {"frequencies": [1.0]}),
    ("frequencies = -1.0", {}, {"frequencies": -np.ones(N)}),
    ("shape of paid", {"paid": "on_answer"}, {"paid": np.zeros((5, 2))}),
    ("paid = 2.0: must be from 0 to 1", {"paid": "on_answer"}, {"paid": np.full((N, 3), 2.0)}),
    ("theta = .*belongs to contexts", {}, {"theta": [[1.0]]}),
    ("rows = .*observed by context", {}, {"rows": {}}),
    ("shares = .*said by frequencies", {}, {"shares": [1.0]}),
    ("population = 7: is for laws", {}, {"population": 7}),
    ("classes = None: the problem has 2 contexts", {"contexts": CONTEXTS}, {}),
    ("unknown context 'other'", {"contexts": CONTEXTS}, {"classes": ["other"] * N}),
    ("number of classes = 3", {"contexts": CONTEXTS}, {"classes": ["usual"] * 3}),
    ("a law of people says it itself", {}, {"people": Visitors(names=("age", "distance_km")), "classes": CLASSES}),
    ("baseline_means = 0.2: is for problems", {}, {"baseline_means": 0.2}),
    ("baseline_means = None: the baseline is observed", {"baseline": "observed"}, {"delays": LAWS[0]}),
    (
        "availability = .*cannot be combined with reserves",
        {"contexts": CONTEXTS, "reserves": {1: 0.3}},
        {"classes": CLASSES, "availability": 0.5},
    ),
]


@pytest.mark.parametrize(("message", "of", "changes"), WRONG, ids=[one[0][:40] for one in WRONG])
def test_what_is_wrong_is_named(message: str, of: dict[str, Any], changes: dict[str, Any]) -> None:
    with pytest.raises(doral.DoralError, match=message):
        scenario(of, **changes)


def test_what_laws_return_is_checked_in_the_run() -> None:
    few = scenario(people=lambda rng, n: PEOPLE[:3], means=FixedLines(), population=50)
    with pytest.raises(doral.InvalidValue, match="number of people drawn = 3: must be what the law was asked for, 50"):
        doral.simulate("doral-otf", few, runs=1)
    wrong = scenario(means=lambda people, features, rng: np.zeros((2, 2)))
    with pytest.raises(doral.InvalidValue, match="shape of means"):
        doral.simulate("doral-otf", wrong, runs=1)
    fast = scenario(speed=np.ones(N))
    with pytest.raises(doral.InvalidValue, match="people differ in speed"):
        doral.simulate(doral.policy("doral", return_probability="oracle"), fast, runs=1)


def test_people_cannot_be_cut_twice() -> None:
    with pytest.raises(doral.InvalidValue, match="has classes already"):
        scenario().stratified().stratified()
    with pytest.raises(doral.UnknownName, match="unknown feature 'agee'"):
        scenario().stratified(by=["agee"])


def test_every_run_has_the_features_of_its_own_arms() -> None:
    """First states of runs are copies: where features of arms are drawn, each run must get its own."""
    place = one_class_each(horizon=300, budget=150.0)
    first_states = FirstStates()
    arms = []
    for run in range(2):
        truth = make_truth(place, seed=5, run=run)
        blueprint = Blueprint(
            options=doral.policy("doral-otf"), problem=place.problem, seed=5, run=run, given_features=truth.features
        )
        block = first_states.block(blueprint)
        assert (block.tree.people.line.arms == first_state(blueprint).people.line.arms).all()
        arms.append(block.tree.people.line.arms.copy())
    assert not np.allclose(arms[0], arms[1])
