"""Errors that DORAL raises on purpose: one small tree, each message with its remedy.

All of them can be pickled, because a worker process has to hand them back whole.
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable

MAX_SHOWN_CHARACTERS = 80
MAX_SHOWN_NAMES = 8
MAX_COMPARED_NAMES = 2_000  # a misspelt name among 100,000 arms must not cost a second of comparing

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = MAX_SHOWN_CHARACTERS


def shown(value: object) -> str:
    """Return `repr(value)` of any value, on one line and of bounded length."""
    try:
        text = _shortener.repr(value)
    except Exception:  # noqa: BLE001  (a foreign __repr__ may raise anything; an error message must not)
        text = f"<{type(value).__name__}>"
    if "\n" in text:  # arrays and frames; a string's own line breaks are escaped already
        text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 3] + "..."


class DoralError(Exception):
    """The root: `except doral.DoralError` catches what DORAL raises on purpose, and no bug."""


class InvalidValue(DoralError, ValueError):
    """A value from outside that cannot be used.

    Args:
        field: What it was given for.
        value: What was given.
        remedy: What it must be, or what to do.

    >>> print(InvalidValue("budget", -3, "must be a finite number above 0"))
    budget = -3: must be a finite number above 0
    """

    def __init__(self, field: str, value: object, remedy: str) -> None:
        super().__init__(field, value, remedy)
        self.field = field
        self.value = value
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.field} = {shown(self.value)}: {self.remedy}"


class UnknownName(DoralError, LookupError):
    """A name that is not among the known ones; the message offers the nearest.

    Args:
        kind: Of what it is a name.
        name: The name that was given.
        known: All that are known.

    >>> print(UnknownName("scenario", "paper/divers-pareto", ["paper/diverse-pareto", "paper/similar-geometric"]))
    unknown scenario 'paper/divers-pareto'; did you mean 'paper/diverse-pareto'?
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        super().__init__(kind, name, self.known)

    def __str__(self) -> str:
        # Composed only when it is read: a caught lookup error costs nothing.
        return f"unknown {self.kind} {shown(self.name)}; {self._advice()}"

    def _advice(self) -> str:
        if not self.known:
            return f"no {self.kind} is known here"
        near = _nearest(self.name, self.known)
        if near:
            return f"did you mean {_listed(near, last=' or ')}?"
        if len(self.known) <= MAX_SHOWN_NAMES:
            return f"known: {_listed(self.known)}"
        more = len(self.known) - MAX_SHOWN_NAMES
        return f"known: {_listed(self.known[:MAX_SHOWN_NAMES])} and {more} more"


def _nearest(name: object, known: tuple[str, ...]) -> list[str]:
    if not isinstance(name, str):
        return []
    return difflib.get_close_matches(name[:MAX_SHOWN_CHARACTERS], known[:MAX_COMPARED_NAMES])


def _listed(names: Iterable[str], *, last: str = ", ") -> str:
    *first, final = (shown(name) for name in names)
    return last.join([", ".join(first), final]) if first else final
