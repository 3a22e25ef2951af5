"""Why: one decision, or what would be decided for an arrival now, in a sentence and a small picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup

from doral.errors import DoralError, InvalidValue
from doral.live.campaign import Campaign
from doral.live.errors import UnknownDecision
from doral.live.page.page import Tile
from doral.live.page.story import Story, story
from doral.live.views.decision import Decision
from doral.live.views.preview import Option, Preview
from doral.live.views.text import moment, span
from doral.pages.names import short
from doral.pages.numbers import figure, money
from doral.pages.svg import Axis, Drawing, Mark, fitting, label, nice_axis
from doral.person import Category
from doral.problem import Problem
from doral.service.access.guard import page_caller, page_needs
from doral.service.access.keys import Caller
from doral.service.pages.shell import campaign_path, refused_page, render, see
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)

_STATES = {
    "skipped": ("skipped", ""),
    "pending": ("open", "warn"),
    "returned": ("answered", "good"),
    "expired": ("expired", ""),
    "late": ("answered too late", "bad"),
    "cancelled": ("cancelled", ""),
}
_WIDE, _NARROW = 640.0, 350.0
_MOST_EFFECTS = _MOST_OPTIONS = 12
_LONGEST_QUERY = 1_000
Looker = Annotated[Caller, Depends(page_caller)]
Shared = Annotated[Service, Depends(service_of)]


# --- routes -----------------------------------------------------------------------------------------------------------


@router.get("/campaigns/{name}/decisions/{decision_id}")
async def show(request: Request, name: str, decision_id: str, caller: Looker, service: Shared) -> Response:
    """The page of one decision."""
    try:
        desk = await service.queue(name)
        told, now, problem = await desk.read(lambda campaign: _asked(campaign, decision_id))
    except UnknownDecision:
        return _nothing(request, caller, name, decision_id)
    except DoralError as error:
        return refused_page(request, caller, error)
    one = told.decision
    words, look = _STATES[one.state]
    return render(
        request,
        caller,
        "decision.html",
        title=_title(one),
        scripts=("times.js",),
        story=told,
        one=one,
        currency=problem.currency,
        state_words=words,
        state_look=look,
        tiles=list(_tiles(told, problem)),
        paragraphs=[words for words in _paragraphs(told) if words],
        picture=_picture(now, one, problem),
        effects=_effects(one),
        may_cancel=may_cancel(caller, name, one),
    )


def may_cancel(caller: Caller, campaign: str, one: Decision) -> bool:
    """Whether the page of a decision offers to take it back."""
    return one.state == "pending" and caller.may("decide", campaign=campaign)


@router.get("/campaigns/{name}/preview")
async def preview(
    request: Request,
    name: str,
    caller: Annotated[Caller, Depends(page_needs("read"))],
    service: Shared,
    group: str = "",
) -> Response:
    """What would be decided for an arrival now; nothing is stored, reserved or learned."""
    given = {one.removeprefix("f."): value for one, value in request.query_params.items() if one.startswith("f.")}
    mistake = ""
    would: Preview | None = None
    try:
        desk = await service.queue(name)
        problem = await desk.read(lambda campaign: campaign.problem)
        chosen = group or problem.context_names[0]
        is_asked = bool(group) or (not problem.person and problem.n_contexts == 1)
        if is_asked:
            try:
                features = _features(problem, given)
                would = await desk.read(
                    lambda campaign: (
                        campaign.preview(chosen, features=features) if features else campaign.preview(chosen)
                    )
                )
            except InvalidValue as error:
                mistake = str(error)
    except DoralError as error:
        return refused_page(request, caller, error, back=campaign_path(name))
    return render(
        request,
        caller,
        "preview.html",
        title=f"Preview for {short(name, 60)}",
        status=422 if mistake else 200,
        name=name,
        problem=problem,
        group=chosen,
        given=given,
        features=[
            (one.name, getattr(one, "levels", ()) if isinstance(one, Category) else ()) for one in problem.person
        ],
        would=would,
        mistake=mistake,
        picture=None if would is None else _drawn(would.options, would.price, would.arm, None, problem.currency),
    )


@router.get("/campaigns/{name}/find")
async def find(request: Request, name: str, caller: Looker, service: Shared, q: str = "") -> Response:
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


def _nothing(request: Request, caller: Caller, name: str, asked: str) -> Response:
    return render(request, caller, "nothing.html", title="Nothing found", status=404, name=name, asked=asked)


def _features(problem: Problem, given: dict[str, str]) -> dict[str, float | str | None]:
    """As they were typed: numbers as numbers, and nothing where nothing was typed."""
    found: dict[str, float | str | None] = {}
    for one in problem.person:
        text = given.get(one.name, "").strip()
        if isinstance(one, Category):
            found[one.name] = text or None
            continue
        try:
            found[one.name] = float(text) if text else None
        except ValueError:
            raise InvalidValue(one.name, text, "must be a number, such as 42 or 2.5") from None
    return found


def _asked(campaign: Campaign, decision_id: str) -> tuple[Story, Preview | None, Problem]:
    """The decision, and what its options are worth by today's estimates; None where none can be said."""
    told = story(campaign.session, decision_id)
    one = told.decision
    if one.is_recorded:
        return told, None, campaign.problem
    try:
        now = campaign.preview(one.context, available=one.available, features=one.features, weight=one.weight)
    except DoralError:  # it is closed, or arms of then are gone
        now = None
    return told, now, campaign.problem


