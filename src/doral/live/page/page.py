"""A live campaign in one page that needs nothing but itself: where it stands first, then everything behind that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from doral.live.page import drawn_arms, drawn_money, tables
from doral.live.page.facts import CampaignFacts
from doral.live.page.time_axis import period_name
from doral.live.views.text import MONEY, moment, share, span
from doral.pages.meters import meter
from doral.pages.names import short
from doral.pages.numbers import count, figure
from doral.pages.shell import Page, Section, asset, whole

_STATES = {
    "open": ("open", "good"),
    "racing": ("open, in its race", "good"),
    "paused": ("paused", "warn"),
    "closed": ("closed", ""),
}
_PACES = {"on plan": "good", "ahead of plan": "warn", "behind plan": "warn", "used up": "bad"}
_MOST_STEPS = 8


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a page shows, part by part: the same for one that is a file and for one that a service keeps up to date."""

    headline: str
    kicker: str
    banner: str
    """Markup, as the two that follow; empty where nothing is to be looked after."""
    glance: str
    sections: tuple[Section, ...]


def parts(facts: CampaignFacts, *, link: tables.Link | None = None) -> Parts:
    """The parts of the page.

    Args:
        facts: What they show.
        link: Where more is told of a decision, by its id; None: nowhere.
    """
    return Parts(
        headline=short(facts.name, 80),
        kicker=(
            f"A live campaign under {facts.policy}, begun {moment(facts.began_at, 'seconds')}; as of "
            f"{moment(facts.made_at, 'seconds')} UTC"
        ),
        banner=" ".join(escape(one) for one in facts.warnings),
        glance=_glance(facts),
        sections=tuple(_sections(facts, link)),
    )


def page(facts: CampaignFacts) -> str:
    """The whole page."""
    found = parts(facts)
    shown = Page(
        headline=found.headline,
        kicker=found.kicker,
        banner=found.banner,
        answer=found.glance,
        sections=(),
        scripts=f"<script>\n{asset('sorting.js')}\n</script>",
        css=asset("page.css", package="doral.live.page"),
    )
    return whole(shown, list(found.sections))


SECTIONS = ("beginning", "money", "answers", "arms", "certain", "pending", "served", "latest")  # that there may be


def _sections(facts: CampaignFacts, link: tables.Link | None) -> Iterator[Section]:
    if not facts.states or not any(facts.states.values()):
        yield Section(id="beginning", title="Nothing has happened yet", menu="Beginning", html=_beginning(facts))
    yield Section(id="money", title="Money and time", menu="Money", html=_money(facts))
    yield Section(id="answers", title="Answers", menu="Answers", html=_answers(facts))
    yield Section(id="arms", title="Arms by context", menu="Arms", html=_arms(facts))
    yield Section(id="certain", title="What is certain by now", menu="Certain", html=_certain(facts))
    yield Section(id="pending", title="Pending", menu="Pending", html=_pending(facts))
    yield Section(id="served", title="Who is served", menu="Served", html=_served(facts))
    if facts.latest:
        html = tables.latest(facts, link) + _reasons(facts)
        yield Section(id="latest", title="Latest decisions", menu="Latest", html=html)


def _p(*sentences: str) -> str:
    return f"<p>{escape(' '.join(one for one in sentences if one))}</p>"


def _list(sentences: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in sentences)}</ul>" if sentences else ""


def _behind(words: str, html: str) -> str:
    return f"<details><summary>{escape(words)}</summary>{html}</details>"


# --- at a glance ----------------------------------------------------------------------------------------------------


def _glance(facts: CampaignFacts) -> str:
    state, look = _STATES[facts.state]
    pace = facts.spending.pace
    marks = f'<span class="mark {look}">{state}</span> <span class="mark {_PACES.get(pace, "")}">{pace}</span>'
    tiles = "".join(
        f'<div class="tile"><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(more)}</small></dd></div>'
        for name, value, more in _tiles(facts)
    )
    return (
        f'<p class="marks">{marks}</p><p class="lead-line">{escape(facts.spending.sentence)}</p>'
        f'{_meter(facts)}<dl class="tiles">{tiles}</dl>{_list(facts.notes)}'
    )


