"""Draw what cells are worth from the posterior given a log: a thin cell borrows from its arm and its context.

Where every success brings the same, a cell has a rate; otherwise it has a mean:

    rate of (j, a) ~ Beta(shape / (1 - m), shape / m),   logit m = level + context_j + arm_a
    mean of (j, a) = level + context_j + arm_a + deviation_ja,   rows scatter around it with the variance of their cell

Effects of contexts and arms are normal. How far each kind of effect scatters is learned: standard deviations, and
1 / sqrt(shape), which is about the deviation of a cell in logits, have half-Cauchy priors. Rates are integrated out of
the steps that learn level, effects and shape (Metropolis), then drawn exactly, so they are right from 0 to 1. A single
cell has the Beta posterior of Jeffreys' prior. With one context, or one arm, only the level and deviations are left.

Several chains run side by side in one array. Draw i is of chain i modulo their number, so that any first few are
spread over all chains.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from doral._arrays import Flags, Floats
from doral.inference.cells import Cells

_FEW_CELLS = 600  # up to these, more and longer chains cost next to nothing
_LEAST_RATE = 1e-9
# Around a mean of one half, the smallest is Jeffreys' prior for each cell: a smaller one would put rates at exactly 0
# or 1 where a log has no success, or no failure.
_SHAPES = (0.25, 1e5)
_ACCEPTED = 0.4  # share of proposals that a step aims at while it is tuned, in burn-in only
_TUNED_BY = 0.15
_CELL_DEGREES = 4.0  # rows for which the variance within an arm counts in that of a cell


@dataclass(frozen=True, kw_only=True)
class Worths:
    """Draws of what cells are worth, and how many rows the other cells stand for in each."""

    worth: Floats  # (B, J, A)
    borrowed: Floats  # (B, J, A) in rows; infinite where a cell has no rows


class _Sampler(Protocol):
    """All chains of a model, one sweep after the other."""

    def sweep(self, *, is_tuning: bool) -> None:
        """Draw every parameter once."""
        ...

    def draw(self) -> tuple[Floats, Floats]:
        """Return (C, J, A) worths of the cells, and the rows for which the others stand."""
        ...


def draw_worths(cells: Cells, n: int, rng: np.random.Generator) -> Worths:
    """Return `n` posterior draws of the worth of every cell."""
    shape = (cells.n_contexts, cells.n_arms)
    seen, rows = cells.mean.reshape(shape), cells.effective.reshape(shape)
    is_small = cells.n_cells <= _FEW_CELLS
    chains, burn_in, sweeps = (16, 400, 10) if is_small else (4, 250, 3)
    chains = min(chains, n)
    sampler: _Sampler
    if cells.step is None:
        sampler = MeanSampler(cells, rng, chains=chains)
    else:
        sampler = RateSampler(seen, rows, cells.step, rng, chains=chains)
    for _ in range(burn_in):
        sampler.sweep(is_tuning=True)
    worth, borrowed = np.empty((n, *shape)), np.empty((n, *shape))
    for first in range(0, n, chains):
        for _ in range(sweeps):
            sampler.sweep(is_tuning=False)
        here = slice(first, min(first + chains, n))
        few = here.stop - here.start
        worths, rows_of_others = sampler.draw()
        worth[here], borrowed[here] = worths[:few], rows_of_others[:few]
    return Worths(worth=worth, borrowed=np.where(rows > 0.0, borrowed, np.inf))


class _Scale:
    """Variance of a kind of effects, by chain, with a half-Cauchy prior on its root (Makalic and Schmidt 2016)."""

    def __init__(self, size: float, chains: int) -> None:
        self.size = size
        self.variance, self._aux = np.full((chains, 1, 1), (0.3 * size) ** 2), np.full((chains, 1, 1), size * size)

    def draw(self, rng: np.random.Generator, effects: Floats) -> None:
        n_effects = effects[0].size
        rate = 0.5 * (effects**2).sum(axis=(1, 2), keepdims=True) + 1.0 / self._aux
        shape = self.variance.shape
        self.variance = np.maximum(rate / rng.gamma(0.5 * (n_effects + 1), size=shape), (1e-4 * self.size) ** 2)
        self._aux = (1.0 / self.size**2 + 1.0 / self.variance) / rng.gamma(1.0, size=shape)


class _Step:
    """Random-walk steps of some parameters, as long as about two of five proposals are accepted."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._size = np.full((1, *shape), 0.5)

    def propose(self, rng: np.random.Generator, now: Floats) -> Floats:
        return np.asarray(now + self._size * rng.standard_normal(now.shape))

    def tune(self, is_accepted: Flags) -> None:
        self._size *= np.exp(_TUNED_BY * (is_accepted.mean(axis=0, keepdims=True) - _ACCEPTED))


