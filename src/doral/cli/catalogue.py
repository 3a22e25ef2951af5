"""`doral policies`, `doral scenarios`: what there is, by name and in full; and both as words of the command line."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from doral.cli.command import json_line
from doral.cli.options import Json, offer_policies, offer_scenarios
from doral.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    from doral.delays import AnyLaw
    from doral.problem import Problem
    from doral.simulation.rivals.rival import NamedPolicy
    from doral.simulation.scenario.scenario import Scenario

MOST_ROWS = 20  # of arms or contexts: a page; JSON has all of them
_FACT_WIDTH = 12
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")

Groups = Mapping[str, Mapping[str, str]]  # by group and name, a line about it


def policies(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One of them, in full.", autocompletion=offer_policies)
    ] = None,
    option: Annotated[str | None, typer.Argument(metavar="OPTION", help="What this option of it means.")] = None,
    as_json: Json = False,
) -> None:
    """List the policies; with a name, show one with all its options."""
    if name is None:
        _list_policies(as_json=as_json)
    elif option is None:
        _show_policy(name, as_json=as_json)
    else:
        _show_option(name, option, as_json=as_json)


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One of them, or a problem file, in full.", autocompletion=offer_scenarios),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the scenarios; with a name, show one in full."""
    if name is None:
        _list_scenarios(as_json=as_json)
    else:
        _show_scenario(parse_scenario(name), as_json=as_json)


def parse_policy(word: str) -> NamedPolicy:
    """Return the policy that a word describes.

    >>> parse_policy("doral:accept=3").name
    'doral(accept=3)'
    >>> parse_policy("beta-ts-lp:explore=0.05").name
    'beta-ts-lp(explore=0.05)'
    """
    from doral.engine.options import check_option_names
    from doral.simulation.rivals.rival import RIVALS, named_policy, parse_setting

    name, colon, rest = word.partition(":")
    if not colon:
        return named_policy(name)
    options: dict[str, Any] = {}
    for setting in rest.split(","):
        option, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not option:
            raise InvalidValue("policy", word, f"write {name}:OPTION=VALUE,OPTION=VALUE")
        if name not in RIVALS:
            check_option_names({option: value})
        if option in options:
            raise InvalidValue(option, value, f"is given twice in {word!r}")
        options[option] = parse_setting(option, value) if name in RIVALS else _parse_option(option, value)
    return named_policy(name, **options)


