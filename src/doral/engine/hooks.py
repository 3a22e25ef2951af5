"""Where pieces join in. `events.py` calls these; a composition says which pieces answer.

A hook runs every piece that has it, in any order. A slot is filled by exactly one piece; those with a default stand in
`pieces/defaults.py`. A piece takes part by defining a kernel with the name of the hook or slot.
"""

from __future__ import annotations

from doral._arrays import Floats
from doral._kernel import hook, slot
from doral.engine.choice import Choice
from doral.engine.state import State

# --- time and arrivals -----------------------------------------------------------------------------------------------


@hook
def before_arrival(state: State, clock: float) -> None:
    """Somebody is about to arrive."""


@hook
def on_tick(state: State) -> None:
    """Time has passed, and decisions have left the cut-off."""


# --- decide ----------------------------------------------------------------------------------------------------------


@slot
def admit(state: State, context: int, traits: Floats, weight: float, deadline: float) -> int:
    """Somebody of this context has arrived: the row of what they are worth. Without features, that is their context.

    `traits` are their features; a weight or a deadline that is NaN is that of the context.
    """


@slot
def class_of(state: State, row: int) -> int:
    """The context of the one who is in this row."""


@slot
def whose(state: State, row: int) -> int:
    """In simulation only: whose truth holds in this row."""


@slot
def set_tau(state: State, row: int, context: int) -> None:
    """tau of a row, for one who is of this context."""


@hook
def on_revalued(state: State, row: int) -> None:
    """Estimates and norms of a row are set."""


@hook
def on_lines(state: State) -> None:
    """Lines have followed the answers: nobody is valued by them yet."""


@hook
def on_terms(state: State, row: int) -> None:
    """What use costs for the one in this row, and which share of answers returns in time, are those of all."""


@slot
def kin(state: State, row: int) -> float:
    """For how many of all who are expected counts what is learned from the one in this row."""


@slot
def pull(state: State) -> Choice:
    """Stage 1: which arm is tried next."""


@slot
def first_try(state: State, context: int, restricted: bool) -> Choice:
    """Stage 2: an arm that has to be tried before it can be passed over; UNDECIDED where there is none."""


@slot
def spend(state: State, context: int, restricted: bool) -> Choice:
    """Stage 2: whether this arrival is worth its cost today, and with which arm."""


@slot
def rate(state: State) -> float:
    """rho: what may be spent per round from now on."""


@slot
def refunds(state: State) -> float:
    """What is thought to come back of what is reserved."""


@slot
def credit(state: State) -> float:
    """What will come back of what is reserved, with the probability that the problem asks for: it can be spent."""


@slot
def score(state: State, context: int, restricted: bool, is_here: bool) -> None:
    """values[a] = what arm a is worth in this context, -inf for arms that are out.

    `restricted`: only arms of `allowed`. `is_here`: for the one who has arrived, and not for what the others are worth.
    """


@slot
def draws(state: State) -> int:
    """How many times the one who is here is valued, each time by another draw; 0: `score` is the same for all."""


@hook
def on_draw(state: State, number: int) -> None:
    """The draw of this number is the one that `score` goes by."""


@hook
def forget_odds(state: State) -> None:
    """Somebody has arrived, and nothing is weighed for them yet."""


@hook
def on_weighed(state: State, arm: int, probability: float) -> None:
    """The policy does this (an arm, or NO_ARM) with this probability, and with what it has said before."""


@slot
def odds_of(state: State, arm: int) -> float:
    """With which probability the policy does this, by all that was weighed for the one who is here."""


@slot
def try_out(state: State, context: int, restricted: bool, choice: Choice) -> Choice:
    """What is done in the end, where now and then somebody gets any of the options."""


@slot
def bonus(state: State, context: int) -> float:
    """What multiplies ||f_a|| in the norm of V^-1."""


@slot
def stretch(state: State, context: int, norm: float) -> float:
    """What multiplies the bonus of an arm that is known as well as this norm says."""


@slot
def stretched(state: State, context: int, arm: int, norm: float) -> float:
    """The norm of an arm, times what its bonus is multiplied with: `stretch`, as far as it is worth working out."""


@slot
def trial_part(state: State, arm: int, g: int) -> float:
    """By how much of a trial a decision counts more once it has passed the age before g; g = 0: once it is made."""


@slot
def unknowns(state: State) -> int:
    """How many numbers the value of an arm in a context is made of."""


@slot
def window_bias(state: State, context: int) -> float:
    """The bias term of the bonus."""


@slot
def norm_row(state: State, context: int) -> int:
    """The row of the ridge whose norms the bonus takes."""


@hook
def on_scored(state: State, context: int, restricted: bool, scale: float, norm: Floats) -> None:
    """Values are set, from estimate + scale * norm."""


@slot
def control(state: State) -> int:
    """The arm that those get who are skipped, NO_ARM where there is none."""


@slot
def baseline(state: State, context: int) -> float:
    """What skipping is thought to be worth in this context."""


@slot
def is_promising(state: State, context: int, restricted: bool) -> bool:
    """Whether some arm is thought to bring more than skipping does, or nobody asks."""


@hook
def before_spending(state: State, context: int) -> None:
    """Stage 2 is about to decide for somebody of this context."""


@hook
def on_valued(state: State, context: int, restricted: bool, is_worthless: bool) -> None:
    """The hull of a context is set. Where no arm is promising, or none has a value above 0, values may be changed."""