class RateSampler:
    """Rates of cells, given `seen` (J, A) mean worths over so many `rows`; a success brings `step`."""

    def __init__(self, seen: Floats, rows: Floats, step: float, rng: np.random.Generator, *, chains: int) -> None:
        self._worth_of_success, self._rng, self._chains = step, rng, chains
        share = np.clip(seen / step, 0.0, 1.0)
        self._successes, self._failures = share * rows, (1.0 - share) * rows
        n_contexts, n_arms = seen.shape
        self._is_single = seen.size == 1
        has_effects = n_contexts > 1 and n_arms > 1
        start = (float(self._successes.sum()) + 0.5) / (float(rows.sum()) + 1.0)
        self._level = np.log(start / (1.0 - start)) + 0.3 * rng.standard_normal((chains, 1, 1))
        self._of_context, self._of_arm = np.zeros((chains, n_contexts, 1)), np.zeros((chains, 1, n_arms))
        self._log_shape = 1.5 + 0.5 * rng.standard_normal((chains, 1, 1))
        self._context_scale = _Scale(1.0, chains) if has_effects else None
        self._arm_scale = _Scale(1.0, chains) if has_effects else None
        self._level_step, self._shape_step = _Step((1, 1)), _Step((1, 1))
        self._context_step, self._arm_step = _Step((n_contexts, 1)), _Step((1, n_arms))
        self._likelihood = self._likelihood_of(self._mean(), self._log_shape)

    def _mean(self) -> Floats:
        return _expit(self._level + self._of_context + self._of_arm)

    def _prior_counts(self, mean: Floats, log_shape: Floats) -> tuple[Floats, Floats]:
        """Successes and failures for which the law around the mean stands; of a single cell those of Jeffreys."""
        if self._is_single:
            return np.full_like(mean, 0.5), np.full_like(mean, 0.5)
        shape = np.exp(log_shape)
        return shape / (1.0 - mean), shape / mean

    def _likelihood_of(self, mean: Floats, log_shape: Floats) -> Floats:
        """(C, J, A) log probability of what was seen, rates integrated out (beta-binomial)."""
        from scipy.special import betaln

        yes, no = self._prior_counts(mean, log_shape)
        return np.asarray(betaln(yes + self._successes, no + self._failures) - betaln(yes, no))

    def sweep(self, *, is_tuning: bool) -> None:
        if self._is_single:
            return
        self._level = self._moved(self._level, self._level_step, None, "level", is_tuning)
        if self._context_scale is not None and self._arm_scale is not None:
            self._of_context = self._moved(
                self._of_context, self._context_step, self._context_scale, "context", is_tuning
            )
            self._of_arm = self._moved(self._of_arm, self._arm_step, self._arm_scale, "arm", is_tuning)
            self._of_context = self._shifted(self._of_context, self._context_scale)
            self._of_arm = self._shifted(self._of_arm, self._arm_scale)
            self._context_scale.draw(self._rng, self._of_context)
            self._arm_scale.draw(self._rng, self._of_arm)
        self._draw_shape(is_tuning)

    def _moved(self, now: Floats, step: _Step, scale: _Scale | None, what: str, is_tuning: bool) -> Floats:
        """One Metropolis step of the level or of every effect of a kind; effects of a kind do not touch each other."""
        rng = self._rng
        proposed = step.propose(rng, now)
        parts = {"level": self._level, "context": self._of_context, "arm": self._of_arm, what: proposed}
        likelihood = self._likelihood_of(_expit(parts["level"] + parts["context"] + parts["arm"]), self._log_shape)
        axes = {"level": (1, 2), "context": (2,), "arm": (1,)}[what]
        gain = (likelihood - self._likelihood).sum(axis=axes, keepdims=True)
        if scale is None:
            gain = gain + _level_prior(proposed) - _level_prior(now)
        else:
            gain = gain + 0.5 * (now**2 - proposed**2) / scale.variance
        is_accepted = np.log(rng.random(now.shape)) < gain
        self._likelihood = np.where(is_accepted, likelihood, self._likelihood)
        if is_tuning:
            step.tune(is_accepted)
        return np.where(is_accepted, proposed, now)

    def _shifted(self, effects: Floats, scale: _Scale) -> Floats:
        """Move what all effects of a kind have in common into the level or back, which leaves all means as they are."""
        total = self._level + effects
        n_effects = effects[0].size
        spread = np.sqrt(scale.variance / n_effects)
        level = total.mean(axis=(1, 2), keepdims=True) + spread * self._rng.standard_normal(self._level.shape)
        gain = _level_prior(level) - _level_prior(self._level)
        is_accepted = np.log(self._rng.random(level.shape)) < gain
        self._level = np.where(is_accepted, level, self._level)
        return np.asarray(total - self._level)

    def _draw_shape(self, is_tuning: bool) -> None:
        proposed = self._shape_step.propose(self._rng, self._log_shape)
        least, most = np.log(_SHAPES)
        is_inside = (proposed >= least) & (proposed <= most)
        proposed = np.where(is_inside, proposed, self._log_shape)
        likelihood = self._likelihood_of(self._mean(), proposed)
        gain = (likelihood - self._likelihood).sum(axis=(1, 2), keepdims=True)
        gain = gain + _shape_prior(proposed) - _shape_prior(self._log_shape)
        is_accepted = is_inside & (np.log(self._rng.random(gain.shape)) < gain)
        self._likelihood = np.where(is_accepted, likelihood, self._likelihood)
        self._log_shape = np.where(is_accepted, proposed, self._log_shape)
        if is_tuning:
            self._shape_step.tune(is_accepted)

    def draw(self) -> tuple[Floats, Floats]:
        yes, no = self._prior_counts(self._mean(), self._log_shape)
        rate = self._rng.beta(yes + self._successes, no + self._failures)
        return np.clip(rate, _LEAST_RATE, 1.0 - _LEAST_RATE) * self._worth_of_success, yes + no


