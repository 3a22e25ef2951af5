"""What arms are worth to a person: lines with a part that all arms share, one of their features, and one of their own.

    reward = <w_a, x> + noise of variance noise_a,   w_a = M (1, f_a) + delta_a,   delta_a ~ N(0, D),   M ~ N(0, S)

x are the columns of a person (`design`), f_a the features of an arm. The first column of M is what all arms have in
common, the others are what features of arms make of features of people, and delta_a is the arm's own. D and S are
diagonal, one variance for each group of columns, and learned: what arms share is known soon, what is special about one
of them where its answers say so. For given variances this is the exact posterior. With G_a = sum of x x^T / noise_a and
g_a = sum of x y / noise_a over the answers of an arm,

    T_a = (I + G_a D)^-1                     what G_a leaves of the prior
    M | all answers:   precision  S^-1 + sum_a (1, f_a)(1, f_a)^T (x) T_a G_a,    from  sum_a (1, f_a) (x) T_a g_a
    w_a | all answers: mean  D T_a g_a + T_a^T m_a,    covariance  D T_a + T_a^T Cov(m_a) T_a,      m_a = M (1, f_a)

Answers are added up as they come; lines follow when they are looked at (`set_lines`), all at once, so that people are
compared by the same lines.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from doral._arrays import Array, Floats, Ints
from doral.compiled import kernel, position, rare, shared
from doral.estimators.ridge import COUNT, REWARD, SQUARE, invert
from doral.estimators.scoring import above_zero, as_guessed, moved
from doral.estimators.shrinkage import DOUBT, MEAN_SQUARE, NOISE, Prior

GUESS = 0.1  # of the mean square of rewards: what all columns but the constant together are thought to bring at first
FLOOR, MOST = 1e-9, 4.0  # of the mean square of rewards: no variance is smaller, or larger
NOISE_DEGREES = 20.0  # the noise of all arms counts like so many answers in that of one
NOISE_FLOOR = 1e-12  # of the mean square of rewards
FEW = 4.0  # successes, see `cells`
ALIKE = 1e-9  # relative
PAIRS = 8  # of columns, that are added at a time


class Line(NamedTuple):
    """Of A arms, p columns and q features of arms, the first of which is 1."""

    arms: Annotated[Floats, Array("A q")]
    group: Annotated[Ints, Array("p")]  # of the columns
    gram: Annotated[Floats, Array("A p p")]  # sum of weight x x^T
    moment: Annotated[Floats, Array("A p")]  # sum of weight x y
    open: Annotated[Floats, Array("A p p")]  # sum of what open decisions are expected to add to `gram`
    mean: Annotated[Floats, Array("A p")]  # of w_a
    cov: Annotated[Floats, Array("A p p")]
    narrowed: Annotated[Floats, Array("A p p")]  # the same, as if open decisions were answered as expected
    own: Annotated[Floats, Array("p")]  # D
    common: Annotated[Floats, Array("p q")]  # S
    noise: Annotated[Floats, Array("A", fill=1.0)]
    hyper_mean: Annotated[Floats, Array("q*p")]  # of M, feature by feature
    hyper_cov: Annotated[Floats, Array("q*p q*p")]
    crowd: Annotated[Floats, Array("p p")]  # sum of x x^T over all who came
    kin: Annotated[
        Floats, Array("1", fill=1.0)
    ]  # for which share of all who come counts what is learned from one of them
    kept: Annotated[Floats, Array("A p p")]  # T_a
    square: Annotated[Floats, Array("4 p p")]  # scratch
    wide: Annotated[Floats, Array("2 q*p q*p")]  # scratch
    row: Annotated[Floats, Array("q*p+1")]  # scratch
    seen: Annotated[Floats, Array("A p p")]  # what of `gram` tells of the line, where categories take their part
    heard: Annotated[Floats, Array("A p")]  # likewise of `moment`
    mean_by_column: Annotated[Floats, Array("p Ap")]  # and as all arms are valued at once, see `lay_out`
    cov_by_pair: Annotated[Floats, Array("2 pairs Ap")]  # cov, and narrowed
    pairs: Annotated[Floats, Array("pairs")]  # scratch: p (p + 1) / 2, and zeros up to a multiple of PAIRS
    scale: Annotated[Floats, Array("1")]  # what an unknown mean may be, squared; 0: not known yet


def n_pairs(p: int) -> int:
    """Of p columns, each with itself, too; in whole PAIRS."""
    return -(-p * (p + 1) // 2 // PAIRS) * PAIRS


def start_line(line: Line, arms: Floats, group: Ints, variance: float) -> None:
    """Set the features of the arms, the groups of columns and the prior of lines without data."""
    line.arms[:], line.group[:], line.own[:] = arms, group, variance
    line.cov[:] = line.narrowed[:] = np.diag(line.own)


# --- what a person is worth ------------------------------------------------------------------------------------------


@kernel
def value_by_lines(line: Line, x: Floats, estimate: Floats, variance: Floats, narrowed: Floats) -> None:
    """<w_a, x>, x^T cov_a x and the same as if open decisions were answered, of all arms at once.

    Loops run over arms in contiguous memory: sums over columns would have to be taken one by one. Eight pairs of
    columns are added at a time, so that sums are not fetched and put back for each.
    """
    room, pairs, t = estimate.size, line.pairs, 0
    for a in range(room):
        estimate[a] = variance[a] = narrowed[a] = 0.0
    for i in range(x.size):
        step, means = x[i], line.mean_by_column[i]
        for a in range(room):
            estimate[a] += means[a] * step
        for l in range(i + 1):  # noqa: E741
            pairs[position(t)] = step * x[l]
            t += 1
    _add_pairs(line.cov_by_pair[0], pairs, variance)
    _add_pairs(line.cov_by_pair[1], pairs, narrowed)


@kernel
def _add_pairs(by_pair: Floats, pairs: Floats, total: Floats) -> None:
    """total[a] = sum over pairs, in their order."""
    for first in range(0, pairs.size, PAIRS):
        t = position(first)
        x0, x1, x2, x3, x4, x5, x6, x7 = (
            pairs[t],
            pairs[t + 1],
            pairs[t + 2],
            pairs[t + 3],
            pairs[t + 4],
            pairs[t + 5],
            pairs[t + 6],
            pairs[t + 7],
        )
        c0, c1, c2, c3 = by_pair[t], by_pair[t + 1], by_pair[t + 2], by_pair[t + 3]
        c4, c5, c6, c7 = by_pair[t + 4], by_pair[t + 5], by_pair[t + 6], by_pair[t + 7]
        for a in range(total.size):
            sum_ = total[a] + c0[a] * x0 + c1[a] * x1 + c2[a] * x2 + c3[a] * x3
            total[a] = sum_ + c4[a] * x4 + c5[a] * x5 + c6[a] * x6 + c7[a] * x7


@shared
def lay_out(line: Line) -> None:
    """Lines as `value_by_lines` reads them: what pairs of columns add, counted once."""
    n_arms, p = line.mean.shape
    for a in range(n_arms):
        t = 0
        for i in range(p):
            line.mean_by_column[i, a] = line.mean[a, i]
            for l in range(i + 1):  # noqa: E741
                times = 1.0 if i == l else 2.0
                line.cov_by_pair[0, t, a] = times * line.cov[a, i, l]
                line.cov_by_pair[1, t, a] = times * line.narrowed[a, i, l]
                t += 1


# --- an answer -------------------------------------------------------------------------------------------------------


@kernel
def learn_line(line: Line, arm: int, x: Floats, weight: float, target: float) -> None:
    """An answer that counts with this weight; `target` is the weight times the reward."""
    _add_square(line.gram[arm], x, weight)
    for i in range(x.size):
        line.moment[arm, i] += target * x[i]


@kernel
def expect_line(line: Line, arm: int, x: Floats, weight: float) -> None:
    """An open decision, which is answered with this chance; below 0: it is open no more."""
    _add_square(line.open[arm], x, weight)


@kernel
def _add_square(matrix: Floats, x: Floats, weight: float) -> None:
    for i in range(x.size):
        step = weight * x[i]
        row = matrix[i]
        for l in range(x.size):  # noqa: E741
            row[l] += step * x[l]


# --- stock-taking ----------------------------------------------------------------------------------------------------


@rare
def start_variances(line: Line) -> None:
    """A first guess of every variance, for means of the scale that is set."""
    p, q = line.common.shape
    scale = line.scale[0]
    each = GUESS * scale / max(1, p - 1)
    for i in range(p):
        line.own[i] = GUESS * scale if i == 0 else each
        for c in range(q):
            line.common[i, c] = line.own[i] / max(1, q - 1)
        line.common[i, 0] = scale if i == 0 else each


@rare
def see(line: Line) -> None:
    """All that was seen and heard tells of the line, until `levels` take their part."""
    n_arms, p = line.mean.shape
    for a in range(n_arms):
        for i in range(p):
            line.heard[a, i] = line.moment[a, i]
            for l in range(p):  # noqa: E741
                line.seen[a, i, l] = line.gram[a, i, l]


@shared
def weigh_arm(line: Line, arm: int) -> None:
    """T_a = s^-1 (I + s G s)^-1 s, for s the root of D."""
    p = line.own.size
    matrix, factor, inverse = line.square[0], line.square[1], line.square[2]
    for i in range(p):
        for l in range(p):  # noqa: E741
            matrix[i, l] = math.sqrt(line.own[i] * line.own[l]) * line.seen[arm, i, l] / line.noise[arm]
        matrix[i, i] += 1.0
    invert(matrix, factor, inverse)
    for i in range(p):
        for l in range(p):  # noqa: E741
            line.kept[arm, i, l] = inverse[i, l] * math.sqrt(line.own[l] / line.own[i])


@rare
def learn_common(line: Line) -> None:
    """The posterior of M."""
    p, q = line.common.shape
    precision, factor, says = line.wide[0], line.wide[1], line.row
    for i in range(q * p):
        says[i] = 0.0
        for l in range(q * p):  # noqa: E741
            precision[i, l] = 0.0
        precision[i, i] = 1.0 / line.common[i % p, i // p]
    for a in range(line.arms.shape[0]):
        told = line.square[0]
        _multiply(line.kept[a], line.seen[a], told)
        for c in range(q):
            for i in range(p):
                total = 0.0
                for l in range(p):  # noqa: E741
                    total += line.kept[a, i, l] * line.heard[a, l]
                says[c * p + i] += line.arms[a, c] * total / line.noise[a]
            for d in range(q):
                times = line.arms[a, c] * line.arms[a, d] / line.noise[a]
                for i in range(p):
                    for l in range(p):  # noqa: E741
                        precision[c * p + i, d * p + l] += times * 0.5 * (told[i, l] + told[l, i])
    invert(precision, factor, line.hyper_cov)
    for i in range(q * p):
        total = 0.0
        for l in range(q * p):  # noqa: E741
            total += line.hyper_cov[i, l] * says[l]
        line.hyper_mean[i] = total


@shared
def _multiply(left: Floats, right: Floats, product: Floats) -> None:
    n = left.shape[0]
    for i in range(n):
        for l in range(n):  # noqa: E741
            product[i, l] = 0.0
        for k in range(n):
            step = left[i, k]
            for l in range(n):  # noqa: E741
                product[i, l] += step * right[k, l]


@shared
def _multiply_transposed(left: Floats, right: Floats, product: Floats) -> None:
    """left^T right."""
    n = left.shape[0]
    for i in range(n):
        for l in range(n):  # noqa: E741
            product[i, l] = 0.0
    for k in range(n):
        for i in range(n):
            step = left[k, i]
            for l in range(n):  # noqa: E741
                product[i, l] += step * right[k, l]


@rare
def _set_shared(line: Line, arm: int, mean: Floats, cov: Floats) -> None:
    """m_a = M (1, f_a), and what is not known of it."""
    p, q = line.common.shape
    for i in range(p):
        mean[i] = 0.0
        for l in range(p):  # noqa: E741
            cov[i, l] = 0.0
    for c in range(q):
        for i in range(p):
            mean[i] += line.arms[arm, c] * line.hyper_mean[c * p + i]
        for d in range(q):
            times = line.arms[arm, c] * line.arms[arm, d]
            for i in range(p):
                for l in range(p):  # noqa: E741
                    cov[i, l] += times * line.hyper_cov[c * p + i, d * p + l]


@shared
def set_arm(line: Line, arm: int) -> None:
    """The posterior of w_a; then seen[a] is left as it was, and kept[a] keeps T_a."""
    p = line.own.size
    kept, shared, half, whole, prior = line.kept[arm], line.square[0], line.square[1], line.square[2], line.row
    _set_shared(line, arm, prior, shared)
    _multiply(shared, kept, half)
    _multiply_transposed(kept, half, whole)
    for i in range(p):
        total = 0.0
        for l in range(p):  # noqa: E741
            total += line.own[i] * kept[i, l] * line.heard[arm, l] / line.noise[arm] + kept[l, i] * prior[l]
        line.mean[arm, i] = total
        for l in range(p):  # noqa: E741
            line.cov[arm, i, l] = 0.5 * (
                line.own[i] * kept[i, l] + line.own[l] * kept[l, i] + whole[i, l] + whole[l, i]
            )


@rare
def move_variances(line: Line) -> None:
    """A step of Fisher scoring for D and S (`scoring`); one more coefficient is of the size that is usual."""
    p, q = line.common.shape
    guess = GUESS * line.scale[0]
    each = guess / max(1, p - 1)
    score, information = line.square[3, 0], line.square[3, 1] if p > 1 else line.square[2, 0]
    _score_own(line, score, information)
    usual = _usual(line, _OWN, each, score, information)
    for i in range(p):
        if _is_first(line, i):
            line.own[i] = _moved(line, i, line.own[i], guess if i == 0 else usual, score, information)
            _copy_own(line, i)
    for kind in range(2 if q > 1 else 1):  # what all arms share, what their features make of it
        _score_common(line, kind, score, information)
        part = 1.0 if kind == 0 else 1.0 / (q - 1.0)
        usual = _usual(line, kind, each * part, score, information)
        for i in range(p):
            if _is_first(line, i) and (i > 0 or kind > 0):  # of the constant, it is as large as rewards are
                before = line.common[i, kind]
                after = _moved(line, i, before, guess * part if i == 0 else usual, score, information)
                _set_common(line, i, kind, after)


_OWN = -1  # in the place of a kind of common variances


@rare
def _usual(line: Line, kind: int, guess: float, score: Floats, information: Floats) -> float:
    """Return the usual variance of all columns but the constant, with one more that is as guessed."""
    total, known = 1.0 / guess, 1.0 / (guess * guess)
    for i in range(1, score.size):
        variance = line.own[i] if kind == _OWN else line.common[i, kind]
        total += score[i] + information[i] * variance
        known += information[i]
    return max(above_zero(total / known, known), FLOOR * line.scale[0])


@kernel
def _is_first(line: Line, column: int) -> bool:
    """Whether this is the first column of its group."""
    return column == 0 or line.group[column] != line.group[column - 1]


@rare
def _moved(line: Line, first: int, variance: float, guess: float, score: Floats, information: Floats) -> float:
    """The variance of the group that begins here."""
    total, known = as_guessed(variance, guess)
    for i in range(first, score.size):
        if line.group[i] == line.group[first]:
            total += score[i]
            known += information[i]
    return moved(variance, total, known, FLOOR * line.scale[0], MOST * line.scale[0])


@kernel
def _copy_own(line: Line, first: int) -> None:
    for i in range(first, line.own.size):
        if line.group[i] == line.group[first]:
            line.own[i] = line.own[first]


@kernel
def _set_common(line: Line, first: int, kind: int, variance: float) -> None:
    p, q = line.common.shape
    for i in range(first, p):
        if line.group[i] == line.group[first]:
            for c in range(kind, q if kind > 0 else 1):
                line.common[i, c] = variance


@rare
def _score_own(line: Line, score: Floats, information: Floats) -> None:
    """Of D: u = T g - T G m_a, and i is the diagonal of T G - T G Cov(m_a) T G."""
    p = line.own.size
    told, shared, half, prior = line.square[0], line.square[1], line.square[2], line.row
    for i in range(p):
        score[i] = information[i] = 0.0
    for a in range(line.arms.shape[0]):
        _set_shared(line, a, prior, shared)
        _multiply(line.kept[a], line.seen[a], told)
        for i in range(p):
            for l in range(p):  # noqa: E741
                told[i, l] /= line.noise[a]
        _multiply(told, shared, half)
        for i in range(p):
            pull, known = 0.0, told[i, i]
            for l in range(p):  # noqa: E741
                pull += line.kept[a, i, l] * line.heard[a, l] / line.noise[a] - told[i, l] * prior[l]
                known -= half[i, l] * told[l, i]
            known = max(known, 0.0)
            score[i] += pull * pull - known
            information[i] += known * known


@rare
def _score_common(line: Line, kind: int, score: Floats, information: Floats) -> None:
    """Of S: u = S^-1 M, and i is the diagonal of S^-1 - S^-1 Cov(M) S^-1."""
    p, q = line.common.shape
    for i in range(p):
        score[i] = information[i] = 0.0
        for c in range(kind, q if kind > 0 else 1):
            place, variance = c * p + i, line.common[i, c]
            pull = line.hyper_mean[place] / variance
            known = max((1.0 - line.hyper_cov[place, place] / variance) / variance, 0.0)
            score[i] += pull * pull - known
            information[i] += known * known


@rare
def set_kin(line: Line) -> None:
    """tr(cov C cov C) / tr(cov C)^2 for C the mean of x x^T: 1 where all are alike, 1 / J for J classes of one size."""
    p, n = line.own.size, line.crowd[0, 0]
    if not n > 0.0:
        return
    total = 0.0
    product = line.square[0]
    for a in range(line.arms.shape[0]):
        _multiply(line.cov[a], line.crowd, product)
        once, twice = 0.0, 0.0
        for i in range(p):
            once += product[i, i]
            for l in range(p):  # noqa: E741
                twice += product[i, l] * product[l, i]
        total += twice / (once * once) if once > 0.0 else 1.0
    line.kin[0] = min(max(total / line.arms.shape[0], 0.0), 1.0)


@shared
def narrow_lines(line: Line) -> None:
    """cov, as if open decisions were answered: L (I + L^T open L / noise)^-1 L^T, for cov = L L^T."""
    p = line.own.size
    root, half, inner, inverse = line.square[0], line.square[1], line.square[2], line.square[3]
    for a in range(line.arms.shape[0]):
        cov = line.cov[a]
        if not line.open[a, 0, 0] > 0.0:
            for i in range(p):
                for l in range(p):  # noqa: E741
                    line.narrowed[a, i, l] = cov[i, l]
            continue
        for i in range(p):
            for l in range(p):  # noqa: E741
                root[i, l] = 0.0
        for i in range(p):
            for l in range(i + 1):  # noqa: E741
                total = cov[i, l]
                for k in range(l):
                    total -= root[i, k] * root[l, k]
                if i == l:
                    root[i, l] = math.sqrt(max(total, 0.0))
                else:
                    root[i, l] = total / root[l, l] if root[l, l] > 0.0 else 0.0
        _multiply(line.open[a], root, half)
        _multiply_transposed(root, half, inner)
        for i in range(p):
            for l in range(p):  # noqa: E741
                inner[i, l] /= line.noise[a]
            inner[i, i] += 1.0
        invert(inner, half, inverse)
        _multiply(root, inverse, half)
        for i in range(p):
            for l in range(p):  # noqa: E741
                inner[i, l] = root[l, i]
        _multiply(half, inner, line.narrowed[a])


# --- noise -----------------------------------------------------------------------------------------------------------


@shared
def measure_line_noise(prior: Prior, line: Line, tally: Floats, explained: Floats) -> float:
    """The noise of every arm, around that of all; returns the mean square of rewards.

    `explained` (2, A) is what levels explain of the squares of an arm, beyond the line, and how many numbers it takes.
    """
    _, n_contexts, n_arms = tally.shape
    n, reward, square, inside, degrees = 0.0, 0.0, 0.0, 0.0, 0.0
    is_binary = True
    for a in range(n_arms):
        count, _, _ = _sums(tally, a)
        if count > 0.0:
            one, two = _residual_squares(line, tally, a, explained)
            inside += one
            degrees += two
    for j in range(n_contexts):
        for a in range(n_arms):
            if tally[COUNT, j, a] > 0.0:  # where silence tells, an answer may come before its trial is counted
                n += tally[COUNT, j, a]
                reward += tally[REWARD, j, a]
                square += tally[SQUARE, j, a]
    if square <= 0.0:
        return 0.0
    success = square / reward if reward > 0.0 else 0.0
    for j in range(n_contexts):
        for a in range(n_arms):
            if abs(tally[SQUARE, j, a] - success * tally[REWARD, j, a]) > ALIKE * tally[SQUARE, j, a]:
                is_binary = False
    second_moment = square / n
    overall = max(second_moment - (reward / n) * (reward / n), 0.0)
    noise = max((inside + overall) / (degrees + 1.0), NOISE_FLOOR * second_moment)
    prior.scale[NOISE] = noise
    prior.scale[DOUBT], prior.scale[MEAN_SQUARE] = (inside + second_moment) / (degrees + 1.0), second_moment
    common = NOISE_DEGREES
    if is_binary and success > 0.0 and reward < n * success * (1.0 - ALIKE):
        rate = reward / n
        common = max(common, FEW * success / min(rate, success - rate))
    for a in range(n_arms):
        one, two = _residual_squares(line, tally, a, explained)
        line.noise[a] = max((one + common * noise) / (two + common), NOISE_FLOOR * second_moment)
    sigma = math.sqrt(noise)
    for row in range(prior.sigma.size):
        prior.sigma[row] = sigma
    return second_moment


@kernel
def _sums(tally: Floats, arm: int) -> tuple[float, float, float]:
    count, reward, square = 0.0, 0.0, 0.0
    for j in range(tally.shape[1]):
        count += tally[COUNT, j, arm]
        reward += tally[REWARD, j, arm]
        square += tally[SQUARE, j, arm]
    return count, reward, square


@rare
def _residual_squares(line: Line, tally: Floats, arm: int, explained: Floats) -> tuple[float, float]:
    """What the line leaves of the squares of an arm, and of its degrees of freedom."""
    p = line.own.size
    count, _, square = _sums(tally, arm)
    left, used = square - explained[0, arm], explained[1, arm] * line.noise[arm]
    for i in range(p):
        left -= 2.0 * line.mean[arm, i] * line.moment[arm, i]
        for l in range(p):  # noqa: E741
            left += line.mean[arm, i] * line.gram[arm, i, l] * line.mean[arm, l]
            used += line.cov[arm, i, l] * line.gram[arm, l, i]
    return max(left, 0.0), max(count - min(used / line.noise[arm], 0.9 * count), 0.0)
