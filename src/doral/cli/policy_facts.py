"""One policy in full: its options, what they are here, and what they are where nobody says anything."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Sequence
from typing import Any

from rich.text import Text

from doral.cli import terminal
from doral.cli.campaign_words import json_line
from doral.cli.listing import POLICY_WORDS, about
from doral.cli.policy_words import parse_policy
from doral.engine.options import OPTION_NAMES, PLUS, PolicyOptions, option_words, policy
from doral.errors import UnknownName
from doral.simulation.rivals.rival import AT_LIST_PRICES, RIVALS, NamedPolicy, rival
from doral.simulation.rivals.rival import make_rival as rival_of


def policy_facts(one: NamedPolicy) -> dict[str, Any]:
    """What JSON says of it."""
    if isinstance(one, PolicyOptions):
        options = {option: getattr(one, option) for option in OPTION_NAMES}
        return {"kind": "engine", "options": options, "in_campaigns": True}
    return {
        "kind": "python",
        "options": dataclasses.asdict(one.settings),
        "in_campaigns": False,
        "knows_payments": one.kind not in AT_LIST_PRICES,
    }


def show_policy(word: str, *, as_json: bool) -> None:
    """A policy by its name, or as a word with options."""
    one = parse_policy(word)
    name = word.partition(":")[0]
    said = about(POLICY_WORDS, name)
    console = terminal.output()
    if as_json:
        facts = policy_facts(one)
        defaults = {option: value for option, (value, _) in _defaults(one).items()}
        more = {"defaults": defaults, "meanings": _meanings(one)}
        console.file.write(json_line({"name": one.name, "about": said, **facts, **more}) + "\n")
        return
    console.print(Text.assemble((one.name, "bold"), f": {said}" if said else ""))
    if not isinstance(one, PolicyOptions):
        where = "It is written in Python, for simulations and plans; campaigns do not run it."
        prices = " It counts with list prices, whatever is paid in the end." if one.kind in AT_LIST_PRICES else ""
        terminal.show_words(f"{where}{prices}")
    console.print()
    rows: list[list[str | Text]] = []
    for option, (default, choices) in _defaults(one).items():
        value = getattr(one if isinstance(one, PolicyOptions) else one.settings, option)
        is_changed = value != default
        shown = Text(_shown(value), style="bold" if is_changed else "")
        rows.append([option, shown, _shown(default) if is_changed else "", choices])
    terminal.show_table(["option", "here", "otherwise", "can be"], rows, width=terminal.READ_WIDTH)
    console.print()
    example = next(iter(_defaults(one)))
    console.print(f"Change options as in: -p {name}:{example}={_shown(_defaults(one)[example][0])}", markup=False)
    console.print(f"What one means: doral policies {name} {example}", markup=False)


def show_option(word: str, option: str) -> None:
    """What one option of a policy means, and what it is there."""
    one = parse_policy(word)
    meanings = _meanings(one)
    if option not in meanings:
        raise UnknownName("option", option, tuple(meanings))
    value = getattr(one if isinstance(one, PolicyOptions) else one.settings, option)
    terminal.output().print(Text.assemble((option, "bold"), f": {_shown(value)} in {one.name}"))
    terminal.show_words(meanings[option])


def _meanings(one: NamedPolicy) -> dict[str, str]:
    """By option, as `help(doral.policy)` and `help(doral.rival)` tell it."""
    doc = inspect.getdoc(policy if isinstance(one, PolicyOptions) else rival) or ""
    told = doc.partition("Keyword Args:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", told, flags=re.MULTILINE)
    return {option: re.sub(r"\s+", " ", words) for option, words in found if option in _defaults(one)}


def _defaults(one: NamedPolicy) -> dict[str, tuple[Any, str]]:
    """By option: what it is where nobody says anything, and what it can be."""
    if not isinstance(one, PolicyOptions):
        assert one.kind in RIVALS
        usual = dataclasses.asdict(rival_of(one.kind).settings)
        return {option: (value, _kind(value)) for option, value in usual.items()}
    plain, hints = PolicyOptions(), typing.get_type_hints(PolicyOptions)
    words = option_words()
    return {
        option: (getattr(plain, option), " ".join(words[option]) if option in words else _kinds(hints[option]))
        for option in OPTION_NAMES
    }


def _kinds(hint: Any) -> str:
    """What a type allows, in words."""
    if typing.get_origin(hint) is typing.Literal:
        return " ".join(typing.get_args(hint))
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return ", ".join(said for said in map(_kinds, typing.get_args(hint)) if said)
    if typing.get_origin(hint) is Sequence and all(typing.get_origin(one) is typing.Literal for one in hint.__args__):
        return f"some of {' '.join(map(_kinds, hint.__args__))}"
    known = {bool: "true false", int: "a whole number", float: "a number", str: "a word", type(None): "none"}
    return known.get(hint, "")


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true false"
    if isinstance(value, int) and not isinstance(value, bool):
        return "a whole number"
    return "a number" if isinstance(value, float) else ""


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return PLUS.join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)
