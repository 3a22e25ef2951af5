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

from doral._jit import jit_inner, jit_rare_inner
from doral.pacing import NO_ARM
from doral.policies.scoring import bonus
from doral.policies.state import PRICE, TAU_ESTIMATED, Rules, State, clock_left
from doral.problem import Problem

FEWEST_ANSWERS = 100  # and decisions watched to the end: with fewer, neither noise nor delays are known at all
ROUNDING = 1e-9  # relative: arms that are alike up to rounding do not rule each other out


@jit_inner
def _set_bounds(state: State, rules: Rules, context: int, price: float) -> None:
    """values[a] = what an arm is thought to bring after its cost, gamma[a] = how far from that it may be.

    The errors of reward and return are independent: they add in squares.
    """
    weight, pulls = state.contexts[context].weight, state.contexts[context].pulls
    certain = math.sqrt(2.0 * math.log(state.certificates.size / rules.delta))
    of_reward = max(certain * state.prior.sigma[context], bonus(state, rules, context))
    of_return = max(certain, rules.return_optimism * math.sqrt(math.log(math.e + pulls)))
    for a in range(state.allowed.size):
        tau, estimate = state.tau[context, a], state.ridge.estimate[context, a]
        reward_error = of_reward * tau * state.ridge.norm[context, a]
        return_error = of_return * state.tau_error[context, a] * estimate
        state.values[a] = weight * tau * estimate - price * state.hulls.costs[a]
        state.gamma[a] = weight * math.sqrt(reward_error * reward_error + return_error * return_error)


@jit_rare_inner
def _is_watched(state: State, rules: Rules) -> bool:
    """Whether enough decisions have been watched to the end: before, return curves go on in the best of hopes."""
    ages = state.curves.ages
    if rules.tau != TAU_ESTIMATED or rules.silent:
        return True
    for g in range(ages.size):
        if ages[g] >= rules.longest_deadline or g == ages.size - 1:
            return state.curves.cursor[g] >= FEWEST_ANSWERS
    return False


@jit_inner
def _is_end_in_view(state: State, rules: Rules) -> bool:
    """Whether answers may come too late for the end: then arms that answer sooner are right, for the last few rounds.

    All arms are in play again, and the certificates stay what they were before.
    """
    now = state.now[0]
    if not rules.until_end or now.round == 0 or math.isinf(rules.longest_deadline):
        return False
    return clock_left(state) < rules.longest_deadline


@jit_rare_inner
def certify(state: State, rules: Rules) -> None:
    """Drop what cannot enter the LP's solution, and let in again what could."""
    if state.now[0].learned < FEWEST_ANSWERS or not _is_watched(state, rules):
        return
    n_contexts, n_arms = state.certificates.shape
    whatever_certified = state.barrier[n_contexts]
    if _is_end_in_view(state, rules):
        for j in range(n_contexts):
            for a in range(n_arms):
                state.barrier[j, a] = whatever_certified[a]
        return
    for j in range(n_contexts):
        price = state.tiers[PRICE, state.depths[j]]
        _set_bounds(state, rules, j, price)
        at_least, rival = -math.inf, NO_ARM
        for a in range(n_arms):
            if whatever_certified[a] == 0.0 and state.values[a] - state.gamma[a] > at_least:
                at_least, rival = state.values[a] - state.gamma[a], a
        for a in range(n_arms):
            if whatever_certified[a] != 0.0:
                continue
            certificate = state.certificates[j, a]
            at_most = state.values[a] + state.gamma[a]
            if at_most < at_least - ROUNDING * (abs(at_most) + abs(at_least)):
                if certificate.round == 0:
                    certificate.round = max(1, state.now[0].round)
                certificate.rival, certificate.price = rival, price
                certificate.at_most, certificate.at_least = at_most, at_least
                state.barrier[j, a] = -math.inf
            else:
                certificate.round = 0
                state.barrier[j, a] = 0.0


@jit_inner
def arms_in_play(state: State) -> float:
    """How many arms a context has to choose from, on average; while the race runs, none is ruled out yet."""
    n_contexts, n_arms = state.contexts.size, state.allowed.size
    if state.now[0].racing != 0:
        return float(n_arms)
    n = 0
    for j in range(n_contexts):
        for a in range(n_arms):
            n += state.barrier[j, a] == 0.0
    return n / n_contexts


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Why an arm is out of a context: at this price of budget, its rival is better for certain.

    Numbers are those of the last examination, or of the last one before the end came into view.
    """

    context: str
    arm: str
    round: int
    """Since when."""
    at_most: float
    """What the arm could bring at best, less what its cost is worth."""
    rival: str
    at_least: float
    """What the rival brings at worst, less what its cost is worth."""
    price: float

    def __str__(self) -> str:
        return (
            f"{self.arm} is out in {self.context} since round {self.round:,}: it brings at most {self.at_most:.3g} "
            f"after its cost, {self.rival} at least {self.at_least:.3g} (a unit of budget is worth {self.price:.3g})"
        )


def certificates(state: State, problem: Problem) -> tuple[Certificate, ...]:
    """Those that held at the last examination, the oldest first."""
    arms, contexts = problem.arm_names, problem.context_names
    found = [
        Certificate(
            context=contexts[j],
            arm=arms[a],
            round=int(state.certificates[j, a]["round"]),
            at_most=float(state.certificates[j, a]["at_most"]),
            rival=arms[int(state.certificates[j, a]["rival"])],
            at_least=float(state.certificates[j, a]["at_least"]),
            price=float(state.certificates[j, a]["price"]),
        )
        for j, a in zip(*state.certificates["round"].nonzero(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: one.round))
