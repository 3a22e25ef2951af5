"""The acts themselves: what a form has sent becomes a call, with mistakes told at its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from doral.errors import DoralError, InvalidValue
from doral.live.campaign import Campaign
from doral.live.kinds.change import top_up_amount
from doral.live.runtime.clock import end_timestamp
from doral.live.views.text import MONEY, moment
from doral.pages.numbers import count, figure
from doral.problem import Arm
from doral.service.pages.forms_reading import Sent


@dataclass(frozen=True, kw_only=True)
class Done:
    """What was done, by the code of its message; `of` is what is said in it."""

    code: str
    of: str = ""


@dataclass(frozen=True, kw_only=True)
class Sure:
    """Before it is done: what it means, and what to press."""

    title: str
    words: str
    facts: tuple[tuple[str, str], ...]
    send: str
    carries: Mapping[str, str]
    is_grave: bool = False


@dataclass(frozen=True, kw_only=True)
class Act:
    """Something that can be done to a campaign.

    Attributes:
        title: Of its page.
        noted_as: In the list of administrative acts.
        at: The field where a mistake is told that names no field of the form.
        do: Does it, given the campaign, the form and the key of the request.
        notes: Fields of the form that the note of it tells.
        ask: What has to be said yes to first; None: nothing.
    """

    title: str
    noted_as: str
    at: str
    do: Callable[[Campaign, Sent, str | None], Done]
    ask: Callable[[Campaign, Sent], Sure] | None = None
    notes: tuple[str, ...] = ()

    def details(self, sent: Sent, key: str | None, result: object) -> dict[str, object]:
        """What is noted of it."""
        said: dict[str, object] = {name: sent.raw(name) for name in self.notes if name in sent.texts}
        return {**said, **({"expired": result} if self.do is _expire else {}), "key": key}


def number(name: str, text: str) -> float:
    """A number that was typed."""
    try:
        return float(text.replace("_", "x"))
    except ValueError:
        raise InvalidValue(name, text, "must be a number, such as 250 or 2.5") from None


# --- arms -------------------------------------------------------------------------------------------------------------


def _pause(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    campaign.pause_arm(sent.raw("arm"), key=key)
    return Done(code="paused", of=sent.raw("arm"))


def _resume(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    campaign.resume_arm(sent.raw("arm"), key=key)
    return Done(code="resumed", of=sent.raw("arm"))


def _retire(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    campaign.retire_arm(sent.raw("arm"), key=key)
    return Done(code="retired", of=sent.raw("arm"))


def _sure_to_retire(campaign: Campaign, sent: Sent) -> Sure:
    arm = campaign.problem.arms[campaign.problem.arm_index(sent.raw("arm"))]
    return Sure(
        title=f"Retire {arm.name}?",
        words="It is never offered again: it could only be added anew, under another name. Answers are still taken.",
        facts=(),
        send="Retire it for good",
        carries={"arm": arm.name},
        is_grave=True,
    )


def _add_arm(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    features = [number("features", one) for one in sent.one("features").split(",") if one.strip()]
    cost = number("cost", sent.one("cost")) if sent.one("cost") else 1.0
    arm = Arm(sent.one("arm"), features=features, cost=cost)
    campaign.add_arm(arm, key=key)
    return Done(code="added", of=arm.name)


# --- money and time ---------------------------------------------------------------------------------------------------


def _amount(sent: Sent) -> float:
    if not sent.one("amount"):
        raise InvalidValue("amount", "", "say how much, such as 250")
    amount = number("amount", sent.one("amount"))
    return top_up_amount(amount)


def _top_up(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    amount = _amount(sent)
    campaign.top_up(amount, key=key)
    return Done(code="topped-up", of=figure(amount, 6))


def _sure_to_top_up(campaign: Campaign, sent: Sent) -> Sure:
    amount, total = _amount(sent), float(campaign.ledger().total)
    return Sure(
        title="Raise the budget?",
        words="It cannot be lowered again.",
        facts=(
            ("Now", f"{figure(total, 6)} {MONEY}"),
            ("More", figure(amount, 6)),
            ("It becomes", f"{figure(total + amount, 6)} {MONEY}"),
        ),
        send="Raise the budget",
        carries={"amount": sent.one("amount")},
    )


def _extend(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    if "until" in sent.texts:
        if not sent.one("until"):
            raise InvalidValue("until", "", "give the new last day, such as 2027-03-31")
        campaign.extend(until=sent.one("until"), key=key)
        words = f"it ends {moment(end_timestamp('until', sent.one('until')), 'seconds')} UTC"
        return Done(code="extended", of=words)
    if not sent.one("rounds"):
        raise InvalidValue("rounds", "", "say how many more, such as 1000")
    rounds = number("rounds", sent.one("rounds"))
    campaign.extend(rounds, key=key)  # type: ignore[arg-type]  # it is checked there whether it is whole
    words = count(int(rounds), "more arrival", "more arrivals")
    return Done(code="extended", of=words)


def _expire(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    del sent
    many = campaign.expire(key=key)
    return Done(code="expired", of=count(many, "decision has expired", "decisions have expired"))


def _close(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    if " ".join(sent.one("confirm").split()) != " ".join(campaign.name.split()):
        raise InvalidValue("confirm", sent.one("confirm"), "must be the name of the campaign, as it stands above")
    campaign.close(key=key)
    return Done(code="closed")


ACTS: Mapping[str, Act] = {
    "pause": Act(title="Pause an arm", noted_as="arm paused", at="arm", do=_pause, notes=("arm",)),
    "resume": Act(title="Resume an arm", noted_as="arm resumed", at="arm", do=_resume, notes=("arm",)),
    "retire": Act(
        title="Retire an arm", noted_as="arm retired", at="arm", do=_retire, ask=_sure_to_retire, notes=("arm",)
    ),
    "add-arm": Act(title="Add an arm", noted_as="arm added", at="arm", do=_add_arm, notes=("arm", "cost")),
    "top-up": Act(
        title="Top up the budget",
        noted_as="budget topped up",
        at="amount",
        do=_top_up,
        ask=_sure_to_top_up,
        notes=("amount",),
    ),
    "extend": Act(
        title="Extend the end", noted_as="campaign extended", at="until", do=_extend, notes=("rounds", "until")
    ),
    "expire": Act(title="Settle what is overdue", noted_as="decisions expired", at="", do=_expire),
    "close": Act(title="Close the campaign", noted_as="campaign closed", at="confirm", do=_close),
}


def field_of(act: Act, error: DoralError, fields: set[str]) -> str:
    """The field of a form that an error speaks of."""
    named = error.field if isinstance(error, InvalidValue) else ""
    if named in fields:
        return named
    for one in ("cost", "features", "amount", "rounds", "until"):
        if one in named and one in fields:
            return one
    return act.at if act.at in fields or not fields else sorted(fields)[0]