@hook
def on_commit(state: State, slot: int, context: int, arm: int, cost: float) -> None:
    """An arm is played: its decision is in the ring and its cost reserved."""


# --- observe ---------------------------------------------------------------------------------------------------------


@hook
def on_answer(state: State, slot: int, reward: float, age: float) -> None:
    """An answer has come, in time or not."""


@hook
def on_paid(state: State, number: int, context: int, arm: int, age: float, change: float) -> None:
    """Which share of its list price a decision costs is known at this age, or turns out to be another (below 0)."""


@slot
def learn_answer(state: State, slot: int, reward: float) -> None:
    """An answer inside the cut-off teaches something about rewards."""


@hook
def on_guest(state: State, number: int, context: int, traits: Floats) -> None:
    """The decision of this number is about to be looked at, and may have left the ring: who it was for."""


@hook
def on_recall(state: State, number: int, context: int, arm: int, reward: float, age: float) -> None:
    """An answer of this age is told after its time: the decision may have passed ages as unanswered, or be gone."""


@slot
def learn_recalled(state: State, number: int, context: int, arm: int, reward: float) -> None:
    """An answer inside the cut-off, told after its decision has left it, teaches something about rewards."""


@hook
def on_recalled(state: State, context: int, arm: int) -> None:
    """The answer to a decision that is gone has been learned."""


@slot
def teach(state: State, slot: int, context: int, arm: int, weight: float, target: float) -> None:
    """V += weight f f^T and G += target f, for the decision in this slot of the ring; GUEST: it is gone."""


@slot
def reteach(state: State, slot: int, context: int, arm: int, change: float, total: float) -> None:
    """The rewards of an arm in a context sum up to something else, by this change of one of them."""


@slot
def deadline_of(state: State, slot: int, context: int) -> float:
    """By which age the decision in this slot, or the GUEST, has to be answered to teach something."""


@slot
def answer_weight(state: State, slot: int) -> float:
    """What an answer counts for when it comes."""


@hook
def on_fate(state: State, slot: int, answered: float) -> None:
    """It is known now how much of an open decision was answered."""


@hook
def on_reweighed(state: State, slot: int, arm: int, reward: float, change: float) -> None:
    """An answer that was learned counts by so much more, or less, than before."""


@hook
def on_learned(state: State) -> None:
    """A reward has entered V and G."""


@slot
def unit_at(state: State, reading: int) -> float:
    """In which unit exact sums count what is learned after this reading: where the past fades, it grows instead."""


@hook
def on_delay_known(state: State, arm: int, delay: float) -> None:
    """In simulation only: the delay of the pull that was just made."""


# --- settle ----------------------------------------------------------------------------------------------------------


@hook
def on_settle(state: State, slot: int) -> None:
    """A decision has grown older than the cut-off."""


# --- stock-taking ----------------------------------------------------------------------------------------------------


@hook
def follow_answers(state: State) -> None:
    """Enough has been learned for the prior to move."""


@hook
def watch(state: State) -> None:
    """Return curves grow by what has been seen since the last time."""


@hook
def on_passage(state: State, slot: int, g: int, age: float) -> None:
    """A decision of this age has passed the grid age g of the return curves."""


@slot
def kept(state: State) -> float:
    """How much of what was learned before the last reading still counts."""


@hook
def fade(state: State) -> None:
    """What was learned counts less."""


@hook
def read_returns(state: State) -> None:
    """tau and the cut-off follow the return curves."""


@hook
def relearn(state: State) -> None:
    """What was learned is weighed anew, where that depends on tau."""


@slot
def rebuild_rewards(state: State) -> None:
    """V and G from raw sums."""


@slot
def thins(state: State) -> bool:
    """Whether the learner works with features that are thinned by tau."""


@slot
def noise_variance(state: State) -> float:
    """Of one reward, as far as it has been measured."""


@slot
def watched(state: State) -> int:
    """How many decisions have been watched for as long as an answer may take."""


@hook
def examine(state: State) -> None:
    """Arms are examined anew."""


@hook
def renew(state: State) -> None:
    """Whatever follows from the prior and from tau."""


@hook
def on_renewed(state: State) -> None:
    """Estimates and norms are what they should be."""


# --- amendments ------------------------------------------------------------------------------------------------------


@hook
def on_cancel(state: State, number: int, context: int, arm: int, cost: float, in_race: bool, clock: float) -> None:
    """A decision without an answer is taken back; it may have left the ring."""


@slot
def settled_weight(state: State, slot: int) -> float:
    """What a decision that leaves the cut-off turns out to count for."""


@slot
def remembered(state: State, slot: int) -> float:
    """How much still counts of what a decision, or by now its answer, once entered."""


@slot
def correction_weight(state: State, number: int, reward: float) -> float:
    """With which weight a corrected answer was learned; 0: it is too late for a correction."""


@slot
def learn_correction(state: State, number: int, context: int, arm: int, previous: float, reward: float) -> None:
    """A reward that was learned turns out to be another one."""


@hook
def on_corrected(state: State) -> None:
    """A reward has been replaced by another one in all sums."""


@slot
def are_levels_full(state: State) -> bool:
    """Whether another level of a category would find no room."""


@slot
def is_record_full(state: State) -> bool:
    """Whether a piece needs more room, or something else of the driver, before the next event."""


@hook
def refresh_prior(state: State) -> None:
    """There is a new arm: what it is thought to bring follows from the others."""
