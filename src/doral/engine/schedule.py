"""When stock is taken: the more has been seen, the less often; in a large problem, no more than rounds can pay for."""

from __future__ import annotations

from doral._kernel import kernel
from doral.engine.state import State
from doral.estimators.survival import is_by_context

REFRESH_ROUNDS = 32  # return curves move slowly: they are read once in so many rounds,
REFRESH_SHARE, REFRESH_MOST = 32, 512  # and curves by context, which cost more, once in a share of the rounds so far
CALIBRATE_SHARE = 10  # the prior is moved when a tenth more has been learned,
CALIBRATE_FEWEST, CALIBRATE_MOST = 10, 2_000  # but never more, nor less, often than this
WITH_READING = 2**62
QUICK_STOCK = 1_000_000  # multiplications, about a millisecond: up to here it is taken as often as it is wanted


def stock_rounds(*, n_contexts: int, n_arms: int, n_features: int, n_ages: int, n_columns: int = 0) -> int:
    """How many rounds take eight times as long as stock-taking, both counted in multiplications; 0 where it is quick.

    Stock-taking inverts a few matrices per context and reads every return curve; a round updates one inverse and looks
    at every arm once. Where people have features, it inverts a few matrices per arm, and one for what arms share.
    """
    stock = n_contexts * (4 * n_features**3 + 2 * n_arms * n_features**2 + n_arms * n_ages)
    one_round = 500 + 4 * n_features**2 + 4 * n_features * n_arms + 4 * n_arms
    if n_columns > 0:
        stock += 8 * n_arms * n_columns**3 + 2 * (n_columns * (1 + n_features)) ** 3
        one_round += 10 * n_arms * n_columns**2
    return 0 if stock <= QUICK_STOCK else 8 * stock // one_round


@kernel
def _wait(state: State, wait: int, so_far: int) -> int:
    """Never sooner than stock-taking is paid for; a young policy takes it whenever there is twice as much to see."""
    return max(wait, min(state.limits.stock_rounds, so_far))


@kernel
def set_next_reading(state: State) -> None:
    """The round in which return curves are read next."""
    now = state.now[0]
    wait = REFRESH_ROUNDS
    if is_by_context(state.curves):
        wait = max(REFRESH_ROUNDS, min(now.round // REFRESH_SHARE, REFRESH_MOST))
        if state.limits.until_end and now.horizon - now.round < 4 * REFRESH_MOST:
            wait = REFRESH_ROUNDS  # near the end tau changes with every round
    wait = _wait(state, wait, now.round)
    now.read_at = (now.round // wait + 1) * wait


@kernel
def set_next_look(state: State) -> None:
    """The round in which return curves grow next, while nothing is read off them."""
    now = state.now[0]
    wait = REFRESH_ROUNDS if now.racing != 0 else _wait(state, REFRESH_ROUNDS, now.round)
    now.read_at = (now.round // wait + 1) * wait


@kernel
def set_next_calibration(state: State) -> None:
    """The number of answers at which the prior moves next; in a large problem it only does when curves are read."""
    now = state.now[0]
    wait = max(CALIBRATE_FEWEST, min(now.learned // CALIBRATE_SHARE, CALIBRATE_MOST))
    now.calibrate_at = now.learned + wait if state.limits.stock_rounds == 0 else WITH_READING


@kernel
def has_prior_moved(state: State) -> bool:
    """Whether enough has been learned."""
    now = state.now[0]
    if now.calibrate_at == WITH_READING:
        return now.round >= now.read_at
    return now.learned >= now.calibrate_at
