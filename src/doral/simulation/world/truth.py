"""A scenario in one run, as arrays: its drawn parameters, its laws, and what the oracle makes of them.

What does not change between the runs of a scenario is made once (`Scenario.once`) and shared by all of them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from doral._arrays import Floats, Ints
from doral._cached import cached_property
from doral.compiled import Block
from doral.delays.kernels import EMPIRICAL, QUICK
from doral.delays.law import LawCode
from doral.problem import OBSERVED
from doral.simulation.results.outcome import ArrivalLog, DecisionLog
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.people import Drawn, are_drawn, people_of
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.oracle import (
    expected_payments,
    expected_worth,
    law_above,
    law_below,
    oracle_of_contexts,
    oracle_of_people,
    thresholds,
)
from doral.simulation.world.tape import (
    NO_SHAPE,
    NOISE_BERNOULLI,
    NOISE_GAUSSIAN,
    NOISE_NONE,
    NOISE_POISSON,
    NOISE_ROWS,
    WORLD,
    Draws,
    Laws,
    World,
    make_payments,
)

_NOISE = {"none": NOISE_NONE, "gaussian": NOISE_GAUSSIAN, "bernoulli": NOISE_BERNOULLI, "poisson": NOISE_POISSON}
Log = TypeVar("Log", DecisionLog, ArrivalLog, ArrivalLog | None)
MANY_SHAPES = 4  # of delay laws: more of them are worked out as they are played, instead of all in every round
_NOBODY: Ints = np.zeros(0, dtype=np.int64)
_THETA, _FEATURES, _ARRIVALS = 0, 1, 2  # lanes of the parameter draws; arrivals take those from theirs on


@dataclass(frozen=True)
class Truth:
    """One run of a scenario."""

    block: Block[World]
    features: Floats  # (A, k)
    counted: Floats  # (phases, J or N, A) expected worth of what returns within the deadline, beyond doing nothing
    oracle: float  # U*: expected reward of the best policy that knows the truth, over the horizon
    rounds: int  # how many arrive
    times: Floats  # (rounds,) when they do; empty: one in every round
    oracle_error: float = 0.0  # standard error of U*, where people are a sample
    n_contexts: int = 0
    people: Drawn | None = None  # all who may arrive, where they have features

    @property
    def classes(self) -> Ints:
        """(N,) the contexts of all who may arrive; empty where there are contexts alone."""
        return self.world.classes

    @property
    def world(self) -> World:
        return self.block.tree

    @cached_property
    def values(self) -> Floats:
        """(phases, J or N, A) the expected worth that counts, by person, or by context where there are no features."""
        if self.people is None or self.people.traits.shape[1] > 0:
            return self.counted
        n_contexts = self.n_contexts
        shares = self.people.shares if len(self.people.shares) else np.ones((len(self.counted), self.classes.size))
        sums = np.zeros((len(self.counted), n_contexts, 1 + self.counted.shape[2]))
        for phase, weights in enumerate(shares):
            weighed = np.column_stack([np.ones(weights.size), self.counted[phase]]) * weights[:, None]
            np.add.at(sums[phase], self.classes, weighed)
        return np.divide(sums[:, :, 1:], sums[:, :, :1], out=np.zeros_like(sums[:, :, 1:]), where=sums[:, :, :1] > 0.0)

    @property
    def arrived(self) -> Floats:
        """(J,) how many of each context come, or are expected where that is drawn as they come."""
        if self.world.come.size:
            return np.bincount(self.world.come, minlength=self.counted.shape[1]).astype(np.float64)
        shares = np.diff(self.world.cumulative_shares, prepend=0.0)
        return shares / shares.sum() * self.rounds

    def described(self, log: Log) -> Log:
        """The contexts of people for their numbers, and what is known of them."""
        if self.people is None or log is None:
            return log
        who = log.context
        features = {name: column[who] for name, column in self.people.crowd.columns.items()}
        return dataclasses.replace(log, context=self.classes[who], person=who, features=features)


def make_truth(scenario: Scenario, *, seed: int, run: int) -> Truth:
    """Draw the parameters of one run; where none are drawn, all runs share one truth."""
    if scenario.people is not None:
        is_drawn = are_drawn(scenario)
    else:
        is_drawn = scenario.features == "drawn" or (scenario.means is None and scenario.theta is None)
    if scenario.arrivals is None and not is_drawn:
        return scenario.once(_given_truth)
    return _drawn_truth(scenario, seed=seed, run=run)


def _given_truth(scenario: Scenario) -> Truth:
    return _drawn_truth(scenario, seed=0, run=0)


def _drawn_truth(scenario: Scenario, *, seed: int, run: int) -> Truth:
    problem, features = scenario.problem, _features(scenario, seed=seed, run=run)
    times, come = _arrivals(scenario, seed=seed, run=run)
    rounds = times.size or problem.horizon
    world, people = scenario.once(_world_without_means), None
    parts: dict[str, Any] = {"come": come}
    if scenario.people is None:
        means = _means(scenario, features, seed=seed, run=run)
    else:
        people = people_of(scenario, features, seed=seed, run=run)
        means = people.means
        parts = {
            "people": people.traits,
            "classes": people.classes,
            "speed": people.speed,
            "cumulative_shares": people.cumulative_shares,
            "payments": world.tree.payments._replace(chance=people.paid),
        }
    counted = expected_worth(scenario, means, people)
    nothing = _worth_of_nothing(scenario, counted, people)
    counted = counted - nothing[:, :, None] if nothing.shape[1] > 0 else counted
    paid = expected_payments(scenario, means, people)
    if people is None:
        shares = np.bincount(come, minlength=problem.n_contexts) / come.size if come.size else None
        best = oracle_of_contexts(scenario, counted, rounds, paid, shares)
    else:
        best = oracle_of_people(scenario, people, counted, rounds, paid)
    return Truth(
        block=world.with_fields(means=means, counted=counted, nothing=nothing, **parts),
        features=features,
        counted=counted,
        oracle=best.reward,
        rounds=rounds,
        times=times,
        oracle_error=best.error,
        n_contexts=problem.n_contexts,
        people=people,
    )


def _means(scenario: Scenario, features: Floats, *, seed: int, run: int) -> Floats:
    """Return expected rewards (phases, J, A); in every phase, each context takes what the next one had."""
    if scenario.means is None and scenario.theta is None:
        shape = scenario.phases, scenario.problem.n_contexts, scenario.problem.n_features
        return _products(_uniforms((shape[0] * shape[1], shape[2]), seed, run, _THETA).reshape(shape), features)
    given = np.array(scenario.theta if scenario.means is None else scenario.means)
    by_phase = np.array([np.roll(given, -phase, axis=0) for phase in range(scenario.phases)])
    return _products(by_phase, features) if scenario.means is None else by_phase


def _features(scenario: Scenario, *, seed: int, run: int) -> Floats:
    """Return the features of the arms (A, k); what marks doing nothing is not drawn."""
    features, control = scenario.problem.features, scenario.problem.control
    if scenario.features == "given":
        return features
    drawn = _uniforms(features.shape, seed, run, _FEATURES)
    if scenario.problem.baseline == OBSERVED:
        drawn[:, -1] = 0.0
        drawn[control] = features[control]
    return drawn


def _arrivals(scenario: Scenario, *, seed: int, run: int) -> tuple[Floats, Ints]:
    """Return the clock of every arrival, and the contexts where a calendar has them."""
    until = scenario.problem.until
    if scenario.arrivals is None or until is None:
        return np.zeros(0), _NOBODY

    def uniforms(n: int, lane: int) -> Floats:
        return _uniforms((n, 1), seed, run, _ARRIVALS + lane)[:, 0]

    if isinstance(scenario.arrivals, Calendar):
        return scenario.arrivals.drawn(until, uniforms)
    return scenario.arrivals.times(until, uniforms), _NOBODY


def _worth_of_nothing(scenario: Scenario, counted: Floats, people: Drawn | None) -> Floats:
    """(phases, J or N) what is earned by skipping: that of the control arm, or known; without columns where it is 0."""
    problem = scenario.problem
    if problem.baseline is None:
        return np.zeros((scenario.phases, 0))
    if problem.control is not None:
        return np.ascontiguousarray(counted[:, :, problem.control])
    known = problem.weights * np.array(problem.baseline)
    return np.tile(known if people is None else known[people.classes], (scenario.phases, 1))


def _uniforms(shape: tuple[int, int], seed: int, run: int, lane: int) -> Floats:
    draws = Draws(np.zeros(shape[0] * shape[1]))
    WORLD["fill_uniforms"](Block(draws), seed, run, lane)
    return draws.uniforms.reshape(shape)


def _products(theta: Floats, features: Floats) -> Floats:
    """(phases, J, A) <theta_j, f_a>."""
    products: Floats = (theta[:, :, None, :] * features[None, None, :, :]).sum(axis=3)
    return products


def _world_without_means(scenario: Scenario) -> Block[World]:
    available = () if scenario.availability is None else scenario.availability
    world = World(
        means=np.zeros((scenario.phases, 0, 0)),
        phase_rounds=math.ceil(scenario.problem.expected_rounds / scenario.phases),
        noise=_NOISE[scenario.noise] if scenario.rows is None else NOISE_ROWS,
        noise_sd=scenario.noise_sd,
        laws=_compiled_laws(scenario) if scenario.rows is None else laws_of_rows(scenario.rows),
        cumulative_shares=np.cumsum(scenario.true_shares),  # empty with people
        silent=scenario.problem.feedback == "silent",
        available=np.array(available, dtype=np.float64),
        counted=np.zeros((scenario.phases, 0, 0)),
        rewards=np.zeros(0) if scenario.rows is None else scenario.rows.reward,
        row_sums=np.zeros(0) if scenario.rows is None else scenario.rows.cumulative,
        nothing=np.zeros((scenario.phases, 0)),
        payments=make_payments(scenario),
        speed=np.zeros(0),
        people=np.zeros((1, 0)),
        classes=_NOBODY,
        come=_NOBODY,
    )
    return Block(world)


def _compiled_laws(scenario: Scenario) -> Laws:
    """A law is encoded once, however many contexts and arms share it."""
    every = [pick(law) for pick in (law_below, law_above) for laws in scenario.delays for law in laws]
    distinct = {id(law): law for law in every}
    positions = {key: position for position, key in enumerate(distinct)}
    number = np.array([positions[id(law)] for law in every]).reshape(2, len(scenario.delays), -1)
    codes = [law.encode() for law in distinct.values()]
    sizes = np.array([code.values.size for code in codes], dtype=np.int64)
    stops = np.cumsum(sizes)
    shapes, shape = _shapes(codes)
    return Laws(
        kind=np.array([code.kind for code in codes], dtype=np.int64)[number],
        a=np.array([code.a for code in codes], dtype=np.float64)[number],
        b=np.array([code.b for code in codes], dtype=np.float64)[number],
        never=np.array([code.never for code in codes], dtype=np.float64)[number],
        start=(stops - sizes)[number],
        stop=stops[number],
        values=np.concatenate([code.values for code in codes]),
        threshold=thresholds(scenario),
        shape=shape[number],
        shape_kind=np.array([kind for kind, _ in shapes], dtype=np.int64),
        shape_b=np.array([b for _, b in shapes], dtype=np.float64),
    )


def _shapes(codes: Sequence[LawCode]) -> tuple[list[tuple[int, float]], Ints]:
    """Return the kinds and the `b` of laws with a quick form, if they are few, and the number of each law's shape."""
    has_quick = [code.kind in QUICK and code.never == 0.0 for code in codes]
    shapes = list(
        dict.fromkeys((code.kind, code.b) for code, is_quick in zip(codes, has_quick, strict=True) if is_quick)
    )
    if len(shapes) > MANY_SHAPES:
        shapes = []
    numbers = {shape: number for number, shape in enumerate(shapes)}
    return shapes, np.array([numbers.get((code.kind, code.b), NO_SHAPE) for code in codes], dtype=np.int64)


def laws_of_rows(rows: Rows) -> Laws:
    """Each cell is an empirical law in the order of its rows, so that its rewards can be found by the same draw."""
    shape = rows.starts.shape
    nothing = np.zeros((2, *shape))
    return Laws(
        kind=np.full((2, *shape), EMPIRICAL, dtype=np.int64),
        a=nothing,
        b=nothing,
        never=nothing,
        start=np.array([rows.starts] * 2),
        stop=np.array([rows.stops] * 2),
        values=rows.delay,
        threshold=np.zeros(shape),
        shape=np.full((2, *shape), NO_SHAPE, dtype=np.int64),
        shape_kind=np.zeros(0, dtype=np.int64),
        shape_b=np.zeros(0),
    )
