"""One process's view of one campaign: a connection, a folded state, and how both are replaced when something breaks.

A write takes the campaign's lock, folds what others have appended meanwhile, applies its own drafts, appends what they
became and commits; its answer leaves only after that. A state that has seen events which were not committed is thrown
away.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import RLock
from typing import Any

from doral.live.apply import apply, replay
from doral.live.definition import Definition
from doral.live.drafts import Planned, Result
from doral.live.errors import BrokenLog, ConnectionLost, OutcomeUnknown, StorageBusy, StorageError
from doral.live.events import CREATED, Event
from doral.live.fold import Fold
from doral.live.snapshot import BadSnapshot, decode, encode
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.storage.patience import Patience

SNAPSHOT_EVERY_EVENTS = 20_000
_SNAPSHOT_BYTES_PER_EVENT = 100  # a large state is saved less often, so that saving never dominates


class Session:
    """Safe to share between threads; a forked process makes its own connection."""

    def __init__(self, storage: Storage, row: CampaignRow) -> None:
        self.row = row
        self._storage = storage
        self._lock = RLock()
        self._log: Log | None = None
        self._fold: Fold | None = None
        self._definition: Definition | None = None
        self._pid = os.getpid()
        self._inherited: list[Log | None] = []
        self.writer = secrets.randbits(62)
        self.snapshot_every = SNAPSHOT_EVERY_EVENTS
        self._saved_at = 0  # sequence number of the last snapshot that is known here
        self._saved_bytes = 0

    # --- reading and writing ----------------------------------------------------------------------------------------

    def read(self, ask: Callable[[Log, Fold], Result]) -> Result:
        """Ask something of the log and of a state that includes all that is committed."""
        with self._lock:
            patience = Patience()
            while True:
                try:
                    log = self._open()
                    return ask(log, self._catch_up(log))
                except ConnectionLost as error:
                    self._drop()
                    patience.wait(error)

    def write(self, plan: Callable[..., Planned[Result]], *asked: Any) -> Result:
        """Apply and append what `plan` drafts for this request; its answer, made of the events that were stored.

        `plan` changes nothing. It is called again if the connection broke and nothing was stored.
        """
        with self._lock:
            patience = Patience()
            events: list[Event] = []
            answer: Callable[[Sequence[Event]], Result]
            while True:
                try:
                    log = self._open()
                    log.begin(within_s=patience.left_s)
                    try:
                        fold = self._catch_up(log)
                        # Under the lock nobody is left who could still be committing: what is not there never will be.
                        if not events or not self._is_stored(log, events):
                            drafts, answer = plan(log, fold, *asked, self.writer)
                            events = self._apply(fold, drafts)
                            if events:
                                log.append(events)
                        log.commit()
                    except BaseException:
                        log.rollback()
                        raise
                    self._fold = fold
                    break
                except ConnectionLost as error:
                    self._drop()
                    self._wait(patience, error, events)
                except StorageBusy as error:
                    if events:  # who holds the lock may be the other end of our own broken connection
                        raise _unknown(error) from error
                    raise
            self._save_if_due(log, fold)
            return answer(events)

    def _apply(self, fold: Fold, drafts: list[Event]) -> list[Event]:
        if not drafts:
            return []
        self._fold = None  # until all is committed
        return apply(fold, drafts)

    def _wait(self, patience: Patience, error: ConnectionLost, attempted: list[Event]) -> None:
        try:
            patience.wait(error)
        except ConnectionLost:
            if attempted:
                raise _unknown(error) from error
            raise

    def _is_stored(self, log: Log, attempted: list[Event]) -> bool:
        first = attempted[0]
        found = log.events([first.sequence]).get(first.sequence)
        return found is not None and found.writer == self.writer and found.kind == first.kind and found.at == first.at

    # --- the state --------------------------------------------------------------------------------------------------

    def _catch_up(self, log: Log) -> Fold:
        fold = self._fold
        last = log.last_sequence()
        if fold is not None and fold.sequence == last:
            return fold
        self._fold = None  # until it is whole again
        if fold is None or fold.sequence > last:  # a log that was restored from a backup is the truth, too
            fold = self._restore(log, last)
        while fold.sequence < last:
            events = log.after(fold.sequence, upto=last)
            if not events:
                raise BrokenLog(f"campaign {self.row.name!r}: the log lacks the events after {fold.sequence}")
            replay(fold, events)
        self._fold = fold
        return fold

    def _restore(self, log: Log, last: int) -> Fold:
        """From the newest snapshot that can be used, else from the beginning."""
        if self._definition is None:
            first = log.after(0, limit=1)
            if not first or first[0].kind != CREATED or first[0].data is None:
                raise BrokenLog(f"campaign {self.row.name!r}: its log has no beginning")
            self._definition = Definition.from_json(first[0].data)
        self._saved_at = self._saved_bytes = 0
        for sequence in log.snapshots():
            data = log.load_snapshot(sequence)
            try:
                fold = decode(data, self._definition, self.row.tag)
            except BadSnapshot:
                continue
            if fold.sequence == sequence <= last:
                self._saved_at, self._saved_bytes = sequence, len(data)
                return fold
        return Fold(self._definition, self.row.tag)

    def _save_if_due(self, log: Log, fold: Fold) -> None:
        """A snapshot only saves time: where it cannot be written, the campaign goes on without."""
        unsaved = fold.sequence - self._saved_at
        if unsaved < self.snapshot_every or unsaved < self._saved_bytes // _SNAPSHOT_BYTES_PER_EVENT:
            return
        with suppress(StorageError):
            newest = next(iter(log.snapshots()), 0)
            if fold.sequence - newest < self.snapshot_every and newest > 0:
                self._saved_at = newest
                return
            fold.check()
            data = encode(fold)
            self._saved_at, self._saved_bytes = fold.sequence, len(data)
            log.save_snapshot(fold.sequence, data)

    def save(self) -> None:
        """Write a snapshot now."""

        def now(log: Log, fold: Fold) -> None:
            if fold.sequence not in log.snapshots():
                log.save_snapshot(fold.sequence, encode(fold))
            self._saved_at = fold.sequence

        self.read(now)

    # --- the connection ---------------------------------------------------------------------------------------------

    def _open(self) -> Log:
        if os.getpid() != self._pid:  # forked: the parent's connection is not ours to use, nor to close
            self._inherited.append(self._log)
            self._log = self._fold = None
            self._pid, self.writer = os.getpid(), secrets.randbits(62)
        if self._log is None:
            self._log = self._storage.open_log(self.row)
        return self._log

    def _drop(self) -> None:
        self._fold = None
        if self._log is not None:
            with suppress(StorageError):
                self._log.close()
            self._log = None

    def close(self) -> None:
        """Give the connection back; the next use makes a new one."""
        with self._lock:
            self._drop()


def _unknown(error: StorageError) -> OutcomeUnknown:
    return OutcomeUnknown(f"{error}; whether the change was stored is not known: ask again with the same key")
