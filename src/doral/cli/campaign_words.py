"""Campaigns as words of the command line: what they are told, and what they answer."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from doral.errors import InvalidValue

if TYPE_CHECKING:
    from pathlib import Path

    from doral.live.decision import Decision


def parse_option(word: str) -> tuple[str, Any]:
    """An option of a policy: a value of JSON, or else a word.

    >>> parse_option("accept=3"), parse_option("bonus=printed")
    (('accept', 3), ('bonus', 'printed'))
    """
    name, is_there, value = word.partition("=")
    if not is_there:
        raise InvalidValue("option", word, "must be written NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def read_problem(path: Path) -> Any:
    """The content of a file of JSON."""
    text = path.read_text()
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidValue("problem", str(path), f"must hold JSON: {error}") from None


def json_line(content: dict[str, Any]) -> str:
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
        fields = {name: getattr(decision, name) for name in decision.__dataclass_fields__}
        return json_line({**fields, "delay": decision.delay})
    reward = "" if decision.reward is None else f"  reward {decision.reward:g}"
    return f"{decision.id}  {decision.arm or '-'}  {decision.state}{reward}  ({decision.reason})"
