"""The first page: all campaigns at a glance."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.errors import DoralError
from doral.live.views.text import moment, share
from doral.pages.markup import Datum, Row, row_html, table
from doral.pages.meters import meter
from doral.pages.names import printable, short
from doral.pages.numbers import count, figure
from doral.service.access.guard import page_caller
from doral.service.access.keys import Caller
from doral.service.pages.forms_answers import campaign_path
from doral.service.pages.overview_rows import Line, Overview, Seen, Shown
from doral.service.pages.refused import refused_page
from doral.service.pages.shell import shell
from doral.service.responses import problem_reply, reply
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)

_PACES = {"on plan": "good", "ahead of plan": "warn", "behind plan": "warn", "used up": "bad"}
_STATES = {
    "open": ("open", "good"),
    "racing": ("in its race", "good"),
    "paused": ("paused", "warn"),
    "closed": ("closed", ""),
    "reading": ("being read", ""),
    "failed": ("cannot be read", "bad"),
}
_HEADS = ("Campaign", "State", "Alarms", "Budget", "Arrivals", "Reward", "Pending", "Last event (UTC)")
_FEW = 8  # campaigns that are found without a box to filter them by
_MOST_SHOWN = 500  # lines of one page: thousands are slow in every browser, and nobody reads them
_TOKEN = secrets.token_hex(4)  # versions are counted anew by every process


def overview_of(request: Request) -> Overview:
    """A dependency of routes."""
    state = request.app.state
    if not hasattr(state, "overview"):
        state.overview = Overview(service_of(request).store)
    found: Overview = state.overview
    return found


@router.get("/")
async def show(
    request: Request,
    caller: Annotated[Caller, Depends(page_caller)],
    overview: Annotated[Overview, Depends(overview_of)],
    service: Annotated[Service, Depends(service_of)],
    q: str = "",
) -> Response:
    """The page."""
    asked = q.strip()[:200]
    try:
        seen = await service.run(lambda: overview.look(_shown_to(caller, asked), at_once=True))
    except DoralError as error:
        return refused_page(request, caller, error)
    main = _main(caller, seen, asked)
    return shell(request, caller, title="Campaigns", main=main, scripts=("sorting.js", "overview.js"))


@router.get("/overview")
async def send_rows(
    request: Request,
    caller: Annotated[Caller, Depends(page_caller)],
    overview: Annotated[Overview, Depends(overview_of)],
    service: Annotated[Service, Depends(service_of)],
    since: str = "",
    q: str = "",
) -> Response:
    """The lines that have changed since a version; all of them where campaigns came or went."""
    asked = q.strip()[:200]
    try:
        seen = await service.run(lambda: overview.look(_shown_to(caller, asked)))
    except DoralError as error:
        return problem_reply(error, instance=request.url.path)
    token, _, number = since.partition("-")
    version = int(number) if token == _TOKEN and number.isdecimal() and len(number) < 18 else 0
    lines = _found(_visible(caller, seen), asked)[:_MOST_SHOWN]
    is_whole = version < seen.members
    found = {
        "version": f"{_TOKEN}-{seen.version}",
        "is_reading": any(one.state == "reading" for one in lines),
        "table": _table(caller, lines) if is_whole else None,
        "rows": {} if is_whole else {one.name: _row(one) for one in lines if seen.changed[one.name] > version},
    }
    return reply(found, headers={"Cache-Control": "no-store"})


def _shown_to(caller: Caller, asked: str) -> Shown:
    return lambda seen: [one.name for one in _found(_visible(caller, seen), asked)[:_MOST_SHOWN]]


def _visible(caller: Caller, seen: Seen) -> list[Line]:
    return [one for one in seen.lines.values() if caller.sees(one.name)]


def _found(lines: list[Line], asked: str) -> list[Line]:
    return [one for one in lines if asked.lower() in one.name.lower()] if asked else lines


def _main(caller: Caller, seen: Seen, asked: str) -> str:
    lines = _visible(caller, seen)
    matching = _found(lines, asked)
    shown, is_part = matching[:_MOST_SHOWN], len(lines) > _MOST_SHOWN
    new = '<a class="button primary" href="/new">New campaign</a>' if caller.may("admin") and lines else ""
    box = ""
    if len(lines) > _FEW or asked:
        box = (
            '<form class="find" role="search" method="get" action="/"><label for="filter">Filter by name</label> '
            f'<input id="filter" name="q" type="search" autocomplete="off" value="{escape(asked)}"></form>'
        )
    open_ones = sum(one.state in ("open", "racing") for one in lines)
    told = f"{count(len(lines), 'campaign', 'campaigns')}, {open_ones:,} open" if lines else ""
    if len(matching) > len(shown):
        told += f"; the first {len(shown):,} of {len(matching):,} by name: filter, and press Enter, for others"
    hidden = "" if asked and not shown else " hidden"
    # A script fetches the others, and filters by itself; unless they are too many.
    version = "" if asked and not is_part else f"{_TOKEN}-{seen.version}"
    part = f' data-part="{escape(asked)}"' if is_part else ""
    return (
        '<h1>Campaigns</h1><div class="over">'
        '<p class="pill" id="status" role="status" data-state="plain">As loaded</p>'
        f"<span>{told}</span>{new}{box}</div>"
        f'<div id="list" data-version="{version}"{part}>{_table(caller, shown) if shown or not asked else ""}</div>'
        f'<p id="none-found"{hidden}>No campaign has that in its name.</p>'
        "<noscript><p>Without scripts this page does not move by itself: load it again to see what is new.</p>"
        "</noscript>"
    )


def _table(caller: Caller, lines: Sequence[Line]) -> str:
    if not lines:
        return _empty(caller)
    made = table(
        name="campaigns-table",
        caption="The bar is what is spent or reserved; the mark is what was planned by now.",
        heads=_HEADS,
        rows=[_line_row(one) for one in lines],
        is_sortable=True,
    )
    return f'<div class="overview">{made}</div>'


def _empty(caller: Caller) -> str:
    if caller.may("admin"):
        return (
            '<div class="none"><p><strong>No campaign yet.</strong></p><p>A campaign spends a budget on whoever '
            'arrives, and learns from the answers.</p><p><a class="button primary" href="/new">Create one</a></p></div>'
        )
    return '<div class="none"><p><strong>There is no campaign that this key is for.</strong></p></div>'


def _row(one: Line) -> str:
    return row_html(_line_row(one))


def _line_row(one: Line) -> Row:
    words, look = _STATES[one.state]
    name = Datum(
        html=f'<a href="{escape(campaign_path(one.name))}">{escape(short(one.name, 48))}</a>',
        sort=printable(one.name).lower(),
        is_head=True,
        title=printable(one.name) if short(one.name, 48) != printable(one.name) else "",
    )
    state = Datum(
        html=f'<span class="mark {look}">{words}</span>', sort=words, title=short(one.trouble, 300), look="short"
    )
    if one.state in ("reading", "failed"):
        blank = [Datum(html="", look="number")] * 3
        data = (name, state, _alarms(one), Datum(html="", look="budget"), *blank, Datum(html="", look="short"))
        return Row(data=data, key=one.name)
    return Row(
        data=(
            name,
            state,
            _alarms(one),  # so early that a phone shows them
            _budget(one),
            _number(f"{one.arrivals:,}", one.arrivals),
            _number(figure(one.reward), one.reward),
            _number(f"{one.pending:,}", one.pending),
            Datum(html=moment(one.last_at, "seconds", seconds=True), sort=one.last_at, look="short"),
        ),
        key=one.name,
    )


def _number(words: str, value: float) -> Datum:
    return Datum(html=words, sort=value, look="number")


def _alarms(one: Line) -> Datum:
    html = f'<span class="mark bad">{one.alarms:,}</span>' if one.alarms else "0"
    return Datum(html=html, sort=one.alarms, look="number")


def _budget(one: Line) -> Datum:
    used = (one.spent + one.reserved) / one.total
    bar = meter(
        [("spent", one.spent / one.total), ("reserved", one.reserved / one.total)],
        look="track",
        mark=one.planned / one.total,
    )
    look = _PACES.get(one.pace, "")
    words = f'<span class="mark {look}">{one.pace}</span> {share(used)} of {figure(one.total)}, '
    words += f"{share(one.planned / one.total)} planned by now"
    return Datum(html=f"{bar}<small>{words}</small>", sort=used, look="budget", title=one.words)