def _expit(logits: Floats) -> Floats:
    return np.clip(1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0))), _LEAST_RATE, 1.0 - _LEAST_RATE)


def _level_prior(level: Floats) -> Floats:
    """Log density of a logit whose rate has Jeffreys' Beta(1/2, 1/2)."""
    rate = _expit(level)
    return np.asarray(0.5 * (np.log(rate) + np.log1p(-rate)))


def _shape_prior(log_shape: Floats) -> Floats:
    """Log density of log(shape) where 1 / sqrt(shape) is half-Cauchy."""
    return np.asarray(0.5 * log_shape - np.log1p(np.exp(log_shape)))


class MeanSampler:
    """Means of cells, all drawn exactly (Gibbs)."""

    def __init__(self, cells: Cells, rng: np.random.Generator, *, chains: int) -> None:
        shape = (cells.n_contexts, cells.n_arms)
        self._rng = rng
        self._seen, self._rows = cells.mean.reshape(shape), cells.effective.reshape(shape)
        self._variance, self._of_arm_variance = cells.variance.reshape(shape), _within_arms(cells)
        total = float(self._rows.sum())
        middle = float((self._seen * self._rows).sum()) / total
        spread = float(np.sqrt((self._rows * (self._seen - middle) ** 2).sum() / total))
        size = max(abs(middle), spread, 1e-9)
        settled = cells.worth[cells.is_settled]
        self._range = float(settled.min()), float(settled.max())
        self._level = np.full((chains, 1, 1), middle)
        self._of_context, self._of_arm = np.zeros((chains, shape[0], 1)), np.zeros((chains, 1, shape[1]))
        self._own = np.zeros((chains, *shape))
        has_both = shape[0] > 1 and shape[1] > 1
        # With one context, or one arm, the deviation of a cell is the effect of its arm, or of its context.
        self._context_scale = _Scale(size, chains) if shape[0] > 1 else None
        self._arm_scale = _Scale(size, chains) if shape[1] > 1 else None
        self._own_scale = _Scale(size, chains) if has_both else None
        self._draw_noise()

    def _expected(self) -> Floats:
        return np.asarray(self._level + self._of_context + self._of_arm)

    def _draw_noise(self) -> None:
        """Variances within cells: that of their rows, with that of the arm for a few rows more."""
        off = self._seen - self._expected() - self._own
        squares = _CELL_DEGREES * self._of_arm_variance + self._rows * (self._variance + off**2)
        self._within = squares / self._rng.chisquare(_CELL_DEGREES + self._rows, size=off.shape)
        self._noise = np.divide(self._within, self._rows, out=np.full(off.shape, np.inf), where=self._rows > 0.0)

    def sweep(self, *, is_tuning: bool) -> None:
        rng = self._rng
        own = 0.0 if self._own_scale is None else self._own_scale.variance
        precision = 1.0 / (self._noise + own)  # 0 where no row was seen
        known = precision.sum(axis=(1, 2), keepdims=True)
        away = self._seen - self._of_context - self._of_arm
        middle = (precision * away).sum(axis=(1, 2), keepdims=True) / known
        self._level = middle + rng.standard_normal(known.shape) / np.sqrt(known)
        if self._context_scale is not None:
            away = self._seen - self._level - self._of_arm
            self._of_context = self._effects(precision, away, 2, self._context_scale)
        if self._arm_scale is not None:
            away = self._seen - self._level - self._of_context
            self._of_arm = self._effects(precision, away, 1, self._arm_scale)
        if self._own_scale is not None:
            variance = self._own_scale.variance
            part = variance / (variance + self._noise)
            luck = rng.standard_normal(part.shape) * np.sqrt(variance * (1.0 - part))
            self._own = part * (self._seen - self._expected()) + luck
            self._own_scale.draw(rng, self._own)
        self._draw_noise()

    def _effects(self, precision: Floats, away: Floats, axis: int, scale: _Scale) -> Floats:
        told = precision.sum(axis=axis, keepdims=True) + 1.0 / scale.variance
        mean = (precision * away).sum(axis=axis, keepdims=True) / told
        effects = mean + self._rng.standard_normal(told.shape) / np.sqrt(told)
        scale.draw(self._rng, effects)
        return np.asarray(effects)

    def draw(self) -> tuple[Floats, Floats]:
        worth = np.clip(self._expected() + self._own, *self._range)
        scale = self._own_scale or self._arm_scale or self._context_scale
        return worth, np.zeros(worth.shape) if scale is None else self._within / scale.variance


def _within_arms(cells: Cells) -> Floats:
    """(1, A) the variance of what a decision brings, by arm; a few rows of all arms stand in that of each."""
    shape = (cells.n_contexts, cells.n_arms)
    rows, variance = cells.effective.reshape(shape), cells.variance.reshape(shape)
    degrees = np.maximum(rows - 1.0, 0.0)
    squares = rows * variance
    of_all = (float(squares.sum()) + 1e-300) / max(float(degrees.sum()), 1.0)
    of_arm = (squares.sum(axis=0) + _CELL_DEGREES * of_all) / (degrees.sum(axis=0) + _CELL_DEGREES)
    return np.asarray(of_arm[None, :])