# --- one decision -----------------------------------------------------------------------------------------------------


def _title(one: Decision) -> str:
    who = short(one.key if one.key is not None else one.id, 60)
    return f"Why {who} {'was skipped' if one.arm is None else f'got {short(one.arm, 60)}'}"


def _tiles(told: Story, problem: Problem) -> Iterator[Tile]:
    one, clock = told.decision, told.clock
    yield Tile("Group", short(one.context, 40), f"weight {figure(told.weight)}; arrival {one.round:,}")
    if one.key is not None:
        yield Tile("Key", short(one.key, 40), "that the request gave")
    yield Tile("Id", one.id, "by which answers are given")
    cost = one.cost if one.actual_cost is None else one.actual_cost
    if one.arm is not None:
        paid = f"of {figure(one.cost)} reserved" if one.actual_cost is not None else "reserved"
        yield Tile("Cost", money(cost, problem.currency), paid if one.is_in_ledger else "not of this budget")
    if one.reward is not None:
        name = (problem.outcome or "reward").capitalize()
        yield Tile(name, figure(one.reward), "" if one.delay is None else f"after {span(one.delay, clock)}")
    elif told.counts_until is not None and one.state == "pending":
        yield Tile("Counts until", moment(told.counts_until, clock), "an answer after that is too late")


def _paragraphs(told: Story) -> Iterator[str]:
    one = told.decision
    known = "" if one.features is None else "; ".join(f"{short(n, 40)}: {_value(v)}" for n, v in one.features.items())
    yield f"Known of the arrival: {known}." if known else ""
    if one.is_recorded:
        yield "The decision was made elsewhere and recorded here: why it was made is not known."
        return
    if one.available is None:
        had = "Every option that was offered then could be had."
    elif one.available:
        had = f"Could be had: {', '.join(short(name, 40) for name in one.available)}."
    else:
        had = "No option could be had."
    yield f"{had} {' '.join(_weighed(told))}"


def _weighed(told: Story) -> Iterator[str]:
    one = told.decision
    what = "a use of the option" if one.arm is not None else "the best option for this arrival"
    if one.value:
        weighed = f", weighed by {figure(told.weight)}," if told.weight != 1.0 else ""
        yield f"By the estimates of then, {what} was worth {figure(one.value, 3)}{weighed} in units of reward."
    if one.price > 0.0:
        yield f"A unit of budget returned {figure(one.price, 3)} elsewhere: that was its price."
    else:
        yield "Nothing competed for the budget: it had no price."
    if one.probability == 1.0:
        yield "No lot was drawn: the choice was certain."
    elif one.probability is not None:
        yield f"A lot was drawn: this choice had a probability of {figure(one.probability, 3)}."


def _value(value: float | str | None) -> str:
    if value is None:
        return "not known"
    return short(value, 40) if isinstance(value, str) else figure(value)


# --- pictures ---------------------------------------------------------------------------------------------------------


def _picture(now: Preview | None, one: Decision, problem: Problem) -> Markup | None:
    if now is None or not now.options:
        return None
    return _drawn(now.options, one.price, one.arm, one.return_here, problem.currency)


