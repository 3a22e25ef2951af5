"""The page of a campaign: where it stands, what it does and what is wrong first; what stands behind that in folds.

The parts are macros of `templates/parts.html`, the same in a file that needs nothing but itself and on the live page of
a service. This module says what they show.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from doral.live.page import charts
from doral.live.page.charts import Chart
from doral.live.page.facts import ArmFacts, CampaignFacts, ContextFacts, PairFacts
from doral.live.views.decision import Decision
from doral.live.views.text import moment, share, span
from doral.pages.names import isolated, printable, short
from doral.pages.numbers import count, figure, money
from doral.pages.shell import asset
from doral.pages.templates import add_filters, environment, when

Link = Callable[[str], str]  # the address of a page about a decision, by its id
MOST_ROWS = 200  # of a table
_FIRST, _LONG = 12, 20  # rows: of a table that is longer, so many are shown at once
_STATES = {
    "open": ("open", "good"),
    "racing": ("open, in its race", "good"),
    "paused": ("paused", "warn"),
    "closed": ("closed", ""),
}
PACES = {"on plan": "good", "ahead of plan": "warn", "behind plan": "warn", "used up": "bad"}
SECTIONS = {  # in the order of the page
    "arms": "Values by group",
    "answers": "Return curves",
    "latest": "Latest decisions",
    "pending": "Answers pending",
    "served": "Who is served",
    "money": "Outcomes and changes",
    "certain": "Certain by now",
}


@dataclass(frozen=True)
class Tile:
    """A number at a glance."""

    name: str
    value: str
    more: str


class View:
    """What the templates ask for, of the facts of one moment.

    Args:
        facts: What is shown.
        link: Where more is told of a decision, by its id; None: nowhere.
        is_file: Whether it is a file, whose folds are open.
    """

    def __init__(self, facts: CampaignFacts, *, link: Link | None = None, is_file: bool = False) -> None:
        self.facts, self.link, self.is_file = facts, link, is_file
        self.state_words, self.state_look = _STATES[facts.state]
        self.pace_look = PACES.get(facts.spending.pace, "")
        self.spend, self.mix, self.curves = charts.spend(facts), charts.mix(facts), charts.curves(facts)
        self.pairs: Sequence[Chart] = charts.pairs(facts)
        self.rewards = charts.rewards(facts) if facts.periods else None
        self.first, self.rest = _parted(facts.latest)

    # --- the first screen -------------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """Is it on plan? What is it doing?"""
        facts = self.facts
        begins = "Paused: every arrival is skipped until it is resumed. " if facts.state == "paused" else ""
        return f"{begins}{facts.spending.sentence}{self._does()}"

    def _does(self) -> str:
        facts = self.facts
        if not facts.mix or facts.state in ("closed", "paused"):
            return ""
        last = charts.latest_mix(facts.mix)
        if not last.arms:
            return f" Of the latest {last.arrivals:,} arrivals, all were skipped."
        most, many = max(last.arms.items(), key=lambda one: one[1])
        part, skipped = (round(100 * one / last.arrivals) for one in (many, last.skipped))
        name = isolated(short(most, 40))
        if skipped > part:
            return f" It now skips {skipped}% of arrivals, and gives {name} to {part}%."
        return f" It now gives {name} to {part}% of arrivals{f', and skips {skipped}%' if skipped else ''}."

    @property
    def tiles(self) -> Iterator[Tile]:
        facts, currency = self.facts, self.facts.currency
        yield Tile(
            "Budget used",
            figure(facts.spent + facts.reserved, 6),
            f"of {money(facts.total, currency)}; {_planned(facts)} planned by now",
        )
        yield Tile("Pending", f"{facts.pending.decisions:,}", self._oldest())
        yield Tile("Arrivals", f"{facts.arrivals:,}", self._way())
        yield Tile(f"{self.outcomes.capitalize()} so far", figure(facts.reward, 6), self._return())
        yield Tile("Spent", figure(facts.spent, 6), f"{share(facts.spent / facts.total)}, on settled decisions")
        yield Tile("Reserved", figure(facts.reserved, 6), f"{share(facts.reserved / facts.total)}, answers pending")
        back = f"; {figure(facts.released)} released" if facts.released else ""
        yield Tile("Left", figure(facts.left, 6), f"{share(facts.left / facts.total)}{back}")
        price = "per unit of budget" if facts.price is not None else "nothing competes for it so far"
        yield Tile("Return on the next unit", figure(facts.price, 3), price)

    def _way(self) -> str:
        facts = self.facts
        if facts.ends_at is None:
            return f"of {facts.horizon:,} ({share(facts.time_share)})"
        return f"about {facts.horizon:,} expected; {share(facts.time_share)} of the time"

    def _return(self) -> str:
        facts = self.facts
        return "nothing is spent yet" if facts.spent <= 0 else f"{figure(facts.reward / facts.spent, 3)} per unit spent"

    def _oldest(self) -> str:
        age = self.facts.pending.oldest_age
        return "no answers" if age is None else f"answers, the oldest for {span(age, self.facts.clock)}"

    # --- the first request ------------------------------------------------------------------------------------------

    @property
    def _context(self) -> str:
        return self.facts.contexts[0].name

    def _base(self, url: str) -> str:
        return f"{url}/v1/campaigns/{quote(self.facts.name, safe='')}"

    def curl(self, url: str) -> str:
        base = shlex.quote(self._base(url) + "/decisions")
        answers = shlex.quote(self._base(url) + "/feedback")
        head = "-H 'Authorization: Bearer YOUR_KEY' -H 'Content-Type: application/json'"
        asked = shlex.quote(_json({"context": self._context, "key": "visit-1"}))
        told = shlex.quote(_json({"decision_id": f"{self.facts.tag}-2", "reward": 1.0, "key": "answer-1"}))
        return (
            f"# decide: one of {self._names()}, or null for a skip\n"
            f"curl {base} \\\n  {head} \\\n  -d {asked}\n\n"
            f"# the answer, whenever it comes; decision_id is the id of the decision\n"
            f"curl {answers} \\\n  {head} \\\n  -d {told}"
        )

    def python(self, url: str) -> str:
        return (
            "import doral\n\n"
            f'with doral.connect({_json(url)}, key="YOUR_KEY") as store:\n'
            f"    campaign = store.campaign({_json(self.facts.name)})\n"
            f'    decision = campaign.decide({_json(self._context)}, key="visit-1")\n'
            f"    print(decision.arm, decision.reason)  # one of {self._names()}, or None for a skip\n"
            "    if decision.arm is not None:\n"
            "        campaign.feedback(decision.id, reward=1.0)  # whenever the answer comes"
        )

    def commands(self) -> str:
        name, context = shlex.quote(self.facts.name), shlex.quote(self._context)
        return f"doral campaign decide {name} {context}\ndoral campaign feedback {name} DECISION_ID REWARD"

    def _names(self) -> str:
        shown = ", ".join(short(one.name, 30) for one in self.facts.arms[:5])
        return shown + (f" and {len(self.facts.arms) - 5:,} more" if len(self.facts.arms) > 5 else "")

    # --- values by group --------------------------------------------------------------------------------------------

    @property
    def outcomes(self) -> str:
        word = self.facts.outcome or "reward"
        return word if word == "reward" or word.endswith("s") else f"{word}s"

    @property
    def outcome_words(self) -> str:
        return self.outcomes if self.facts.outcome else "units of reward"

    @property
    def left_out(self) -> str:
        facts, most = self.facts, charts.MOST_ARMS
        arms = f" and the {most} most used options" if len(facts.arms) > most else ""
        if len(facts.contexts) > len(self.pairs):
            return f"Drawn are the {count(len(self.pairs), 'group', 'groups')} with most arrivals{arms}."
        return f"Drawn are the {most} most used options." if arms else ""

    @property
    def pair_rows(self) -> Sequence[PairFacts]:
        found = self.facts.pairs
        return found if len(found) <= MOST_ROWS else sorted(found, key=lambda one: -one.plays)[:MOST_ROWS]

    @property
    def pairs_caption(self) -> str:
        facts = self.facts
        weighed = any(one.weight != 1.0 for one in facts.contexts)
        return (
            "A use brings the chance of an answer in time (100% until a decision is as old as the deadline, or the "
            "cut-off) times what an answer brings. The return per unit is weighed by group and divided by the cost: it "
            "competes with the return on the next unit."
            + (" Rewards are weighed as well; what an answer or a use brings is not." if weighed else "")
            + _left_out(len(self.pair_rows), facts.n_pairs, "most used pairs")
        )

    # --- the other folds --------------------------------------------------------------------------------------------

    @property
    def states_words(self) -> str:
        told = ", ".join(f"{many:,} {state}" for state, many in self.facts.states.items() if many)
        return f"Decisions so far: {told}." if told else "There is no decision yet."

    @property
    def answers_brief(self) -> str:
        facts = self.facts
        if facts.state == "racing":
            return "no cut-off yet"
        return "no cut-off" if facts.cutoff is None else f"cut-off after {span(facts.cutoff, facts.clock)}"

    @property
    def arm_rows(self) -> Sequence[ArmFacts]:
        return sorted(self.facts.arms, key=lambda one: -one.plays)[:MOST_ROWS]

    @property
    def arms_left_out(self) -> str:
        return _left_out(len(self.arm_rows), len(self.facts.arms), "most used")

    @property
    def money_brief(self) -> str:
        return count(len(self.facts.spending.changes), "change", "changes")

    @property
    def points(self) -> Sequence[Any]:
        points = self.facts.spending.points
        return [*points[: -1 : max(1, (len(points) - 1) // 20)], points[-1]]

    @property
    def period_name(self) -> str:
        return charts.period_name(self.facts.periods)

    @property
    def certain_brief(self) -> str:
        many = len(self.facts.certificates)
        return f"{count(many, 'option', 'options')} ruled out" if many else "nothing is ruled out"

    @property
    def certain_words(self) -> str:
        if self.facts.state != "racing":
            return "No option is ruled out: none is worse than another with certainty, or the policy rules none out."
        racing = [one for one in self.facts.arms if one.standing == "racing"]
        decided = [one for one in self.facts.arms if one.standing in ("accepted", "rejected") and not one.is_control]
        return (
            f"The race still runs: {count(len(racing), 'option', 'options')} in it, {len(decided):,} decided. It finds "
            "out which options answer fast enough."
        )

    @property
    def pending_brief(self) -> str:
        found = self.facts.pending
        return f"{found.decisions:,}, {money(found.reserved, self.facts.currency)} reserved".replace("\xa0", " ")

    @property
    def pending_words(self) -> str:
        found, clock = self.facts.pending, self.facts.clock
        if not found.decisions:
            return "No decision is open."
        told = [f"{count(found.decisions, 'answer is', 'answers are')} pending."]
        if found.middle_age is not None and found.oldest_age is not None:
            middle, oldest = span(found.middle_age, clock), span(found.oldest_age, clock)
            told.append(f"Half of them are older than {middle}, the oldest is {oldest} old.")
        if found.overdue:
            told.append(f"{count(found.overdue, 'is', 'are')} overdue.")
        if found.next_expiry is not None:
            zone = " UTC" if clock == "seconds" else ""
            told.append(f"The next one expires at {moment(found.next_expiry, clock)}{zone}.")
        return " ".join(told)

    @property
    def served_brief(self) -> str:
        served, came = sum(one.served for one in self.facts.contexts), sum(one.arrivals for one in self.facts.contexts)
        return f"{served:,} of {came:,} arrivals"

    @property
    def served_rows(self) -> Sequence[ContextFacts]:
        return sorted(self.facts.contexts, key=lambda one: -one.arrivals)[:MOST_ROWS]

    @property
    def served_left_out(self) -> str:
        return _left_out(len(self.served_rows), len(self.facts.contexts), "most frequent")

    @property
    def latest_brief(self) -> str:
        return f"{len(self.facts.latest)} with their reasons"

    @property
    def reasons(self) -> str:
        ranked = sorted(self.facts.reasons.items(), key=lambda one: -one[1])
        return "; ".join(f"{many:,} {reason}" for reason, many in ranked)


def _planned(facts: CampaignFacts) -> str:
    """The budget that was planned by now; of a campaign that has just begun, no millionths of it."""
    planned = facts.spending.planned
    return "almost none" if 0.0 < planned < 0.001 * facts.total else figure(planned)


def _json(value: object) -> str:
    """A value as JSON or Python has it; letters that steer the direction of text are written as their numbers."""
    words = json.dumps(value, ensure_ascii=False)
    return words if printable(words) == words else json.dumps(value)


def _parted(rows: Sequence[Decision]) -> tuple[Sequence[Decision], Sequence[Decision]]:
    return (rows[:_FIRST], rows[_FIRST:]) if len(rows) > _LONG else (rows, ())


def _left_out(shown: int, there: int, what: str) -> str:
    return "" if shown >= there else f" The {shown:,} {what} of {there:,}."


# --- rendering --------------------------------------------------------------------------------------------------------


def at(value: float | None, clock: str, seconds: bool = False) -> Markup | str:
    """A moment on the campaign's clock: a time in the zone of the viewer, or a round."""
    return when(value, seconds=seconds) if clock == "seconds" else moment(value, clock)


