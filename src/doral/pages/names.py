"""Names from outside, shortened and escaped for display."""

from __future__ import annotations

import unicodedata

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# Marks that join letters and emoji are harmless; the rest of their class turns the direction of text, or hides it.
_JOINERS = "\u200c\u200d"


def printable(name: str) -> str:
    """A name in one line, without characters that steer a terminal or turn the direction of text.

    >>> printable("a\\x1b[31m\\n b")
    'a\ufffd[31m b'
    """
    shown = (" " if one.isspace() else one for one in name)
    clean = "".join("\N{REPLACEMENT CHARACTER}" if _steers(one) else one for one in shown)
    return " ".join(clean.split())


def _steers(one: str) -> bool:
    return unicodedata.category(one) in {"Cc", "Cf", "Cs"} and one not in _JOINERS


def short(name: str, width: int = 26) -> str:
    """A name in at most so many columns: long ones keep their beginning and their end.

    >>> short("a name that goes on and on and on", 16)
    'a name th\u2026and on'
    """
    clean = printable(name)
    if columns(clean) <= width:
        return clean
    end = (width - 1) * 2 // 5
    return _first(clean, width - 1 - end) + ELLIPSIS + _first(clean[::-1], end)[::-1]


def isolated(name: str) -> str:
    """A name inside a sentence: one that runs from right to left does not turn the words around it."""
    is_turning = any(unicodedata.bidirectional(one) in {"R", "AL"} for one in name)
    return f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}" if is_turning else name


def columns(text: str) -> int:
    """How wide a text is on a terminal.

    >>> columns("abc"), columns("検査")
    (3, 4)
    """
    return sum(_columns_of(one) for one in text)


def _columns_of(one: str) -> int:
    if unicodedata.combining(one) or one in _JOINERS:
        return 0
    return 2 if unicodedata.east_asian_width(one) in "WF" else 1


def _first(text: str, width: int) -> str:
    used = 0
    for place, one in enumerate(text):
        used += _columns_of(one)
        if used > width:
            return text[:place]
    return text
