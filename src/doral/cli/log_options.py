"""The options that say which column of a log is what, for every command that reads one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

_PANEL = "Columns (understood from names and data where these leave no doubt)"
COLUMN_OPTIONS = (
    "time", "context", "arm", "reward", "answered", "delay", "cost", "paid", "probability", "key", "observed_until",
    "positive", "nothing", "feedback", "time_unit", "delay_unit", "date_order", "currency", "outcome",
)  # fmt: skip


def _option(metavar: str, help_: str) -> typer.models.OptionInfo:
    made: typer.models.OptionInfo = typer.Option(metavar=metavar, help=help_, rich_help_panel=_PANEL)
    return made


_ARM_HELP = "What was done. Given again: each column is an arm, and 1 where it was done."
Time: TypeAlias = Annotated[str | None, _option("COLUMN", "When they arrived.")]
Context: TypeAlias = Annotated[list[str] | None, _option("COLUMN", "A column that says who arrived; again for more.")]
ArmColumn: TypeAlias = Annotated[list[str] | None, _option("COLUMN", _ARM_HELP)]
Reward: TypeAlias = Annotated[str | None, _option("COLUMN", "What came of it.")]
Answered: TypeAlias = Annotated[str | None, _option("COLUMN", "When the answer came; empty: not yet.")]
Delay: TypeAlias = Annotated[str | None, _option("COLUMN", "Or how long it took.")]
Cost: TypeAlias = Annotated[str | None, _option("COLUMN", "The list price.")]
Paid: TypeAlias = Annotated[str | None, _option("COLUMN", "What was paid in the end.")]
Probability: TypeAlias = Annotated[str | None, _option("COLUMN", "Of what was done.")]
Key: TypeAlias = Annotated[str | None, _option("COLUMN", "By which duplicates are known.")]
ObservedUntil: TypeAlias = Annotated[
    str | None, _option("COLUMN|TIME", "A column, or a time: until when answers would have been seen.")
]
Positive: TypeAlias = Annotated[list[str] | None, _option("WORD", "A reward that counts as 1; again for more.")]
Nothing: TypeAlias = Annotated[list[str] | None, _option("NAME", "The arm of doing nothing.")]
FeedbackKind: TypeAlias = Annotated[str | None, _option("explicit|silent", "silent: no news is 0.")]
TimeUnit: TypeAlias = Annotated[str | None, _option("UNIT", "Of times that are numbers.")]
DelayUnit: TypeAlias = Annotated[str | None, _option("UNIT", "Of delays that are numbers.")]
DateOrder: TypeAlias = Annotated[str | None, _option("ORDER", "day-first or month-first, of dates such as 03/04/2026.")]
Currency: TypeAlias = Annotated[str | None, _option("NAME", "What costs are in, such as EUR.")]
Outcome: TypeAlias = Annotated[str | None, _option("NAME", "What a reward of 1 is, such as booking.")]

_NAMES = "|".join([*COLUMN_OPTIONS, "deadline", "budget", "horizon", "out", "jobs", "create", "storage"])
_ARGUMENT = re.compile(rf"\b({_NAMES})=('[^']*'|\[[^\]]*\]|False|[\w.]+)?")
_FIELD = re.compile(rf"(?m)^(\s*)({_NAMES})( = None)?(?= = |:)")


def chosen_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of the parameters of a command, the options of `read_log` that were given; "" is none."""
    named = {name: given[name] for name in COLUMN_OPTIONS if given[name] not in (None, [])}
    if len(named.get("arm", [])) == 1:
        named["arm"] = named["arm"][0]
    return named


def as_options(text: object) -> str:
    """Arguments of Python as options of the command line.

    >>> as_options("say with arm= which it is; feedback='silent' says otherwise, cost=False: none")
    "say with --arm which it is; --feedback silent says otherwise, --cost '': none"
    >>> as_options("observed_until = 'soon': is no time")
    "--observed-until = 'soon': is no time"
    """
    dashed = _FIELD.sub(lambda match: match[1] + _dashed(match[2]), str(text))
    return _ARGUMENT.sub(_option_of, dashed)


def _option_of(match: re.Match[str]) -> str:
    value = match[2]
    if value is None:
        return _dashed(match[1])
    if value in ("False", "[]"):
        value = "''"
    elif re.fullmatch(r"'[\w.:-]+'", value):
        value = value[1:-1]
    return f"{_dashed(match[1])} {value}"


def _dashed(name: str) -> str:
    return f"--{name.replace('_', '-')}"
