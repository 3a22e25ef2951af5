"""A campaign in words, before it is created."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from doral.live.runtime.clock import end_timestamp
from doral.live.views.text import MONEY, moment, share, span
from doral.pages.markup import Row, amount, table, text
from doral.pages.names import short
from doral.pages.numbers import count, figure
from doral.problem import Arm, Problem
from doral.service.access.keys import Caller
from doral.service.pages.creating_values import Asked, Typed
from doral.service.pages.forms import KEY_FIELD, button, facts_list, form, fresh_key, hidden
from doral.simulation.catalogue.descriptions import PRESET_WORDS

_MOST = 50  # rows of a table
_LONG = 60


def reviewing(caller: Caller, asked: Asked, *, typed: Typed | None) -> str:
    """The page. `typed`: what the form held, for whoever wants to change something; None: it came from a file."""
    inner = [hidden("asked", asked.to_json()), hidden(KEY_FIELD, fresh_key())]
    if typed is not None:
        inner += [hidden(name, value) for name, value in typed.pairs()]
        back = button("Change something", name="step", value="edit")
    else:
        back = '<a class="button" href="/new#from-file">Choose another file</a>'
    create = button("Create the campaign", name="step", value="create", look="primary")
    inner.append(f'<div class="send">{create}{back}</div>')
    return (
        f"<h1>{escape(short(asked.name, 80))}</h1>"
        '<p class="lead">This is how it was understood. Nothing is created yet.</p>'
        f'<div class="review">{facts_list(_facts(asked))}{_arms(asked.problem)}{_contexts(asked)}</div>'
        f"{form('/new', caller, ''.join(inner), look='review')}"
    )


def _facts(asked: Asked) -> Iterator[tuple[str, str]]:
    problem = asked.problem
    yield "Budget", f"{figure(problem.budget, 6)} {MONEY}{_reach(problem)}"
    yield "End", _end(asked)
    if problem.deadline is not None:
        yield "Deadline", f"an answer counts if it comes within {span(problem.deadline, asked.clock)}"
    else:
        yield "Deadline", "none for all: every answer counts, unless its context says otherwise"
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
        return f": about {figure(served, 3)} uses of an arm of average cost"
    part = min(served / problem.expected_rounds, 1.0)
    return f": enough for about {share(part)} of all arrivals, with arms of average cost"


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


def _cost(arm: Arm) -> str:
    if not isinstance(arm.cost, tuple):
        return figure(arm.cost, 6)
    amounts = [one for _, one in arm.cost]
    return f"{figure(min(amounts), 6)} to {figure(max(amounts), 6)}, by context"


def _arms(problem: Problem) -> str:
    has_features = problem.n_features > 0
    heads = ["Arm", "Cost of one use", *(["Features"] if has_features else [])]
    rows = [
        Row(
            data=[
                text(short(one.name, _LONG), is_head=True),
                text(_cost(one), look="number"),
                *([text(", ".join(figure(each, 3) for each in one.features[:6]))] if has_features else []),
            ]
        )
        for one in problem.arms[:_MOST]
    ]
    return table(name="review-arms", caption=_caption(problem.n_arms, "arm"), heads=heads, rows=rows)


def _contexts(asked: Asked) -> str:
    problem = asked.problem
    rows = [
        Row(
            data=[
                text(short(one.name, _LONG), is_head=True),
                text("is learned" if one.share is None else share(one.share), look="number"),
                amount(one.weight, 0) if one.weight == round(one.weight) else text(figure(one.weight), look="number"),
                text(span(one.deadline if one.deadline is not None else problem.deadline, asked.clock), look="number"),
            ]
        )
        for one in problem.contexts[:_MOST]
    ]
    heads = ["Context", "Share of arrivals", "Weight", "Deadline"]
    return table(name="review-contexts", caption=_caption(problem.n_contexts, "context"), heads=heads, rows=rows)


def _caption(many: int, what: str) -> str:
    shown = f"; the first {_MOST} of them" if many > _MOST else ""
    return f"{count(many, what, f'{what}s')}{shown}."
