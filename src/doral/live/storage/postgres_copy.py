"""Rows for PostgreSQL's COPY: many of them in one message, at a fraction of the cost of INSERT.

A row as a JSON list is a line of CSV: `null`, numbers and quoted texts look the same in both, as long as quotes and
backslashes are all that has to be escaped. Rows with other texts are written by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

FORMAT = "FORMAT csv, NULL 'null', QUOTE '\"', ESCAPE '\\'"
_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
_may_be_escaped_otherwise = re.compile(r"\\[bfnrtu]").search


def copied(rows: Sequence[Sequence[Any]]) -> bytes:
    """A line for each row."""
    plain = [["\\x" + value.hex() if type(value) is bytes else value for value in row] for row in rows]
    text = _to_json(plain)
    if text.count("],[") == len(rows) - 1 and not _may_be_escaped_otherwise(text):
        return text[2:-2].replace("],[", "\n").encode()
    return "\n".join([",".join(map(_by_hand, row)) for row in plain]).encode()


def _by_hand(value: object) -> str:
    if not isinstance(value, str):
        return _to_json(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
