"""`/`: all campaigns that a caller may see, a line each; the lines that moved are sent to pages that are open."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from markupsafe import Markup

from doral.errors import DoralError
from doral.live.page.page import PACES
from doral.service.access.guard import page_caller
from doral.service.access.keys import Caller
from doral.service.pages.overview_rows import Line, Overview, Seen, Shown
from doral.service.pages.shell import refused_page, render, templates
from doral.service.responses import problem_reply, reply
from doral.service.service import Service, service_of

router = APIRouter(include_in_schema=False)

_STATES = {
    "open": ("open", "good"),
    "racing": ("in its race", "good"),
    "paused": ("paused", "warn"),
    "closed": ("closed", ""),
    "reading": ("being read", ""),
    "failed": ("cannot be read", "bad"),
}
_VIEWS: dict[str, tuple[str, Callable[[Line], bool]]] = {  # of the list
    "all": ("All", lambda one: True),
    "attention": ("Need attention", lambda one: one.needs_attention),
    "open": ("Open", lambda one: one.state in ("open", "racing", "paused")),
    "closed": ("Closed", lambda one: one.state == "closed"),
}
_MOST_SHOWN = 500  # lines of one page: thousands are slow in every browser, and nobody reads them
_TOKEN = secrets.token_hex(4)  # versions are counted anew by every process
_SPARK_WIDTH, _SPARK_HEIGHT = 120.0, 28.0


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
    show: str = "all",
) -> Response:
    """The list; `q` keeps those with a word in their name."""
    asked = q.strip()[:200]
    chosen = show if show in _VIEWS else "all"
    try:
        seen = await service.run(lambda: overview.look(_shown_to(caller, asked, chosen), at_once=True))
    except DoralError as error:
        return refused_page(request, caller, error)
    visible = _visible(caller, seen)
    matching = _found(visible, asked, chosen)
    lines, is_part = matching[:_MOST_SHOWN], len(visible) > _MOST_SHOWN
    counts = {name: sum(map(is_in, visible)) for name, (_, is_in) in _VIEWS.items()}
    # A script fetches the others, and filters by itself; unless they are too many.
    has_all = not asked or is_part
    return render(
        request,
        caller,
        "overview.html",
        title="Campaigns",
        scripts=("sorting.js", "live.js"),
        lines=lines,
        has_campaigns=bool(visible),
        asked=asked,
        chosen=chosen,
        views=[(name, words, counts[name]) for name, (words, _) in _VIEWS.items()],
        matching=len(matching),
        version=f"{_TOKEN}-{seen.version}" if has_all else "",
        part=asked if is_part else None,
        table=_table(lines),
    )


@router.get("/overview")
async def send_rows(
    request: Request,
    caller: Annotated[Caller, Depends(page_caller)],
    overview: Annotated[Overview, Depends(overview_of)],
    service: Annotated[Service, Depends(service_of)],
    since: str = "",
    q: str = "",
    show: str = "all",
) -> Response:
    """The lines that have changed since a version; all of them where campaigns came or went."""
    asked, chosen = q.strip()[:200], show if show in _VIEWS else "all"
    try:
        seen = await service.run(lambda: overview.look(_shown_to(caller, asked, chosen)))
    except DoralError as error:
        return problem_reply(error, instance=request.url.path)
    token, _, number = since.partition("-")
    version = int(number) if token == _TOKEN and number.isdecimal() and len(number) < 18 else 0
    lines = _found(_visible(caller, seen), asked, chosen)[:_MOST_SHOWN]
    is_whole = version < seen.members or (chosen != "all" and version < seen.version)
    rows = {} if is_whole else {one.name: str(_cells(one)) for one in lines if seen.changed[one.name] > version}
    found = {
        "version": f"{_TOKEN}-{seen.version}",
        "made_at": time.time(),
        "is_reading": any(one.state == "reading" for one in lines),
        "table": str(_table(lines)) if is_whole else None,
        "rows": rows,
    }
    return reply(found, headers={"Cache-Control": "no-store"})


def _shown_to(caller: Caller, asked: str, chosen: str) -> Shown:
    return lambda seen: [one.name for one in _found(_visible(caller, seen), asked, chosen)[:_MOST_SHOWN]]


def _visible(caller: Caller, seen: Seen) -> list[Line]:
    return [one for one in seen.lines.values() if caller.sees(one.name)]


def _found(lines: list[Line], asked: str, chosen: str) -> list[Line]:
    is_in = _VIEWS[chosen][1]
    return [one for one in lines if asked.lower() in one.name.lower() and is_in(one)]


def _macros() -> Any:
    return templates().get_template("overview_rows.html").module


def _table(lines: Sequence[Line]) -> Markup:
    made: Markup = _macros().table(lines, _cells) if lines else Markup("")
    return made


@lru_cache(maxsize=4_096)  # most lines are the same from one look to the next
def _cells(one: Line) -> Markup:
    made: Markup = _macros().cells(one, _STATES, PACES, spark)
    return made


def spark(one: Line) -> Markup:
    """Spending so far as a line, the plan until now as a dashed one; both are told in numbers beside it."""
    if not one.curve or one.is_partial:
        return Markup("")
    end = one.curve[-1][0] or 1.0
    high = max(one.pace.planned, *(used for _, used in one.curve), 1e-12)

    def at(place: float, amount: float) -> str:
        x, y = _SPARK_WIDTH * place / end, _SPARK_HEIGHT - 2.0 - (_SPARK_HEIGHT - 4.0) * amount / high
        return f"{x:.1f},{y:.1f}"

    since, planned = one.bend
    bend = f" {at(since, planned)}" if 0.0 < since < end else ""
    used = " ".join(at(*point) for point in one.curve)
    # Numbers alone: no word from outside is in it.
    return Markup(
        f'<svg class="spark" viewBox="0 0 {_SPARK_WIDTH:g} {_SPARK_HEIGHT:g}" preserveAspectRatio="none" '
        f'aria-hidden="true"><polygon class="area spent" points="{at(0.0, 0.0)} {used} {at(end, 0.0)}"/>'
        f'<polyline class="line plan" points="{at(0.0, 0.0)}{bend} {at(end, one.pace.planned)}"/></svg>'
    )
