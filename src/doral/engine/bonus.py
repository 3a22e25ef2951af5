"""How much to explore: what multiplies ||f_a|| in the norm of V^-1.

To add a bonus: write a function of (state, row), give it a name in `state.py` and a word in `options.py`, and add a
branch to `bonus_scale`. The twin in the tests needs the same formula (docs/add_a_policy.md).

    CORRECTED   eq. (delayed LinUCB): exploration * (2 f_t + bias), n = pulls of the context
    PRINTED     the same as printed: n = t, and log(1 / lambda) in place of log(1 / delta)
    CALIBRATED  exploration * sigma_j sqrt(log(e + n)), in units of the measured noise
    TO_COME     exploration * sigma_j psi(n ||f_a||^2), n = arrivals still to come that the budget can pay for

psi weighs one more try against the arrivals that profit from it. For s tries to come for each answer that there is,

    psi(s) = sqrt(log(1 + s / 2.3))

is how many standard errors below nothing an arm with normal rewards may be for one more try to be worth it, as dynamic
programming finds it (to within 0.2 for s from 1 to 100). Beside a bonus that grows with the logarithm of time it tries
more at first and less later: the idea of MOSS (Audibert and Bubeck 2009), for a posterior in place of counts. A handful
of answers is no measure of noise, and a single one has none: norms are in units of the noise as it may be while answers
are few. psi moves slowly and is expensive: it is worked out at a refresh.
"""

from __future__ import annotations

import math

from doral.compiled import kernel, rare
from doral.engine.budget import expected_refunds
from doral.engine.state import CALIBRATED, PRINTED, TO_COME, State, class_of, norm_row
from doral.estimators.shrinkage import DOUBT, NOISE
from doral.pacing import cost_of, share_of


@kernel
def bonus_scale(state: State, row: int) -> float:
    """Return what multiplies the (stretched) norm of an arm."""
    bonus, n = state.rules.bonus, state.contexts[row].pulls
    if state.rules.stretches:
        return state.confidence.exploration * state.prior.sigma[row]
    if bonus == CALIBRATED:
        return state.confidence.exploration * state.prior.sigma[row] * math.sqrt(math.log(math.e + n))
    if bonus == PRINTED:
        f_t = _confidence_width(state, float(state.now[0].round), state.confidence.printed_certainty)
    else:
        f_t = _corrected_width(state, row, n)
    return state.confidence.exploration * (2.0 * f_t + _window_bias(state, row))


@kernel
def _confidence_width(state: State, n: float, certainty: float) -> float:
    """Return f_t = sqrt(lambda) + sqrt(c + k log((k lambda + n) / (k lambda))), where c = 2 log(1 / delta)."""
    rules = state.confidence
    n_features = state.people.line.own.size if state.rules.has_people else state.ridge.features.shape[1]
    scaled_penalty = n_features * rules.penalty
    growth = n_features * math.log((scaled_penalty + n) / scaled_penalty) if n_features > 0 else 0.0
    return math.sqrt(rules.penalty) + math.sqrt(max(0.0, certainty + growth))


@kernel
def _corrected_width(state: State, row: int, n: float) -> float:
    """Return f_t of a context. It only changes with a pull: that after the next pull is worked out ahead."""
    width, certainty = state.widths[row], state.confidence.certainty
    f_t = width.f_t
    if width.pulls != n:
        f_t = width.next if width.pulls + 1.0 == n else _confidence_width(state, n, certainty)
        width.pulls, width.f_t, width.next = n, f_t, _confidence_width(state, n + 1.0, certainty)
    return f_t


@kernel
def _window_bias(state: State, row: int) -> float:
    """Return the sum of ||f_a|| in V_t^-1 over pulls of the context inside the cut-off: sum_a w_ja ||f_a||."""
    bias = 0.0
    if state.rules.has_window:
        window, norm = state.window[class_of(state, row)], state.ridge.norm[row]
        for a in range(window.size):
            bias += window[a] * norm[a]
    return bias


@kernel
def stretch(state: State, row: int, norm: float) -> float:
    """Return psi for an arm of this norm; 1 with bonuses that have none."""
    if not state.rules.stretches:
        return 1.0
    noise = state.prior.scale[NOISE] / state.prior.scale[DOUBT]
    return math.sqrt(math.log1p(_kin(state, row) * norm * norm * noise / 2.3))


@kernel
def stretched(state: State, row: int, arm: int, norm: float) -> float:
    """Return the norm times `stretch` as of the last refresh."""
    if state.rules.stretches:
        return norm * state.ahead[row, arm]
    return norm


@kernel
def _kin(state: State, row: int) -> float:
    """Return the effective number of expected arrivals that share information with this row."""
    if state.rules.has_people:
        return state.people.kin[row] * state.now[0].horizon
    return share_of(state.demand, row) * state.now[0].horizon


@kernel
def set_stretch(state: State, row: int) -> None:
    """Work out `stretch` of all arms for a row whose norms are set."""
    if state.rules.bonus == TO_COME:
        norm = state.ridge.norm[norm_row(state, row)]
        for a in range(state.allowed.size):
            unknown = max(norm[a], 2.0 * state.tau_error[row, a])  # 2: a chance has a noise of one half at most
            state.ahead[row, a] = stretch(state, row, unknown * math.sqrt(_share_to_come(state, row, a)))


@rare
def set_stretch_of_contexts(state: State) -> None:
    """Work out `stretch` for all contexts, at a refresh."""
    for j in range(state.tally.shape[1]):
        set_stretch(state, j)


@kernel
def _share_to_come(state: State, row: int, arm: int) -> float:
    """Return the share of all expected arrivals that are still to come and can be paid for with this arm."""
    now, cost = state.now[0], cost_of(state.hulls, row, arm)
    n = float(max(0, now.horizon - now.round))
    if cost > 0.0:
        n = min(n, max(0.0, now.budget_left + expected_refunds(state)) / cost)
    return n / now.horizon
