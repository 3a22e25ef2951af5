"""What to run, and why; and the answer in a few sentences."""

from __future__ import annotations

from doral.log.asked import Asked
from doral.log.log import Log
from doral.planning.earning import STATUS_QUO
from doral.planning.earnings import KNOWS_TRUTH, Earning, Earnings
from doral.planning.fact import number
from doral.planning.plan import Recommendation

USUAL = "doral-otf"


def chosen_policy(earnings: Earnings, runnable: tuple[str, ...]) -> Earning:
    """`doral-otf`, unless another that a campaign can run is surely ahead of it."""
    able = [one for one in earnings.policies if one.policy in runnable and one.policy != KNOWS_TRUTH]
    if not any(one.policy == USUAL for one in able):
        return able[0]
    ahead = [one for one in able if one.policy != USUAL and _is_ahead(earnings, one.policy)]
    return ahead[0] if ahead else earnings.of(USUAL)


def _is_ahead(earnings: Earnings, policy: str) -> bool:
    pair = earnings.pair(policy, USUAL)
    return pair.more > 0.0 and not pair.is_equal


def recommend(
    log: Log, asked: Asked, earnings: Earnings | None, runnable: tuple[str, ...], limits: tuple[str, ...]
) -> Recommendation:
    """With reasons, each a sentence."""
    if earnings is None:
        return Recommendation(
            policy=USUAL,
            options=(),
            reasons=("Nothing was answered yet: it starts from nothing, and learns as answers come.",),
            limits=limits,
            sentence=f"Run {USUAL}.",
        )
    best = chosen_policy(earnings, runnable)
    reasons = [best.sentence]
    if best.oracle_share is not None:
        reasons.append(f"That is {100.0 * best.oracle_share:.0f}% of what somebody earns who knows everything.")
    rivals = [one for one in earnings.policies if one.policy not in (best.policy, STATUS_QUO, KNOWS_TRUTH)]
    pairs = {one.policy: earnings.pair(best.policy, one.policy) for one in rivals}
    beaten = [name for name, pair in pairs.items() if pair.more > 0.0 and not pair.is_equal]
    level = [name for name, pair in pairs.items() if pair.is_equal]
    if beaten:
        reasons.append(f"It is ahead of {len(beaten)} of the {len(rivals)} other policies, whatever is true.")
    if level:
        reasons.append(f"The log cannot tell it from {', '.join(level)}.")
    if log.paid_when == "on_answer":
        reasons.append("It learns what is paid in the end, and keeps no more back than that takes.")
    if log.feedback == "silent":
        reasons.append("It takes silence for what it is: no answer yet, or none to come.")
    return Recommendation(
        policy=best.policy, options=(), reasons=tuple(reasons), limits=limits, sentence=f"Run {best.policy}."
    )


def headline(asked: Asked, earnings: Earnings, policy: str) -> str:
    """The first sentence: how much more with this budget."""
    best, today = earnings.of(policy), earnings.of(STATUS_QUO)
    unit = "positives" if earnings.unit == "positives" else "reward"
    money = f"a budget of {number(asked.problem.budget)}" if asked.budget_is_given else "the same budget"
    if best.more is None or best.more_low is None or best.more_high is None:
        return f"With {money}, {number(best.worth)} {unit} [{number(best.low)}, {number(best.high)}]."
    between = f"[{number(best.more_low)}, {number(best.more_high)}]"
    of_today = f" on top of {number(today.worth)}" if today.worth > 0.0 else ""
    if best.more_low > 0.0:
        return f"With {money}, about {number(best.more)} more {unit} {between}{of_today}, with {policy}."
    if best.more_high < 0.0:
        return f"Go on as today: with {money}, {policy} would bring about {number(-best.more)} fewer {unit} {between}."
    return (
        f"The log cannot promise more than what is done today: with {money}, {policy} would bring "
        f"{_signed(best.more)} {unit} {between}{of_today}."
    )


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{number(abs(value))}"