def _parse_option(option: str, value: str) -> object:
    from doral.engine.options import PolicyOptions, option_words

    if option in option_words():
        return value  # the options know their words, and name them
    hint = typing.get_type_hints(PolicyOptions)[option]
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    words = [word for kind in kinds if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
    if value in words:
        return value
    if value.lower() == "none" and type(None) in kinds:
        return None
    if value.lower() == "none" and typing.get_origin(hint) is Sequence:
        return ()
    for kind in kinds:
        if kind is bool:
            if value.lower() not in (*_TRUE, *_FALSE):
                raise InvalidValue(option, value, "must be true or false")
            return value.lower() in _TRUE
        if kind is str or typing.get_origin(kind) is Sequence:
            return value  # words with + between them: the options read them
        if kind in (int, float):
            try:
                return kind(value)
            except ValueError:
                raise InvalidValue(option, value, f"must be a {'whole ' if kind is int else ''}number") from None
    raise AssertionError(f"option {option} has a type that the command line cannot read")


def parse_scenario(word: str) -> Scenario:
    """Return a scenario by name, or from a file."""
    from doral.simulation.catalogue.lookup import SCENARIOS, named_scenario
    from doral.simulation.scenario.files import read_scenario

    path = Path(word)
    if path.suffix.lower() in (".toml", ".json") or (word not in SCENARIOS and (path.is_file() or path.suffix)):
        return read_scenario(path)
    return named_scenario(word)


def _policy_groups() -> Groups:
    from doral.simulation.catalogue.descriptions import PRESET_WORDS, RIVAL_WORDS

    return {**PRESET_WORDS, **RIVAL_WORDS}


def _list_policies(*, as_json: bool) -> None:
    from doral.cli import terminal
    from doral.simulation.catalogue.descriptions import RIVAL_WORDS
    from doral.simulation.rivals.rival import named_policy

    if as_json:
        rows = [
            {"name": name, "group": group, "about": words, **_policy_facts(named_policy(name))}
            for group, names in _policy_groups().items()
            for name, words in names.items()
        ]
        typer.echo(json_line(rows))
        return
    _show_groups(_policy_groups())
    terminal.show_words("doral policies NAME shows one with its options; doral simulate SCENARIO -p NAME plays it.")
    rivals = ", ".join(name for names in RIVAL_WORDS.values() for name in names)
    terminal.show_words(f"Campaigns run all but {rivals}; and policies and models of your own (DORAL_CODE).")


def _list_scenarios(*, as_json: bool) -> None:
    from doral.cli import terminal
    from doral.simulation.catalogue.descriptions import SCENARIO_WORDS
    from doral.simulation.catalogue.lookup import SCENARIOS

    if not as_json:
        _show_groups(SCENARIO_WORDS)
        terminal.show_words("doral scenarios NAME shows one in full; doral simulate NAME lets policies play it.")
        return
    groups = {name: (group, words) for group, names in SCENARIO_WORDS.items() for name, words in names.items()}
    rows = []
    for name, scenario in SCENARIOS.items():
        group, words = groups.get(name, ("", ""))
        rows.append({"name": name, "group": group, "about": words, **_scenario_facts(scenario)})
    typer.echo(json_line(rows))


def _show_groups(groups: Groups) -> None:
    from doral.cli import terminal

    console = terminal.output()
    widest = max(len(name) for names in groups.values() for name in names)
    for group, names in groups.items():
        console.print(group, style="bold", markup=False)
        terminal.show_pairs(names.items(), left=widest, indent=2)
        console.print()


def _about(groups: Groups, name: str) -> str:
    return next((names[name] for names in groups.values() if name in names), "")


def _policy_facts(policy: NamedPolicy) -> dict[str, Any]:
    from doral.engine.options import OPTION_NAMES, PolicyOptions
    from doral.simulation.rivals.rival import AT_LIST_PRICES

    if isinstance(policy, PolicyOptions):
        options = {option: getattr(policy, option) for option in OPTION_NAMES}
        return {"kind": "engine", "options": options, "in_campaigns": True}
    return {
        "kind": "python",
        "options": dataclasses.asdict(policy.settings),
        "in_campaigns": False,
        "knows_payments": policy.kind not in AT_LIST_PRICES,
    }


def _show_policy(word: str, *, as_json: bool) -> None:
    from rich.text import Text

    from doral.cli import terminal
    from doral.engine.options import PolicyOptions
    from doral.simulation.rivals.rival import AT_LIST_PRICES

    policy = parse_policy(word)
    name = word.partition(":")[0]
    about, defaults = _about(_policy_groups(), name), _defaults(policy)
    if as_json:
        usual = {option: value for option, (value, _) in defaults.items()}
        facts = {"name": policy.name, "about": about, **_policy_facts(policy)}
        typer.echo(json_line({**facts, "defaults": usual, "meanings": _meanings(policy)}))
        return
    console = terminal.output()
    console.print(Text.assemble((policy.name, "bold"), f": {about}" if about else ""))
    if not isinstance(policy, PolicyOptions):
        where = "It is written in Python, for simulations and plans; campaigns do not run it."
        prices = " It counts with list prices, whatever is paid in the end." if policy.kind in AT_LIST_PRICES else ""
        terminal.show_words(f"{where}{prices}")
    console.print()
    rows: list[list[str | Text]] = []
    for option, (default, choices) in defaults.items():
        value = getattr(policy if isinstance(policy, PolicyOptions) else policy.settings, option)
        is_changed = value != default
        shown = Text(_shown(value), style="bold" if is_changed else "")
        rows.append([option, shown, _shown(default) if is_changed else "", choices])
    terminal.show_table(["option", "here", "otherwise", "can be"], rows, width=terminal.READ_WIDTH)
    console.print()
    example = next(iter(defaults))
    console.print(f"Change options as in: -p {name}:{example}={_shown(defaults[example][0])}", markup=False)
    console.print(f"What one means: doral policies {name} {example}", markup=False)


def _show_option(word: str, option: str, *, as_json: bool) -> None:
    from rich.text import Text

    from doral.cli import terminal
    from doral.engine.options import PolicyOptions

    policy = parse_policy(word)
    meanings = _meanings(policy)
    if option not in meanings:
        raise UnknownName("option", option, tuple(meanings))
    value = getattr(policy if isinstance(policy, PolicyOptions) else policy.settings, option)
    if as_json:
        typer.echo(json_line({"option": option, "policy": policy.name, "value": value, "meaning": meanings[option]}))
        return
    terminal.output().print(Text.assemble((option, "bold"), f": {_shown(value)} in {policy.name}"))
    terminal.show_words(meanings[option])


def _meanings(policy: NamedPolicy) -> dict[str, str]:
    """Return the meaning of each option, as `help(doral.policy)` and `help(doral.rival)` say it."""
    from doral.engine.options import PolicyOptions
    from doral.engine.options import policy as make_policy
    from doral.simulation.rivals.rival import rival

    doc = inspect.getdoc(make_policy if isinstance(policy, PolicyOptions) else rival) or ""
    listed = doc.partition("Keyword Args:\n")[2].partition("\n\n")[0]
    meanings = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", listed, flags=re.MULTILINE)
    return {option: re.sub(r"\s+", " ", words) for option, words in meanings if option in _defaults(policy)}


def _defaults(policy: NamedPolicy) -> dict[str, tuple[Any, str]]:
    """Return by option its default, and what it can be."""
    from doral.engine.options import OPTION_NAMES, PolicyOptions, option_words
    from doral.simulation.rivals.rival import RIVALS, make_rival

    if not isinstance(policy, PolicyOptions):
        assert policy.kind in RIVALS
        usual = dataclasses.asdict(make_rival(policy.kind).settings)
        return {option: (value, _kinds(type(value))) for option, value in usual.items()}
    plain, hints, words = PolicyOptions(), typing.get_type_hints(PolicyOptions), option_words()
    return {
        option: (getattr(plain, option), " ".join(words[option]) if option in words else _kinds(hints[option]))
        for option in OPTION_NAMES
    }


def _kinds(hint: Any) -> str:
    """Return what a type allows, in words."""
    if typing.get_origin(hint) is Literal:
        return " ".join(typing.get_args(hint))
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return ", ".join(words for words in map(_kinds, typing.get_args(hint)) if words)
    if typing.get_origin(hint) is Sequence and all(typing.get_origin(one) is Literal for one in hint.__args__):
        return f"some of {' '.join(map(_kinds, hint.__args__))}"
    known = {bool: "true false", int: "a whole number", float: "a number", str: "a word", type(None): "none"}
    return known.get(hint, "")


def _shown(value: object) -> str:
    from doral.engine.options import PLUS

    if isinstance(value, tuple):
        return PLUS.join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)


