"""Keys as a process knows them, so that not every request reads the database.

A key that is revoked, by whichever process, is of no use after `STALE_S`: what was read longer ago is read again before
anybody is let in. In use, it is read again after half of that, while the request goes on.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from doral.live.storage.service_tables import Books, KeyRow
from doral.service.access.caller import Caller
from doral.service.threads import Run

STALE_S = 2.0
_AGEING_S = STALE_S / 2
_MOST_HELD = 10_000


@dataclass(frozen=True, slots=True)
class Held:
    """A key or a session, as it was at one moment; no row: there is none of that id."""

    row: KeyRow | None
    parent: KeyRow | None
    caller: Caller | None
    read_at: float  # when the reading began, by a clock that is never set


class Keyring:
    """Of one process; used on its event loop alone."""

    def __init__(self, books: Books, run: Run) -> None:
        self._books, self._run = books, run
        self._held: dict[str, Held] = {}
        self._reading: dict[str, asyncio.Task[Held]] = {}

    def knows(self, key_id: str) -> bool:
        """Whether there was such a key when it was last read."""
        held = self._held.get(key_id)
        return held is not None and held.row is not None

    def fresh(self, key_id: str) -> Held | None:
        """What was read just now; None where it has to be found first."""
        held = self._held.get(key_id)
        return held if held is not None and time.monotonic() - held.read_at < _AGEING_S else None

    async def find(self, key_id: str) -> Held:
        """As it was less than `STALE_S` ago."""
        held = self._held.get(key_id)
        age = STALE_S if held is None else time.monotonic() - held.read_at
        if held is not None and age < _AGEING_S:
            return held
        reading = self._reading.get(key_id)
        if reading is None:
            reading = self._reading[key_id] = asyncio.ensure_future(self._read(key_id))
            reading.add_done_callback(lambda done: self._forget_reading(key_id, done))
        if held is not None and age < STALE_S:
            return held
        return await asyncio.shield(reading)

    def forget(self, key_id: str) -> None:
        """Its row has changed: read it before it is used again."""
        self._held.pop(key_id, None)
        self._reading.pop(key_id, None)

    async def _read(self, key_id: str) -> Held:
        began = time.monotonic()

        def look() -> tuple[KeyRow | None, KeyRow | None]:
            row = self._books.key(key_id)
            return row, None if row is None or row.parent is None else self._books.key(row.parent)

        row, parent = await self._run(look)
        held = Held(row, parent, None if row is None else _caller(row, parent), began)
        if self._reading.get(key_id) is asyncio.current_task():
            self._held.pop(key_id, None)
            self._held[key_id] = held
            while len(self._held) > _MOST_HELD:
                del self._held[next(iter(self._held))]
        return held

    def _forget_reading(self, key_id: str, done: asyncio.Task[Held]) -> None:
        if self._reading.get(key_id) is done:
            del self._reading[key_id]
        if not done.cancelled():
            done.exception()  # whoever waits for it is told; where nobody does, the next request tries again


def _caller(row: KeyRow, parent: KeyRow | None) -> Caller:
    return Caller(
        key_id=row.id if parent is None else parent.id,
        name=row.name,
        roles=frozenset(row.roles),
        campaigns=None if row.campaigns is None else frozenset(row.campaigns),
        expires_at=row.expires_at,
    )
