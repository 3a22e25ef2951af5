"""JSON as people write it: with comments (`//`, `#`, `/* */`) and with a comma after the last entry.

What is not JSON is blanked, character by character, so that lines and columns of errors are those of the file.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from doral.errors import InvalidValue, shown

MAX_BYTES = 2**30  # a file of this size is something else


def read(field: str, path: Path) -> Any:
    """The content of a file; `field` is what it is called in messages."""
    if path.is_dir():
        raise InvalidValue(field, str(path), "is a folder; name a file")
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidValue(field, str(path), f"is larger than {MAX_BYTES // 2**20:,} MiB; is it the right file?")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValue(field, str(path), f"is not JSON: no text in UTF-8 ({error.reason})") from None
    except OSError as error:
        missing = "; `doral init` writes one to start from" if isinstance(error, FileNotFoundError) else ""
        raise InvalidValue(field, str(path), f"cannot be read: {error.strerror or error}{missing}") from None
    return read_text(field, str(path), text)


def read_text(field: str, source: str, text: str) -> Any:
    """The value of a text that somebody gave; `source` is where it came from, in messages."""
    try:
        return parse(text)
    except InvalidValue as error:
        raise InvalidValue(field, source, f"{error}") from None
    except json.JSONDecodeError as error:
        if not blanked(text).strip():
            remedy = "is not JSON: it is empty; `doral init` writes one to start from"
            raise InvalidValue(field, source, remedy) from None
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidValue(field, source, f"is not JSON: {error.msg}, {where}{_hint(text, error.pos)}") from None
    except RecursionError:
        raise InvalidValue(field, source, "is not JSON that can be read: it is nested too deeply") from None
    except ValueError:  # Python reads whole numbers of up to 4,300 digits
        raise InvalidValue(field, source, "is not JSON that can be read: a number has too many digits") from None


def parse(text: str) -> Any:
    """The value of a text. A key that is there twice is a slip, and refused.

    >>> parse('{"url": "http://x", # a comment\\n "arms": ["a", "b",], }')
    {'url': 'http://x', 'arms': ['a', 'b']}
    """
    try:
        return json.loads(text, object_pairs_hook=_without_twins)  # looking for comments takes a second per megabyte
    except json.JSONDecodeError:
        return json.loads(blanked(text), object_pairs_hook=_without_twins)


def blanked(text: str) -> str:
    """The text with blanks in place of comments and of commas after the last entry; strings stay as they are."""
    made = list(text)
    position, last, before_last = 0, -1, -1  # where the last two signs that count stand
    while position < len(text):
        sign = text[position]
        if sign == '"':
            end = _end_of_string(text, position)
            before_last, last = last, end - 1
            position = end
            continue
        end = _end_of_comment(text, position)
        if end > position:
            made[position:end] = [one if one in "\r\n" else " " for one in text[position:end]]
            position = end
            continue
        if not sign.isspace():
            if (
                sign in "}]"
                and last >= 0
                and text[last] == ","
                and before_last >= 0
                and text[before_last] not in "[{,:"
            ):
                made[last] = " "
            before_last, last = last, position
        position += 1
    return "".join(made)


def _end_of_string(text: str, start: int) -> int:
    position = start + 1
    while position < len(text) and text[position] not in '"\n':
        position += 2 if text[position] == "\\" else 1
    return min(position + 1, len(text))


def _end_of_comment(text: str, start: int) -> int:
    """Where a comment that begins here ends; the same place if none does."""
    if text[start] == "#" or text.startswith("//", start):
        end = text.find("\n", start)
        return len(text) if end < 0 else end
    if text.startswith("/*", start):
        end = text.find("*/", start + 2)
        return start if end < 0 else end + 2
    return start


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidValue("key", key, "appears twice in one object; keep one of them")
        found[key] = value
    return found


def _hint(text: str, position: int) -> str:
    """What is usually meant."""
    rest = text[position : position + 12].lstrip()
    if rest.startswith("'"):
        return ': write names and words in double quotes, "..."'
    for python, ours in (("True", "true"), ("False", "false"), ("None", "null")):
        if rest.startswith(python):
            return f": write {ours}"
    line = text[:position].rpartition("\n")[2] + text[position:].partition("\n")[0]
    return f": {shown(line.strip())}" if line.strip() else ""
