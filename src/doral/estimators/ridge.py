"""Ridge regression per context, one rank-one update per answer, over a fixed set of arms.

Arms are finite and their features fixed, so all that is ever asked of theta_j and V_j are the A numbers <theta_j, f_a>
(`estimate`) and ||f_a|| in the norm of V_j^-1 (`norm`). They are kept up to date instead of theta, and V_j itself is a
sum over arms of counts: V_j = Lambda_j + sum_a weight_ja f_a f_a^T, G_j = sum_a target_ja f_a, where Lambda_j is the
precision of the prior: lambda I, or what `shrinkage` has learned. `refactor` rebuilds everything from those sums, so
rounding errors of millions of rank-one updates never pile up. Without features (k = 0) each (context, arm) is a cell of
its own.

Where features may be wrong (`deviation`), a cell is the linear prediction and a deviation of its own, and rewards of
some cells may be noisier than those of others (`noisiness`). With w answers of mean y in a cell, noise phi and
deviations of variance kappa, all in units of the common noise, y is the line with an error of phi / w + kappa. So the
line learns with the weight w / (phi + kappa w), and what the cell itself adds to it is exact:

    keep = phi / (phi + kappa w)      estimate = keep * line + (1 - keep) * y
                                      norm^2   = keep^2 * ||f_a||^2 + keep * kappa
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from doral._arrays import Array, Floats, Ints
from doral.compiled.kernels import kernel, position, shared
from doral.numerics.kernels import POSTERIOR, normal_quantile, philox, to_uniform

REFACTOR_EVERY = 4096  # rank-one updates of one context between two exact rebuilds
FIRST_DEVIATION = 1.0  # in units of the noise: before any reward, what one cell brings says little of another
MANY_FEATURES = 16  # from here on, a root of V^-1 is kept for draws: to factor it for each takes O(k^3)


BLOCK = 16  # elements that a vectorised loop takes at once; a shorter rest would run one by one


def padded(n: int) -> int:
    """n in whole blocks. Rows over arms that hot loops run over have this length: the rest of them holds zeros."""
    return -(-n // BLOCK) * BLOCK


def in_vectors(n: int) -> int:
    """n in whole vectors: the length of rows over features."""
    return -(-n // VECTOR) * VECTOR


class Ridge(NamedTuple):
    """J contexts, A arms (A+ padded), k features (k+ in whole vectors: the rest holds zeros).

    There may be a multiple of J rows, which share the priors.
    """

    features: Annotated[Floats, Array("A k")]
    features_by_row: Annotated[Floats, Array("k Ap")]  # loops over arms then run over contiguous memory
    offset: Annotated[Floats, Array("rows A")]  # what theta_j is shrunk to, as <mu_j, f_a>; 0 without a prior mean
    precision: Annotated[Floats, Array("rows Pr Pc")]  # Lambda_j of the prior (k, k); without features (A, 1)
    weight: Annotated[Floats, Array("nrows A")]  # sum of weights in V_j
    target: Annotated[Floats, Array("nrows A")]  # sum of targets in G_j
    inverse: Annotated[Floats, Array("nrows k kp")]  # V_j^-1 by column: [l, i] is row i, column l
    estimate: Annotated[Floats, Array("nrows Ap")]  # <theta_j, f_a>
    norm_squared: Annotated[Floats, Array("nrows Ap")]
    norm: Annotated[Floats, Array("nrows Ap")]  # ||f_a|| in V_j^-1
    updates: Annotated[Ints, Array("nrows")]  # since the last refactor
    is_touched: Annotated[Ints, Array("nrows")]  # 1: it has or had data; all others are alike
    direction: Annotated[Floats, Array("kp")]  # scratch: V^-1 f
    shadow: Annotated[Floats, Array("Ap")]  # scratch: F x, for some x
    scratch: Annotated[Floats, Array("3 k k")]  # a Cholesky factor, V, and V^-1 by row
    root: Annotated[Floats, Array("nrows k k", when="roots")]  # S with S S^T = V^-1, for draws from many features
    deviation: Annotated[Floats, Array("rows A", when="deviates")]  # kappa of every cell
    noisiness: Annotated[Floats, Array("rows A", fill=1.0, when="deviates")]  # phi of every cell
    effect: Annotated[Floats, Array("rows A", when="deviates")]  # of an arm beyond its features: a part of `offset`
    effect_variance: Annotated[Floats, Array("rows A", when="deviates")]  # its variance: part of kappa, times the noise
    reach: Annotated[Floats, Array("A", fill=1.0)]  # prior scale of deviations of an arm, relative to others
    line: Annotated[Floats, Array("nrows Ap", when="deviates")]  # <theta_j, f_a> without the deviation
    line_squared: Annotated[Floats, Array("nrows Ap", when="deviates")]  # ||f_a||^2 in V_j^-1
    keep: Annotated[Floats, Array("nrows Ap", when="deviates")]  # weight of the line in the estimate
    own: Annotated[Floats, Array("nrows Ap", when="deviates")]  # what the cell adds to that: (1 - keep) y
    doubt: Annotated[Floats, Array("nrows Ap", when="deviates")]  # the variance of that: keep kappa


def ridge_sizes(
    *, n_rows: int, n_arms: int, n_features: int, copies: int, is_drawn_from: bool, deviates: bool
) -> dict[str, int]:
    """Return the sizes of a ridge; without features every cell stands for itself, and none deviates."""
    return {
        "rows": n_rows,
        "nrows": n_rows * copies,
        "A": n_arms,
        "Ap": padded(n_arms),
        "k": n_features,
        "kp": in_vectors(n_features),
        "Pr": n_features or n_arms,
        "Pc": n_features or 1,
        "roots": is_drawn_from and n_features >= MANY_FEATURES,
        "deviates": deviates and n_features > 0,
    }


def start_ridge(ridge: Ridge, features: Floats, penalty: float) -> None:
    """Set the features and the prior of a ridge without data."""
    n_features = features.shape[1]
    ridge.precision[:] = penalty * (np.eye(n_features) if n_features else 1.0)
    ridge.deviation[:] = FIRST_DEVIATION
    set_features(ridge, features)


def set_features(ridge: Ridge, features: Floats) -> None:
    """Of a ridge with no data."""
    ridge.features[:] = features
    ridge.features_by_row[:, : features.shape[0]] = features.T


@kernel
def update(ridge: Ridge, context: int, arm: int, weight: float, target: float) -> None:
    """V += weight f f^T and G += target f, by Sherman and Morrison, in O(k^2 + kA).

    weight = 1, target = r: an answer. weight = 1, target = 0: a pull whose answer is open. weight = 0: its answer.
    """
    has_line = deviates(ridge)
    if has_line:
        weight, target = _change_of_line(ridge, context, arm, weight, target)
    else:
        ridge.weight[context, arm] += weight
        ridge.target[context, arm] += target
    ridge.is_touched[context] = 1
    if ridge.features.shape[1] == 0:
        _set_cell(ridge, context, arm)
        return
    _aim(ridge, context, arm)
    share = _share(ridge, arm, weight)
    line = ridge.line[context] if has_line else ridge.estimate[context]
    gain = (target - weight * line[arm]) * share
    if weight > 0.0:
        squared = ridge.line_squared[context] if has_line else ridge.norm_squared[context]
        move_by_rows(ridge.features_by_row, ridge.direction, gain, line, weight * share, squared)
        if _narrow(ridge, context, arm, weight, share):
            return
    else:
        shift_by_rows(ridge.features_by_row, ridge.direction, gain, line)
    if has_line:
        _add_deviations(ridge, context)


@kernel
def narrow(ridge: Ridge, row: int, arm: int, weight: float) -> None:
    """V += weight f f^T in a row of which nobody asks more than norms."""
    if ridge.features.shape[1] == 0:
        add_weight(ridge, row, arm, weight)
        return
    has_line = deviates(ridge)
    if has_line:
        weight, _ = _change_of_line(ridge, row, arm, weight, 0.0)
    else:
        ridge.weight[row, arm] += weight
    ridge.is_touched[row] = 1
    if weight > 0.0:
        _aim(ridge, row, arm)
        share = _share(ridge, arm, weight)
        squared = ridge.line_squared[row] if has_line else ridge.norm_squared[row]
        narrow_by_rows(ridge.features_by_row, ridge.direction, weight * share, squared)
        if _narrow(ridge, row, arm, weight, share):
            return
    if has_line:
        _add_doubts(ridge, row)


@kernel
def _aim(ridge: Ridge, row: int, arm: int) -> None:
    """direction = V^-1 f, for the features f of an arm."""
    add_up_rows(ridge.inverse[row], ridge.features[arm], ridge.direction)


@kernel
def _share(ridge: Ridge, arm: int, weight: float) -> float:
    """1 / (1 + weight f^T V^-1 f) after `_aim`: by how much f^T V^-1 f shrinks."""
    return 1.0 if weight == 0.0 else 1.0 / (1.0 + weight * _leverage(ridge, arm))


@kernel
def _leverage(ridge: Ridge, arm: int) -> float:
    """f^T V^-1 f after `_aim`."""
    f, direction, leverage = ridge.features[arm], ridge.direction, 0.0
    for i in range(f.size):
        leverage += direction[i] * f[i]
    return leverage


@kernel
def _narrow(ridge: Ridge, row: int, arm: int, weight: float, share: float) -> bool:
    """What follows for V^-1, and for norms from their squares, after `_share`; whether all was rebuilt instead."""
    if not deviates(ridge):
        norm_squared, norm = ridge.norm_squared[row], ridge.norm[row]
        for a in range(norm.size):
            norm[a] = math.sqrt(norm_squared[a])
    if ridge.root.shape[0] > 0:
        leverage = _leverage(ridge, arm)
        _follow_root(ridge.root[row], ridge.features[arm], ridge.direction, weight, leverage, ridge.scratch[0, 0])
    take_off_products(ridge.inverse[row], ridge.direction, weight * share)
    ridge.updates[row] += 1
    if ridge.updates[row] >= REFACTOR_EVERY:
        refactor(ridge, row)
        return True
    return False


@kernel
def deviates(ridge: Ridge) -> bool:
    """Whether cells may deviate from the line."""
    return ridge.deviation.shape[0] > 0


@kernel
def line_weight(ridge: Ridge, row: int, arm: int) -> float:
    """With which weight the answers of a cell count for the line."""
    weight = ridge.weight[row, arm]
    if deviates(ridge):
        prior = row % ridge.offset.shape[0]
        weight /= ridge.noisiness[prior, arm] + ridge.deviation[prior, arm] * weight
    return weight


@kernel
def line_target(ridge: Ridge, row: int, arm: int) -> float:
    """What the answers of a cell add to G, up to the features."""
    target = ridge.target[row, arm]
    if deviates(ridge):
        prior = row % ridge.offset.shape[0]
        target /= ridge.noisiness[prior, arm] + ridge.deviation[prior, arm] * ridge.weight[row, arm]
    return target


@kernel
def _change_of_line(ridge: Ridge, row: int, arm: int, weight: float, target: float) -> tuple[float, float]:
    """Add to the sums of a cell; by how much its weight and its target for the line have changed."""
    prior = row % ridge.offset.shape[0]
    noisiness, deviation = ridge.noisiness[prior, arm], ridge.deviation[prior, arm]
    weight_before, target_before = ridge.weight[row, arm], ridge.target[row, arm]
    ridge.weight[row, arm] += weight
    ridge.target[row, arm] += target
    before = 1.0 / (noisiness + deviation * weight_before)
    now = before if weight == 0.0 else 1.0 / (noisiness + deviation * ridge.weight[row, arm])
    _set_own(ridge, row, arm, now, noisiness, deviation)
    return now * ridge.weight[row, arm] - before * weight_before, now * ridge.target[row, arm] - before * target_before


@kernel
def _set_own(ridge: Ridge, row: int, arm: int, per_noise: float, noisiness: float, deviation: float) -> None:
    """What a cell adds to the line, where its answers tell it with per_noise = 1 / (phi + kappa w)."""
    ridge.keep[row, arm] = noisiness * per_noise
    ridge.own[row, arm] = deviation * per_noise * ridge.target[row, arm]
    ridge.doubt[row, arm] = noisiness * per_noise * deviation


@kernel
def _add_deviations(ridge: Ridge, row: int) -> None:
    """Estimates and norms: what the line says, and what the cells add to it."""
    line, keep, own, estimate = ridge.line[row], ridge.keep[row], ridge.own[row], ridge.estimate[row]
    for a in range(line.size):
        estimate[a] = keep[a] * line[a] + own[a]
    _add_doubts(ridge, row)


@kernel
def _add_doubts(ridge: Ridge, row: int) -> None:
    """Norms alone, likewise."""
    line_squared, keep, doubt = ridge.line_squared[row], ridge.keep[row], ridge.doubt[row]
    norm_squared, norm = ridge.norm_squared[row], ridge.norm[row]
    for a in range(line_squared.size):
        norm_squared[a] = keep[a] * keep[a] * line_squared[a] + doubt[a]
        norm[a] = math.sqrt(norm_squared[a])


@shared
def _follow_root(root: Floats, f: Floats, direction: Floats, weight: float, leverage: float, shadow: Floats) -> None:
    """(I - beta V^-1 f f^T) S is a root of the new V^-1, for beta = (1 - 1 / sqrt(1 + weight leverage)) / leverage."""
    n_features = f.size
    if leverage <= 0.0:
        return
    beta = (1.0 - 1.0 / math.sqrt(1.0 + weight * leverage)) / leverage
    for l in range(n_features):  # noqa: E741
        shadow[l] = 0.0
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            shadow[l] += f[i] * root[i, l]
    for i in range(n_features):
        step = beta * direction[i]
        for l in range(n_features):  # noqa: E741
            root[i, l] -= step * shadow[l]


@kernel
def add_weight(ridge: Ridge, context: int, arm: int, weight: float) -> None:
    """Change a sum of V (weight may be negative). With features, what follows from it does with the next `refactor`."""
    ridge.weight[context, arm] = max(0.0, ridge.weight[context, arm] + weight)
    ridge.is_touched[context] = 1
    if ridge.features.shape[1] == 0:
        _set_cell(ridge, context, arm)


@kernel
def _set_cell(ridge: Ridge, context: int, arm: int) -> None:
    """Without features, every (context, arm) stands for itself."""
    prior = context % ridge.offset.shape[0]
    weight = ridge.weight[context, arm] + ridge.precision[prior, arm, 0]
    excess = ridge.target[context, arm] - ridge.weight[context, arm] * ridge.offset[prior, arm]
    ridge.estimate[context, arm] = ridge.offset[prior, arm] + excess / weight
    ridge.norm_squared[context, arm] = 1.0 / weight
    ridge.norm[context, arm] = math.sqrt(1.0 / weight)


@shared
def invert(matrix: Floats, factor: Floats, inverse: Floats) -> None:
    """The inverse of a symmetric, positive definite matrix, by Cholesky; `factor` is scratch, `inverse` the result.

    M X = I is solved for all columns of X at once, forwards and backwards: loops then run over contiguous memory.
    """
    n = matrix.shape[0]
    for i in range(n):
        for l in range(i + 1):  # noqa: E741
            total = matrix[i, l]
            for p in range(l):
                total -= factor[i, p] * factor[l, p]
            factor[i, l] = math.sqrt(total) if i == l else total / factor[l, l]
    for i in range(n):
        row = inverse[i]
        for column in range(n):
            row[column] = 1.0 if column == i else 0.0
        for p in range(i):
            _take_off(row, factor[i, p], inverse[p], p + 1)  # the rest of that row is 0
        _divide(row, factor[i, i])
    for i in range(n - 1, -1, -1):
        row = inverse[i]
        for p in range(i + 1, n):
            _take_off(row, factor[p, i], inverse[p], n)
        _divide(row, factor[i, i])


@kernel
def _take_off(row: Floats, times: float, other: Floats, n: int) -> None:
    for column in range(n):
        row[column] -= times * other[column]


@kernel
def _divide(row: Floats, by: float) -> None:
    for column in range(row.size):
        row[column] /= by


@shared
def set_data_precision(ridge: Ridge, context: int, matrix: Floats) -> None:
    """matrix = sum_a weight_ja f_a f_a^T."""
    n_arms, n_features = ridge.features.shape
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            matrix[i, l] = 0.0
    for a in range(n_arms):
        weight = line_weight(ridge, context, a)
        if weight != 0.0:
            for i in range(n_features):
                for l in range(i + 1):  # noqa: E741
                    matrix[i, l] += weight * ridge.features[a, i] * ridge.features[a, l]
    for i in range(n_features):
        for l in range(i):  # noqa: E741
            matrix[l, i] = matrix[i, l]


@shared
def refactor(ridge: Ridge, context: int) -> None:
    """Rebuild V^-1, the estimates and the norms of one context from its sums: exact, no drift."""
    n_arms, n_features = ridge.features.shape
    if n_features == 0:
        for a in range(n_arms):
            _set_cell(ridge, context, a)
        return
    prior = context % ridge.offset.shape[0]
    factor, v, inverse = ridge.scratch[0], ridge.scratch[1], ridge.scratch[2]
    set_data_precision(ridge, context, v)
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            v[i, l] += ridge.precision[prior, i, l]
    invert(v, factor, inverse)
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            ridge.inverse[context, l, i] = inverse[i, l]
    excess = ridge.shadow
    for a in range(n_arms):
        excess[a] = line_target(ridge, context, a) - line_weight(ridge, context, a) * ridge.offset[prior, a]
    for i in range(n_features):  # direction = theta - mu = V^-1 (G - V_data mu)
        total = 0.0
        for a in range(n_arms):
            if excess[a] != 0.0:
                for l in range(n_features):  # noqa: E741
                    total += inverse[i, l] * ridge.features[a, l] * excess[a]
        ridge.direction[i] = total
    for a in range(n_arms):
        mean = 0.0
        square = 0.0
        for i in range(n_features):
            mean += ridge.features[a, i] * ridge.direction[i]
            for l in range(n_features):  # noqa: E741
                square += ridge.features[a, i] * inverse[i, l] * ridge.features[a, l]
        if deviates(ridge):
            ridge.line[context, a], ridge.line_squared[context, a] = ridge.offset[prior, a] + mean, max(square, 0.0)
            noisiness, deviation = ridge.noisiness[prior, a], ridge.deviation[prior, a]
            per_noise = 1.0 / (noisiness + deviation * ridge.weight[context, a])
            _set_own(ridge, context, a, per_noise, noisiness, deviation)
        else:
            ridge.estimate[context, a] = ridge.offset[prior, a] + mean
            ridge.norm_squared[context, a] = square
            ridge.norm[context, a] = math.sqrt(max(square, 0.0))
    if deviates(ridge):
        _add_deviations(ridge, context)
    if ridge.root.shape[0] > 0:
        set_factor(ridge.inverse[context], ridge.root[context])
    ridge.updates[context] = 0


@shared
def refactor_rows(ridge: Ridge, start: int, stop: int) -> None:
    """Rebuild rows from their sums; those without data are alike, so that one is rebuilt and the others are copies."""
    like = -1
    for row in range(start, stop):
        if ridge.is_touched[row] != 0 or like < 0:
            refactor(ridge, row)
            if ridge.is_touched[row] == 0:
                like = row
        else:
            _copy_row(ridge, like, row)


@kernel
def _copy_row(ridge: Ridge, source: int, to: int) -> None:
    n_features, room = ridge.features_by_row.shape
    for a in range(room):
        ridge.estimate[to, a] = ridge.estimate[source, a]
        ridge.norm_squared[to, a], ridge.norm[to, a] = ridge.norm_squared[source, a], ridge.norm[source, a]
        if deviates(ridge):
            ridge.line[to, a], ridge.line_squared[to, a] = ridge.line[source, a], ridge.line_squared[source, a]
            ridge.keep[to, a], ridge.own[to, a] = ridge.keep[source, a], ridge.own[source, a]
            ridge.doubt[to, a] = ridge.doubt[source, a]
    for i in range(n_features):
        for l in range(n_features):  # noqa: E741
            ridge.inverse[to, i, l] = ridge.inverse[source, i, l]
            if ridge.root.shape[0] > 0:
                ridge.root[to, i, l] = ridge.root[source, i, l]
    ridge.updates[to] = 0


@shared
def set_factor(columns: Floats, factor: Floats) -> None:
    """The Cholesky factor of a positive definite matrix, given by column, in the lower half of `factor`."""
    for i in range(columns.shape[0]):
        for l in range(i + 1):  # noqa: E741
            total = columns[l, i]
            for p in range(l):
                total -= factor[i, p] * factor[l, p]
            factor[i, l] = math.sqrt(max(total, 1e-300)) if i == l else total / factor[l, l]
        for l in range(i + 1, columns.shape[0]):  # noqa: E741
            factor[i, l] = 0.0


@shared
def draw(ridge: Ridge, context: int, seed: np.uint64, run: np.uint64, round_: int, number: int) -> None:
    """shadow[a] = <x, f_a> for one x ~ N(0, V^-1): the noise of Thompson sampling, in units of sigma.

    `number` counts the draws of a round from 0.
    """
    n_arms, n_features = ridge.features.shape
    shadow = ridge.shadow
    lane = number * (n_features + (n_arms if n_features == 0 or deviates(ridge) else 0))
    for a in range(n_arms):
        shadow[a] = 0.0
        if n_features == 0:
            shadow[a] = ridge.norm[context, a] * _normal(seed, run, round_, lane + a)
    if ridge.root.shape[0] > 0:
        _draw_from_root(ridge, ridge.root[context], seed, run, round_, lane)
    else:
        factor = ridge.scratch[0]
        set_factor(ridge.inverse[context], factor)
        for l in range(n_features):  # noqa: E741
            z = _normal(seed, run, round_, lane + l)
            for i in range(l, n_features):
                step = factor[i, l] * z
                for a in range(n_arms):
                    shadow[a] += ridge.features_by_row[i, a] * step
    if deviates(ridge):
        _draw_deviations(ridge, context, seed, run, round_, lane + n_features)


@shared
def _draw_deviations(ridge: Ridge, row: int, seed: np.uint64, run: np.uint64, round_: int, lane: int) -> None:
    """The line counts as far as it is kept, and what is not known of the deviation is drawn by itself."""
    for a in range(ridge.features.shape[0]):
        ridge.shadow[a] *= ridge.keep[row, a]
        ridge.shadow[a] += math.sqrt(ridge.doubt[row, a]) * _normal(seed, run, round_, lane + a)


@shared
def _draw_from_root(ridge: Ridge, root: Floats, seed: np.uint64, run: np.uint64, round_: int, lane: int) -> None:
    """x = S z, then F x: quadratic in features, linear in arms."""
    n_arms, n_features = ridge.features.shape
    z = ridge.scratch[0, 0]
    for l in range(n_features):  # noqa: E741
        z[l] = _normal(seed, run, round_, lane + l)
    for i in range(n_features):
        x = 0.0
        for l in range(n_features):  # noqa: E741
            x += root[i, l] * z[l]
        for a in range(n_arms):
            ridge.shadow[a] += ridge.features_by_row[i, a] * x


@kernel
def _normal(seed: np.uint64, run: np.uint64, round_: int, lane: int) -> float:
    word, _, _, _ = philox(seed, run, np.uint64(round_), np.uint64(POSTERIOR), np.uint64(lane))
    return normal_quantile(max(to_uniform(word), 2.0**-54))


# --- sums of rewards -------------------------------------------------------------------------------------------------
#
# By context and arm, for rebuilding what was learned under any prior, and after a correction. A reward of 1e9 that was
# a slip, added and taken off again, must leave nothing behind; in one float it takes all small ones with it. So every
# exact sum is kept in two floats: the second is what the first has lost to rounding (Knuth's two-sum). Exact sums
# decide nothing: the plain ones, with which policies work, are set to them after a correction.

# Rows of a tally (3, J, A): raw sums of what has been learned. The ridge can be rebuilt from them under any prior.
COUNT, REWARD, SQUARE = 0, 1, 2
# Of an exact cell: the sum of rewards and what it has lost, the sum of their squares and what it has lost.
REWARDS, SQUARES = 0, 2


@kernel
def add_to_tally(tally: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """Add a reward that counts with this weight."""
    tally[COUNT, context, arm] += weight
    tally[REWARD, context, arm] += weight * reward
    tally[SQUARE, context, arm] += weight * reward * reward


@kernel
def _add_exactly(cell: Floats, which: int, amount: float) -> None:
    before = cell[which]
    total = before + amount
    taken = total - before
    cell[which] = total
    cell[which + 1] += (before - (total - taken)) + (amount - taken)


@kernel
def add_exactly(sums: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """A reward that counts with this weight; below 0, one that counted with it does no more."""
    cell = sums[context, arm]
    _add_exactly(cell, REWARDS, weight * reward)
    _add_exactly(cell, SQUARES, weight * reward * reward)


@kernel
def add_reward_exactly(sums: Floats, context: int, arm: int, reward: float, weight: float) -> None:
    """The same for those who ask for no squares."""
    _add_exactly(sums[context, arm], REWARDS, weight * reward)


@kernel
def exact_sum(sums: Floats, context: int, arm: int, which: int) -> float:
    return sums[context, arm, which] + sums[context, arm, which + 1]


# --- sums over the rows of a matrix ----------------------------------------------------------------------------------
#
# Columns are worked on eight at a time, whose sums stay in registers: written out, so that the compiler makes vectors
# of them. Each sum is added up in the order of the rows, with any number of columns.

Eight: TypeAlias = tuple[float, float, float, float, float, float, float, float]

VECTOR = 8  # columns that are worked on at once: rows in whole vectors have no rest that runs one by one


@kernel
def add_up_rows(rows: Floats, times: Floats, total: Floats) -> None:
    """Set total[a] = sum_i rows[i, a] * times[i], added up in the order of the rows."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _set_eight(total, first, _eight_sums(rows, times, first))
    for a in range(n // VECTOR * VECTOR, n):
        total[a] = _sum_column(rows, times, a)


@kernel
def shift_by_rows(rows: Floats, times: Floats, gain: float, line: Floats) -> None:
    """Add total[a] * gain to line[a]."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _shift_eight(line, first, _eight_sums(rows, times, first), gain)
    for a in range(n // VECTOR * VECTOR, n):
        line[a] += _sum_column(rows, times, a) * gain


@kernel
def narrow_by_rows(rows: Floats, times: Floats, scale: float, squared: Floats) -> None:
    """Subtract total[a]^2 * scale from squared[a], but not below 0."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        _narrow_eight(squared, first, _eight_sums(rows, times, first), scale)
    for a in range(n // VECTOR * VECTOR, n):
        squared[a] = _narrowed_square(squared[a], _sum_column(rows, times, a), scale)


@kernel
def move_by_rows(rows: Floats, times: Floats, gain: float, line: Floats, scale: float, squared: Floats) -> None:
    """Do both, with sums that are added up once."""
    n = rows.shape[1]
    for first in range(0, n - VECTOR + 1, VECTOR):
        sums = _eight_sums(rows, times, first)
        _shift_eight(line, first, sums, gain)
        _narrow_eight(squared, first, sums, scale)
    for a in range(n // VECTOR * VECTOR, n):
        total = _sum_column(rows, times, a)
        line[a] += total * gain
        squared[a] = _narrowed_square(squared[a], total, scale)


@kernel
def take_off_products(rows: Floats, times: Floats, scale: float) -> None:
    """Subtract times[a] * scale * times[i] from rows[i, a]."""
    for i in range(rows.shape[0]):
        for a in range(rows.shape[1]):
            rows[i, a] -= times[a] * scale * times[i]


@kernel
def _sum_column(rows: Floats, times: Floats, a: int) -> float:
    total = 0.0
    for i in range(rows.shape[0]):
        total += rows[i, position(a)] * times[i]
    return total


@kernel
def _narrowed_square(squared: float, total: float, scale: float) -> float:
    return max(squared - total * total * scale, 0.0)


@kernel
def _eight_sums(rows: Floats, times: Floats, first: int) -> Eight:
    at = position(first)
    a = b = c = d = e = f = g = h = 0.0
    for i in range(rows.shape[0]):
        by = times[i]
        a += rows[i, at] * by
        b += rows[i, at + 1] * by
        c += rows[i, at + 2] * by
        d += rows[i, at + 3] * by
        e += rows[i, at + 4] * by
        f += rows[i, at + 5] * by
        g += rows[i, at + 6] * by
        h += rows[i, at + 7] * by
    return a, b, c, d, e, f, g, h


@kernel
def _set_eight(numbers: Floats, first: int, sums: Eight) -> None:
    at = position(first)
    numbers[at] = sums[0]
    numbers[at + 1] = sums[1]
    numbers[at + 2] = sums[2]
    numbers[at + 3] = sums[3]
    numbers[at + 4] = sums[4]
    numbers[at + 5] = sums[5]
    numbers[at + 6] = sums[6]
    numbers[at + 7] = sums[7]


@kernel
def _shift_eight(line: Floats, first: int, sums: Eight, gain: float) -> None:
    at = position(first)
    line[at] += sums[0] * gain
    line[at + 1] += sums[1] * gain
    line[at + 2] += sums[2] * gain
    line[at + 3] += sums[3] * gain
    line[at + 4] += sums[4] * gain
    line[at + 5] += sums[5] * gain
    line[at + 6] += sums[6] * gain
    line[at + 7] += sums[7] * gain


@kernel
def _narrow_eight(squared: Floats, first: int, sums: Eight, scale: float) -> None:
    at = position(first)
    squared[at] = _narrowed_square(squared[at], sums[0], scale)
    squared[at + 1] = _narrowed_square(squared[at + 1], sums[1], scale)
    squared[at + 2] = _narrowed_square(squared[at + 2], sums[2], scale)
    squared[at + 3] = _narrowed_square(squared[at + 3], sums[3], scale)
    squared[at + 4] = _narrowed_square(squared[at + 4], sums[4], scale)
    squared[at + 5] = _narrowed_square(squared[at + 5], sums[5], scale)
    squared[at + 6] = _narrowed_square(squared[at + 6], sums[6], scale)
    squared[at + 7] = _narrowed_square(squared[at + 7], sums[7], scale)
