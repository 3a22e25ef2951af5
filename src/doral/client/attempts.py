"""How often a request is sent, and what is made of what comes back: the same for all who carry requests.

Nothing is sent here and nobody waits: time and chance come from outside.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar

from doral.client.calls import Call
from doral.errors import DoralError
from doral.wire.problems import RequestLost, ServiceError, ServiceUnreachable, code_of, from_problem

Result = TypeVar("Result")

logger = logging.getLogger("doral.client")

_FIRST_WAIT_S = 0.05
_LONGEST_WAIT_S = 5.0
_TRY_AGAIN = frozenset({429, 502, 503, 504})
# Waiting does not mend these.
_LASTING = frozenset({"broken-log", "archive-missing", "newer-database"})
_MOST_WORDS = 300
_FIRST_CONNECTION_TRIES = 3  # where no connection was ever made: the address is wrong, or nothing runs there


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long one call may take.

    Attributes:
        timeout_s: With all its tries and the waiting between them.
        try_timeout_s: One try.
    """

    timeout_s: float
    try_timeout_s: float


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What has come back, whole."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Nothing came back, or not all of it."""

    words: str
    may_have_arrived: bool  # the request, so that it may have been carried out
    is_unconnected: bool = False  # there was not even a connection


class Attempts(Generic[Result]):
    """One call, from its first try to its result."""

    def __init__(
        self, call: Call[Result], patience: Patience, chance: Random, now_s: float, *, is_first: bool = False
    ) -> None:
        """`is_first`: no connection to this service has worked so far: one that cannot be made is given up soon."""
        self._call, self._patience, self._chance, self._is_first = call, patience, chance, is_first
        self._ends_s = now_s + patience.timeout_s
        self._tries = 0
        self._may_have_happened = False
        self._error: DoralError | None = None
        self._result: list[Result] = []

    def try_timeout_s(self, now_s: float) -> float:
        """How long the next try may take."""
        left_s = max(0.001, self._ends_s - now_s)
        return left_s if self._call.is_long else min(left_s, self._patience.try_timeout_s)

    def wait_s(self, outcome: Reply | Failure, now_s: float) -> float | None:
        """How long to wait before the next try; None: there is none, and `result` says what came of it."""
        retry_after_s = self._judge(outcome)
        if retry_after_s is None:
            return None
        wait_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(self._tries, 20))
        wait_s = max(retry_after_s, wait_s * self._chance.uniform(0.5, 1.0))
        self._tries += 1
        is_unconnected = isinstance(outcome, Failure) and outcome.is_unconnected
        if not is_unconnected:
            self._is_first = False
        is_hopeless = self._is_first and self._tries >= _FIRST_CONNECTION_TRIES
        if is_hopeless or now_s + wait_s >= self._ends_s:
            self._error = self._given_up()
            return None
        # Without the query, which may hold keys of people.
        path = self._call.path.partition("?")[0]
        logger.warning("%s %s: %s; try %d in %.2g s", self._call.method, path, self._error, self._tries + 1, wait_s)
        return wait_s

    def result(self) -> Result:
        """What was read, or the error."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _judge(self, outcome: Reply | Failure) -> float | None:
        """None: that was it. A number: try again, and not before so many seconds."""
        if isinstance(outcome, Failure):
            self._may_have_happened |= outcome.may_have_arrived
            self._error = ServiceUnreachable(outcome.words, "unreachable", 504)
            return 0.0
        if 200 <= outcome.status < 300:
            return self._read(outcome)
        document = _document(outcome.body)
        self._error = _error_of(outcome, document)
        if outcome.status not in _TRY_AGAIN or code_of(document) in _LASTING:
            return None
        # Somebody in between has answered, or the service itself does not know.
        self._may_have_happened |= outcome.status != 429 and code_of(document) in ("", "outcome-unknown")
        return _retry_after_s(outcome, document)

    def _read(self, reply: Reply) -> float | None:
        self._error = None
        try:
            given = json.loads(reply.body) if reply.body else None
        except ValueError:
            self._may_have_happened = True
            self._error = ServiceUnreachable("the answer is no JSON: is this the address of a service?", "garbled", 502)
            return 0.0
        try:
            self._result = [self._call.read(given)]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            said = f"{type(error).__name__}: {error}"[:_MOST_WORDS]
            self._error = ServiceError(f"the answer was not understood ({said}): is the service of another version?")
        return None

    def _given_up(self) -> DoralError:
        assert self._error is not None
        tries = f"after {self._tries} {'try' if self._tries == 1 else 'tries'}"
        call = self._call
        if call.is_change and self._may_have_happened:
            key = call.key or call.header_key
            remedy = "ask again" if key is None else f"ask again with the same key, {key!r}"
            return RequestLost(f"{self._error} ({tries}): whether it happened is not known; {remedy}", key)
        if isinstance(self._error, ServiceUnreachable):
            return ServiceUnreachable(f"{self._error} ({tries})", self._error.code, self._error.status)
        return self._error


def _error_of(reply: Reply, document: Mapping[str, Any]) -> DoralError:
    if 300 <= reply.status < 400:
        words = "the service sends callers elsewhere; keys are not carried there: give doral.connect the new address"
        return ServiceError(words, "moved", reply.status)
    if not code_of(document):
        document = {"title": f"the service, or something before it, answered {reply.status}"}
    return from_problem(document, status=reply.status)


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _retry_after_s(reply: Reply, document: Mapping[str, Any]) -> float:
    for said in (reply.headers.get("retry-after"), document.get("retry_after_s")):
        try:
            seconds = float(said) if said is not None else math.nan
        except (TypeError, ValueError):
            continue
        if math.isfinite(seconds) and seconds > 0:
            return seconds
    return 0.0
