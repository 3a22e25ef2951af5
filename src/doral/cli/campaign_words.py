"""Campaigns as words of the command line: what they are told, and what they answer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.live.views.decision import Decision
    from doral.live.views.verify import Difference, Stretch, Verification

_OF_PEOPLE = ("features", "weight", "deadline", "base", "effects")
MOST_LINES = 20  # of differences; there can be as many as decisions

_TIME_FORM = "must be seconds since 1970 (or a round), or a time such as 2026-03-01T12:00:00Z"


def parse_option(word: str) -> tuple[str, Any]:
    """An option of a policy: a value of JSON, or else a word.

    >>> parse_option("accept=3"), parse_option("printed=rate+window")
    (('accept', 3), ('printed', 'rate+window'))
    """
    name, is_there, value = word.partition("=")
    if not is_there:
        raise InvalidValue("option", word, "must be written NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse_number(field: str, word: str) -> float:
    """A number with a decimal point.

    >>> parse_number("reward", "-0.5")
    -0.5
    """
    try:
        return float(word)
    except ValueError:
        raise InvalidValue(field, word, "must be a number, such as 0.5") from None


class Time(float):
    """A time in seconds since 1970, or a round; messages show it as it was said."""

    def __new__(cls, value: float, said: str) -> Time:
        """The number, and the word for it."""
        time = super().__new__(cls, value)
        time._said = said
        return time

    _said: str

    def __repr__(self) -> str:
        return self._said


def parse_time(field: str, word: str) -> Time:
    """A number, or a date and time that says its zone.

    >>> time = parse_time("at", "2026-01-01T00:00Z")
    >>> time, float(time), parse_time("at", "12")
    (2026-01-01T00:00Z, 1767225600.0, 12)
    """
    try:
        return Time(float(word), word)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(word)
    except ValueError:
        raise InvalidValue(field, word, _TIME_FORM) from None
    if time.tzinfo is None:
        raise InvalidValue(field, word, "must say its time zone, such as 2026-03-01T12:00Z or 2026-03-01T12:00+02:00")
    return Time(time.timestamp(), word)


def parse_given_time(field: str, word: str | None) -> Time | None:
    """The same, or None where nothing was given."""
    return None if word is None else parse_time(field, word)


def parse_features(words: Sequence[str]) -> list[float]:
    """Numbers, one by one or separated by commas.

    >>> parse_features(["0.5,0.5", "-1"])
    [0.5, 0.5, -1.0]
    """
    return [parse_number("features", one.strip()) for word in words for one in word.split(",")]


def parse_cost(word: str) -> Any:
    """A number, or one for each context.

    >>> parse_cost("2.5"), parse_cost('{"near": 8, "far": 20}')
    (2.5, {'near': 8, 'far': 20})
    """
    if not word.lstrip().startswith("{"):
        return parse_number("cost", word)
    try:
        return json.loads(word)
    except ValueError as error:
        raise InvalidValue("cost", word, f'must be a number, or JSON such as {{"near": 8}}: {error}') from None


def json_line(content: Any) -> str:
    """One line of JSON."""
    return json.dumps(_plain(content))


def _plain(value: Any) -> Any:
    """JSON knows no infinity, and no decimals."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def decision_line(decision: Decision, *, as_json: bool) -> str:
    """A decision in one line."""
    if as_json:
        content = {one.name: getattr(decision, one.name) for one in fields(decision)}
        if all(content[name] is None for name in _OF_PEOPLE):
            content = {name: value for name, value in content.items() if name not in _OF_PEOPLE}
        return json_line({**content, "reason": decision.reason, "delay": decision.delay})
    reward = "" if decision.reward is None else f"  reward {decision.reward:g}"
    return f"{decision.id}  {decision.arm or '-'}  {decision.state}{reward}  ({decision.reason}){_person(decision)}"


def _person(decision: Decision) -> str:
    """Who it is for, and what each feature spoke for the arm."""
    if not decision.features:
        return ""
    effects = decision.effects or {}
    said = []
    for name, value in decision.features.items():
        shown = "?" if value is None else value if isinstance(value, str) else f"{value:g}"
        said.append(f"{name}={shown}" + (f" ({effects[name]:+.3g})" if name in effects else ""))
    return "  " + ", ".join(said)


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "decision"), counted(2000, "decision")
    ('1 decision', '2,000 decisions')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def verification_lines(name: str, found: Verification) -> list[str]:
    """What was checked, who wrote it, and what this version would have done otherwise."""
    lines = [f"{name}: {counted(found.events, 'event')} checked, all as they were written; head {found.head}"]
    lines += [_stretch_line(one) for one in found.engines]
    if not found.n_differences:
        return [*lines, "this version would have decided the same everywhere"]
    lines.append(
        f"this version would have made {counted(found.n_differences, 'decision')} otherwise; that is information "
        "and no failure: what was decided stays"
    )
    lines += [_difference_line(one) for one in found.differences[:MOST_LINES]]
    more = found.n_differences - min(len(found.differences), MOST_LINES)
    return [*lines, f"  and {more:,} more"] if more else lines


def _stretch_line(stretch: Stretch) -> str:
    engine = ", ".join(f"{what} {value}" for what, value in stretch.engine.items())
    return f"events {stretch.first:,} to {stretch.last:,} were written by {engine or 'an unknown version'}"


def _difference_line(one: Difference) -> str:
    return f"  {one.decision_id}  {one.recorded or '-'}, now {one.chosen or '-'}"
