"""What the level of a category adds to a line: postcodes, clinics, and the context, where people have one.

    reward = <w_a, x> + sum over categories of (u_l + v_la) + noise,      u_l ~ N(0, s),      v_la ~ N(0, d)

u is what a level means for all arms, v what it means for one of them. Both variances belong to the category and are
learned: a level of which little is known is as all are on average, and one that was never seen is just that. With n
answers of an arm at a level that are r, in sum, above the line, r / n is u + v with an error of noise / n, so what is
known of u and v is exact given the line. The line, in turn, is learned as if every level had an effect that nobody
knows: answers at one level go astray together (Schur's complement of the level, as in any mixed model). Of several
categories each is fitted in turn to what the line and the others leave of the rewards. How much that is follows from
how often levels came together: one number for every pair of levels that was seen with an arm.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints, axis_fields
from doral.compiled import kernel, position, rare
from doral.estimators.line import (
    FLOOR,
    GUESS,
    MOST,
    Line,
    learn_common,
    move_variances,
    see,
    set_arm,
    set_kin,
    weigh_arm,
)
from doral.estimators.scoring import as_guessed, moved

FIRST_LEVELS = 16  # there is room for; it doubles when full
FIRST_PAIRS = 4096
SWEEPS = 2  # over categories, each time that lines are looked at
NO_LEVEL = -1
EMPTY = -1  # a free place of a table
_COLUMN = 2**40  # keys are of a category and its level
_PLACES, _ARMS = 2**22, 2**17  # those of pairs, of two places in the list and an arm


class LevelEffects(NamedTuple):
    """Of C categories, all their levels in one list, for A arms and p columns of the line."""

    keys: Annotated[Ints, Array("2*L")]  # a table that finds levels by category and code
    places: Annotated[Ints, Array("2*L", index="L")]  # where they are in the list
    n: Annotated[Ints, Array("1", index="L+1")]  # levels so far
    category: Annotated[Ints, Array("L", index="C")]
    came: Annotated[Floats, Array("L")]  # how many of a level have come
    answers: Annotated[Floats, Array("L A")]
    told: Annotated[Floats, Array("L A")]  # the sum of their rewards
    reward: Annotated[Floats, Array("L A")]  # the same without what other categories are thought to add
    x: Annotated[Floats, Array("L A p")]  # sum of the columns of the line
    mean: Annotated[Floats, Array("L A")]  # u + v
    variance: Annotated[Floats, Array("L A")]
    common: Annotated[Floats, Array("C")]  # s
    own: Annotated[Floats, Array("C")]  # d
    explained: Annotated[Floats, Array("2 A")]  # of the squares of rewards, by levels; and how many numbers that takes
    pair_keys: Annotated[Ints, Array("Lp")]  # a table of levels of two categories and an arm
    pair_answers: Annotated[Floats, Array("Lp")]  # how many of its answers are from people who have both
    n_pairs: Annotated[Ints, Array("1", index="Lp")]


def level_sizes(n_categories: int) -> dict[str, int]:
    """Return the sizes of tables of levels: they double when they are full."""
    return {
        "C": n_categories,
        "L": FIRST_LEVELS if n_categories else 1,
        "Lp": FIRST_PAIRS if n_categories > 1 else 1,
    }


def start_levels(levels: LevelEffects, variance: float) -> None:
    """Set empty tables and the prior variance."""
    levels.keys[:] = levels.pair_keys[:] = EMPTY
    levels.own[:] = variance


def grown_levels(levels: LevelEffects) -> LevelEffects:
    """With room for twice as many of what is full."""
    changes: dict[str, Any] = {}
    if levels.n[0] + levels.common.size > levels.category.size:
        for name, array, _ in axis_fields(levels, "L"):
            changes[name] = np.concatenate([array, np.zeros_like(array)])
        changes["keys"], changes["places"] = _rehashed(levels.keys, levels.places)
    if _are_pairs_full(levels):
        changes["pair_keys"], changes["pair_answers"] = _rehashed(levels.pair_keys, levels.pair_answers)
    grown: LevelEffects = levels._replace(**changes)
    return grown


def _rehashed(keys: Ints, values: Any) -> tuple[Ints, Any]:
    """The same table, twice as large."""
    size = 2 * keys.size
    larger, theirs = np.full(size, EMPTY, dtype=np.int64), np.zeros(size, dtype=values.dtype)
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if key != EMPTY:
            at = _hash(key, size)
            while larger[at] != EMPTY:
                at = (at + 1) % size
            larger[at], theirs[at] = key, value
    return larger, theirs


def _are_pairs_full(levels: LevelEffects) -> bool:
    """Long before there is no place left: many answers may come in one round."""
    return levels.common.size > 1 and 4 * levels.n_pairs[0] > levels.pair_keys.size


def level_places(levels: LevelEffects) -> dict[tuple[int, int], int]:
    """Where the level of a category and a code is in the list."""
    pairs = zip(levels.keys.tolist(), levels.places.tolist(), strict=True)
    return {(key // _COLUMN, key % _COLUMN): place for key, place in pairs if key != EMPTY}


def pairs_of(keys: Ints) -> list[tuple[int, int, int]]:
    """The two places in the list, and the arm, of every pair in a table."""
    found = [divmod(key, _ARMS) for key in keys.tolist() if key != EMPTY]
    return [(*divmod(both, _PLACES), arm) for both, arm in found]


def _hash(key: int, size: int) -> int:
    return ((key % 1_000_003) * 31 + key // 1_000_003) % size


_hashed = kernel(_hash)
_pairs_full = kernel(_are_pairs_full)


@kernel
def are_full(levels: LevelEffects) -> bool:
    """Whether somebody with a new level in every category would find no room."""
    return levels.n[0] + levels.common.size > levels.category.size or _pairs_full(levels)


@kernel
def find_level(levels: LevelEffects, category: int, code: int) -> int:
    """NO_LEVEL where it was never seen."""
    key, size = category * _COLUMN + code, levels.keys.size
    at = _hashed(key, size)
    while levels.keys[at] != EMPTY:
        if levels.keys[at] == key:
            return levels.places[at]
        at = (at + 1) % size
    return NO_LEVEL


@kernel
def add_level(levels: LevelEffects, category: int, code: int) -> int:
    """The level of this code, a new one if it was never seen."""
    found = find_level(levels, category, code)
    if found != NO_LEVEL:
        return found
    key, size, place = category * _COLUMN + code, levels.keys.size, levels.n[0]
    at = _hashed(key, size)
    while levels.keys[at] != EMPTY:
        at = (at + 1) % size
    levels.keys[at], levels.places[at] = key, place
    levels.n[0] += 1
    levels.category[place] = category
    for a in range(levels.mean.shape[1]):
        levels.variance[place, a] = levels.common[category] + levels.own[category]
    return place


# --- what a person is worth ------------------------------------------------------------------------------------------


@kernel
def level_mean(levels: LevelEffects, own: Ints, arm: int) -> float:
    """What the levels of a person add."""
    total = 0.0
    for c in range(own.size):
        if own[c] != NO_LEVEL:
            total += levels.mean[own[c], arm]
    return total


@kernel
def level_variance(levels: LevelEffects, own: Ints, arm: int) -> float:
    """What is not known of it."""
    total = 0.0
    for c in range(own.size):
        total += levels.variance[own[c], arm] if own[c] != NO_LEVEL else levels.common[c] + levels.own[c]
    return total


@kernel
def level_kin(levels: LevelEffects, own: Ints, arm: int, n: float) -> float:
    """sum over categories of variance^2 times the share of the level among all n who came."""
    total = 0.0
    for c in range(own.size):
        if own[c] != NO_LEVEL:
            variance = levels.variance[own[c], arm]
            total += variance * variance * levels.came[own[c]] / n
    return total


@kernel
def learn_levels(levels: LevelEffects, own: Ints, arm: int, x: Floats, weight: float, target: float) -> None:
    """An answer that counts with this weight; `target` is the weight times the reward."""
    for c in range(own.size):
        if own[c] != NO_LEVEL:
            levels.answers[own[c], arm] += weight
            levels.told[own[c], arm] += target
            for i in range(x.size):
                levels.x[own[c], arm, i] += weight * x[i]
            for other in range(c):
                if own[other] != NO_LEVEL and weight != 0.0:
                    _count_pair(levels, own[other], own[c], arm, weight)


@kernel
def _count_pair(levels: LevelEffects, one: int, two: int, arm: int, weight: float) -> None:
    key, size = (one * _PLACES + two) * _ARMS + arm, levels.pair_keys.size
    at, tried = _hashed(key, size), 0
    while levels.pair_keys[at] != EMPTY and levels.pair_keys[at] != key:
        at = (at + 1) % size
        tried += 1
        if tried >= size:  # a full table forgets who came together: it is never so, it doubles long before
            return
    if levels.pair_keys[at] == EMPTY:
        levels.pair_keys[at] = key
        levels.n_pairs[0] += 1
    levels.pair_answers[at] += weight


# --- stock-taking ----------------------------------------------------------------------------------------------------


@rare
def leave_levels_out(levels: LevelEffects, line: Line) -> None:
    """What of `seen` and `heard` tells of the line, whatever the effects of levels are."""
    n_arms, p = line.mean.shape
    n_categories = levels.common.size
    for place in range(levels.n[0]):
        c = levels.category[place]
        variance = levels.common[c] + levels.own[c]
        for a in range(n_arms):
            count = levels.answers[place, a]
            if count > 0.0:
                x = levels.x[place, a]
                part = variance / (line.noise[a] + n_categories * variance * count)
                for i in range(p):
                    step = part * x[i]
                    line.heard[a, i] -= step * levels.told[place, a]
                    for l in range(p):  # noqa: E741
                        line.seen[a, i, l] -= step * x[l]


@kernel
def _residual(levels: LevelEffects, line: Line, place: int, arm: int) -> float:
    """What the answers of an arm at a level are above the line, in sum."""
    total = levels.reward[place, arm]
    for i in range(line.mean.shape[1]):
        total -= levels.x[place, arm, i] * line.mean[arm, i]
    return total


@kernel
def _told_of_all(levels: LevelEffects, line: Line, place: int, own: float) -> tuple[float, float]:
    """With which precision the answers at a level tell u, and what they say of it, times that."""
    known, says = 0.0, 0.0
    for a in range(line.mean.shape[0]):
        if levels.answers[place, a] > 0.0:
            precision = 1.0 / (line.noise[a] / levels.answers[place, a] + own)
            known += precision
            says += precision * _residual(levels, line, place, a) / levels.answers[place, a]
    return known, says


@rare
def set_levels(levels: LevelEffects, line: Line) -> None:
    """u + v of every level, for the lines as they are; one category after the other."""
    n_categories = levels.common.size
    for a in range(line.mean.shape[0]):
        levels.explained[0, a] = levels.explained[1, a] = 0.0
    for sweep in range(SWEEPS if n_categories > 1 else 1):
        for c in range(n_categories):
            _leave_others_out(levels, c)
            _set_category(levels, line, c, sweep == SWEEPS - 1 or n_categories == 1)


@rare
def _leave_others_out(levels: LevelEffects, category: int) -> None:
    """Rewards of the levels of a category, without what the others are thought to add."""
    n_arms = levels.mean.shape[1]
    for place in range(levels.n[0]):
        if levels.category[place] == category:
            for a in range(n_arms):
                levels.reward[place, a] = levels.told[place, a]
    for at in range(levels.pair_keys.size):
        key = levels.pair_keys[at]
        if key != EMPTY:
            arm, both = key % _ARMS, key // _ARMS
            one, two = both // _PLACES, both % _PLACES
            if levels.category[one] == category:
                levels.reward[one, arm] -= levels.pair_answers[at] * levels.mean[two, arm]
            elif levels.category[two] == category:
                levels.reward[two, arm] -= levels.pair_answers[at] * levels.mean[one, arm]


@rare
def _set_category(levels: LevelEffects, line: Line, category: int, is_last: bool) -> None:
    n_arms = line.mean.shape[0]
    common, own = levels.common[category], levels.own[category]
    for place in range(levels.n[0]):
        if levels.category[place] != category:
            continue
        known, says = _told_of_all(levels, line, place, own)
        spread = common / (1.0 + common * known)
        middle = spread * says
        for a in range(n_arms):
            count = levels.answers[place, a]
            keep = line.noise[a] / (line.noise[a] + own * count)
            mean, residual = keep * middle, 0.0
            if count > 0.0:
                residual = _residual(levels, line, place, a)
                mean += (1.0 - keep) * residual / count
            levels.mean[place, a] = mean
            levels.variance[place, a] = keep * own + keep * keep * spread
            if common + own > 0.0 and is_last:
                others = levels.told[place, a] - levels.reward[place, a]
                levels.explained[0, a] += mean * (2.0 * residual + others) - count * mean * mean
                levels.explained[1, a] += 1.0 - levels.variance[place, a] / (common + own) if count > 0.0 else 0.0


@rare
def start_level_variances(levels: LevelEffects, scale: float) -> None:
    """A first guess, for means of this size (squared)."""
    for c in range(levels.common.size):
        levels.common[c] = levels.own[c] = GUESS * scale / levels.common.size


@rare
def move_level_variances(levels: LevelEffects, line: Line) -> None:
    """A step of Fisher scoring for s and d of every category, as in `line`; one more level is as guessed."""
    n_arms, n_categories = line.mean.shape[0], levels.common.size
    guess = GUESS * line.scale[0] / max(1, n_categories)
    for c in range(n_categories):
        common, own = levels.common[c], levels.own[c]
        score, information = as_guessed(common, guess)
        own_score, own_information = as_guessed(own, guess)
        for place in range(levels.n[0]):
            if levels.category[place] != c:
                continue
            known, says = _told_of_all(levels, line, place, own)
            if not known > 0.0:
                continue
            told = known / (1.0 + common * known)
            pull = says / (1.0 + common * known)
            score += pull * pull - told
            information += told * told
            spread = common / (1.0 + common * known)
            middle = spread * says
            for a in range(n_arms):
                if levels.answers[place, a] > 0.0:
                    precision = 1.0 / (line.noise[a] / levels.answers[place, a] + own)
                    away = (_residual(levels, line, place, a) / levels.answers[place, a] - middle) * precision
                    told = max(precision - precision * precision * spread, 0.0)
                    own_score += away * away - told
                    own_information += told * told
        least, most = FLOOR * line.scale[0], MOST * line.scale[0]
        levels.common[c] = moved(common, score, information, least, most)
        levels.own[c] = moved(own, own_score, own_information, least, most)


@rare
def fade_levels(levels: LevelEffects, keep: float) -> None:
    for at in range(levels.pair_answers.size):
        levels.pair_answers[at] *= keep
    n_arms, p = levels.x.shape[1], levels.x.shape[2]
    for place in range(levels.n[0]):
        levels.came[place] *= keep
        for a in range(n_arms):
            levels.answers[place, a] *= keep
            levels.told[place, a] *= keep
            levels.reward[place, a] *= keep
            for i in range(p):
                levels.x[place, a, i] *= keep


@kernel
def set_own_levels(levels: LevelEffects, columns: Ints, context: int, traits: Floats, own: Ints, adds: bool) -> None:
    """The levels of a person: of the context, where `columns` begins with NO_LEVEL, and of every category."""
    for c in range(columns.size):
        code = float(context) if columns[c] == NO_LEVEL else traits[columns[c]]
        if not code >= 0.0:  # missing
            own[c] = NO_LEVEL
        else:
            own[c] = add_level(levels, c, int(code)) if adds else find_level(levels, c, int(code))
            if adds:
                levels.came[position(own[c])] += 1.0


# --- lines and levels ------------------------------------------------------------------------------------------------


@rare
def set_lines(line: Line, levels: LevelEffects) -> None:
    """Lines and levels, for what arms were thought to share when it was last looked at."""
    _see(line, levels)
    for a in range(line.arms.shape[0]):
        weigh_arm(line, a)
        set_arm(line, a)
    set_levels(levels, line)


@rare
def calibrate_lines(line: Line, levels: LevelEffects, shares: bool, steps: int) -> None:
    """What arms share, their lines, and levels; variances move."""
    for _ in range(steps):
        _see(line, levels)
        for a in range(line.arms.shape[0]):
            weigh_arm(line, a)
        if shares:
            learn_common(line)
        for a in range(line.arms.shape[0]):
            set_arm(line, a)
        set_levels(levels, line)
        if shares:
            move_variances(line)
            move_level_variances(levels, line)
    set_kin(line)


@rare
def _see(line: Line, levels: LevelEffects) -> None:
    see(line)
    if levels.common.size > 0:
        leave_levels_out(levels, line)