def _meter(facts: CampaignFacts) -> str:
    """Budget and time as two bars above each other; where the plan is, a mark."""
    what = "time" if facts.ends_at is not None else "arrivals"
    planned = facts.spending.planned / facts.total
    spent = meter(
        [("spent", facts.spent / facts.total), ("reserved", facts.reserved / facts.total)], look="track", mark=planned
    )
    gone = meter([("gone", facts.time_share)], look="track")
    return (
        f'<div class="meters" role="img" aria-label="{share(facts.spent_share)} of the budget is used, '
        f'{share(planned)} was planned by now; {share(facts.time_share)} of the {what} gone">'
        f"<span>budget</span>{spent}<span>{share(facts.spent_share)}</span>"
        f"<span>{what}</span>{gone}<span>{share(facts.time_share)}</span>"
        "<span></span><small>The mark is what was planned by now.</small><span></span></div>"
    )


def _tiles(facts: CampaignFacts) -> Iterator[tuple[str, str, str]]:
    yield "Budget", figure(facts.total, 6), MONEY
    yield "Spent", figure(facts.spent, 6), f"{share(facts.spent / facts.total)}, on decisions that are over"
    yield "Reserved", figure(facts.reserved, 6), f"{share(facts.reserved / facts.total)}, for open decisions"
    came_back = f"; {figure(facts.released)} came back" if facts.released else ""
    yield "Left", figure(facts.left, 6), f"{share(facts.left / facts.total)}{came_back}"
    if facts.ends_at is None:
        yield "Arrivals", f"{facts.arrivals:,}", f"of {facts.horizon:,} planned for ({share(facts.time_share)})"
    else:
        yield "Arrivals", f"{facts.arrivals:,}", f"about {facts.horizon:,} expected by the end"
        yield "Time gone", share(facts.time_share), f"ends {moment(facts.ends_at, 'seconds')} UTC"
    if facts.clock == "seconds":
        running = span(max(0.0, facts.last_at - facts.began_at), "seconds")
        yield "Runs for", running, f"last event {moment(facts.last_at, 'seconds')} UTC"
    yield "Reward so far", figure(facts.reward, 6), _return(facts)
    yield "Pending", f"{facts.pending.decisions:,}", _oldest(facts)
    price = "what the next unit is hoped to bring" if facts.price is not None else "nothing competes for it so far"
    yield "A unit of budget", figure(facts.price, 3), price


def _return(facts: CampaignFacts) -> str:
    if facts.spent <= 0:
        return "nothing is spent yet"
    return f"{figure(facts.reward / facts.spent, 3)} per unit spent"


def _oldest(facts: CampaignFacts) -> str:
    if facts.pending.oldest_age is None:
        return "no decision is open"
    return f"the oldest for {span(facts.pending.oldest_age, facts.clock)}"


# --- sections -------------------------------------------------------------------------------------------------------


def _beginning(facts: CampaignFacts) -> str:
    name = escape(short(facts.name, 60))
    context = escape(short(facts.contexts[0].name, 40))
    return (
        "<p>The campaign is ready. Ask it for a decision whenever somebody arrives, and tell it what came of it:</p>"
        f'<pre tabindex="0"><code>doral campaign decide &quot;{name}&quot; &quot;{context}&quot;\n'
        f"doral campaign feedback &quot;{name}&quot; DECISION_ID REWARD</code></pre>"
    )


def _money(facts: CampaignFacts) -> str:
    shown = [drawn_money.spend(facts)]
    behind = _behind("The numbers behind it", tables.spend(facts))
    if facts.periods:
        shown.append(drawn_money.rewards(facts))
        behind += _behind(f"The numbers by {period_name(facts.periods)}", tables.rewards(facts))
    elif facts.clock != "seconds":
        behind += "<p>This campaign counts rounds, so that nothing is told by day.</p>"
    return f'<div class="figures">{"".join(shown)}</div>{behind}{tables.changes(facts)}'


