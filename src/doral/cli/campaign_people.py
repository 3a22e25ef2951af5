"""Features of people as words of the command line and as columns of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.campaign_words import parse_number
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.problem import Problem

_FEATURE_HELP = "What is known of this one, such as age=71; may be given again."
_WEIGHT_HELP = "What a unit of this one's reward is worth, if not as in the context."
_DEADLINE_HELP = "How long this one's answer counts, in seconds (or rounds, by the campaign's clock)."

Features = Annotated[list[str] | None, typer.Option("--feature", "-f", metavar="NAME=VALUE", help=_FEATURE_HELP)]
Weight = Annotated[float | None, typer.Option("--weight", help=_WEIGHT_HELP)]
Deadline = Annotated[float | None, typer.Option("--deadline", help=_DEADLINE_HELP)]


def parse_person(problem: Problem, words: Sequence[str] | None) -> dict[str, Any] | None:
    """From words such as age=71; names that nobody knows are left to the campaign to refuse."""
    from doral.person import Number

    if not words:
        return None
    kinds = {one.name: one for one in problem.person}
    found: dict[str, Any] = {}
    for word in words:
        name, is_there, value = word.partition("=")
        if not is_there:
            raise InvalidValue("feature", word, "must be written NAME=VALUE, such as age=71")
        if name in found:
            raise InvalidValue("feature", word, "is given twice")
        is_number = isinstance(kinds.get(name), Number)
        found[name] = parse_number(f"feature {name!r}", value) if is_number else value
    return found


def feature_cells(problem: Problem) -> dict[str, Any]:
    """Columns for `Table`, each with what reads a cell of it."""
    from doral.cli.campaign_tables import number, text
    from doral.live.views.export import feature_column
    from doral.person import Number

    return {feature_column(one.name): number if isinstance(one, Number) else text for one in problem.person}


def gathered(problem: Problem, content: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a request: its features are one argument."""
    from doral.live.views.export import feature_column

    if not problem.person:
        return dict(content)
    columns = {feature_column(one.name): one.name for one in problem.person}
    rest = {name: value for name, value in content.items() if name not in columns}
    return {**rest, "features": {columns[name]: content[name] for name in content if name in columns}}


def check_person(problem: Problem, request: Mapping[str, Any]) -> None:
    """What a campaign would refuse of a row: it is said before anything is stored."""
    from doral.live.events.person import asked_of, context_for, person_for

    person_for(problem, asked_of(*(request.get(name) for name in ("features", "weight", "deadline"))))
    if request.get("context") is None:
        context_for(problem, None)