def standing(one: ArmFacts) -> str:
    """What becomes of an arm at present."""
    if one.is_control:
        return "for those who are not served"
    if one.status == "active" and one.standing == "rejected":
        return "active, rejected in the race"
    return "active, in the race" if one.status == "active" and one.standing == "racing" else one.status


FILTERS: dict[str, Callable[..., object]] = {
    "at": at,
    "standing": standing,
    "share": share,
    "span": span,
    "period": charts.period_begins,
}


def templates() -> Environment:
    """The templates of this package, with its words."""
    return add_filters(environment("doral.live.page"), FILTERS)


def fragments(view: View) -> dict[str, str]:
    """The parts of the live page that follow the events of a campaign, by id."""
    macros: Any = templates().get_template("parts.html").module
    found = {name: str(getattr(macros, name)(view)) for name in ("status", "glance", "charts")}
    return {**found, **{name: str(getattr(macros, name)(view)) for name in SECTIONS}}


def page(facts: CampaignFacts) -> str:
    """The whole page, as a file that needs nothing but itself."""
    view = View(facts, is_file=True)
    names = [(name, title) for name, title in SECTIONS.items() if name != "latest" or facts.latest]
    if not any(facts.states.values()):
        names = [("beginning", "First request"), *names]
    css = asset("shell.css") + asset("page.css", package="doral.live.page")
    script = asset("sorting.js") + asset("local_times.js")
    template = templates().get_template("file.html")
    return template.render(facts=facts, view=view, sections=names, css=Markup(css), script=Markup(script))
