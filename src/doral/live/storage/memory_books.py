"""Keys, acts and alarms of a store in memory."""

from __future__ import annotations

from dataclasses import replace
from threading import RLock

from doral._forks import renew_in_child
from doral.live.errors import StorageError
from doral.live.storage.books import LONGEST_UNTOLD_S, ActRow, AlarmRow, Books, KeyRow, after, needs_telling

_Place = tuple[str, str, str, float]


class MemoryBooks(Books):
    """Gone with the process."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._keys: dict[str, KeyRow] = {}
        self._acts: list[ActRow] = []
        self._alarms: dict[_Place, AlarmRow] = {}
        renew_in_child(self)

    def renew(self) -> None:
        """In a forked child."""
        self._lock = RLock()

    def add_key(self, row: KeyRow) -> None:
        with self._lock:
            if row.id in self._keys:
                raise StorageError(f"there is a key {row.id!r} already; nothing was changed: make another")
            self._keys[row.id] = row

    def add_first_key(self, row: KeyRow) -> bool:
        with self._lock:
            if any(one.parent is None for one in self._keys.values()):
                return False
            self._keys[row.id] = row
            return True

    def key(self, key_id: str) -> KeyRow | None:
        return self._keys.get(key_id)

    def all_keys(self) -> list[KeyRow]:
        with self._lock:
            found = [one for one in self._keys.values() if one.parent is None]
        return sorted(found, key=lambda one: (one.created_at, one.id))

    def revoke_key(self, key_id: str, at: float) -> bool:
        with self._lock:
            row = self._keys.get(key_id)
            if row is None or row.revoked_at is not None:
                return False
            for one in list(self._keys.values()):
                if key_id in (one.id, one.parent) and one.revoked_at is None:
                    self._keys[one.id] = replace(one, revoked_at=at)
            return True

    def drop_sessions(self, *, expired_before: float) -> int:
        with self._lock:
            ended = [
                one.id for one in self._keys.values() if one.parent is not None and _has_ended(one, expired_before)
            ]
            for key_id in ended:
                del self._keys[key_id]
            return len(ended)

    def note(self, row: ActRow) -> None:
        with self._lock:
            self._acts.append(replace(row, number=len(self._acts) + 1))

    def acts(self, *, before: int | None = None, limit: int = 100) -> list[ActRow]:
        with self._lock:
            upto = len(self._acts) if before is None else max(0, min(len(self._acts), before - 1))
            return self._acts[max(0, upto - limit) : upto][::-1]

    def raise_alarm(self, row: AlarmRow) -> bool:
        with self._lock:
            same = [one for one in self._alarms.values() if _subject(one) == _subject(row)]
            for one in same:
                if one.cleared_at is None:
                    self._alarms[_place(one)] = replace(one, words=row.words)
                    return False
            row = replace(row, since=after(row.since, max((one.since for one in same), default=None)))
            self._alarms[_place(row)] = row
            return True

    def clear_alarm(self, campaign: str, rule: str, subject: str, at: float) -> bool:
        with self._lock:
            for one in list(self._alarms.values()):
                if one.cleared_at is not None and one.cleared_at < at - LONGEST_UNTOLD_S:
                    del self._alarms[_place(one)]
            for one in self._alarms.values():
                if _subject(one) == (campaign, rule, subject) and one.cleared_at is None:
                    self._alarms[_place(one)] = replace(one, cleared_at=at)
                    return True
            return False

    def alarms(self, *, campaign: str | None = None) -> list[AlarmRow]:
        with self._lock:
            found = [
                one for one in self._alarms.values() if one.cleared_at is None and campaign in (None, one.campaign)
            ]
        return sorted(found, key=lambda one: (-one.since, one.campaign, one.rule, one.subject))

    def claim_deliveries(self, now: float, *, lease_s: float, limit: int = 20) -> list[AlarmRow]:
        with self._lock:
            due = [one for one in self._alarms.values() if one.next_try_at <= now and needs_telling(one)]
            due.sort(key=_in_order)
            claimed = [replace(one, next_try_at=now + lease_s) for one in due[:limit]]
            self._alarms.update({_place(one): one for one in claimed})
            return claimed

    def delivered(self, row: AlarmRow, told: int) -> None:
        with self._lock:
            now = self._alarms.get(_place(row))
            if now is None:
                return
            now = replace(now, told=told, tries=0, next_try_at=0.0)
            self._alarms[_place(row)] = now
            if now.cleared_at is not None and not needs_telling(now):
                del self._alarms[_place(row)]

    def put_off(self, row: AlarmRow, *, next_try_at: float) -> None:
        with self._lock:
            now = self._alarms.get(_place(row))
            if now is not None:
                self._alarms[_place(row)] = replace(now, tries=now.tries + 1, next_try_at=next_try_at)

    def close(self) -> None:
        """Nothing to give back."""


def _has_ended(one: KeyRow, at: float) -> bool:
    return (one.expires_at is not None and one.expires_at < at) or (one.revoked_at is not None and one.revoked_at < at)


def _subject(one: AlarmRow) -> tuple[str, str, str]:
    return one.campaign, one.rule, one.subject


def _place(one: AlarmRow) -> _Place:
    return one.campaign, one.rule, one.subject, one.since


def _in_order(one: AlarmRow) -> tuple[float, str, str, str]:
    return one.since, one.campaign, one.rule, one.subject
