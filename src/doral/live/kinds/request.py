"""Requests: what a caller asks of a campaign. Each kind says what events follow from it, and what its answer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NoReturn, TypeVar

from doral import _check
from doral.errors import DoralError, InvalidValue, shown
from doral.live.errors import KeyReused
from doral.live.events.chain import hash_key
from doral.live.events.event import Deciding, Event, Noted
from doral.live.runtime.clock import Stamp
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log

MAX_BATCH = 100_000

Result = TypeVar("Result")


class Request(ABC, Generic[Result]):
    """One request, or several of a kind that are stored together."""

    @abstractmethod
    def validate(self, state: CampaignState, log: Log, stamp: Stamp) -> tuple[Sequence[Event], Any]:
        """Return the events that follow, or none, and what `view` needs beside them; a DoralError where it is wrong.

        Nothing changes. It is called again if the connection broke and nothing was stored.
        """

    @abstractmethod
    def view(self, state: CampaignState, log: Log, events: Sequence[Any], found: Any) -> Result:
        """Return the answer, given the events as they were applied."""


# --- keys -------------------------------------------------------------------------------------------------------------


def scoped_key(scope: str, key: str | None) -> str | None:
    """Return a key as events have it; InvalidValue where it is none."""
    return None if key is None else scope + _check.name("key", key)


def used_keys(log: Log, state: CampaignState, keys: Iterable[str | None]) -> dict[str, Event]:
    """Return the events that have used some of these keys, by key."""
    hashes = {hash_key(state.salt, key): key for key in keys if key is not None}
    if not hashes:
        return {}
    return {hashes[hashed]: event for hashed, event in log.by_keys(hashes).items()}


def granted(log: Log, state: CampaignState, key: str | None, said: Sequence[Any]) -> Event | None:
    """Return the event by which a key has served this request already; KeyReused where it served another one."""
    before = None if key is None else used_keys(log, state, [key]).get(key)
    if before is not None and key is not None:
        check_same(before, said, key)
    return before


def check_same(before: Event, said: Sequence[Any], key: str) -> None:
    """KeyReused unless the key was used before for the same, as far as that is not erased."""
    wanted = list(said)
    if isinstance(before, Deciding) and before.arrival.person is None and before.arrival.person_hash is not None:
        wanted[-1] = None
    if before.request() != wanted:
        refuse_reuse(key)


def refuse_reuse(key: str) -> NoReturn:
    """Raise the error of a key that was used for something else."""
    raise KeyReused(f"key = {shown(key[2:])}: was used before with another content; make a new key for each request")


def note(state: CampaignState, stamp: Stamp, key: str | None, said: Sequence[Any]) -> list[Event]:
    """Return what is stored of a request that changes nothing: its key, where it has one, and what it stands for."""
    return [] if key is None else [Noted(stamp.place(state, key), list(said))]


# --- batches ----------------------------------------------------------------------------------------------------------


def as_batch(field: str, given: Iterable[Any]) -> Sequence[Any]:
    """Return what a list, a generator or an array gives, at most 100,000."""
    return read_all(field, given, "must be a list", at_most=MAX_BATCH)


def read_all(field: str, given: object, remedy: str, *, at_most: int) -> list[Any]:
    """Return what a list, a set, an array or a generator gives; never more than is allowed, even if it would go on."""
    if isinstance(given, str | bytes | bytearray | Mapping):
        raise InvalidValue(field, given, remedy)
    try:
        found = iter(given)  # type: ignore[call-overload]
    except Exception as error:
        raise InvalidValue(field, given, remedy) from error
    try:
        batch = list(islice(found, at_most + 1))
    except DoralError:
        raise
    except Exception as error:  # a generator of the caller's
        said = f"could not be read to its end: {type(error).__name__}: {error}"
        raise InvalidValue(field, given, said) from error
    if len(batch) > at_most:
        raise InvalidValue(f"number of {field}", f"more than {at_most:,}", f"must be at most {at_most:,} at once")
    return batch
