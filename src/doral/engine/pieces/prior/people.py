"""Where people have features: the noise is measured around lines, and what arms share in them is learned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral._kernel import rare
from doral.engine.hooks import trial_part
from doral.engine.pieces.people import NEXT_LOOK
from doral.engine.pieces.prior.noise import MEMORY, noise_variance, on_corrected, on_learned
from doral.engine.pieces.prior.shared import follow_answers, refresh_prior
from doral.engine.state import State
from doral.estimators.levels import calibrate_lines, start_level_variances
from doral.estimators.line import measure_line_noise, start_variances
from doral.estimators.shrinkage import ANEW, ANEW_STEPS, IS_SET, MEAN_SQUARE, NOISE, Prior, new_prior

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint

__all__ = [
    "MEMORY",
    "follow_answers",
    "memory",
    "noise_variance",
    "on_corrected",
    "on_learned",
    "rebuild_rewards",
    "refresh_prior",
]

STEPS = 2  # of scoring, at each calibration


def memory(blueprint: Blueprint) -> Prior:
    return new_prior(blueprint.n_rows, 0, blueprint.options.penalty)


@rare
def rebuild_rewards(state: State) -> None:
    """Lines, around the variances that follow from them."""
    people, prior = state.people, state.prior
    line = people.line
    if people.by_age.shape[0] > 0:
        _count_trials(state)
    second_moment = measure_line_noise(prior, line, state.tally, people.levels.explained)
    if not second_moment > 0.0:
        if prior.scale[IS_SET] == ANEW:
            _start_over(state)
        return
    n_arms = line.mean.shape[0]
    n = 0.0
    for a in range(n_arms):
        n += line.gram[a, 0, 0]
    noise = min(prior.scale[NOISE], second_moment)
    of_means = (second_moment - noise) + noise * min(1.0, n_arms / n) if n > 0.0 else second_moment
    line.scale[0] = min(second_moment, 4.0 * of_means)
    line.common[0, 0] = line.scale[0]
    steps = STEPS
    if prior.scale[IS_SET] != 1.0:
        steps = ANEW_STEPS if prior.scale[IS_SET] == ANEW else STEPS
        start_variances(line)
        start_level_variances(people.levels, line.scale[0])
        prior.scale[IS_SET] = 1.0
    calibrate_lines(line, people.levels, people.shares, steps)
    people.counts[NEXT_LOOK] = 0


@rare
def _start_over(state: State) -> None:
    """All that was measured was measured on rewards that turned out to be none."""
    people, prior, variance = state.people, state.prior, 1.0 / state.confidence.penalty
    line = people.line
    prior.scale[NOISE], prior.scale[MEAN_SQUARE], prior.scale[IS_SET] = 1.0, 0.0, 0.0
    for row in range(prior.sigma.size):
        prior.sigma[row] = 1.0
    line.scale[0] = 0.0
    for a in range(line.noise.size):
        line.noise[a] = 1.0
    for i in range(line.own.size):
        line.own[i] = variance
    for i in range(line.hyper_mean.size):
        line.hyper_mean[i] = 0.0
        for l in range(line.hyper_mean.size):  # noqa: E741
            line.hyper_cov[i, l] = 0.0
    for c in range(people.levels.common.size):
        people.levels.common[c], people.levels.own[c] = 0.0, variance
    people.counts[NEXT_LOOK] = 0


@rare
def _count_trials(state: State) -> None:
    """What decisions that are still silent count for by now: gram is the sum over ages of what has passed them."""
    people = state.people
    n_arms, n_ages, p, _ = people.by_age.shape
    for a in range(n_arms):
        for i in range(p):
            for l in range(p):  # noqa: E741
                people.line.gram[a, i, l] = 0.0
        for g in range(n_ages):
            share = trial_part(state, a, g)
            for i in range(p):
                for l in range(p):  # noqa: E741
                    people.line.gram[a, i, l] += share * people.by_age[a, g, i, l]
