"""One scenario in full: who arrives, what can be done, how late answers come, and how rewards arise."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from rich.text import Text

from doral.cli import terminal
from doral.cli.campaign_words import json_line
from doral.cli.listing import about
from doral.delays import AnyLaw, ByOutcome
from doral.logs.clock import Clock
from doral.pages.numbers import number
from doral.problem import Problem
from doral.simulation.catalogue.descriptions import SCENARIO_WORDS
from doral.simulation.scenario.scenario import Scenario

SECONDS = Clock("seconds", "days")
MOST_ROWS = 20  # of arms or contexts: a page; JSON has all of them


def scenario_facts(scenario: Scenario) -> dict[str, Any]:
    """What JSON says of it."""
    problem = scenario.problem
    return {
        "n_arms": problem.n_arms,
        "n_contexts": problem.n_contexts,
        "person": list(problem.person_names),
        "budget": problem.budget,
        "horizon": problem.horizon or None,
        "until": problem.until,
        "expected_arrivals": problem.expected_rounds,
        "deadline": problem.deadline,
        "clock": clock_of(problem),
        "feedback": problem.feedback,
        "paid": problem.paid,
        "counted": problem.counted,
        "arms": [{"name": arm.name, "cost": _plain_cost(arm.cost)} for arm in problem.arms],
        "contexts": [
            {"name": one.name, "share": one.share, "weight": one.weight, "deadline": one.deadline, "tier": one.tier}
            for one in problem.contexts
        ],
        "delays": [[law.to_dict() for law in laws] for laws in scenario.delays],
        "rewards": rewards_in_words(scenario),
    }


def _plain_cost(cost: Any) -> Any:
    return dict(cost) if isinstance(cost, tuple) else cost


def clock_of(problem: Problem) -> str:
    """What deadline and delays are counted in."""
    return "rounds" if problem.until is None else "units of its clock"


def rewards_in_words(scenario: Scenario) -> str:
    """How rewards arise, in one sentence."""
    if scenario.rows is not None:
        return "each decision draws one of the observed rows of its context and arm, reward and delay together"
    if scenario.people is not None:
        means = "the mean follows from the features of who arrives and the arm"
    elif scenario.means is not None:
        table = np.array(scenario.means)
        means = f"the mean is given for each context and arm, from {table.min():.3g} to {table.max():.3g}"
    else:
        theta = "drawn anew for every run" if scenario.theta is None else "given"
        arms = "drawn, too" if scenario.features == "drawn" else "given"
        means = f"the mean is the context's weights ({theta}) times the arm's features ({arms})"
    noise = {
        "bernoulli": "the reward is 1 with that chance, otherwise 0",
        "poisson": "the reward is a count with that mean",
        "gaussian": f"normal noise of sd {scenario.noise_sd:g} is added",
        "none": "there is no noise",
    }[scenario.noise]
    changes = f"; it changes {scenario.phases - 1} times" if scenario.phases > 1 else ""
    return f"{means}; {noise}{changes}"


def show_scenario(scenario: Scenario, *, as_json: bool) -> None:
    """All of it."""
    said = about(SCENARIO_WORDS, scenario.name)
    console = terminal.output()
    if as_json:
        console.file.write(json_line({"name": scenario.name, "about": said, **scenario_facts(scenario)}) + "\n")
        return
    problem = scenario.problem
    console.print(Text.assemble((scenario.name, "bold"), f": {said}" if said else ""))
    console.print()
    for field, words in _facts_in_words(scenario):
        terminal.show_fact(field, words)
    console.print()
    _show_contexts(scenario)
    console.print()
    _show_arms(scenario)
    if problem.n_arms > MOST_ROWS or problem.n_contexts > MOST_ROWS:
        console.print("--json shows all of them", markup=False)


def _facts_in_words(scenario: Scenario) -> list[tuple[str, str]]:
    problem = scenario.problem
    clock = clock_of(problem)
    deadline = "none: every answer counts"
    if problem.deadline is not None:
        deadline = f"{number(problem.deadline)} rounds (arrivals)"
        if clock != "rounds":
            deadline = _on_clock(problem.deadline)
    end = f"{number(problem.horizon)} arrivals"
    if problem.until is not None:
        end = f"{_on_clock(problem.until)}, {number(problem.expected_rounds)} arrivals expected"
    arms = f"{problem.n_arms:,}" + (f", each with {problem.n_features} features" if problem.n_features else "")
    who = f"{problem.n_contexts:,} contexts"
    if problem.person:
        names = ", ".join(problem.person_names[:8]) + (", ..." if problem.n_traits > 8 else "")
        who = f"people with {problem.n_traits} features: {names}"
    facts = [
        ("arms", arms),
        ("who arrives", who),
        ("budget", f"{number(problem.budget)}, {problem.budget / problem.expected_rounds:.3g} per arrival"),
        ("horizon", end),
        ("deadline", deadline),
        ("feedback", _feedback(problem)),
        ("rewards", rewards_in_words(scenario)),
    ]
    if problem.paid == "on_answer":
        facts.append(("paid", "when an answer says so; nothing for what is not answered in time"))
    if problem.baseline is not None:
        facts.append(("baseline", "skipping earns something, too: what counts is what is added"))
    if problem.reserves:
        shares = ", ".join(f"tier {tier}: {100 * share:g}%" for tier, share in problem.reserves)
        facts.append(("reserves", f"of the budget, closed to lower tiers; {shares}"))
    return facts


def _on_clock(time: float) -> str:
    """A scenario does not know what its clock counts; most count seconds."""
    return f"{number(time)} on its clock ({SECONDS.shown(time)}, if that counts seconds)"


def _feedback(problem: Problem) -> str:
    if problem.feedback == "silent":
        return "silent: a reward of 0 and no news look the same"
    return "explicit: an answer is seen also when its reward is 0"


def _show_contexts(scenario: Scenario) -> None:
    problem = scenario.problem
    if problem.person:
        return
    rows = []
    for one, share in list(zip(problem.contexts, scenario.shares, strict=True))[:MOST_ROWS]:
        deadline = problem.deadline if one.deadline is None else one.deadline
        rows.append([one.name, f"{100 * share:.3g}%", f"{one.weight:g}", number(deadline), str(one.tier)])
    heads = ["context", "share", "weight", "deadline", "tier"]
    terminal.show_table(heads, rows, numbers=range(1, 5), width=terminal.READ_WIDTH)
    _say_more(problem.n_contexts, "contexts")


def _show_arms(scenario: Scenario) -> None:
    """By context where the delays differ by it; contexts in which they are the same are told together."""
    problem = scenario.problem
    together: dict[tuple[AnyLaw, ...], list[str]] = {}
    for position, laws in enumerate(scenario.delays):
        together.setdefault(laws, []).append(problem.context_names[position] if len(scenario.delays) > 1 else "")
    for laws, contexts in list(together.items())[:MOST_ROWS]:
        if contexts != [""]:
            terminal.show_fact("in", ", ".join(contexts[:MOST_ROWS]))
        rows = []
        for arm, law in list(zip(problem.arms, laws, strict=True))[:MOST_ROWS]:
            cost = f"{arm.cost:g}" if isinstance(arm.cost, float) else "by context"
            rows.append([arm.name, cost, law_in_words(law), _mean(law), _in_time(law, problem.deadline)])
        heads = ["arm", "cost", "delay", "mean", "in time"]
        terminal.show_table(heads, rows, numbers=(1, 3, 4), width=terminal.READ_WIDTH)
        _say_more(problem.n_arms, "arms")


def _say_more(n: int, things: str) -> None:
    if n > MOST_ROWS:
        terminal.output().print(f"and {n - MOST_ROWS:,} more {things}\n", markup=False)


def law_in_words(law: AnyLaw) -> str:
    """As one writes it in Python, without the points of whole numbers."""
    said = re.sub(r"(\d)\.0\b", r"\1", repr(law))
    return said if len(said) <= 60 else f"{type(law).__name__}(...)"


def _mean(law: AnyLaw) -> str:
    return "" if isinstance(law, ByOutcome) else number(law.mean)


def _in_time(law: AnyLaw, deadline: float | None) -> str:
    if isinstance(law, ByOutcome) or deadline is None:
        return ""
    return f"{100 * float(law.return_probability(deadline)):.0f}%"
