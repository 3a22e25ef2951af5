"""A scenario in one run, as arrays: its drawn parameters, its laws, and what the clairvoyant makes of them.

What does not change between the runs of a scenario is made once (`Scenario.once`) and shared by all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doral._arrays import Floats
from doral._delay_kinds import EMPIRICAL
from doral._kernel import Block
from doral.problem import OBSERVED
from doral.simulation.clairvoyant import clairvoyant_worth
from doral.simulation.payments import make_payments
from doral.simulation.rows import Rows
from doral.simulation.scenario import Scenario
from doral.simulation.tape import (
    NOISE_BERNOULLI,
    NOISE_GAUSSIAN,
    NOISE_NONE,
    NOISE_POISSON,
    NOISE_ROWS,
    WORLD,
    Draws,
    Laws,
    World,
)
from doral.simulation.true_returns import expected_payments, expected_worth, law_above, law_below, thresholds

_NOISE = {"none": NOISE_NONE, "gaussian": NOISE_GAUSSIAN, "bernoulli": NOISE_BERNOULLI, "poisson": NOISE_POISSON}
_THETA, _FEATURES, _ARRIVALS = 0, 1, 2  # lanes of the parameter draws; arrivals take those from theirs on


@dataclass(frozen=True)
class Truth:
    """One run of a scenario."""

    block: Block[World]
    features: Floats  # (A, k)
    counted: Floats  # (phases, J, A) expected worth of what returns within the deadline, beyond doing nothing
    clairvoyant: float  # U*: expected reward of the best policy that knows the truth, over the horizon
    rounds: int  # how many arrive
    times: Floats  # (rounds,) when they do; empty: one in every round

    @property
    def world(self) -> World:
        return self.block.tree


def make_truth(scenario: Scenario, *, seed: int, run: int) -> Truth:
    """Draw the parameters of one run; where none are drawn, all runs share one truth."""
    draws_theta = scenario.means is None and scenario.theta is None
    if scenario.arrivals is None and scenario.features == "given" and not draws_theta:
        return scenario.once(_given_truth)
    features = scenario.problem.features
    if scenario.features == "drawn":
        features = _drawn_features(scenario, _uniforms(features.shape, seed, run, _FEATURES))
    if draws_theta:
        n_contexts, n_features = scenario.problem.n_contexts, scenario.problem.n_features
        drawn = _uniforms((scenario.phases * n_contexts, n_features), seed, run, _THETA)
        means = _products(drawn.reshape(scenario.phases, n_contexts, n_features), features)
    else:
        means = _given_means(scenario, features)
    return _truth(scenario, features, means, _times(scenario, seed=seed, run=run))


def _times(scenario: Scenario, *, seed: int, run: int) -> Floats:
    until = scenario.problem.until
    if scenario.arrivals is None or until is None:
        return np.zeros(0)
    return scenario.arrivals.times(until, lambda n, lane: _uniforms((n, 1), seed, run, _ARRIVALS + lane)[:, 0])


def _drawn_features(scenario: Scenario, drawn: Floats) -> Floats:
    """What marks doing nothing is not drawn."""
    if scenario.problem.baseline == OBSERVED:
        drawn[:, -1] = 0.0
        drawn[scenario.problem.control] = scenario.problem.features[scenario.problem.control]
    return drawn


def _given_truth(scenario: Scenario) -> Truth:
    features = scenario.problem.features
    return _truth(scenario, features, _given_means(scenario, features), np.zeros(0))


def _truth(scenario: Scenario, features: Floats, means: Floats, times: Floats) -> Truth:
    counted = expected_worth(scenario, means)
    nothing = _worth_of_nothing(scenario, counted)
    if nothing.shape[1] > 0:
        counted = counted - nothing[:, :, None]
    block = scenario.once(_world_without_means).with_fields(means=means, counted=counted, nothing=nothing)
    rounds = times.size or scenario.problem.horizon
    best = clairvoyant_worth(scenario, counted, rounds, expected_payments(scenario, means))
    return Truth(block=block, features=features, counted=counted, clairvoyant=best, rounds=rounds, times=times)


def _worth_of_nothing(scenario: Scenario, counted: Floats) -> Floats:
    """(phases, J) what is earned by skipping: that of the control arm, or known; without columns where it is 0."""
    problem = scenario.problem
    if problem.baseline is None:
        return np.zeros((scenario.phases, 0))
    if problem.control is not None:
        return np.ascontiguousarray(counted[:, :, problem.control])
    return np.tile(problem.weights * np.array(problem.baseline), (scenario.phases, 1))


def _uniforms(shape: tuple[int, int], seed: int, run: int, lane: int) -> Floats:
    draws = Draws(np.zeros(shape[0] * shape[1]))
    WORLD["fill_uniforms"](Block(draws), seed, run, lane)
    return draws.uniforms.reshape(shape)


def _given_means(scenario: Scenario, features: Floats) -> Floats:
    """(phases, J, A) expected rewards: in every phase, each context takes what the next one had."""
    given = scenario.theta if scenario.means is None else scenario.means
    by_phase = np.array([np.roll(np.array(given), -phase, axis=0) for phase in range(scenario.phases)])
    return _products(by_phase, features) if scenario.means is None else by_phase


def _products(theta: Floats, features: Floats) -> Floats:
    """(phases, J, A) <theta_j, f_a>."""
    products: Floats = (theta[:, :, None, :] * features[None, None, :, :]).sum(axis=3)
    return products


def _world_without_means(scenario: Scenario) -> Block[World]:
    available = () if scenario.availability is None else scenario.availability
    world = World(
        means=np.zeros((scenario.phases, 0, 0)),
        phase_rounds=math.ceil(scenario.problem.expected_rounds / scenario.phases),
        noise=NOISE_ROWS if scenario.rows else _NOISE[scenario.noise],
        noise_sd=scenario.noise_sd,
        laws=_laws_of_rows(scenario.rows) if scenario.rows else _compiled_laws(scenario),
        cumulative_shares=np.cumsum(scenario.true_shares),
        silent=scenario.problem.feedback == "silent",
        available=np.array(available, dtype=np.float64),
        counted=np.zeros((scenario.phases, 0, 0)),
        rewards=np.array([one[0] for row in scenario.rows or () for cell in row for one in cell]),
        nothing=np.zeros((scenario.phases, 0)),
        payments=make_payments(scenario),
        people=np.zeros((1, 0)),
        classes=np.zeros(0, dtype=np.int64),
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
    return Laws(
        kind=np.array([code.kind for code in codes], dtype=np.int64)[number],
        a=np.array([code.a for code in codes], dtype=np.float64)[number],
        b=np.array([code.b for code in codes], dtype=np.float64)[number],
        never=np.array([code.never for code in codes], dtype=np.float64)[number],
        start=(stops - sizes)[number],
        stop=stops[number],
        values=np.concatenate([code.values for code in codes]),
        threshold=thresholds(scenario),
    )


def _laws_of_rows(rows: Rows) -> Laws:
    """Each cell is an empirical law in the order of its rows, so that its rewards can be found by the same draw."""
    sizes = np.array([[len(cell) for cell in row] for row in rows], dtype=np.int64)
    stops = np.cumsum(sizes).reshape(sizes.shape)
    nothing = np.zeros((2, *sizes.shape))
    return Laws(
        kind=np.full((2, *sizes.shape), EMPIRICAL, dtype=np.int64),
        a=nothing,
        b=nothing,
        never=nothing,
        start=np.array([stops - sizes] * 2),
        stop=np.array([stops] * 2),
        values=np.array([one[1] for row in rows for cell in row for one in cell]),
        threshold=np.zeros(sizes.shape),
    )
