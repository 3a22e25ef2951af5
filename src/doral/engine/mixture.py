"""What is done where several draws were weighed: one of their outcomes, each as likely as they say together."""

from __future__ import annotations

from doral._kernel import kernel, rare
from doral._kernel.philox import coin
from doral.engine.choice import PLAYED, PLAYED_MARGINAL, Choice
from doral.engine.hooks import odds_of
from doral.engine.state import State
from doral.pacing import NO_ARM

_CERTAIN = 1.0 - 1e-12  # parts that add up to one, but for rounding


@rare
def one_of_the_weighed(state: State, context: int, price: float, why_skipped: int) -> Choice:
    """By the policy's coin: arms in their order, then none."""
    toss, done = coin(state.coin.seed, state.coin.run, state.now[0].round), NO_ARM
    reached, best = 0.0, 0.0
    for a in range(state.allowed.size):
        probability = odds_of(state, a)
        if probability > 0.0:
            best = max(best, _worth(state, context, a))
            if reached <= toss:
                done = a
            reached += probability
    if reached <= toss and odds_of(state, NO_ARM) > 0.0:
        done = NO_ARM
    probability = odds_of(state, done)
    if probability > _CERTAIN:
        probability = 1.0
    if done == NO_ARM:
        return Choice(NO_ARM, probability, best, price, why_skipped)
    reason = PLAYED if probability == 1.0 else PLAYED_MARGINAL
    return Choice(done, probability, _worth(state, context, done), price, reason)


@kernel
def _worth(state: State, context: int, arm: int) -> float:
    """As the mean of the posterior has it."""
    return state.contexts[context].weight * state.tau[context, arm] * state.ridge.estimate[context, arm]