def _answers(facts: CampaignFacts) -> str:
    states = ", ".join(f"{many:,} {state}" for state, many in facts.states.items() if many)
    told = f"Decisions so far: {states}." if states else "There is no decision yet, so that there are no answers."
    curves = drawn_arms.curves(facts)
    if curves is None:
        waits = "No decision is old enough yet to tell when answers come." if states else ""
        return _p(told, waits) + tables.arms(facts)
    return f'{_p(told)}<div class="figures one">{curves}</div>{tables.arms(facts)}'


def _arms(facts: CampaignFacts) -> str:
    shown = drawn_arms.pairs(facts)
    if not shown:
        return _p("Nothing is known of rewards yet: no answer has come.") + tables.pairs(facts)
    more = ""
    if len(facts.contexts) > len(shown):
        more = f"Drawn are the {count(len(shown), 'context', 'contexts')} in which most arrived"
        more += f" and the {drawn_arms.MOST_ARMS} most used arms." if len(facts.arms) > drawn_arms.MOST_ARMS else "."
    elif len(facts.arms) > drawn_arms.MOST_ARMS:
        more = f"Drawn are the {drawn_arms.MOST_ARMS} most used arms."
    told = "What a use of an arm is thought to bring, in units of reward, with 95% intervals."
    drawings = "".join(shown)
    return f'{_p(told, more)}<div class="figures">{drawings}</div>{tables.pairs(facts)}'


def _certain(facts: CampaignFacts) -> str:
    if facts.certificates:
        many, rest = facts.certificates[:_MOST_STEPS], facts.certificates[_MOST_STEPS:]
        told = _p("An arm is ruled out where another is better for certain, and for as long as that holds.")
        return told + _list(many) + (_behind(f"{len(rest):,} more", _list(rest)) if rest else "")
    if facts.state == "racing":
        racing = [one for one in facts.arms if one.standing == "racing"]
        decided = [one for one in facts.arms if one.standing in ("accepted", "rejected") and not one.is_control]
        return _p(
            f"The race still runs: {count(len(racing), 'arm', 'arms')} in it, {len(decided):,} decided. It finds out "
            "which arms answer fast enough."
        )
    return _p("No arm is ruled out: none is worse than another for certain, or the policy does not rule arms out.")


def _pending(facts: CampaignFacts) -> str:
    found = facts.pending
    if not found.decisions:
        return _p("No decision is open.")
    told = [f"{count(found.decisions, 'decision is', 'decisions are')} open, with {figure(found.reserved)} reserved."]
    if found.middle_age is not None and found.oldest_age is not None:
        told.append(
            f"Half of them are older than {span(found.middle_age, facts.clock)}, the oldest is "
            f"{span(found.oldest_age, facts.clock)} old."
        )
    if found.overdue:
        told.append(f"{count(found.overdue, 'is', 'are')} overdue.")
    if found.next_expiry is not None:
        told.append(f"The next one expires at {moment(found.next_expiry, facts.clock)}{_utc(facts)}.")
    ages = tables.waiting("age-table", "How old they are.", "Age", found.by_age, found.decisions)
    ends = tables.waiting("expiry-table", "When they expire.", "Expires", found.by_expiry, found.decisions)
    return f'{_p(*told)}<div class="figures"><div>{ages}</div><div>{ends}</div></div>'


def _utc(facts: CampaignFacts) -> str:
    return " UTC" if facts.clock == "seconds" else ""


def _served(facts: CampaignFacts) -> str:
    return tables.contexts(facts) + tables.groups(facts)


def _reasons(facts: CampaignFacts) -> str:
    told = [f"{many:,} {reason}" for reason, many in sorted(facts.reasons.items(), key=lambda one: -one[1])]
    return _p(f"All decisions by reason: {'; '.join(told)}.") if told else ""