def _scenario_facts(scenario: Scenario) -> dict[str, Any]:
    """Return the fields that JSON has."""
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
        "clock": _clock_of(problem),
        "feedback": problem.feedback,
        "paid": problem.paid,
        "counted": problem.counted,
        "arms": [{"name": arm.name, "cost": _plain_cost(arm.cost)} for arm in problem.arms],
        "contexts": [
            {"name": one.name, "share": one.share, "weight": one.weight, "deadline": one.deadline, "tier": one.tier}
            for one in problem.contexts
        ],
        "delays": [[law.to_dict() for law in laws] for laws in scenario.delays],
        "rewards": _rewards_in_words(scenario),
    }


def _plain_cost(cost: Any) -> Any:
    return dict(cost) if isinstance(cost, tuple) else cost


def _clock_of(problem: Problem) -> str:
    """Return the unit of deadline and delays."""
    return "rounds" if problem.until is None else "units of its clock"


def _rewards_in_words(scenario: Scenario) -> str:
    """Say in a sentence how rewards arise."""
    if scenario.rows is not None:
        return "each decision draws one of the observed rows of its context and arm, reward and delay together"
    if scenario.people is not None:
        means = "the mean follows from the features of the arrival and the arm"
    elif scenario.means is not None:
        cells = [mean for row in scenario.means for mean in row]
        means = f"the mean is given for each context and arm, from {min(cells):.3g} to {max(cells):.3g}"
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


