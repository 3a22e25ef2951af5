"""One process's view of one campaign: a connection, a state, and how both are replaced when something breaks.

A write takes the campaign's lock, catches up with what others have appended, validates the request, applies the events
that follow from it, appends them and commits; its answer leaves only after that. A state that has seen events which
were not committed is thrown away, and so is one that does not lead to the log as it is: a backup has taken its place.
"""

from __future__ import annotations

import gc
import logging
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any

from doral.errors import DoralError
from doral.live.errors import BrokenLog, CampaignGone, ConnectionLost, OutcomeUnknown, StorageBusy, StorageError
from doral.live.events.codec import encode
from doral.live.events.event import ClockSet, EngineJoined, Event, Forgotten
from doral.live.events.row import Row, seal_all
from doral.live.kinds.request import Request, Result
from doral.live.runtime.clock import Stamp
from doral.live.runtime.open_sessions import OpenSessions
from doral.live.runtime.replay import LogReader, apply
from doral.live.state.definition import engine_name
from doral.live.state.state import CampaignState
from doral.live.storage.connection import Retry, refuse_child
from doral.live.storage.contract import CampaignRow, Log, Storage
from doral.live.storage.service_tables import ActRow
from doral.prediction.python_policy import PolicyMaker

logger = logging.getLogger("doral.live")

CLOCK_TOLERANCE_S = 300.0  # how far clocks may disagree


def _nothing() -> None:
    """Nothing has to be given up."""


class _Depth:
    """How many calls of one thread are inside."""

    __slots__ = ("_when_left", "calls")

    def __init__(self, when_left: Callable[[], None]) -> None:
        self.calls, self._when_left = 0, when_left

    def __enter__(self) -> None:
        self.calls += 1

    def __exit__(self, *_: object) -> None:
        self.calls -= 1
        if not self.calls:
            self._when_left()


