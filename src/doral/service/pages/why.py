"""Why somebody got what they got: one decision in sentences, and how to find it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.errors import DoralError, InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import UnknownDecision
from doral.live.page.story import Story, story
from doral.live.views.decision import Decision
from doral.live.views.text import MONEY, moment, span
from doral.pages.names import short
from doral.pages.numbers import figure
from doral.pages.svg import Axis, Drawing, fitting, label, nice_axis
from doral.service.access.guard import page_caller
from doral.service.access.keys import Caller
from doral.service.pages.acting import cancel_form
from doral.service.pages.acting_messages import message
from doral.service.pages.forms_answers import campaign_path, see
from doral.service.pages.refused import refused_page
from doral.service.pages.shell import shell
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)

_STATES = {
    "skipped": ("not served", ""),
    "pending": ("open", "warn"),
    "returned": ("answered", "good"),
    "expired": ("expired", ""),
    "late": ("answered too late", "bad"),
    "cancelled": ("cancelled", ""),
}
_WIDE, _NARROW = 640.0, 350.0
_MOST_EFFECTS = 12
_LONGEST_QUERY = 1_000


@router.get("/campaigns/{name}/decisions/{decision_id}")
async def show(
    request: Request,
    name: str,
    decision_id: str,
    caller: Annotated[Caller, Depends(page_caller)],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """The page of one decision."""
    try:
        desk = await service.queue(name)
        told = await desk.read(lambda campaign: story(campaign.session, decision_id))
    except UnknownDecision:
        return _nothing(request, caller, name, decision_id)
    except DoralError as error:
        return refused_page(request, caller, error)
    return shell(request, caller, title=_title(told.decision), main=_main(request, caller, told))


@router.get("/campaigns/{name}/find")
async def find(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_caller)],
    service: Annotated[Service, Depends(service_of)],
    q: str = "",
) -> Response:
    """To the decision of this id or key, or an honest no."""
    asked = q.strip()[:_LONGEST_QUERY]
    try:
        desk = await service.queue(name)
        found = await desk.read(lambda campaign: _find(campaign, asked)) if asked else None
    except DoralError as error:
        return refused_page(request, caller, error)
    if found is None:
        return _nothing(request, caller, name, asked)
    return see(campaign_path(name, "decisions", found))


def _find(campaign: Campaign, asked: str) -> str | None:
    """By id first, then by key: whatever cannot be one of them is simply not there."""
    try:
        return campaign.decision(asked).id
    except UnknownDecision:
        pass
    try:
        made = campaign.decision_with_key(asked)
    except InvalidValue:  # nothing that could be a key
        return None
    is_forgotten = made is not None and made.key is None  # the campaign still knows that it was used
    return None if made is None or is_forgotten else made.id


def search(name: str, tag: str, asked: str = "") -> str:
    """A box for the id or the key of a decision."""
    example = f' placeholder="{escape(tag)}-12"' if tag else ""
    return (
        f'<form class="find" role="search" action="{escape(campaign_path(name, "find"))}" method="get">'
        '<label for="find">Decision by id or key</label> '
        f'<input id="find" name="q" type="search" required maxlength="{_LONGEST_QUERY}" autocomplete="off"'
        f'{example} value="{escape(asked)}"> <button type="submit">Why?</button></form>'
    )


def _back(name: str) -> str:
    path = escape(campaign_path(name))
    return f'<p class="kicker"><a href="{path}">\N{LEFTWARDS ARROW} {escape(short(name, 60))}</a></p>'


def _nothing(request: Request, caller: Caller, name: str, asked: str) -> Response:
    words = (
        f"No decision of this campaign has the id or the key {short(asked, 80)!r}." if asked else "Nothing was asked."
    )
    main = (
        f"{_back(name)}<h1>Nothing found</h1><p>{escape(words)} A key is found as it was given, letter by letter, and "
        f"not at all after it was forgotten.</p>{search(name, '', asked)}"
    )
    return shell(request, caller, title="Nothing found", main=main, status=404)


# --- one decision ---------------------------------------------------------------------------------------------------


def _who(one: Decision) -> str:
    return short(one.key if one.key is not None else one.id, 60)


def _title(one: Decision) -> str:
    return f"Why {_who(one)} got {'nothing' if one.arm is None else short(one.arm, 60)}"


def _main(request: Request, caller: Caller, told: Story) -> str:
    one = told.decision
    state, look = _STATES[one.state]
    reason = f"{one.reason}."
    facts = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>'
        for name, value, more in _tiles(told)
    )
    sentences = "".join(f"<p>{escape(words)}</p>" for words in _paragraphs(told) if words)
    return (
        f"{message(request, caller)}{_back(told.campaign)}<h1>{escape(_title(one))}</h1>"
        f'<p class="marks"><span class="mark {look}">{state}</span></p>'
        f'<p class="lead-line">{escape(reason)}</p><dl class="tiles">{facts}</dl>'
        f'<section aria-labelledby="told"><h2 id="told">How it came to that</h2>{sentences}{_effects(one)}</section>'
        f'<section aria-labelledby="since"><h2 id="since">What became of it</h2>{_timeline(told)}</section>'
        f"{cancel_form(caller, told.campaign, one)}"
    )


def _tiles(told: Story) -> Iterator[tuple[str, str, str]]:
    one, clock = told.decision, told.clock
    utc = " UTC" if clock == "seconds" else ""
    yield "When", moment(one.decided_at, clock, seconds=True), f"arrival {one.round:,}{', in UTC' if utc else ''}"
    yield "Context", short(one.context, 40), f"weight {figure(told.weight)}"
    if one.key is not None:
        yield "Key", short(one.key, 40), "that the request gave"
    yield "Id", one.id, "by which answers are given"
    cost = one.cost if one.actual_cost is None else one.actual_cost
    paid = f"of {figure(one.cost)} reserved" if one.actual_cost is not None else "reserved"
    if one.arm is not None:
        yield "Cost", figure(cost), paid if one.is_in_ledger else "not of this campaign's budget"
    if one.reward is not None:
        yield "Reward", figure(one.reward), "" if one.delay is None else f"after {span(one.delay, clock)}"
    elif told.counts_until is not None and one.state == "pending":
        yield "Counts until", moment(told.counts_until, clock), f"an answer after that is too late{utc and ', UTC'}"


def _paragraphs(told: Story) -> Iterator[str]:
    one = told.decision
    known = "" if one.features is None else "; ".join(f"{short(n, 40)}: {_value(v)}" for n, v in one.features.items())
    yield f"Known of the person: {known}." if known else ""
    if one.available is None:
        had = "Every arm that was offered then could be had."
    elif one.available:
        had = f"Could be had: {', '.join(short(name, 40) for name in one.available)}."
    else:
        had = "No arm could be had."
    if one.is_recorded:
        yield "The decision was made elsewhere and recorded here: why it was made is not known."
        return
    yield f"{had} {' '.join(_weighed(told))}"
    yield f"What the other arms were thought to bring then is not stored. The policy is {told.policy}."


def _weighed(told: Story) -> Iterator[str]:
    one = told.decision
    what = "a use of the arm" if one.arm is not None else "the best arm for this one"
    if one.value:
        weighed = f", weighed as this one is (by {figure(told.weight)})" if told.weight != 1.0 else ""
        yield f"By what was known, {what} seemed worth {figure(one.value, 3)} in units of reward{weighed}."
    if one.price > 0.0:
        yield f"A unit of budget seemed to bring {figure(one.price, 3)} elsewhere: that was its price."
    else:
        yield "Nothing competed for the budget: it had no price."
    if one.probability is not None:
        chosen = "this arm" if one.arm is not None else "nothing"
        if one.probability == 1.0:
            yield f"No lot was drawn: it was certain to be {chosen}."
        else:
            chance = f"it was {chosen} with a probability of {figure(one.probability, 3)}"
            yield f"A lot was drawn: {chance}, by which other policies can be judged."


def _effects(one: Decision) -> str:
    """What each of what was known of the person spoke for the arm."""
    if one.base is None:
        return ""
    whom = "the arm" if one.arm is not None else "the arm that was thought of"
    told = f"<p>{escape(f'An average one was thought to bring {figure(one.base, 3)} with {whom}.')}</p>"
    if not one.effects:
        return told
    ranked = sorted(one.effects.items(), key=lambda pair: -abs(pair[1]))[:_MOST_EFFECTS]
    says = "; ".join(f"{short(name, 30)} {figure(value, 3)}" for name, value in ranked)
    drawings = "".join(
        _draw(ranked, width).svg(id=f"effects-{look}", title="What each feature spoke for it", says=says, look=look)
        for width, look in ((_WIDE, "wide"), (_NARROW, "narrow"))
    )
    return (
        f"{told}<h3>What each feature spoke for it</h3><p>In units of reward beyond an average one; to the left of "
        f'zero: against it.</p><figure class="effects">{drawings}</figure>'
    )


def _value(value: float | str | None) -> str:
    if value is None:
        return "not known"
    return short(value, 40) if isinstance(value, str) else figure(value)


def _draw(effects: Sequence[tuple[str, float]], width: float) -> Drawing:
    names, values = min(0.34 * width, 170.0), 56.0
    low, high = min(0.0, *(value for _, value in effects)), max(0.0, *(value for _, value in effects))
    nice = nice_axis(low, high, most=5, words=figure)
    x = Axis(low=nice.low, high=nice.high, ticks=nice.ticks)
    height = 26.0 * len(effects) + 34.0
    drawing = Drawing(width=width, height=height, x=x, y=Axis(low=0.0, high=1.0), left=names, right=values)
    for at, _ in x.ticks:
        ends = f'x1="{drawing.x(at):.1f}" x2="{drawing.x(at):.1f}" y1="{drawing.top:.1f}" y2="{drawing.bottom:.1f}"'
        drawing.add(f'<line class="{"tick" if at == 0.0 else "grid"}" {ends}/>')
    for place, (name, value) in enumerate(effects):
        y = drawing.top + 26.0 * (place + 0.5)
        left, right = sorted((drawing.x(0.0), drawing.x(value)))
        look = "bar" if value >= 0.0 else "bar against"
        drawing.add(label(fitting(name, names - 8.0), names - 8.0, y + 4.0, "end"))
        drawing.add(label(figure(value, 3), width - 2.0, y + 4.0, "end"))
        drawing.add(
            f'<rect class="{look}" x="{left:.1f}" y="{y - 7:.1f}" width="{max(right - left, 1.0):.1f}" height="14"/>'
        )
    return drawing


def _timeline(told: Story) -> str:
    one, clock = told.decision, told.clock
    steps = "".join(_step(step.kind, moment(step.at, clock, seconds=True), step.words) for step in told.steps)
    if one.state == "pending":
        until = "" if told.counts_until is None else f"; one counts until {moment(told.counts_until, clock)}"
        steps += _step("open", "", f"no answer yet{until}")
    if one.reward is not None and one.state == "returned" and one.arm is not None:
        worth, cost = told.weight * one.reward, one.cost if one.actual_cost is None else one.actual_cost
        per = f" for {figure(cost)} {MONEY}" if cost > 0 else ""
        steps += _step("open", "", f"it brought {figure(worth)}{per}")
    zone = "Times are in UTC." if clock == "seconds" else "Times are rounds."
    return f'<ol class="timeline">{steps}</ol><p><small>{zone}</small></p>'


def _step(kind: str, when: str, words: str) -> str:
    told = escape(f"{words[0].upper()}{words[1:]}.")
    return f'<li class="{kind}"><span class="when">{when}</span> <span>{told}</span></li>'
