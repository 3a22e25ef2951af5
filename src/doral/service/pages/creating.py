"""`/new`: a campaign is described by a form or a file, shown in words, and then created."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from doral.engine.options import make_policy as policy_by_name
from doral.errors import DoralError, InvalidValue
from doral.live.runtime.clock import end_timestamp
from doral.live.views.text import moment, share, span
from doral.pages.names import short
from doral.pages.numbers import count, figure, money
from doral.problem import Arm, Problem
from doral.service.access.guard import act_of, form_needs, page_needs
from doral.service.access.keys import Caller
from doral.service.creation import Wanted, create
from doral.service.pages.creating_values import (
    LABELS,
    LEAST_ARM_ROWS,
    LEAST_CONTEXT_ROWS,
    MORE_ROWS,
    MOST_ROWS,
    Asked,
    Typed,
    asked_of,
    asked_of_file,
    seed_of,
)
from doral.service.pages.forms import KEY_FIELD, MAX_FILE_BYTES, Choice, Mistakes, Sent, read_form
from doral.service.pages.shell import campaign_path, refused_page, render, see, telling
from doral.service.service import Service, service_of
from doral.simulation.catalogue.descriptions import PRESET_WORDS

router = APIRouter(include_in_schema=False)
_TITLE = "New campaign"
_SCRIPTS = ("forms.js",)
_MOST_FIELDS = 4 * MOST_ROWS + 100


async def _with_room(request: Request, caller: Annotated[Caller, Depends(page_needs("admin"))]) -> None:
    """Forms with many rows, and problems of thousands of arms that travel along, are read in spite of their size."""
    del caller  # of strangers nothing is read
    await request.form(max_fields=_MOST_FIELDS, max_part_size=4 * MAX_FILE_BYTES)


@router.get("/new")
async def describe(request: Request, caller: Annotated[Caller, Depends(page_needs("admin"))]) -> Response:
    """The empty form."""
    return _describing(request, caller)


@router.post("/new", dependencies=[Depends(_with_room)])
async def take_form(
    request: Request,
    caller: Annotated[Caller, Depends(form_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """Check it, show it again, or create what was shown."""
    sent = await read_form(request)
    typed = Typed.of(sent)
    step = sent.one("step")
    if step == "create":
        return await _create(request, caller, service, sent)
    if step in ("rows", "edit"):
        return _describing(request, caller, typed=typed, more_rows=MORE_ROWS if step == "rows" else 0)
    asked, mistakes = await service.run(lambda: asked_of(typed, taken=set(service.store.list())))
    if asked is None:
        return _describing(request, caller, typed=typed, mistakes=mistakes)
    return _reviewing(request, caller, asked, typed)


@router.post("/new/file")
async def take_file(
    request: Request,
    caller: Annotated[Caller, Depends(form_needs("admin"))],
    service: Annotated[Service, Depends(service_of)],
) -> Response:
    """Show what a file asks for."""
    sent = await read_form(request)

    def read() -> Asked:
        asked = asked_of_file(
            sent.files.get("file"), name=sent.one("name"), policy=sent.one("policy"), clock=sent.one("clock")
        )
        asked.check()
        if asked.name in service.store.list():
            raise InvalidValue("name", asked.name, "is the name of a campaign that is there already; give another")
        return asked

    try:
        asked = await service.run(read)
    except DoralError as error:
        mistakes = Mistakes()
        is_name = isinstance(error, InvalidValue) and error.field in ("name", "name of a campaign")
        if is_name:
            mistakes.take("file-name", error, label="Name")
        elif isinstance(error, InvalidValue) and error.field == "problem file":
            mistakes.take("file", error, label="File")
        else:
            mistakes.add("file", f"{error}.", label="File")
        return _describing(request, caller, file_mistakes=mistakes, file_values=Typed.of(sent))
    return _reviewing(request, caller, asked, None)


async def _create(request: Request, caller: Caller, service: Service, sent: Sent) -> Response:
    seed = seed_of(sent.one(KEY_FIELD))

    def make() -> str:
        asked = Asked.from_json(sent.raw("asked"))
        asked.check()
        wanted = Wanted(
            name=asked.name,
            problem=asked.problem,
            policy=asked.policy_options,
            clock=asked.clock,
            seed=seed,
            until=asked.until,
        )
        act = act_of(request, caller, "campaign created", asked.name)
        made, _ = create(service.store, wanted, may_be_there=True, act=act)  # the same form may be sent twice
        return made.name

    try:
        name = await service.run(make)
    except DoralError as error:
        return refused_page(request, caller, error, back="/new")
    return see(telling(caller, campaign_path(name), "created"))


# --- the form ---------------------------------------------------------------------------------------------------------

_EMPTY = Typed()
_RARE = (
    "feedback",
    "paid",
    "counted",
    "reserve",
    "return_at_least",
    "baseline",
    "reward_low",
    "reward_high",
    "clock",
    "options",
)
_USUAL = ("", "explicit", "always", "within_deadline", "seconds")

_FEEDBACK = (
    Choice(value="explicit", words="come, too: silence means that nothing is known yet"),
    Choice(value="silent", words="never come: no news and a reward of 0 look the same, as with conversions"),
)
_PAID = (
    Choice(value="always", words="for every use of an arm"),
    Choice(value="on_answer", words="only when an answer comes within its deadline"),
)
_COUNTED = (
    Choice(value="within_deadline", words="all that come within their deadline, also after the last arrival"),
    Choice(value="by_end", words="only those that have come by the end"),
)
_CLOCK = (
    Choice(value="seconds", words="seconds: deadlines are real time"),
    Choice(value="rounds", words="rounds: one for each arrival"),
)


def live_policies() -> list[Choice]:
    """The presets that a campaign can run, each with its line: those that know the truth only simulate."""
    return [
        Choice(value=name, words=f"{name}: {words}", group=group)
        for group, names in PRESET_WORDS.items()
        for name, words in names.items()
        if _can_run(name)
    ]


def _can_run(name: str) -> bool:
    options = policy_by_name(name)
    return "oracle" not in (options.return_probability, options.sampling) and options.censoring != "instant"


def _describing(
    request: Request,
    caller: Caller,
    *,
    typed: Typed = _EMPTY,
    mistakes: Mistakes | None = None,
    file_mistakes: Mistakes | None = None,
    file_values: Typed = _EMPTY,
    more_rows: int = 0,
) -> Response:
    """The page. What was typed is kept; a file has to be chosen again, as browsers have it."""
    mistakes, file_mistakes = mistakes or Mistakes(), file_mistakes or Mistakes()
    n_arms = max(LEAST_ARM_ROWS, len(typed.arms) + more_rows)
    n_contexts = max(LEAST_CONTEXT_ROWS, len(typed.contexts) + more_rows)
    return render(
        request,
        caller,
        "describe.html",
        title=_TITLE,
        scripts=_SCRIPTS,
        status=422 if mistakes or file_mistakes else 200,
        typed=typed,
        mistakes=mistakes,
        file_mistakes=file_mistakes,
        file_values=file_values,
        labels=LABELS,
        arms=[*typed.arms, *[("", "")] * (n_arms - len(typed.arms))],
        contexts=[*typed.contexts, *[("", "")] * (n_contexts - len(typed.contexts))],
        policies=live_policies(),
        choices={"feedback": _FEEDBACK, "paid": _PAID, "counted": _COUNTED, "clock": _CLOCK},
        is_rare=any(name in mistakes.by_field or typed.one(name) not in _USUAL for name in _RARE),
    )


# --- in words, before it is created -----------------------------------------------------------------------------------

_MOST = 50  # rows of a table
_LONG = 60


def _reviewing(request: Request, caller: Caller, asked: Asked, typed: Typed | None) -> Response:
    """The page. `typed`: what the form held, so that it can be changed; None: it came from a file."""
    return render(
        request,
        caller,
        "review.html",
        title=asked.name,
        asked=asked,
        typed=typed,
        facts=list(_facts(asked)),
        arms=asked.problem.arms[:_MOST],
        contexts=asked.problem.contexts[:_MOST],
        most=_MOST,
        cost_words=cost_words,
    )


def _facts(asked: Asked) -> Iterator[tuple[str, str]]:
    problem = asked.problem
    yield "Budget", f"{money(problem.budget, problem.currency)}{_reach(problem)}"
    yield "End", _end(asked)
    if problem.deadline is not None:
        yield "Deadline", f"an answer counts if it comes within {span(problem.deadline, asked.clock)}"
    else:
        yield "Deadline", "none for all: every answer counts, unless its group says otherwise"
    if problem.feedback == "silent":
        yield "Answers", "no news and a reward of 0 look the same"
    else:
        yield "Answers", "come also when their reward is 0"
    if problem.paid == "on_answer":
        yield "Costs", f"are paid when an answer comes in time; reserve {figure(problem.reserve)}"
    if problem.counted == "by_end":
        yield "Counted", "only answers that have come by the end"
    if problem.return_at_least:
        yield "Least return", f"{figure(problem.return_at_least)} units of reward for a unit of budget"
    if problem.baseline is not None:
        yield "Skipping", _skipping(problem)
    if problem.person:
        names = ", ".join(short(one, 30) for one in problem.person_names[:12])
        yield "Known of people", names + (" and more" if len(problem.person) > 12 else "")
    if problem.reserves:
        yield "Reserves", ", ".join(f"{share(part)} for tier {tier} and above" for tier, part in problem.reserves)
    words = next((names[asked.policy] for names in PRESET_WORDS.values() if asked.policy in names), "")
    words = words.removeprefix("Start here: ")  # that is for whoever still has to choose
    yield "Policy", f"{asked.policy}: {words}" if words else asked.policy
    if asked.options:
        yield "Its options", ", ".join(f"{name} = {value}" for name, value in asked.options.items())
    if asked.clock == "rounds":
        yield "Clock", "counts rounds, one for each arrival"


def _reach(problem: Problem) -> str:
    """How far it goes, on average over the arms that cost something."""
    costs = [one.dearest for one in problem.arms if one.dearest > 0]
    if not costs:
        return ""
    served = problem.budget / (sum(costs) / len(costs))
    if problem.until is not None and problem.expected_arrivals is None:
        return f": about {figure(served, 3)} uses of an option of average cost"
    part = min(served / problem.expected_rounds, 1.0)
    return f": enough for about {share(part)} of all arrivals, with options of average cost"


def _end(asked: Asked) -> str:
    problem = asked.problem
    expected = problem.expected_arrivals
    if asked.until is not None:
        expected = expected or problem.horizon or None
        until = f"{moment(end_timestamp('until', asked.until), 'seconds')} UTC"
    elif problem.until is not None:
        until = f"{span(problem.until, asked.clock)} after it is created"
    else:
        return f"after {count(problem.horizon, 'arrival', 'arrivals')}"
    return until + (f", with about {count(expected, 'arrival', 'arrivals')}" if expected else "")


def _skipping(problem: Problem) -> str:
    if isinstance(problem.baseline, str):
        learned = "what it earns is learned from those who are skipped"
        return learned if problem.baseline == "observed" else f"they get {short(problem.baseline, _LONG)}"
    return f"earns {', '.join(figure(one) for one in (problem.baseline or ())[:6])}"


def cost_words(arm: Arm) -> str:
    if not isinstance(arm.cost, tuple):
        return figure(arm.cost, 6)
    amounts = [one for _, one in arm.cost]
    return f"{figure(min(amounts), 6)} to {figure(max(amounts), 6)}, by group"
