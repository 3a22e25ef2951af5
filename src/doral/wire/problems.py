"""Errors on the wire: `application/problem+json` (RFC 9457), and back into what was raised.

One table says which error has which code and which status. A client raises the same class that a local campaign would
have raised, with the same words.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from doral.errors import DoralError, InvalidValue, UnknownName, shown
from doral.live import errors as live
from doral.live.errors import OutcomeUnknown


class ServiceError(DoralError):
    """The service has refused a request, or could not carry it out, for a reason that a local campaign does not have.

    Args:
        words: What is wrong, and what to do.
        code: By which programs tell it from others.
        status: Of the answer, as HTTP counts.
        retry_after_s: When to try again, where the service said so.
    """

    def __init__(self, words: str, code: str = "failed", status: int = 500, retry_after_s: float | None = None) -> None:
        super().__init__(words, code, status, retry_after_s)
        self.code, self.status, self.retry_after_s = code, status, retry_after_s

    def __str__(self) -> str:
        return str(self.args[0])


class NotAllowed(ServiceError):
    """The key is missing, is not known any more, or does not allow this."""


class TooManyRequests(ServiceError):
    """The key has asked for more than it may; `retry_after_s` says when to ask again."""


class ServiceUnreachable(ServiceError):
    """No answer came in the time that was given, however often the request was sent again; nothing was changed."""


class RequestLost(ServiceUnreachable, OutcomeUnknown):
    """A change was sent, and no answer came: it may have happened or not.

    Ask again with the same key: it gives back what was stored, or does it now.

    Args:
        words: What is wrong, and what to do.
        key: Of the request: the caller's own, or the one that was drawn for it. Items of a batch that have no key of
            their own have this one with their place added: "KEY/0", "KEY/1" and so on. None: the request needs none,
            doing it twice is as doing it once.
    """

    def __init__(self, words: str, key: str | None = None) -> None:
        super().__init__(words, "request-lost", 504)
        self.args = (words, key)  # by which it is pickled
        self.key = key


MEDIA_TYPE = "application/problem+json"
_PREFIX = "urn:doral:problem:"


# The first class that fits decides: those that are special stand before those that are general.
_TABLE: tuple[tuple[type[DoralError], str, int, str], ...] = (
    (InvalidValue, "invalid-value", 422, "A value cannot be used"),
    (UnknownName, "unknown-name", 422, "A name is not known"),  # 404 where the path has it
    (live.UnknownDecision, "unknown-decision", 404, "There is no such decision"),
    (live.WrongState, "wrong-state", 409, "The decision is in another state"),
    (live.KeyReused, "key-reused", 409, "The key was used before, with another content"),
    (live.CampaignClosed, "campaign-closed", 409, "The campaign has ended"),
    (live.ClockDisagrees, "clock-disagrees", 409, "Clocks are too far apart"),
    (live.CampaignExists, "campaign-exists", 409, "A campaign of this name is there already"),
    (live.PolicyFailed, "policy-failed", 409, "The policy of the campaign failed"),
    (live.CampaignError, "campaign-refuses", 409, "The campaign refuses this"),
    (live.CampaignGone, "campaign-gone", 410, "The campaign was deleted"),
    (live.StorageBusy, "storage-busy", 503, "The store is busy"),
    (live.ConnectionLost, "connection-lost", 503, "The store cannot be reached"),
    (live.OutcomeUnknown, "outcome-unknown", 503, "Whether it happened is not known: ask again with the same key"),
    (live.NewerDatabase, "newer-database", 503, "The store is of a newer version"),
    (live.ArchiveMissing, "archive-missing", 503, "An archive is not where it was"),
    (live.BrokenLog, "broken-log", 503, "The log is damaged"),
    (live.StorageError, "storage-failed", 503, "The store cannot be used"),
)
_CLASSES = {code: kind for kind, code, _, _ in _TABLE}
_BY_STATUS: dict[int, type[ServiceError]] = {401: NotAllowed, 403: NotAllowed, 429: TooManyRequests}


def to_problem(error: DoralError, *, instance: str | None = None) -> dict[str, Any]:
    """The members of a problem document; `status` among them."""
    if isinstance(error, ServiceError):
        found = _head(error.code, _title(error.code), error.status, error)
    else:
        refused = (DoralError, "refused", 422, "The request was refused")
        _, code, status, title = next((row for row in _TABLE if isinstance(error, row[0])), refused)
        found = _head(code, title, status, error)
    return _without_none({**found, **_more(error), "instance": instance})


def from_problem(document: Mapping[str, Any], *, status: int) -> DoralError:
    """The error that this document tells of."""
    code = code_of(document)
    words = str(document.get("detail") or document.get("title") or f"the service answered {status}")
    kind = _CLASSES.get(code)
    if kind is InvalidValue:
        return _invalid_value(document, words)
    if kind is UnknownName:
        return UnknownName(str(document.get("kind")), document.get("value"), document.get("known") or ())
    if kind is not None:
        return kind(words)
    refused = _BY_STATUS.get(status, ServiceError)
    retry_after_s = document.get("retry_after_s")
    return refused(words, code or "failed", status, retry_after_s if isinstance(retry_after_s, int | float) else None)


def code_of(document: Mapping[str, Any]) -> str:
    """By which programs tell one problem from another."""
    return str(document.get("type", "")).removeprefix(_PREFIX)


class Told:
    """A value that only its description has come across of."""

    def __init__(self, words: str) -> None:
        self._words = words

    def __repr__(self) -> str:
        return self._words


def _invalid_value(document: Mapping[str, Any], words: str) -> InvalidValue:
    field, value, remedy = str(document.get("field")), document.get("value"), str(document.get("remedy"))
    error = InvalidValue(field, value, remedy)
    if isinstance(value, str) and str(error) != words:  # it was no text: a date, a list
        told = InvalidValue(field, Told(value), remedy)
        return told if str(told) == words else error
    return error


def _head(code: str, title: str, status: int, error: DoralError) -> dict[str, Any]:
    return {"type": _PREFIX + code, "title": title, "status": status, "detail": str(error)}


def _title(code: str) -> str:
    return code.replace("-", " ").capitalize().replace(" json", " JSON")


def _more(error: DoralError) -> dict[str, Any]:
    if isinstance(error, InvalidValue):
        return {"field": error.field, "value": plain_or_shown(error.value), "remedy": error.remedy}
    if isinstance(error, UnknownName):
        return {
            "field": error.kind,
            "kind": error.kind,
            "value": plain_or_shown(error.name),
            "known": list(error.known[:100]),
            "remedy": str(error).partition("; ")[2],
        }
    if isinstance(error, ServiceError):
        return {"retry_after_s": error.retry_after_s}
    return {}


def plain_or_shown(value: object) -> object:
    """A short value that JSON has, as it is; whatever else was given, as text of bounded length."""
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and abs(value) < 2**53:
        return value
    if isinstance(value, str) and len(value) <= 200 and value.isprintable():
        return value
    return shown(value)


def _without_none(found: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in found.items() if one is not None or name == "value"}