class Session:
    """Safe to share between threads; a forked process has to open the store again."""

    def __init__(
        self,
        storage: Storage,
        row: CampaignRow,
        *,
        clock_tolerance_s: float = CLOCK_TOLERANCE_S,
        opened: OpenSessions | None = None,
        maker: PolicyMaker | None = None,
    ) -> None:
        self.row = row
        self.reader = LogReader(row, maker)
        self._opened = opened
        self._inside = _Depth(self._rest)
        self.clock_tolerance_s = clock_tolerance_s
        self._storage = storage
        self._lock = RLock()
        self._log: Log | None = None
        self._state: CampaignState | None = None
        self._is_writing = False
        self._pid = os.getpid()
        self.writer = secrets.randbits(62)
        self.is_gone = False  # the campaign was deleted
        self._act: Callable[[Any], ActRow] | None = None
        self.watch_bytes: Callable[[], int] = int  # that facts of the campaign take, where a page shows them
        self.forget_watch: Callable[[], None] = _nothing

    def refuse_child(self) -> None:
        """StorageError in a process that was forked from the one that opened the store."""
        refuse_child(self._pid)

    @property
    def last_seen(self) -> CampaignState | None:
        """The state as of the last request; None before that. Nothing is read for it."""
        return self._state

    @property
    def is_open(self) -> bool:
        """Whether it was used since it was made or closed. (While it writes, it has no state to be seen.)"""
        return self._log is not None

    # --- reading and writing ----------------------------------------------------------------------------------------

    def read(self, ask: Callable[[Log, CampaignState], Result]) -> Result:
        """Ask something of the log and of a state that includes all that is committed."""
        refuse_child(self._pid)
        with self._lock, self._inside:
            retry = Retry()
            while True:
                try:
                    log = self._open()
                    state = self._catch_up(log)
                    try:
                        return ask(log, state)
                    except Exception as error:
                        self._refuse_nonsense(error)
                        raise
                except CampaignGone as error:
                    self._find_again(error)
                except ConnectionLost as error:
                    self._drop()
                    retry.wait(error)
                except BrokenLog:
                    self._report_damage()
                    raise

    def read_apart(self, ask: Callable[[Log, LogReader], Result]) -> Result:
        """Ask something of the whole log as it is at one moment, through a connection of its own: others go on
        reading and writing meanwhile.
        """
        refuse_child(self._pid)
        retry = Retry()
        while True:
            try:
                with self._storage.reading() as campaigns:
                    log = next((log for row, log in campaigns if row.tag == self.row.tag), None)
                    if log is None:
                        raise CampaignGone(f"campaign {self.row.name!r} was deleted")
                    return ask(log, self.reader.another())
            except ConnectionLost as error:
                retry.wait(error)
            except BrokenLog:
                self._report_damage()
                raise

    def write(self, request: Request[Result]) -> Result:
        """Store what follows from a request, and return its answer."""
        if request.is_many:
            with _garbage_kept():
                found = self.write_together((request,))[0]
        else:
            found = self.write_together((request,))[0]
        if isinstance(found, DoralError):
            raise found
        answer: Result = found
        return answer

    @contextmanager
    def noting(self, act: Callable[[Any], ActRow]) -> Iterator[None]:
        """What is changed inside the block is noted as this administrative act, in the same transaction.

        Args:
            act: The note, given the result of the change. It is asked for only if something has changed.
        """
        refuse_child(self._pid)
        with self._lock:
            self._act = act
            try:
                yield
            finally:
                self._act = None

    def write_together(self, requests: Sequence[Request[Any]]) -> list[Any]:
        """Store what follows from several requests in one transaction: one wait for the lock, one for the disk.

        Each is validated on the state and on the log that the ones before it have left, as if they had been stored one
        after the other. The result of a request that is refused is its error; it has changed nothing, and the others
        go on. Whatever else fails, fails all of them, and nothing is stored.

        Args:
            requests: In their order. One that forgets people has to be the last: the state that the others need does
                not exist before all is read anew.
        """
        if os.getpid() != self._pid:
            refuse_child(self._pid)
        with self._lock, self._inside:
            retry = Retry()
            events: list[Event] = []
            found: list[Any] = []
            is_open = False  # whether they may have been stored through a connection that broke
            while True:
                try:
                    log = self._open()
                    self._begin(log, retry)
                    try:
                        state = self._catch_up(log)
                        # Under the lock no other process can still be committing: what is not there never will be.
                        if not events or not self._is_stored(log, events[0]):
                            events, found = [], []
                            if not self._do_all(log, state, requests, events, found):
                                if self._log is log:
                                    log.rollback()
                                return found
                            if events and self._act is not None:
                                log.note(self._act(found[-1]))
                        log.commit()
                    except BaseException:
                        if self._log is log:
                            log.rollback()
                        raise
                    finally:
                        self._is_writing = False
                    self._state = None if state.knows_forgotten else state
                    break
                except CampaignGone as error:
                    self._find_again(error)
                except ConnectionLost as error:
                    self._drop()
                    is_open = bool(events)
                    self._wait(retry, error, events)
                except StorageBusy as error:
                    if is_open:  # the lock may be held by the other end of our own broken connection
                        raise outcome_unknown("the connection broke, and others have held the lock since") from error
                    raise
                except BrokenLog:
                    self._report_damage()
                    raise
            self._afterwards(log, state, events)
            return found

    def _begin(self, log: Log, retry: Retry) -> None:
        """Begin a transaction, one at a time: a signal may call this very thread in, and what it stored in the middle
        of another request would be committed with that, or undone.
        """
        if self._is_writing:
            raise StorageBusy(
                f"campaign {self.row.name!r}: this thread is in the middle of another request to it (a signal has "
                "called it in); nothing was changed: ask when that request has ended"
            )
        self._is_writing = True
        try:
            log.begin(within_s=None if retry.gives_up_at is None else retry.left_s)
        except BaseException:
            self._is_writing = False
            raise

    def _do_all(
        self,
        log: Log,
        state: CampaignState,
        requests: Sequence[Request[Any]],
        events: list[Event],
        found: list[Any],
    ) -> bool:
        """Inside a transaction, fill in the events that were appended and the results; False where all were refused,
        and there is nothing to commit.
        """
        unstored: list[Row] = []
        if state.is_new_engine:  # the first event of an engine names it
            stamp = Stamp(self.writer, time.time(), math.inf)
            self._apply(state, (EngineJoined(stamp.place(state), engine_name()),), events, unstored)
        is_any = False
        for request in requests:
            if state.knows_forgotten:
                raise ValueError("a request that forgets people must be the last of those that are stored together")
            stamp = Stamp(self.writer, time.time(), self.clock_tolerance_s)
            try:
                valid, rest = request.validate(state, log, stamp)
            except StorageError:
                raise
            except DoralError as error:
                found.append(error)
                continue
            except Exception as error:
                self._refuse_nonsense(error)
                raise
            is_any = True
            made = self._apply(state, valid, events, unstored) if valid else ()
            if unstored:
                log.append(unstored)  # the next one has to see its keys and identifiers
                unstored = []
                if isinstance(events[-1], Forgotten):
                    log.erase(keys=events[-1].keys, people=events[-1].people)
            try:
                found.append(request.view(state, log, made, rest))
            except Exception as error:
                self._refuse_nonsense(error)
                raise
        return is_any

    def _apply(
        self, state: CampaignState, valid: Sequence[Event], events: list[Event], unstored: list[Row]
    ) -> Sequence[Event]:
        """Apply events, and seal the rows that are to be stored of them."""
        self._state = None  # until all is committed
        engine = state.engines.get(engine_name(), valid[0].place.sequence)
        made = apply(state, valid)
        rows = seal_all([encode(event) for event in made], before=state.head, salt=state.salt, engine=engine)
        state.head = rows[-1].chain or b""
        events += made
        unstored += rows
        return made

    def _refuse_nonsense(self, error: Exception) -> None:
        """BrokenLog in place of an error that only a tampered log explains: events that a snapshot stands for are not
        replayed, only looked up, and may say anything if their chain was computed anew.
        """
        if isinstance(error, DoralError | AssertionError | MemoryError | OSError):
            return
        said = f"{type(error).__name__}: {error}"
        raise BrokenLog(
            f"campaign {self.row.name!r}: its log says what cannot be understood ({said}); see `doral campaign verify`"
        ) from error

    def _afterwards(self, log: Log, state: CampaignState, events: Sequence[Event]) -> None:
        """What is stored is stored: nothing that goes wrong from here on may look as if it were not."""
        try:
            name = self.row.name
            for event in events:
                if isinstance(event, EngineJoined):
                    logger.info("campaign %r: another engine writes to it from event %d on", name, event.sequence)
                elif isinstance(event, ClockSet):
                    logger.warning("campaign %r: its clock was set back by event %d", name, event.sequence)
            if events and state.definition.clock == "seconds" and state.is_behind(events[-1]):
                logger.info("campaign %r: its clock stood still: this host's is behind", name)
            is_due = state.sequence - self.reader.saved_at >= self.reader.snapshot_every
            if is_due and not state.knows_forgotten:
                self.reader.save_if_due(log, state)
        except Exception:
            logger.exception("campaign %r: what was asked is stored, but not all that follows was done", self.row.name)

    def _report_damage(self) -> None:
        # What exactly is wrong may quote what a cell holds: only the caller is told.
        logger.error("campaign %r: its log is damaged; the caller was told where", self.row.name)

    def try_to_write(self) -> None:
        """Begin a transaction, change nothing, and undo it."""
        self.read(lambda log, _: log.try_to_write())

    def _wait(self, retry: Retry, error: ConnectionLost, attempted: list[Event]) -> None:
        try:
            retry.wait(error)
        except ConnectionLost:
            if attempted:
                raise outcome_unknown(str(error)) from error
            raise

    def _is_stored(self, log: Log, first: Event) -> bool:
        rows = log.after(first.sequence - 1, limit=1)
        place = first.place
        return bool(rows) and (rows[0].writer, rows[0].kind, rows[0].at) == (self.writer, first.kind, place.at)

    # --- the state --------------------------------------------------------------------------------------------------

    def _catch_up(self, log: Log) -> CampaignState:
        state = self._state
        if state is not None and state.engine.is_outdated:
            logger.info("campaign %r: its program is compiled; its log is read with it", self.row.name)
            self._state = state = None
        last, head = log.head()
        if state is not None and state.sequence == last and state.head == head:
            return state
        self._state = None  # until it is whole again
        if state is not None and self.reader.leads_to(state, log, last):
            state = self.reader.follow(state, log, last)
        else:
            state = self.reader.read(log)
        if state.sequence == last and state.head != head:
            raise BrokenLog(f"campaign {self.row.name!r}: event {last} is not the last that was written")
        self._state = state
        return state

    def save(self) -> None:
        """Write a snapshot now."""
        self.read(self.reader.save)

    # --- the connection ---------------------------------------------------------------------------------------------

    def _open(self) -> Log:
        if self._log is None:
            self._log = self._storage.open_log(self.row)
        opened = self._opened
        if opened is not None and (opened.most is not None or opened.most_bytes is not None):
            opened.used(self)
        return self._log

    def _rest(self) -> None:
        """After the outermost call: the state stays, for the next one looks at the head of the log first."""
        if self._log is not None and self._storage.shares_connections:
            self._log.rest()
        opened = self._opened
        if opened is not None and opened.most_bytes is not None and self._state is not None:
            try:
                opened.rested(self, self._state, self.watch_bytes)
            except Exception:  # the caller has the answer, and must not hear of another campaign's end
                logger.exception("campaign %r: others could not be closed to make room", self.row.name)

    def _find_again(self, error: CampaignGone) -> None:
        """A campaign that was deleted may have been restored from a backup: that is the truth, then."""
        was_open = self._log is not None
        self._drop()
        self.is_gone = True
        if not was_open:
            raise error
        self._open()
        self.is_gone = False

    def _drop(self) -> None:
        self._state = None
        self._close_log()

    def _close_log(self) -> None:
        if self._log is not None:
            with suppress(StorageError):
                self._log.close()
            self._log = None

    def close(self) -> None:
        """Give the connection back; the next use makes a new one."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._drop()
            self.forget_watch()
        if self._opened is not None:
            self._opened.closed(self)

    def close_if_idle(self) -> bool:
        """Do the same, unless it is in use: False."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._inside.calls:  # by this very thread
                return False
            self._drop()
            self.forget_watch()
            return True
        finally:
            self._lock.release()


@contextmanager
def _garbage_kept() -> Iterator[None]:
    """Make many objects without having Python look through all of them again and again: a third of the time."""
    if not gc.isenabled():  # by another thread, or by the caller
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def outcome_unknown(what: str) -> OutcomeUnknown:
    """Return the error of a change that may have been stored."""
    return OutcomeUnknown(f"{what}; whether the change was stored is not known: ask again with the same key")
