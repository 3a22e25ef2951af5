"""The prior is the penalty; only the noise of rewards is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doral._kernel import kernel
from doral.engine.schedule import WITH_READING, set_next_calibration
from doral.engine.state import State
from doral.estimators.shrinkage import ANEW, IS_SET, NOISE, Prior, measure_noise, new_prior

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint

MEMORY = "prior"


def memory(blueprint: Blueprint) -> Prior:
    return new_prior(blueprint.problem.n_contexts, blueprint.features.shape[1], blueprint.options.penalty)


@kernel
def on_learned(state: State) -> None:
    state.now[0].learned += 1


@kernel
def on_corrected(state: State) -> None:
    """What was measured on the wrong reward is measured anew when stock is taken next."""
    state.prior.scale[IS_SET] = ANEW
    if state.now[0].calibrate_at != WITH_READING:
        state.now[0].calibrate_at = state.now[0].learned


@kernel
def follow_answers(state: State) -> None:
    set_next_calibration(state)
    measure_noise(state.prior, state.tally)


@kernel
def noise_variance(state: State) -> float:
    return state.prior.scale[NOISE]