def _drawn(
    options: Sequence[Option], price: float, chosen: str | None, then: float | None, currency: str
) -> Markup | None:
    """A bar for the return per unit of each option, a line at the price, and a mark at what was chosen.

    Args:
        options: The best first.
        price: What a unit of budget buys elsewhere.
        chosen: The option that was chosen; None: skipped.
        then: Return per unit of the choice, as it was estimated when it was made.
        currency: Of the budget.
    """
    shown = [one for one in options if one.return_here is not None][:_MOST_OPTIONS]
    if chosen is not None and all(one.arm != chosen for one in shown):
        shown = [
            *shown[: _MOST_OPTIONS - 1],
            *(one for one in options if one.arm == chosen and one.return_here is not None),
        ]
    if not shown:
        return None
    says = "; ".join(f"{short(one.arm, 30)} {figure(one.return_here, 3)}" for one in shown)
    says += f"; the price is {figure(price, 3)}; chosen: {short(chosen, 30) if chosen else 'skip'}"
    drawings = "".join(
        _draw_options(shown, price, chosen, then, width).svg(
            id=f"why-{look}", title=f"Return per {currency or 'unit of budget'}, by option", says=says, look=look
        )
        for width, look in ((_WIDE, "wide"), (_NARROW, "narrow"))
    )
    return Markup(drawings)


def _draw_options(
    shown: Sequence[Option], price: float, chosen: str | None, then: float | None, width: float
) -> Drawing:
    names, values = min(0.36 * width, 190.0), 52.0
    sizes = [one.return_here or 0.0 for one in shown] + [price, then or 0.0]
    nice = nice_axis(min(0.0, *sizes), max(0.0, *sizes), most=4, words=figure)
    drawing = Drawing(
        width=width,
        height=30.0 * len(shown) + 52.0,
        x=nice,
        y=Axis(low=0.0, high=1.0),
        marks=[Mark(price, f"price {figure(price, 3)}", "mark cutoff")] if price > 0.0 else [],
        left=names,
        right=values,
    )
    for place, one in enumerate(shown):
        y, value = drawing.top + 30.0 * (place + 0.5), one.return_here or 0.0
        is_chosen = one.arm == chosen
        left, right = sorted((drawing.x(0.0), drawing.x(value)))
        drawing.add(label(fitting(("✓ " if is_chosen else "") + one.arm, names - 10.0), names - 8.0, y + 4.0, "end"))
        drawing.add(label(figure(value, 3), width - 2.0, y + 4.0, "end"))
        drawing.add(
            f'<rect class="bar{"" if is_chosen else " other"}" x="{left:.1f}" y="{y - 8:.1f}" '
            f'width="{max(0.5, right - left):.1f}" height="16"/>'
        )
        if is_chosen and then is not None:
            drawing.add(f'<circle class="then" cx="{drawing.x(then):.1f}" cy="{y:.1f}" r="5"/>')
    return drawing


def _effects(one: Decision) -> Markup | None:
    """What each feature of the arrival spoke for the option; None where there are none."""
    if one.base is None or not one.effects:
        return None
    ranked = sorted(one.effects.items(), key=lambda pair: -abs(pair[1]))[:_MOST_EFFECTS]
    says = "; ".join(f"{short(name, 30)} {figure(value, 3)}" for name, value in ranked)
    return Markup(
        "".join(
            _draw_effects(ranked, width).svg(
                id=f"effects-{look}", title="What each feature spoke for it", says=says, look=look
            )
            for width, look in ((_WIDE, "wide"), (_NARROW, "narrow"))
        )
    )


def _draw_effects(ranked: Sequence[tuple[str, float]], width: float) -> Drawing:
    names, values = min(0.36 * width, 190.0), 52.0
    sizes = [value for _, value in ranked]
    nice = nice_axis(min(0.0, *sizes), max(0.0, *sizes), most=4, words=figure)
    drawing = Drawing(
        width=width, height=26.0 * len(ranked) + 34.0, x=nice, y=Axis(low=0.0, high=1.0), left=names, right=values
    )
    for place, (name, value) in enumerate(ranked):
        y = drawing.top + 26.0 * (place + 0.5)
        left, right = sorted((drawing.x(0.0), drawing.x(value)))
        look = "bar" if value >= 0.0 else "bar against"
        drawing.add(label(fitting(name, names - 8.0), names - 8.0, y + 4.0, "end"))
        drawing.add(label(figure(value, 3), width - 2.0, y + 4.0, "end"))
        drawing.add(
            f'<rect class="{look}" x="{left:.1f}" y="{y - 7:.1f}" width="{max(0.5, right - left):.1f}" height="14"/>'
        )
    return drawing
