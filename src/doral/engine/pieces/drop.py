"""Arms that are ruled out, each with a certificate, and let in again when it no longer holds.

By duality, LP_m at price lambda serves context j, if at all, with the arm that brings most after its cost. So arm a
cannot enter the solution if even the most that it may be worth falls short of the least that some rival is worth:

    U_ja - lambda c_a  <  max_b  L_jb - lambda c_b

U and L are as wide as a normal posterior needs to hold for all contexts and arms at once with probability 1 - delta,
and never narrower than the bonus. Every reading of the return curves examines all arms anew, at the price of the day.
Not serving a context at all is no rival: a price may fall at once, and then somebody has to be there to take the money.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from doral._arrays import Record
from doral._kernel import kernel, rare
from doral.engine.hooks import bonus, watched
from doral.engine.state import TIER_PRICE, State, clock_left
from doral.errors import InvalidValue
from doral.pacing import NO_ARM

if TYPE_CHECKING:
    from doral.engine.blueprint import Blueprint
    from doral.engine.options import PolicyOptions
    from doral.problem import Problem

FEWEST_ANSWERS = 100  # and decisions watched to the end: with fewer, neither noise nor delays are known at all
ROUNDING = 1e-9  # relative: arms that are alike up to rounding do not rule each other out

# Why an arm is out in a context.
CERTIFICATE = np.dtype(
    [
        ("round", np.int64),  # since when; 0: it is in play
        ("rival", np.int64),  # the arm that is better for certain
        ("at_most", np.float64),  # what the arm could bring at best, less what its cost is worth
        ("at_least", np.float64),  # what the rival brings at worst, less what its cost is worth
        ("price", np.float64),  # of a unit of budget
    ],
    align=True,
)


class DropMemory(NamedTuple):
    certificates: Record  # (J, A) of CERTIFICATE


@dataclass(frozen=True, kw_only=True)
class DropOptions:
    """Whether arms are ruled out."""

    dropping: Literal["never", "certified"] = "never"
    """"certified": an arm leaves a context, until further notice, when another one is better there for certain."""


def is_in(options: PolicyOptions, problem: Problem) -> bool:
    return options.dropping == "certified"


def check(options: PolicyOptions) -> None:
    if options.dropping == "certified" and options.prior == "fixed":
        raise InvalidValue("dropping", options.dropping, "rests on measured noise: needs prior='noise' or 'shared'")
    if options.dropping == "certified" and options.choice == "unweighted":
        raise InvalidValue("dropping", options.dropping, "is by what arms are worth: needs choice='weighted'")


def memory(blueprint: Blueprint) -> DropMemory:
    return DropMemory(np.zeros((blueprint.problem.n_contexts, blueprint.problem.n_arms), dtype=CERTIFICATE))


@kernel
def on_corrected(state: State) -> None:
    """What was certain by the wrong reward is examined with the next arrival; in a large problem, when it is due."""
    if state.now[0].learned >= FEWEST_ANSWERS and state.limits.stock_rounds == 0 and state.now[0].racing == 0:
        state.now[0].must_read = 1


@rare
def examine(state: State) -> None:
    """Drop what cannot enter the LP's solution, and let in again what could."""
    if state.now[0].learned < FEWEST_ANSWERS or watched(state) < FEWEST_ANSWERS:
        return
    n_contexts, n_arms = state.drop.certificates.shape
    if _is_end_in_view(state):
        for j in range(n_contexts):
            for a in range(n_arms):
                state.barrier[j, a] = state.barrier[n_contexts, a]
        return
    for j in range(n_contexts):
        _examine_context(state, j, state.tiers[TIER_PRICE, state.demand.depth[j]])


@kernel
def _is_end_in_view(state: State) -> bool:
    """Whether answers may come too late for the end: then arms that answer sooner are right, for the last few rounds.

    All arms are in play again, and the certificates stay what they were before.
    """
    now, limits = state.now[0], state.limits
    if not limits.until_end or now.round == 0 or math.isinf(limits.longest_deadline):
        return False
    return clock_left(state) < limits.longest_deadline


@kernel
def _examine_context(state: State, context: int, price: float) -> None:
    n_contexts, n_arms = state.drop.certificates.shape
    whatever_certified, values, width = state.barrier[n_contexts], state.values, state.gamma
    _set_bounds(state, context, price)
    at_least, rival = -math.inf, NO_ARM
    for a in range(n_arms):
        if whatever_certified[a] == 0.0 and values[a] - width[a] > at_least:
            at_least, rival = values[a] - width[a], a
    for a in range(n_arms):
        if whatever_certified[a] != 0.0:
            continue
        certificate = state.drop.certificates[context, a]
        at_most = values[a] + width[a]
        if at_most < at_least - ROUNDING * (abs(at_most) + abs(at_least)):
            if certificate.round == 0:
                certificate.round = max(1, state.now[0].round)
            certificate.rival, certificate.price = rival, price
            certificate.at_most, certificate.at_least = at_most, at_least
            state.barrier[context, a] = -math.inf
        else:
            certificate.round = 0
            state.barrier[context, a] = 0.0


@kernel
def _set_bounds(state: State, context: int, price: float) -> None:
    """values[a] = what an arm is thought to bring after its cost, gamma[a] = how far from that it may be.

    The errors of reward and return are independent: they add in squares.
    """
    weight, pulls = state.contexts[context].weight, state.contexts[context].pulls
    certain = math.sqrt(2.0 * math.log(state.drop.certificates.size / state.confidence.delta))
    of_reward = max(certain * state.prior.sigma[context], bonus(state, context))
    of_return = max(certain, state.confidence.return_optimism * math.sqrt(math.log(math.e + pulls)))
    for a in range(state.allowed.size):
        tau, estimate = state.tau[context, a], state.ridge.estimate[context, a]
        reward_error = of_reward * tau * state.ridge.norm[context, a]
        return_error = of_return * state.tau_error[context, a] * estimate
        state.values[a] = weight * tau * estimate - price * state.hulls.costs[a]
        state.gamma[a] = weight * math.sqrt(reward_error * reward_error + return_error * return_error)
