"""What to run, and why; and the answer in a few sentences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.evaluation.targets import STATUS_QUO
from doral.log.asked import Asked
from doral.log.log import Log
from doral.planning.earnings import KNOWS_TRUTH, Earning, Earnings
from doral.planning.fact import number
from doral.planning.plan import Recommendation

USUAL = "doral-otf"


def chosen_policy(earnings: Earnings, runnable: Collection[str]) -> Earning | None:
    """`doral-otf`, unless another that a campaign can run is surely ahead of it; None where none of these played."""
    able = [one for one in earnings.policies if one.policy in runnable and one.policy != KNOWS_TRUTH]
    if not any(one.policy == USUAL for one in able):
        return able[0] if able else None
    ahead = [one for one in able if one.policy != USUAL and _is_ahead(earnings, one.policy)]
    return ahead[0] if ahead else earnings.of(USUAL)


def _is_ahead(earnings: Earnings, policy: str) -> bool:
    pair = earnings.pair(policy, USUAL)
    return pair.more > 0.0 and not pair.is_equal


def recommend(
    log: Log,
    asked: Asked,
    earnings: Earnings | None,
    runnable: Mapping[str, PolicyOptions],
    limits: tuple[str, ...],
) -> Recommendation:
    """With reasons, each a sentence. `runnable` are those that played and a campaign can run, by name."""
    if earnings is None:
        return _usual("Nothing was answered yet: it starts from nothing, and learns as answers come.", limits)
    best = chosen_policy(earnings, runnable)
    if best is None:
        return _usual("It did not play: none of the policies that were asked for can run a campaign.", limits)
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
    preset, options = preset_of(runnable[best.policy])
    return Recommendation(
        policy=best.policy,
        preset=preset,
        options=options,
        reasons=tuple(reasons),
        limits=limits,
        sentence=f"Run {best.policy}.",
    )


def _usual(why: str, limits: tuple[str, ...]) -> Recommendation:
    return Recommendation(policy=USUAL, options=(), reasons=(why,), limits=limits, sentence=f"Run {USUAL}.")


def preset_of(made: PolicyOptions) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The preset from which a policy differs in fewest options, and these: what makes it again.

    >>> from doral import policy
    >>> preset_of(policy("doral", accept=3, label="mine"))
    ('doral', (('accept', 3),))
    """
    own = made.to_dict()
    found = []
    for name in POLICY_NAMES:
        usual = policy_by_name(name).to_dict()
        changed = tuple((one, value) for one, value in own.items() if one != "name" and value != usual[one])
        # Of presets that are as near, the one that it is named after.
        found.append((len(changed), not made.name.startswith(name), name, changed))
    _, _, name, changed = min(found, key=lambda one: one[:2])
    return name, changed


def headline(asked: Asked, earnings: Earnings, policy: str) -> str:
    """The first sentence: how much more with this budget."""
    today = earnings.of(STATUS_QUO)
    unit = earnings.unit
    money = _money(asked)
    best = next((one for one in earnings.policies if one.policy == policy), today)
    if best.more is None or best.more_low is None or best.more_high is None:
        between = f"[{number(best.low)}, {number(best.high)}]"
        return f"With {money}, what is done today brings {number(best.worth)} {unit} {between}."
    between = f"[{number(best.more_low)}, {number(best.more_high)}]"
    # What was done, with the money and the arrivals that are planned: not what the log itself has brought.
    as_planned = " that today's way would bring" if asked.budget_is_given or asked.horizon_is_given else ""
    of_today = f" on top of {number(today.worth)}{as_planned}" if today.worth > 0.0 else ""
    if best.more_low > 0.0:
        return f"With {money}, about {number(best.more)} more {unit} {between}{of_today}, with {policy}."
    if best.more_high < 0.0:
        return f"Go on as today: with {money}, {policy} would bring about {number(-best.more)} fewer {unit} {between}."
    return (
        f"The log cannot promise more than what is done today: with {money}, {policy} would bring "
        f"{_signed(best.more)} {unit} {between}{of_today}."
    )


def surer(earnings: Earnings, policy: str) -> tuple[str, ...]:
    """Another policy that surely brings more than what is done today, where the one that is advised may not."""
    advised = next((one for one in earnings.policies if one.policy == policy), None)
    if advised is None or advised.more_low is None or advised.more_low > 0.0:
        return ()
    others = [one for one in earnings.policies if one.policy not in (policy, KNOWS_TRUTH)]
    sure = [one for one in others if one.more_low is not None and one.more_low > 0.0]
    if not sure:
        return ()
    one = sure[0]
    between = f"[{number(one.more_low or 0.0)}, {number(one.more_high or 0.0)}]"
    return (f"{one.policy} surely would: about {number(one.more or 0.0)} more {between}.",)


def _money(asked: Asked) -> str:
    if asked.budget_is_given:
        return f"a budget of {number(asked.problem.budget)}"
    if asked.horizon_is_given:
        return f"the same budget per arrival ({number(asked.problem.budget)} in all)"
    return "the same budget"


def _signed(value: float) -> str:
    return f"{'-' if value < 0.0 else '+'}{number(abs(value))}"
