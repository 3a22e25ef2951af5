"""What somebody should look after: each rule is a function of facts that finds something or nothing.

A rule that judges chance states how often it may be wrong: `FALSE_ALARMS` is the probability with which it is ever
raised in a whole campaign in which nothing is wrong, under the assumptions that stand with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from doral.live.views.health import Health
from doral.live.views.text import share
from doral.service.operations.alarm_statistics import (
    FALSE_ALARMS,
    Hazard,
    Lives,
    LogRank,
    Past,
    chance_of_mean,
    chance_of_test,
    hazard,
    log_rank,
    number_of_test,
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that somebody should look after.

    Attributes:
        rule: Its name.
        subject: What it is about, such as an arm; empty: the campaign.
        words: What is wrong, and what to do.
    """

    rule: str
    subject: str
    words: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Of one campaign.

    Attributes:
        name: Of the campaign.
        now: What its clock shows.
        is_in_seconds: Whether that clock counts seconds, and not arrivals.
        is_closed: Whether no more decisions are made.
        arrivals: So far.
        fewest_to_come: Arrivals until the end; where that is a date, as few as it may well be.
        most_to_come: The same, as many as it may well be.
        time_share: How much of the way is over.
        total: The budget.
        left: What can still be reserved.
        arms: Names, by number.
        plays: Decisions so far, by number of the arm.
        answers: Answers so far, by number of the arm.
        silent_arms: Of those that nobody has to hear of: the one that means to do nothing.
        past: What was read of its log.
        health: As of now.
        tolerance_s: By which clocks may disagree.
        overdue_since_s: For how long some decisions have been overdue, in seconds; 0: none are.
        planned: What was planned to be used by now; 0: not known.
    """

    name: str
    now: float
    is_in_seconds: bool
    is_closed: bool
    arrivals: int
    fewest_to_come: float
    most_to_come: float
    time_share: float
    total: float
    left: float
    arms: tuple[str, ...]
    plays: tuple[int, ...]
    answers: tuple[int, ...]
    silent_arms: frozenset[int]
    past: Past
    health: Health
    tolerance_s: float
    overdue_since_s: float
    planned: float = 0.0


# The store cannot be read or written, or is slow.

STORE_AILS = "store-ails"
SLOW_S = 5.0  # to be the only writer, or to read what is new


def find_store_ails(health: Health) -> list[Finding]:
    """What is wrong with the store of one campaign."""
    found = []
    if not (health.is_readable and health.is_writable):
        can = "written" if health.is_readable else "read"
        words = f"the campaign cannot be {can}: {str(health.error)[:300]}"
        found.append(Finding(rule=STORE_AILS, subject=can, words=words))
    slow = max(health.read_s or 0.0, health.write_s or 0.0)
    if slow > SLOW_S:
        words = f"it took {slow:.1f} s to read or to lock the campaign: look for who keeps the store busy"
        found.append(Finding(rule=STORE_AILS, subject="slow", words=words))
    return found


# Clocks disagree: of the campaign, of this host, or of the database server.

CLOCK_WRONG = "clock-wrong"


def find_clock_wrong(facts: Facts) -> list[Finding]:
    """One for each clock that is further off than is allowed."""
    health, found = facts.health, []
    ahead = health.clock_ahead_s or 0.0
    if ahead > facts.tolerance_s:
        words = f"the campaign's clock is {ahead:,.0f} s ahead of this host's: if the host's is right, set it back"
        found.append(Finding(rule=CLOCK_WRONG, subject="campaign", words=words))
    apart = abs(health.server_ahead_s or 0.0)
    if apart > facts.tolerance_s:
        words = f"the clocks of this host and of the database server are {apart:,.0f} s apart: set the wrong one"
        found.append(Finding(rule=CLOCK_WRONG, subject="server", words=words))
    return found


# Decisions are too old for an answer to count, and still hold budget: whoever should settle them does not.

OVERDUE = "overdue"
PATIENCE_S = 600.0  # the service settles them by itself, unless it was told not to


def find_overdue(facts: Facts) -> list[Finding]:
    """Only what was overdue for a while."""
    count = facts.health.overdue or 0
    if not count or facts.overdue_since_s < PATIENCE_S:
        return []
    words = f"{count:,} decisions are overdue, and their budget is still reserved: settle them (expire)"
    return [Finding(rule=OVERDUE, subject="", words=words)]


# The budget is used up, or the end has come, and nobody has closed the campaign.

USED_UP = "used-up"


def find_used_up(facts: Facts) -> list[Finding]:
    """No more than one of the two."""
    health = facts.health
    if facts.is_closed or health.budget_left_share is None or health.time_left_share is None:
        return []
    if health.time_left_share == 0.0:
        words = "its end has come: extend it, or close it"
        return [Finding(rule=USED_UP, subject="time", words=words)]
    if health.budget_left_share <= 0.0:
        words = f"the budget is used up with {share(health.time_left_share)} of the way to go: top it up, or close it"
        return [Finding(rule=USED_UP, subject="budget", words=words)]
    return []


# Answers of an arm have stopped coming in, though its own return curve says that some should have come.
#
# How many should have come since the last one is the sum of cumulative hazards over all decisions that were open. On
# that scale the spells between answers are exponential with mean 1, whatever the curve is (time rescaling). The curve
# is learned from n answers, which makes that a Pareto tail: no answer while e are expected has the chance (1 +
# e/n)^-n. The k-th spell may use up FALSE_ALARMS / (k (k + 1)), shared by the arms.
#
# Assumed: answers do not depend on the hour. Where they do (nobody answers at night, or answers are reported once a
# day), a spell has to be twice as long on this scale, and half as long again on the clock, as any spell before: the
# first night may be told of, later ones are not. Answers that were heard of at the same moment are one.

ARM_SILENT = "arm-silent"
FEWEST = 10  # answers, from which a curve can be learned
_FEWEST_MOMENTS = 5  # at which some were heard of
_LONGER, _LONGER_ON_CLOCK = 2.0, 1.5  # than the longest spell before
_SPELLS = 200  # the last ones, that are compared with


def find_silent_arms(facts: Facts) -> list[Finding]:
    """The arms of which it is so."""
    arms = [arm for arm in facts.past.arms if arm not in facts.silent_arms and arm < len(facts.arms)]
    found = []
    for arm in arms:
        lives = facts.past.lives(arm)
        expected, learned_from = missing_answers(lives, facts.now)
        spells = max(learned_from, facts.answers[arm])
        if learned_from < FEWEST or expected < threshold(spells, learned_from, len(arms)):
            continue
        most_expected, longest = longest_spells(lives)
        lasted = facts.now - float(np.nanmax(lives.heard))
        if expected < _LONGER * most_expected or lasted < _LONGER_ON_CLOCK * longest:
            continue
        since = _long(lasted, in_seconds=facts.is_in_seconds)
        found.append(
            Finding(
                rule=ARM_SILENT,
                subject=facts.arms[arm],
                words=(
                    f"no answer to {facts.arms[arm]!r} has come for {since}, where {expected:.1f} were to "
                    "be expected by how it was answered before. Look whether whoever reports answers still does; "
                    "until then the policy takes silence for a worse arm: pause it if need be"
                ),
            )
        )
    return found


def threshold(spells: int, learned_from: int, n_arms: int) -> float:
    """So many missing_answers answers are no chance."""
    chance = FALSE_ALARMS / (n_arms * spells * (spells + 1.0))
    return float(learned_from * np.expm1(-np.log(chance) / learned_from))


def missing_answers(lives: Lives, now: float) -> tuple[float, int]:
    """How many answers were to be expected since the last one, and from how many that is known."""
    heard = lives.heard[~np.isnan(lives.heard)]
    if heard.size < FEWEST or np.unique(heard).size < _FEWEST_MOMENTS:
        return 0.0, heard.size
    last = float(heard.max())
    total, pooled = 0.0, _learned(lives, last)
    for own, known in _strata(lives, last, pooled):
        made = own.made[np.isnan(own.heard)]
        more = known.at(np.maximum(0.0, now - made)) - known.at(np.maximum(0.0, last - made))
        total += float(more.sum())
    return total, pooled.answers


def longest_spells(lives: Lives) -> tuple[float, float]:
    """Of those until and between the last answers: in answers that were to be expected, and on the clock."""
    heard = lives.heard[~np.isnan(lives.heard)]
    moments = np.unique(np.append(heard, lives.made.min()))[-_SPELLS:]
    last = float(moments[-1])
    done = np.zeros(moments.size)
    for own, known in _strata(lives, last, _learned(lives, last)):
        ends = np.where(np.isnan(own.heard), np.inf, own.heard)
        ages = np.minimum(moments[:, None], ends[None, :]) - own.made[None, :]
        done += known.at(np.maximum(0.0, ages).ravel()).reshape(ages.shape).sum(axis=1)
    return float(np.diff(done).max(initial=0.0)), float(np.diff(moments).max(initial=0.0))


def _strata(lives: Lives, upto: float, pooled: Hazard) -> Iterator[tuple[Lives, Hazard]]:
    """By context, each with its own curve, or with that of all where its own rests on too little."""
    for context in np.unique(lives.context):
        own = lives.where(lives.context == context)
        known = _learned(own, upto)
        yield own, known if known.answers >= FEWEST else pooled


def _learned(lives: Lives, upto: float) -> Hazard:
    """From what had happened by then: the spell that is judged has no part in it."""
    before = lives.made < upto
    made, heard = lives.made[before], lives.heard[before]
    ended = ~np.isnan(heard) & (heard <= upto)
    return hazard(np.where(ended, heard, upto) - made, ended)


def _long(duration: float, *, in_seconds: bool) -> str:
    """In a unit that fits."""
    if not in_seconds:
        return f"{duration:,.0f} arrivals"
    return f"{duration:,.0f} s" if duration < 7_200 else f"{duration / 3_600:,.1f} h"


# At the pace of late, the budget is gone before the time is.
#
# The last third of arrivals, in twenty blocks, says what an arrival costs. Student's t asks whether that is more than
# would make the budget last for all but the last twentieth of the way. Assumed: blocks are independent, and about
# normal; whoever is still to come costs as those of late did.

BUDGET_EARLY = "budget-early"
FIRST_SPENDING_TEST = 300  # arrivals
_BLOCKS = 20
_NEAR = 0.05  # of the way: nobody minds a budget that ends so shortly before


def spending_test(facts: Facts) -> int:
    """The number of the spending_test that is due."""
    return number_of_test(facts.arrivals, FIRST_SPENDING_TEST)


def find_budget_early(facts: Facts, spending_test: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the spending_test."""
    found = _spending_too_fast(facts)
    if found is None:
        return None
    rate, at_most, sample_size, chance = found
    if chance > chance_of_test(spending_test):
        return None
    more = facts.left / rate
    way = facts.time_share + (1.0 - facts.time_share) * more / facts.fewest_to_come
    return Finding(
        rule=BUDGET_EARLY,
        subject="",
        words=(
            f"an arrival has cost {rate:.3g} on average of late (the last {sample_size:,}), and {at_most:.3g} would "
            f"last: the budget ends after about {more:,.0f} more arrivals, at {way:.0%} of the way. Top it up, pause "
            "an expensive arm, or close the campaign earlier"
        ),
    )


