"""Where the forms of a campaign's page are sent. After an act one is brought back; loading that again sends nothing."""

from __future__ import annotations

from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.errors import DoralError, UnknownName
from doral.live.campaign import Campaign
from doral.live.page.facts import CampaignFacts
from doral.live.page.file import page_name
from doral.live.page.page import page
from doral.pages.names import short
from doral.pages.numbers import figure
from doral.service.access.guard import act_of, form_needs, page_needs
from doral.service.access.keys import Caller
from doral.service.pages import acting
from doral.service.pages.acting_messages import telling
from doral.service.pages.acting_work import ACTS, Done, Sure, field_of
from doral.service.pages.forms import (
    KEY_FIELD,
    Mistakes,
    button,
    facts_list,
    form,
    fresh_key,
    hidden,
    words_of,
)
from doral.service.pages.forms_answers import campaign_path, see
from doral.service.pages.forms_reading import Sent, read_form
from doral.service.pages.refused import refused_page
from doral.service.pages.shell import shell
from doral.service.routes.reports import disposition
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)
_NOTHING_SENT = Sent(texts={}, files={})
_FIELDS: dict[str, tuple[str, ...]] = {
    "top-up": ("amount",),
    "extend": ("rounds", "until"),
    "add-arm": ("arm", "cost", "features"),
    "expire": (),
    "close": ("confirm",),
}


@router.get("/campaigns/{name}/acts/{act}")
async def show(
    request: Request,
    name: str,
    act: str,
    caller: Annotated[Caller, Depends(page_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
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
    caller: Annotated[Caller, Depends(form_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
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
            return _are_you_sure(request, caller, acting.act_path(name, act), sure, key, back=back)

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
    service: Annotated[Service, Depends(service_of)],
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
                    ("Arm", short(decision.arm or "none", 60)),
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
    service: Annotated[Service, Depends(service_of)],
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


# --- pages ------------------------------------------------------------------------------------------------------------


def _are_you_sure(request: Request, caller: Caller, path: str, sure: Sure, key: str | None, *, back: str) -> Response:
    carried = "".join(hidden(name, value) for name, value in sure.carries.items())
    inner = (
        f"{hidden(KEY_FIELD, key or fresh_key())}{hidden('sure', 'yes')}{carried}"
        f'<div class="send">{button(sure.send, look="danger" if sure.is_grave else "primary")}'
        f'<a class="button" href="{escape(back)}">Leave it as it is</a></div>'
    )
    main = (
        f'<div class="alone"><h1>{escape(short(sure.title, 80))}</h1><p>{escape(sure.words)}</p>'
        f"{facts_list(sure.facts) if sure.facts else ''}{form(path, caller, inner)}</div>"
    )
    return shell(request, caller, title=sure.title, main=main, scripts=("forms.js",))


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
    name, title = facts.name, ACTS[act].title
    made = {
        "top-up": lambda: acting.top_up_form(
            caller, name, total=facts.total, value=sent.one("amount"), mistakes=mistakes
        ),
        "extend": lambda: acting.extend_form(
            caller,
            name,
            ends_at=facts.ends_at,
            horizon=facts.horizon,
            value=sent.one("rounds") or sent.one("until"),
            mistakes=mistakes,
        ),
        "add-arm": lambda: acting.add_arm_form(
            caller,
            name,
            name=sent.one("arm"),
            cost=sent.one("cost"),
            features=sent.one("features"),
            has_features=True,
            mistakes=mistakes,
        ),
        "expire": lambda: acting.expire_form(caller, name, overdue=facts.pending.overdue, mistakes=mistakes),
        "close": lambda: acting.close_form(caller, name, value=sent.one("confirm"), mistakes=mistakes),
    }[act]()
    back = f'<p><a href="{escape(campaign_path(name))}">Back to {escape(short(name, 60))}</a></p>'
    main = f'<div class="alone"><h1>{escape(title)}</h1>{made}{back}</div>'
    return shell(request, caller, title=title, main=main, status=422 if mistakes else 200, scripts=("forms.js",))