def _show_scenario(scenario: Scenario, *, as_json: bool) -> None:
    from rich.text import Text

    from doral.cli import terminal
    from doral.simulation.catalogue.descriptions import SCENARIO_WORDS

    about = _about(SCENARIO_WORDS, scenario.name)
    if as_json:
        typer.echo(json_line({"name": scenario.name, "about": about, **_scenario_facts(scenario)}))
        return
    console, problem = terminal.output(), scenario.problem
    console.print(Text.assemble((scenario.name, "bold"), f": {about}" if about else ""))
    console.print()
    terminal.show_pairs(_facts_in_words(scenario), left=_FACT_WIDTH, style="bold")
    console.print()
    _show_contexts(scenario)
    console.print()
    _show_arms(scenario)
    if problem.n_arms > MOST_ROWS or problem.n_contexts > MOST_ROWS:
        typer.echo("--json shows all of them")


def _facts_in_words(scenario: Scenario) -> list[tuple[str, str]]:
    from doral.pages.numbers import number

    problem = scenario.problem
    clock = _clock_of(problem)
    deadline = "none: every answer counts"
    if problem.deadline is not None:
        deadline = f"{number(problem.deadline)} rounds (arrivals)"
        if clock != "rounds":
            deadline = _on_clock(problem.deadline)
    end = f"{number(problem.horizon)} arrivals"
    if problem.until is not None:
        end = f"{_on_clock(problem.until)}, {number(problem.expected_rounds)} arrivals expected"
    arms = f"{problem.n_arms:,}" + (f", each with {problem.n_features} features" if problem.n_features else "")
    contexts = f"{problem.n_contexts:,}"
    if problem.person:
        names = ", ".join(problem.person_names[:8]) + (", ..." if problem.n_traits > 8 else "")
        contexts = f"people with {problem.n_traits} features: {names}"
    facts = [
        ("arms", arms),
        ("contexts", contexts),
        ("budget", f"{number(problem.budget)}, {problem.budget / problem.expected_rounds:.3g} per arrival"),
        ("horizon", end),
        ("deadline", deadline),
        ("feedback", _feedback(problem)),
        ("rewards", _rewards_in_words(scenario)),
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
    from doral.logs.clock import Clock
    from doral.pages.numbers import number

    return f"{number(time)} on its clock ({Clock('seconds', 'days').shown(time)}, if that counts seconds)"


def _feedback(problem: Problem) -> str:
    if problem.feedback == "silent":
        return "silent: a reward of 0 and no news look the same"
    return "explicit: an answer is seen also when its reward is 0"


def _show_contexts(scenario: Scenario) -> None:
    from doral.cli import terminal
    from doral.pages.numbers import number

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
    """Show arms by context where the delays differ by it; contexts with the same delays share a table."""
    from doral.cli import terminal

    problem = scenario.problem
    together: dict[tuple[AnyLaw, ...], list[str]] = {}
    for position, laws in enumerate(scenario.delays):
        together.setdefault(laws, []).append(problem.context_names[position] if len(scenario.delays) > 1 else "")
    for laws, contexts in list(together.items())[:MOST_ROWS]:
        if contexts != [""]:
            terminal.show_pairs([("in", ", ".join(contexts[:MOST_ROWS]))], left=_FACT_WIDTH, style="bold")
        rows = []
        for arm, law in list(zip(problem.arms, laws, strict=True))[:MOST_ROWS]:
            cost = f"{arm.cost:g}" if isinstance(arm.cost, float) else "by context"
            rows.append([arm.name, cost, _law_in_words(law), _mean(law), _in_time(law, problem.deadline)])
        heads = ["arm", "cost", "delay", "mean", "in time"]
        terminal.show_table(heads, rows, numbers=(1, 3, 4), width=terminal.READ_WIDTH)
        _say_more(problem.n_arms, "arms")


def _say_more(n: int, things: str) -> None:
    if n > MOST_ROWS:
        typer.echo(f"and {n - MOST_ROWS:,} more {things}\n")


def _law_in_words(law: AnyLaw) -> str:
    """Return it as Python writes it, without the points of whole numbers."""
    words = re.sub(r"(\d)\.0\b", r"\1", repr(law))
    return words if len(words) <= 60 else f"{type(law).__name__}(...)"


def _mean(law: AnyLaw) -> str:
    from doral.delays import ByOutcome
    from doral.pages.numbers import number

    return "" if isinstance(law, ByOutcome) else number(law.mean)


def _in_time(law: AnyLaw, deadline: float | None) -> str:
    from doral.delays import ByOutcome

    if isinstance(law, ByOutcome) or deadline is None:
        return ""
    return f"{100 * float(law.return_probability(deadline)):.0f}%"
