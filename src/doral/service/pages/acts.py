"""What people do to a campaign on its page: what a form has sent becomes a call, and mistakes stand at its fields.

After an act one is led back to the page; loading that again sends nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.kinds.change import top_up_amount
from doral.live.page.facts import CampaignFacts
from doral.live.page.file import page_name
from doral.live.page.page import page
from doral.live.runtime.clock import end_timestamp
from doral.live.storage.service_tables import AlarmRow
from doral.live.views.text import moment
from doral.pages.names import short
from doral.pages.numbers import count, figure, money
from doral.problem import Arm
from doral.service.access.guard import act_of, form_needs, page_needs
from doral.service.access.keys import Caller
from doral.service.pages.forms import KEY_FIELD, Mistakes, Sent, read_form, words_of
from doral.service.pages.shell import campaign_path, refused_page, render, see, telling
from doral.service.routes.reports import disposition
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)
Admin = Annotated[Caller, Depends(page_needs("admin"))]
AdminForm = Annotated[Caller, Depends(form_needs("admin"))]
Shared = Annotated[Service, Depends(service_of)]


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


# --- the whole campaign ---------------------------------------------------------------------------------------------


def _pause_campaign(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    del sent
    campaign.pause(key=key)
    return Done(code="campaign-paused")


def _resume_campaign(campaign: Campaign, sent: Sent, key: str | None) -> Done:
    del sent
    campaign.resume(key=key)
    return Done(code="campaign-resumed")


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
    return Done(code="topped-up", of=money(amount, campaign.problem.currency))


def _sure_to_top_up(campaign: Campaign, sent: Sent) -> Sure:
    amount, total, currency = _amount(sent), float(campaign.ledger().total), campaign.problem.currency
    return Sure(
        title="Raise the budget?",
        words="It cannot be lowered again.",
        facts=(
            ("Now", money(total, currency)),
            ("More", money(amount, currency)),
            ("It becomes", money(total + amount, currency)),
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
    "pause-campaign": Act(title="Pause the campaign", noted_as="campaign paused", at="", do=_pause_campaign),
    "resume-campaign": Act(title="Resume the campaign", noted_as="campaign resumed", at="", do=_resume_campaign),
    "pause": Act(title="Pause an option", noted_as="arm paused", at="arm", do=_pause, notes=("arm",)),
    "resume": Act(title="Resume an option", noted_as="arm resumed", at="arm", do=_resume, notes=("arm",)),
    "retire": Act(
        title="Retire an option", noted_as="arm retired", at="arm", do=_retire, ask=_sure_to_retire, notes=("arm",)
    ),
    "add-arm": Act(title="Add an option", noted_as="arm added", at="arm", do=_add_arm, notes=("arm", "cost")),
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


_FIELDS: dict[str, tuple[str, ...]] = {  # of the forms that have a page of their own
    "top-up": ("amount",),
    "extend": ("rounds", "until"),
    "add-arm": ("arm", "cost", "features"),
    "expire": (),
    "close": ("confirm",),
}
_NOTHING_SENT = Sent(texts={}, files={})


# --- routes -----------------------------------------------------------------------------------------------------------


@router.get("/campaigns/{name}/acts/{act}")
async def show(
    request: Request,
    name: str,
    act: str,
    caller: Admin,
    service: Shared,
) -> Response:
    """The form of an act on a page of its own."""
    try:
        if act not in _FIELDS:  # those of arms have buttons next to the arm
            raise UnknownName("act", act, _FIELDS)
        facts = await (await service.queue(name)).read(lambda campaign: campaign.facts())
    except DoralError as error:
        return refused_page(request, caller, error)
    return _alone(request, caller, facts, act, _NOTHING_SENT, Mistakes())


@router.post("/campaigns/{name}/acts/{act}")
async def do(
    request: Request,
    name: str,
    act: str,
    caller: AdminForm,
    service: Shared,
) -> Response:
    """Do it; where that needs a second yes, ask for it first."""
    sent = await read_form(request)
    back = campaign_path(name)
    try:
        if act not in ACTS:
            raise UnknownName("act", act, ACTS)
        desk = await service.queue(name)
    except DoralError as error:
        return refused_page(request, caller, error)
    asked = ACTS[act]
    key = sent.one(KEY_FIELD) or None
    try:
        ask = asked.ask
        if ask is not None and sent.one("sure") != "yes":
            sure = await desk.read(lambda campaign: ask(campaign, sent))
            return _are_you_sure(request, caller, act_path(name, act), sure, key, back=back)

        def change(campaign: Campaign) -> Done:
            with campaign.session.noting(
                lambda result: act_of(request, caller, asked.noted_as, name, **asked.details(sent, key, result))
            ):
                return asked.do(campaign, sent, key)

        done: Done = await desk.write(change)
    except DoralError as error:
        return await _wrong(request, caller, service, name, act, sent, error)
    return see(telling(caller, back, done.code, done.of))


@router.post("/campaigns/{name}/decisions/{decision_id}/cancel")
async def cancel(
    request: Request,
    name: str,
    decision_id: str,
    caller: Annotated[Caller, Depends(form_needs("decide"))],
    service: Shared,
) -> Response:
    """Take a decision back; asked for twice, since nobody can undo it."""
    sent = await read_form(request)
    back = campaign_path(name, "decisions", decision_id)
    key = sent.one(KEY_FIELD) or None
    try:
        desk = await service.queue(name)
        if sent.one("sure") != "yes":
            decision = await desk.read(lambda campaign: campaign.decision(decision_id))
            sure = Sure(
                title="Cancel this decision?",
                words="It was not carried out: its cost comes back to the budget, and no answer is waited for.",
                facts=(
                    ("Decision", decision.id),
                    ("Option", short(decision.arm or "none", 60)),
                    ("Comes back", figure(decision.cost, 6)),
                ),
                send="Cancel it",
                carries={},
                is_grave=True,
            )
            path = campaign_path(name, "decisions", decision_id, "cancel")
            return _are_you_sure(request, caller, path, sure, key, back=back)

        def take_back(campaign: Campaign) -> None:
            with campaign.session.noting(
                lambda _: act_of(request, caller, "decision cancelled", name, decision=decision_id)
            ):
                campaign.cancel(decision_id, key=key)

        await desk.write(take_back)
    except DoralError as error:
        return refused_page(request, caller, error, back=back)
    return see(telling(caller, back, "cancelled"))


@router.get("/campaigns/{name}/page.html")
async def page_file(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_needs("read"))],
    service: Shared,
) -> Response:
    """The page as a file that needs nothing but itself, as `Campaign.page` writes it."""
    try:
        text = await (await service.queue(name)).read(lambda campaign: page(campaign.facts()))
    except DoralError as error:
        return refused_page(request, caller, error)
    headers = {
        "Content-Disposition": disposition(page_name(name)),
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        # It has scripts of its own; whoever opens it here in spite of its being a file runs them nowhere near us.
        "Content-Security-Policy": "sandbox",
    }
    return Response(text, media_type="text/html; charset=utf-8", headers=headers)


# --- alarms -----------------------------------------------------------------------------------------------------------

_MUTES = {"day": ("for a day", 86_400.0), "week": ("for a week", 7 * 86_400.0)}


@router.post("/campaigns/{name}/alarms")
async def take_alarm(request: Request, name: str, caller: AdminForm, service: Shared) -> Response:
    """Acknowledge an alarm, mute it for a while, or end that: kept in the store, and noted."""
    sent = await read_form(request)
    rule, subject, step = sent.raw("rule"), sent.raw("subject"), sent.one("step")
    back = campaign_path(name)
    try:
        desk = await service.queue(name)
        tag, books = desk.campaign.session.row.tag, service.store.books
        details = {"rule": rule, "subject": subject}
        if step == "acknowledge":
            act = act_of(request, caller, "alarm acknowledged", name, **details)
            await service.run(lambda: books.acknowledge_alarm(name, rule, subject, time.time(), caller.name, act))
            return see(telling(caller, back, "acknowledged"))
        if step == "unmute":
            act = act_of(request, caller, "alarm unmuted", name, **details)
            await service.run(lambda: books.mute_alarm(tag, rule, subject, None, act))
            return see(telling(caller, back, "unmuted"))
        if step not in _MUTES:
            raise InvalidValue("step", step, "must be acknowledge, day, week or unmute")
        words, seconds = _MUTES[step]
        until = time.time() + seconds
        act = act_of(request, caller, "alarm muted", name, **details, until=until)

        def mute() -> None:
            books.mute_alarm(tag, rule, subject, until, act)
            books.clear_alarm(name, rule, subject, time.time())

        await service.run(mute)
    except DoralError as error:
        return refused_page(request, caller, error, back=back)
    return see(telling(caller, back, "muted", words))


@dataclass(frozen=True, kw_only=True)
class Alarms:
    """Of one campaign: those that are raised, and those that are muted, with the end of that."""

    raised: tuple[AlarmRow, ...] = ()
    muted: tuple[tuple[str, str, float], ...] = ()


def alarms_of(service: Service, name: str, tag: str) -> Alarms:
    """Nothing where the book cannot be read: the page of the campaign says why."""
    books = service.store.books
    try:
        muted = books.muted_alarms(tag, time.time())
        return Alarms(
            raised=tuple(books.alarms(campaign=name)),
            muted=tuple((rule, subject, until) for (rule, subject), until in sorted(muted.items())),
        )
    except DoralError:
        return Alarms()


# --- pages ------------------------------------------------------------------------------------------------------------


def act_path(campaign: str, act: str) -> str:
    """Where the form of an act is sent."""
    return campaign_path(campaign, "acts", act)


def day_after(ends_at: float | None) -> str | None:
    """The first day to which an end can be moved, for the field of a form."""
    if ends_at is None:
        return None
    try:
        return (datetime.fromtimestamp(ends_at, UTC) + timedelta(seconds=1)).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return None


def _are_you_sure(request: Request, caller: Caller, path: str, sure: Sure, key: str | None, *, back: str) -> Response:
    return render(
        request, caller, "sure.html", title=sure.title, scripts=("forms.js",), sure=sure, path=path, key=key, back=back
    )


async def _wrong(
    request: Request, caller: Caller, service: Service, name: str, act: str, sent: Sent, error: DoralError
) -> Response:
    """The form once more, with what was typed and what is wrong with it."""
    if act not in _FIELDS:
        return refused_page(request, caller, error, back=campaign_path(name))
    try:
        facts = await (await service.queue(name)).read(lambda campaign: campaign.facts())
    except DoralError:  # the store itself is the trouble
        return refused_page(request, caller, error, back=campaign_path(name))
    if facts.state == "closed":
        return refused_page(request, caller, error, back=campaign_path(name))
    mistakes = Mistakes()
    shown = {one for one in _FIELDS[act] if one in sent.texts}
    mistakes.add(field_of(ACTS[act], error, shown or {_FIELDS[act][0]}), words_of(error), label=ACTS[act].title)
    return _alone(request, caller, facts, act, sent, mistakes)


def _alone(
    request: Request, caller: Caller, facts: CampaignFacts, act: str, sent: Sent, mistakes: Mistakes
) -> Response:
    return render(
        request,
        caller,
        "act.html",
        title=ACTS[act].title,
        scripts=("forms.js",),
        status=422 if mistakes else 200,
        facts=facts,
        act=act,
        sent=sent,
        mistakes=mistakes,
        act_path=act_path,
        day_after=day_after,
    )
