"""Problem and scenario files as text: TOML, and JSON with the comments and last commas that 0.2 wrote."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from pathlib import Path
from typing import Any

from doral.errors import InvalidValue, shown

MAX_BYTES = 2**30  # a file of this size is something else
_STRING = r'"(?:\\.|[^"\\\n])*"?'
_COMMENTS = re.compile(rf"{_STRING}|(?://|#)[^\n]*|/\*.*?\*/", re.DOTALL)
_COMMAS = re.compile(rf"{_STRING}|(?<![\[{{,:\s])(\s*),(?=\s*[}}\]])")


def read(field: str, path: Path) -> Any:
    """Read a file, TOML where its name ends so, else JSON; `field` is what messages call it."""
    if path.is_dir():
        raise InvalidValue(field, str(path), "is a folder; name a file")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidValue(field, str(path), f"is larger than {MAX_BYTES // 2**20:,} MiB; is it the right file?")
        content = path.read_bytes()
    except OSError as error:
        missing = "; `doral init` writes one to start from" if isinstance(error, FileNotFoundError) else ""
        raise InvalidValue(field, str(path), f"cannot be read: {error.strerror or error}{missing}") from None
    return read_bytes(field, str(path), content)


def read_bytes(field: str, source: str, content: bytes) -> Any:
    """Read the content of a file; `source` is its name."""
    kind = "TOML" if source.lower().endswith(".toml") else "JSON"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(field, source, f"is not {kind}: no text in UTF-8 ({error.reason})") from None
    try:
        found = _plain(tomllib.loads(text)) if kind == "TOML" else parse_json(text)
    except InvalidValue as error:
        raise InvalidValue(field, source, f"{error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidValue(field, source, f"is not TOML: {error}") from None
    except json.JSONDecodeError as error:
        if not _without_comments(text).strip():
            remedy = "is not JSON: it is empty; `doral init` writes one to start from"
            raise InvalidValue(field, source, remedy) from None
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidValue(field, source, f"is not JSON: {error.msg}, {where}{_hint(text, error.pos)}") from None
    except RecursionError:
        raise InvalidValue(field, source, f"is not {kind} that can be read: it is nested too deeply") from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InvalidValue(field, source, f"is not {kind} that can be read: a number has too many digits") from None
    if kind == "TOML" and not found:
        raise InvalidValue(field, source, "is not TOML that can be used: it is empty; `doral init` writes one")
    return found


def _plain(value: Any) -> Any:
    """Write dates as text, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else value


def parse_json(text: str) -> Any:
    """Parse JSON that may hold comments and a comma after the last entry; a key twice in one object is refused.

    >>> parse_json('{"url": "http://x", # a comment\\n "arms": ["a", "b",], }')
    {'url': 'http://x', 'arms': ['a', 'b']}
    """
    try:
        return json.loads(text, object_pairs_hook=_without_twins)
    except json.JSONDecodeError:
        return json.loads(_without_comments(text), object_pairs_hook=_without_twins)


def _without_comments(text: str) -> str:
    """Put blanks in place of comments and of last commas, so that errors keep their lines and columns."""

    def blank(found: re.Match[str]) -> str:
        part = found[0]
        return part if part.startswith('"') else re.sub(r"[^\r\n]", " ", part)

    return _COMMAS.sub(blank, _COMMENTS.sub(blank, text))


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidValue("key", key, "appears twice in one object; keep one of them")
        found[key] = value
    return found


def _hint(text: str, position: int) -> str:
    """Return what is usually meant."""
    rest = text[position : position + 12].lstrip()
    if rest.startswith("'"):
        return ': write names and words in double quotes, "..."'
    for python, ours in (("True", "true"), ("False", "false"), ("None", "null")):
        if rest.startswith(python):
            return f": write {ours}"
    line = text[:position].rpartition("\n")[2] + text[position:].partition("\n")[0]
    return f": {shown(line.strip())}" if line.strip() else ""
