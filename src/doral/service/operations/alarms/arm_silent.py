"""Answers of an arm have stopped coming in, though its own return curve says that some should have come.

How many should have come since the last one is the sum of cumulative hazards over all decisions that were open. On that
scale the spells between answers are exponential with mean 1, whatever the curve is (time rescaling). The curve is
learned from n answers, which makes that a Pareto tail: no answer while e are expected has the chance (1 + e/n)^-n. The
k-th spell may use up FALSE_ALARMS / (k (k + 1)), shared by the arms.

Assumed: answers do not depend on the hour. Where they do (nobody answers at night, or answers are reported once a day),
a spell has to be twice as long on this scale, and half as long again on the clock, as any spell before: the first night
may be told of, later ones are not. Answers that were heard of at the same moment are one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from doral.service.operations.alarms.chances import FALSE_ALARMS, Hazard, hazard
from doral.service.operations.alarms.facts import Facts
from doral.service.operations.alarms.finding import Finding
from doral.service.operations.alarms.past import Lives

RULE = "arm-silent"
FEWEST = 10  # answers, from which a curve can be learned
_FEWEST_MOMENTS = 5  # at which some were heard of
_LONGER, _LONGER_ON_CLOCK = 2.0, 1.5  # than the longest spell before
_SPELLS = 200  # the last ones, that are compared with


def find(facts: Facts) -> list[Finding]:
    """The arms of which it is so."""
    arms = [arm for arm in facts.past.arms if arm not in facts.silent_arms and arm < len(facts.arms)]
    found = []
    for arm in arms:
        lives = facts.past.lives(arm)
        expected, learned_from = missing(lives, facts.now)
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
                rule=RULE,
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
    """So many missing answers are no chance."""
    chance = FALSE_ALARMS / (n_arms * spells * (spells + 1.0))
    return float(learned_from * np.expm1(-np.log(chance) / learned_from))


def missing(lives: Lives, now: float) -> tuple[float, int]:
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
