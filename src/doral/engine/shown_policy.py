"""What a policy shows of itself: in what it differs from its preset, and in a notebook all options."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from doral.engine.options import OPTION_NAMES, PolicyOptions
from doral.engine.presets import POLICY_NAMES, policy_of
from doral.errors import shown
from doral.pages.notebook import card, note, small_table

_WIDEST = 200  # characters of a line


def in_words(options: PolicyOptions) -> str:
    """One line: the preset that is nearest, and what is different."""
    preset, changed = _nearest(options)
    if options.name == preset and not changed:
        return f"<Policy {preset!r}>"
    said = [f"{option}={shown(value)}" for option, value in changed.items()]
    line = f"<Policy {shown(options.name)}: {preset}{' with ' if said else ''}{', '.join(said)}>"
    while len(line) > _WIDEST and len(said) > 1:
        said = said[:-1]
        more = len(changed) - len(said)
        line = f"<Policy {shown(options.name)}: {preset} with {', '.join(said)} and {more} more changes>"
    return line


def policy_card(options: PolicyOptions) -> str:
    """For a notebook: what is different first."""
    preset, changed = _nearest(options)
    usual = _presets()[preset]
    order = [*changed, *(option for option in OPTION_NAMES if option not in changed)]
    rows = [
        (option, shown(getattr(options, option)), shown(getattr(usual, option)) if option in changed else "")
        for option in order
    ]
    different = f"{len(changed)} changed" if changed else "nothing changed"
    return card(
        f"Policy {options.name}",
        [("Preset", f"{preset}, {different}")],
        parts=[
            small_table(("Option", "Value", f"In {preset}"), rows),
            note("help(doral.policy) says what each option means."),
        ],
    )


@cache
def _presets() -> Mapping[str, PolicyOptions]:
    return {name: policy_of(name, {}) for name in POLICY_NAMES}


def _nearest(options: PolicyOptions) -> tuple[str, dict[str, Any]]:
    """The preset that it is called after, or from which it differs least, and in what."""
    presets = _presets()
    called = options.name.partition("(")[0]
    changes = {name: _changes(options, preset) for name, preset in presets.items()}
    name = called if called in presets else min(presets, key=lambda one: len(changes[one]))
    return name, changes[name]


def _changes(options: PolicyOptions, preset: PolicyOptions) -> dict[str, Any]:
    return {
        option: getattr(options, option)
        for option in OPTION_NAMES
        if getattr(options, option) != getattr(preset, option)
    }
