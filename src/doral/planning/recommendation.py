"""What to run, and why; and the answer in a few sentences. All of it follows from the table of earnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.errors import DoralError
from doral.evaluation.policies import KNOWS_TRUTH, STATUS_QUO
from doral.inference.log_problem import Asked
from doral.live.state.definition import make_definition
from doral.logs.log import Log
from doral.planning.earnings import Earning, Earnings
from doral.planning.facts import between, money, named, number, signed
from doral.planning.plan import Recommendation
from doral.problem import Problem

AS_TODAY = "Go on as today."


def can_run_live(policy: object, problem: Problem, *, has_seconds: bool) -> bool:
    """Return whether a campaign accepts this policy for this problem."""
    if not isinstance(policy, PolicyOptions) or policy.sampling == "oracle":
        return False
    clock = "seconds" if has_seconds and problem.deadline is not None else "rounds"
    try:
        make_definition(name="plan", problem=problem, policy=policy, seed=0, clock=clock, created_at=0.0)
    except DoralError:
        return False
    return True


def recommended(earnings: Earnings) -> Earning | None:
    """Return the policy with the largest mean of those that can run live and are clearly better than today."""
    return next((one for one in earnings.policies if one.can_run_live and one.is_clearly_better), None)


def recommend(
    log: Log,
    earnings: Earnings | None,
    runnable: Mapping[str, PolicyOptions],
    limits: tuple[str, ...],
) -> Recommendation:
    """Return what to run, with reasons, each a sentence. `runnable` are those that played and can run live, by name."""
    if earnings is None:
        return _none("No policy is recommended: no answer has come yet.", (), limits)
    best = recommended(earnings)
    if best is None:
        return _none(AS_TODAY, _why_as_today(earnings), limits)
    assert best.more is not None
    others = [one for one in earnings.policies if one.policy not in (best.policy, STATUS_QUO, KNOWS_TRUTH)]
    reasons = [
        f"It is clearly better than today: {number(best.more.value)} more {between(best.more)}, 95%; the test is "
        f"corrected for {earnings.compared} {'policy' if earnings.compared == 1 else 'policies'}."
    ]
    if best.oracle_share is not None:
        reasons.append(f"It earns {100.0 * best.oracle_share:.0f}% of what the oracle earns, which knows every value.")
    reasons += _ahead(earnings, best)
    behind = [one.policy for one in others if one.worth.value < best.worth.value]
    if behind:
        reasons.append(f"Its mean is above those of {named(tuple(behind), at_most=10)}.")
    if log.paid_when == "on_answer":
        reasons.append("It learns what is paid in the end, and reserves no more than that takes.")
    preset, options = preset_of(runnable[best.policy])
    return Recommendation(
        policy=best.policy,
        preset=preset,
        options=options,
        reasons=tuple(reasons),
        limits=limits,
        sentence=f"Run {best.policy}.",
    )


def _none(sentence: str, reasons: tuple[str, ...], limits: tuple[str, ...]) -> Recommendation:
    return Recommendation(policy=None, options=(), reasons=reasons, limits=limits, sentence=sentence)


def _why_as_today(earnings: Earnings) -> tuple[str, ...]:
    live = [one for one in earnings.policies if one.can_run_live]
    if not live:
        why = "None of the policies that were compared can run live"
        return (f"{why}: only {named(tuple(one.policy for one in earnings.policies))}.", *_ahead(earnings, None))
    first = live[0]
    assert first.more is not None
    said = (
        f"No policy that can run live is clearly better than what is done today: {first.policy} has the largest mean "
        f"of them, {signed(first.more.value)} {between(first.more)} (95%)"
    )
    if first.more.is_above_zero and earnings.compared > 1:
        said += f"; corrected for {earnings.compared} comparisons, that is not clearly more than 1% of today's"
    return (f"{said}.", *_ahead(earnings, None))


def _ahead(earnings: Earnings, best: Earning | None) -> list[str]:
    """Policies with a larger mean than the recommended one, and why they are not recommended."""
    than = earnings.today if best is None else best
    said = []
    for one in earnings.policies:
        if one.policy in (KNOWS_TRUTH, than.policy):
            continue
        if one.worth.value <= than.worth.value:
            break
        if best is None and one.can_run_live:
            continue
        gap = earnings.difference(one.policy, than.policy)
        why = "cannot run live" if not one.can_run_live else "is not clearly better than today"
        said.append(
            f"{one.policy} {why}; its mean is {number(gap.value)} above that of {than.policy} {between(gap)} (95%)."
        )
    return said


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


def headline(log: Log, asked: Asked, earnings: Earnings) -> tuple[str, ...]:
    """Return the first sentences: what to run and how much more it brings, or that nothing is clearly better."""
    money, unit = _money(log, asked), earnings.unit
    best, today = recommended(earnings), earnings.today
    if best is None:
        brings = f"{number(today.worth.value)} {unit} {between(today.worth)}"
        return (f"{AS_TODAY} With {money} that brings {brings}.", *_why_as_today(earnings))
    assert best.more is not None
    as_planned = " that today's way would bring" if asked.budget_is_given or asked.horizon_is_given else ""
    of_today = f", on top of {number(today.worth.value)}{as_planned}" if today.worth.value > 0.0 else ""
    said = (
        f"Run {best.policy}: with {money}, about {number(best.more.value)} more {unit} {between(best.more)}{of_today}."
    )
    return (said, *_ahead(earnings, best))


def _money(log: Log, asked: Asked) -> str:
    amount = money(asked.problem.budget, log.currency)
    if asked.budget_is_given:
        return f"a budget of {amount}"
    if asked.horizon_is_given:
        return f"the same budget per arrival ({amount} in all)"
    return f"the same budget ({amount})"
