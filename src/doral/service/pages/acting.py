"""What an operator can do to a campaign, as a part of its page: shown to those who may, and to nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import escape
from urllib.parse import quote

from doral.live.page.facts import ArmFacts, CampaignFacts
from doral.live.page.file import page_name
from doral.live.views.decision import Decision
from doral.live.views.text import MONEY, moment
from doral.pages.names import short
from doral.pages.numbers import count, figure
from doral.service.access.keys import Caller
from doral.service.pages.forms import (
    KEY_FIELD,
    Mistakes,
    button,
    form,
    fresh_key,
    hidden,
    text_field,
)
from doral.service.pages.forms_answers import campaign_path
from doral.service.pages.glossary import glossary

_NONE = Mistakes()
_MARKS = {"active": "good", "paused": "warn", "retired": ""}
_LONG = 48
_MOST_ARMS = 100  # of a table; each row has forms of its own


def act_path(campaign: str, act: str) -> str:
    """Where the form of an act is sent."""
    return campaign_path(campaign, "acts", act)


def actions(caller: Caller, facts: CampaignFacts) -> str:
    """All that this caller may do to this campaign, and what can be taken away from it; nothing for others.

    Args:
        caller: Who looks.
        facts: Of the campaign, as they are now.
    """
    steering = _steering(caller, facts) if caller.may("admin", campaign=facts.name) else ""
    taking = _downloads(facts.name) if caller.may("read", campaign=facts.name) else ""
    words = _section("words", "Words on this page", glossary()) if taking else ""
    return f'<div class="acting">{steering}{taking}{words}</div>' if steering or taking else ""


def ways(caller: Caller, facts: CampaignFacts) -> str:
    """Links to what `actions` shows at the end of a long page, for its top; nothing where that shows nothing.

    Args:
        caller: Who looks.
        facts: Of the campaign.
    """
    links = []
    if caller.may("admin", campaign=facts.name):
        links.append('<a class="button" href="#steer">Steer</a>')
    if caller.may("read", campaign=facts.name):
        links.append('<a class="button" href="#downloads">Download</a>')
        links.append('<a class="button" href="#words">Words</a>')
    return f'<span class="ways">{" ".join(links)}</span>' if links else ""


def _steering(caller: Caller, facts: CampaignFacts) -> str:
    if facts.state == "closed":
        return _section("steer", "Steer", "<p>The campaign is closed: nothing about it can be changed any more.</p>")
    return _section("steer", "Steer", f'{_arms(caller, facts)}<div class="acts">{"".join(_acts(caller, facts))}</div>')


def _section(id_: str, title: str, html: str) -> str:
    return (
        f'<section id="{id_}" aria-labelledby="{id_}-title"><h2 id="{id_}-title">{escape(title)}</h2>{html}</section>'
    )


# --- arms -------------------------------------------------------------------------------------------------------------


def _arms(caller: Caller, facts: CampaignFacts) -> str:
    if len(facts.arms) > _MOST_ARMS:
        return _arm_by_name(caller, facts)
    rows = "".join(_arm_row(caller, facts.name, one) for one in facts.arms)
    return (
        '<div class="scroll" role="region" aria-labelledby="steer-caption" tabindex="0"><table class="steer">'
        '<caption id="steer-caption">A paused arm is not offered until it is resumed; a retired one never again.'
        '</caption><thead><tr><th scope="col">Arm</th><th scope="col">Now</th>'
        f'<th scope="col"><span class="unseen">What to do</span></th></tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _arm_by_name(caller: Caller, facts: CampaignFacts) -> str:
    """Where there are too many for a table."""
    field = text_field(
        "steered",
        "Name of an arm",
        name="arm",
        help_=f"There are {len(facts.arms):,}. One that is paused waits until it is resumed; a retired one is gone.",
        mistakes=_NONE,
        is_required=True,
    )
    buttons = "".join(
        f'<button type="submit" formaction="{escape(act_path(facts.name, act))}">{words}</button>'
        for act, words in (("pause", "Pause"), ("resume", "Resume"), ("retire", "Retire"))
    )
    return form(act_path(facts.name, "pause"), caller, f'{field}<div class="send">{buttons}</div>')


def _arm_row(caller: Caller, campaign: str, arm: ArmFacts) -> str:
    status = "always there" if arm.is_control else arm.status
    buttons = "" if arm.is_control else "".join(_arm_buttons(caller, campaign, arm))
    return (
        f'<tr><th scope="row">{escape(short(arm.name, _LONG))}</th>'
        f'<td><span class="mark {_MARKS.get(arm.status, "")}">{escape(status)}</span></td>'
        f'<td class="do">{buttons}</td></tr>'
    )


def _arm_buttons(caller: Caller, campaign: str, arm: ArmFacts) -> Iterator[str]:
    if arm.status == "retired":
        return
    does = [("resume", "Resume")] if arm.status == "paused" else [("pause", "Pause")]
    for act, words in [*does, ("retire", "Retire")]:
        label = f'<span class="unseen"> {escape(short(arm.name, _LONG))}</span>'
        inner = hidden("arm", arm.name) + f'<button type="submit">{words}{label}</button>'
        yield form(act_path(campaign, act), caller, inner)


# --- forms ------------------------------------------------------------------------------------------------------------


def _acts(caller: Caller, facts: CampaignFacts) -> Iterator[str]:
    yield _folded("Top up the budget", top_up_form(caller, facts.name, total=facts.total))
    yield _folded("Extend the end", extend_form(caller, facts.name, ends_at=facts.ends_at, horizon=facts.horizon))
    yield _folded("Add an arm", add_arm_form(caller, facts.name))
    yield _folded("Settle what is overdue", expire_form(caller, facts.name, overdue=facts.pending.overdue))
    yield _folded("Close the campaign", close_form(caller, facts.name))


def _folded(title: str, html: str) -> str:
    return f'<details class="panel"><summary>{escape(title)}</summary>{html}</details>'


def _form(caller: Caller, campaign: str, act: str, inner: str) -> str:
    """With a key of its own: sent twice, it is done once."""
    return form(act_path(campaign, act), caller, hidden(KEY_FIELD, fresh_key()) + inner)


def _send(words: str, look: str = "primary") -> str:
    return f'<div class="send">{button(words, look=look)}</div>'


def top_up_form(caller: Caller, campaign: str, *, total: float, value: str = "", mistakes: Mistakes = _NONE) -> str:
    """More budget; what it becomes is shown before it is done."""
    field = text_field(
        "amount",
        "How much more",
        value=value,
        help_=f"The budget is {figure(total, 6)} {MONEY} now. You see what it becomes before it is done.",
        mistakes=mistakes,
        is_required=True,
        more={"inputmode": "decimal"},
    )
    return _form(caller, campaign, "top-up", field + _send("Go on"))


def extend_form(
    caller: Caller,
    campaign: str,
    *,
    ends_at: float | None,
    horizon: int,
    value: str = "",
    mistakes: Mistakes = _NONE,
) -> str:
    """A later date, or more arrivals: whichever the end is."""
    if ends_at is None:
        field = text_field(
            "rounds",
            "How many more arrivals",
            value=value,
            help_=f"The end is after {horizon:,} now.",
            mistakes=mistakes,
            is_required=True,
            more={"inputmode": "numeric"},
        )
    else:
        field = text_field(
            "until",
            "New last day",
            value=value,
            help_=f"The end is {moment(ends_at, 'seconds')} UTC now; it can only become later. The day is included.",
            mistakes=mistakes,
            kind="date",
            is_required=True,
            more={"min": _day_after(ends_at)},
        )
    return _form(caller, campaign, "extend", field + _send("Extend"))


def _day_after(ends_at: float) -> str | None:
    try:
        return (datetime.fromtimestamp(ends_at, UTC) + timedelta(seconds=1)).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return None


def add_arm_form(
    caller: Caller,
    campaign: str,
    *,
    name: str = "",
    cost: str = "",
    features: str = "",
    has_features: bool = False,
    mistakes: Mistakes = _NONE,
) -> str:
    """A new arm. `has_features`: whether numbers may describe it; where they are due, they are asked for then."""
    fields = text_field("arm", "Name", value=name, mistakes=mistakes, is_required=True, more={"maxlength": "200"})
    fields += text_field(
        "cost",
        "Cost of one use",
        value=cost,
        help_="In the unit of the budget; empty: 1.",
        mistakes=mistakes,
        more={"inputmode": "decimal"},
    )
    if has_features:
        fields += text_field(
            "features",
            "Features",
            value=features,
            help_="Numbers separated by commas, as many as the other arms have; empty where they have none.",
            mistakes=mistakes,
        )
    return _form(caller, campaign, "add-arm", fields + _send("Add the arm"))


def expire_form(caller: Caller, campaign: str, *, overdue: int, mistakes: Mistakes = _NONE) -> str:
    """Decisions whose answer would come too late now."""
    now = f"{count(overdue, 'open decision is', 'open decisions are')} too old for an answer to count."
    if not overdue:
        now = "No open decision is too old for an answer to count."
    return f"<p>{escape(now)} A late answer is still noted.</p>" + _form(
        caller, campaign, "expire", _send("Settle them now")
    )


def close_form(caller: Caller, campaign: str, *, value: str = "", mistakes: Mistakes = _NONE) -> str:
    """The end of a campaign, for good: its name has to be typed."""
    field = text_field(
        "confirm",
        "Type the name of the campaign",
        value=value,
        help_=f"No more decisions, for good. Answers to open ones are still taken. Its name: {short(campaign, 60)}",
        mistakes=mistakes,
        is_required=True,
    )
    return _form(caller, campaign, "close", field + _send("Close it for good", "danger"))


def cancel_form(caller: Caller, campaign: str, decision: Decision) -> str:
    """For the page of a decision: shown where it is open and the caller may decide; nothing otherwise.

    Args:
        caller: Who looks.
        campaign: Its name.
        decision: As it stands.
    """
    if decision.state != "pending" or not caller.may("decide", campaign=campaign):
        return ""
    inner = hidden(KEY_FIELD, fresh_key()) + button("Cancel this decision")
    words = "Was it not carried out? Its cost then comes back to the budget, and it is forgotten as far as possible."
    return (
        f'<div class="acting cancel"><p class="help">{words}</p>'
        f"{form(campaign_path(campaign, 'decisions', decision.id, 'cancel'), caller, inner)}</div>"
    )


# --- downloads --------------------------------------------------------------------------------------------------------


def _downloads(campaign: str) -> str:
    api = f"/v1/campaigns/{quote(campaign, safe='')}"
    links = (
        (f"{api}/export?format=parquet", "", "Decisions as Parquet"),
        (f"{api}/export?format=csv", "", "Decisions as CSV"),
        (f"{api}/report", page_name(campaign, "-report.json"), "Report as JSON"),  # the others say how they are called
        (campaign_path(campaign, "page.html"), "", "This page as a file"),
    )
    shown = "".join(
        f'<li><a class="button" href="{escape(path)}" download="{escape(name)}">{words}</a></li>'
        for path, name, words in links
    )
    return _section("downloads", "Take it with you", f'<ul class="downloads">{shown}</ul>')