def lasts_after_all(facts: Facts) -> bool:
    """Whether the budget lasts after all, at the pace of late."""
    found = _spending_too_fast(facts)
    return found is None or found[0] <= found[1]


def _spending_too_fast(facts: Facts) -> tuple[float, float, int, float] | None:
    """What an arrival costs, what it may cost, on how many that rests, and the chance that it is no more."""
    to_come = facts.fewest_to_come
    near = _NEAR * to_come / (1.0 - facts.time_share) if facts.time_share < 1.0 else to_come
    rates = facts.past.rates(_BLOCKS)
    if facts.is_closed or rates is None or facts.left <= 0.0 or to_come <= near:
        return None
    sample, size = rates
    at_most = facts.left / (to_come - near)
    return float(sample.mean()), at_most, size, chance_of_mean(sample, at_most)


# At the pace of late, much of the budget is left over at the end.
#
# As `BUDGET_EARLY`, to the other side: would a fifth of the budget or more be left?

PACE_OFF = "pace-off"
FIRST_PACE_TEST = 300  # arrivals
_MUCH = 0.2  # of the budget
_BEGINNING = 0.2  # of the way, in which it is still learned what is worth spending on


def pace_test(facts: Facts) -> int:
    """The number of the pace_test that is due."""
    return number_of_test(facts.arrivals, FIRST_PACE_TEST)


def find_pace_off(facts: Facts, pace_test: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the pace_test."""
    found = _spending_too_slowly(facts)
    if found is None:
        return None
    rate, at_least, sample_size, chance = found
    if chance > chance_of_test(pace_test) or facts.time_share < _BEGINNING:
        return None
    over = (facts.left - max(0.0, rate) * facts.most_to_come) / facts.total
    return Finding(
        rule=PACE_OFF,
        subject="",
        words=(
            f"{_so_far(facts)}an arrival has cost {rate:.3g} on average of late (the last {sample_size:,}), where "
            f"{at_least:.3g} would use most of the budget: about {over:.0%} of it will be left over. Look "
            "whether arms are paused or unavailable, or whether fewer people come than were "
            "expected; extend the campaign, or lower its budget"
        ),
    )


def _so_far(facts: Facts) -> str:
    if facts.planned <= 0.0:
        return ""
    return f"{facts.total - facts.left:,.6g} are used where {facts.planned:,.6g} were planned by now; "


def is_used_after_all(facts: Facts) -> bool:
    """Whether most of the budget is used after all, at the pace of late."""
    found = _spending_too_slowly(facts)
    return found is None or found[0] >= found[1]


def _spending_too_slowly(facts: Facts) -> tuple[float, float, int, float] | None:
    rates = facts.past.rates(_BLOCKS)
    if facts.is_closed or rates is None or facts.most_to_come < 1.0 or facts.left <= _MUCH * facts.total:
        return None
    sample, size = rates
    at_least = (facts.left - _MUCH * facts.total) / facts.most_to_come
    return float(sample.mean()), at_least, size, chance_of_mean(-sample, -at_least)


# Answers to an arm come sooner, later, more or less often than they did before.
#
# The last quarter of its decisions against those before, by the log-rank test, stratum by stratum of contexts, so
# that a policy that turns to other contexts is not taken for a change. All are followed until the campaign last heard
# of an answer, to whichever arm, and not until now: whoever reports answers once a day would otherwise seem to have
# stopped every day. Where answers are heard of many at a time, decisions are followed for whole periods between such
# moments only: how long an answer takes then depends on the hour at which the decision was made, and all hours have
# to be among those who are followed. Each look may use up its share of FALSE_ALARMS, divided by the number of arms.
#
# Assumed: delays are independent, given arm and context. Curves that cross in the middle may be missed; answers that
# stop for all arms at once are found by `ARM_SILENT`.

CURVE_MOVED = "curve-moved"
FIRST_CURVE_TEST = 120  # decisions of an arm
OVER = 0.05  # a difference that is so likely by chance is none any more
_RECENT = 0.25
_TOGETHER = 2  # answers on average, from which on they do not come one by one
_MOMENTS = 50  # the last ones, from which a period is read
_FEWEST = 10.0  # answers that are expected in each group, for a normal approximation


def curve_test(facts: Facts, arm: int) -> int:
    """The number of the curve_test that is due."""
    return number_of_test(facts.plays[arm], FIRST_CURVE_TEST)


def find_moved_curve(facts: Facts, arm: int, curve_test: int) -> Finding | None:
    """Whether it is so; the chance of error is that of the curve_test."""
    lives = facts.past.lives(arm)
    test = compare_curves(lives, facts.past.last_heard)
    n_arms = max(1, len(facts.past.arms))
    if test is None or test.chance > chance_of_test(curve_test) / n_arms:
        return None
    direction = "rarer or later" if test.observed < test.expected else "more frequent or earlier"
    recent = int(_RECENT * lives.made.size)
    return Finding(
        rule=CURVE_MOVED,
        subject=facts.arms[arm],
        words=(
            f"answers to {facts.arms[arm]!r} have become {direction}: of its last {recent:,} decisions "
            f"{test.observed:,.0f} were answered so far, and {test.expected:,.0f} would have been as before (by "
            f"chance: {_once_in(test.chance)}). Look what has changed for whoever answers, or in how answers are "
            "reported"
        ),
    )


def _once_in(chance: float) -> str:
    """How rarely, for people: 3.8e-7 is 1 in 3,000,000."""
    if chance < 1e-9:
        return "less than 1 in 1,000,000,000"
    return f"1 in {float(f'{1.0 / chance:.1g}'):,.0f}"


def is_as_before(facts: Facts, arm: int) -> bool:
    """Whether recent decisions are answered as those before, by now."""
    test = compare_curves(facts.past.lives(arm), facts.past.last_heard)
    return test is None or test.chance > OVER


def compare_curves(lives: Lives, upto: float) -> LogRank | None:
    """The last quarter of these decisions with the others, as they stood then; None: there are too few answers."""
    lives = lives.where(lives.made < upto)
    if lives.made.size < FIRST_CURVE_TEST:
        return None
    order = np.argsort(lives.made, kind="stable")
    second = np.zeros(order.size, dtype=bool)
    second[order[order.size - int(_RECENT * order.size) :]] = True
    followed = upto - lives.made
    period = _period(lives)
    if period > 0.0:
        followed = np.floor(followed / period) * period
    ended = ~np.isnan(lives.delay) & ((lives.delay <= followed) | (period == 0.0))
    times = np.where(ended, lives.delay, followed)
    found = LogRank(0.0, 0.0, 0.0)
    for context in np.unique(lives.context):
        of_it = lives.context == context
        if ended[of_it].any():
            found = found.plus(log_rank(times[of_it], ended[of_it], second[of_it]))
    first_expected = float(ended.sum()) - found.expected
    return None if min(found.expected, first_expected) < _FEWEST else found


def _period(lives: Lives) -> float:
    """Between moments at which many answers are heard of together; 0: they come one by one."""
    heard = lives.heard[~np.isnan(lives.heard)]
    moments = np.unique(heard)
    if moments.size < 2 or heard.size <= _TOGETHER * moments.size:
        return 0.0
    return float(np.diff(moments[-_MOMENTS:]).max())


RULES = (ARM_SILENT, BUDGET_EARLY, CLOCK_WRONG, CURVE_MOVED, OVERDUE, PACE_OFF, STORE_AILS, USED_UP)
