"""One process's view of one campaign: a connection, a folded state, and how both are replaced when something breaks.

A write takes the campaign's lock, folds what others have appended meanwhile, applies its own drafts, seals what they
became, appends it and commits; its answer leaves only after that. A state that has seen events which were not committed
is thrown away, and so is one that does not lead to the log as it is: somebody has put a backup in its place.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import RLock
from typing import Any, TypeAlias

from doral._forks import renew_in_child
from doral.engine.engine import MOST_EVENTS
from doral.errors import DoralError
from doral.live.apply import Differs, apply, replay
from doral.live.chain import beginning, check, is_intact, seal_all
from doral.live.definition import Definition
from doral.live.drafts import Planned, Result, Stamp
from doral.live.engine_name import engine_name
from doral.live.errors import BrokenLog, CampaignGone, ConnectionLost, OutcomeUnknown, StorageBusy, StorageError
from doral.live.events import CLOCK_SET, CREATED, ENGINE_JOINED, FORGOTTEN, Event, known
from doral.live.fold import Fold
from doral.live.leases.planning import LEASE_TTL_S, recoveries
from doral.live.open_sessions import OpenSessions
from doral.live.snapshot import decode, encode
from doral.live.snapshot_checks import BadSnapshot
from doral.live.storage.contract import FOLD_EVENTS, CampaignRow, Log, Storage, Tail
from doral.live.storage.patience import Patience

logger = logging.getLogger("doral.live")

CLOCK_TOLERANCE_S = 300.0  # how far clocks may disagree
SNAPSHOT_EVERY_EVENTS = 20_000
SNAPSHOT_BYTES_PER_EVENT = 100  # a large state is saved less often, so that saving never dominates


_warned: dict[str, object] = {}  # tags of the campaigns whose options are known to be gone

Ask: TypeAlias = tuple[Callable[..., Planned[Any]], Sequence[Any]]  # a plan, and what was asked


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
    """Safe to share between threads; a forked process makes its own connection."""

    def __init__(
        self,
        storage: Storage,
        row: CampaignRow,
        *,
        clock_tolerance_s: float = CLOCK_TOLERANCE_S,
        opened: OpenSessions | None = None,
    ) -> None:
        self.row = row
        self._opened = opened
        self._inside = _Depth(self._rest)
        self.clock_tolerance_s = clock_tolerance_s
        self._storage = storage
        self._lock = RLock()
        self._log: Log | None = None
        self._fold: Fold | None = None
        self._is_writing = False
        self._pid = os.getpid()
        self._inherited: list[Log | None] = []
        self.writer = secrets.randbits(62)
        self.snapshot_every = SNAPSHOT_EVERY_EVENTS
        self._saved_at = 0  # sequence number of the last snapshot that is known here
        self._saved_bytes = 0
        self.is_gone = False  # the campaign was deleted
        self.lease_ttl_s = LEASE_TTL_S
        renew_in_child(self)

    def renew(self) -> None:
        """In a forked child. The parent's connection is not ours to use, nor to close; its state may be half a one."""
        self._lock, self._inside = RLock(), _Depth(self._rest)
        self._inherited.append(self._log)
        self._log, self._fold, self._is_writing = None, None, False
        self._pid, self.writer = os.getpid(), secrets.randbits(62)

    @property
    def last_seen(self) -> Fold | None:
        """The state as it was when somebody last asked; None before that. Nothing is read for it."""
        return self._fold

    @property
    def n_states(self) -> int:
        """That it holds in memory while nobody uses it, each about as large as the other."""
        return 1

    @property
    def is_open(self) -> bool:
        """Whether somebody has used it since it was made or closed. (While it writes, it has no state to be seen.)"""
        return self._log is not None

    # --- reading and writing ----------------------------------------------------------------------------------------

    def read(self, ask: Callable[[Log, Fold], Result]) -> Result:
        """Ask something of the log and of a state that includes all that is committed."""
        with self._lock, self._inside:
            patience = Patience()
            while True:
                try:
                    log = self._open()
                    fold = self._catch_up(log)
                    with self._understanding():
                        return ask(log, fold)
                except CampaignGone as error:
                    self._find_again(error)
                except ConnectionLost as error:
                    self._drop()
                    patience.wait(error)
                except BrokenLog:
                    self._tell_of_damage()
                    raise

    def write(self, plan: Callable[..., Planned[Result]], *asked: Any) -> Result:
        """Apply and append what `plan` drafts for this request; its answer, made of the events that were stored.

        `plan` changes nothing. It is called again if the connection broke and nothing was stored.
        """
        found = self.write_together(((plan, asked),))[0]
        if isinstance(found, DoralError):
            raise found
        answer: Result = found
        return answer

    def write_together(self, requests: Sequence[Ask]) -> list[Any]:
        """The same for several requests in one transaction: one wait for the lock, one for the disk.

        Each is planned on the state and on the log that the ones before it have left, as if they had been stored one
        after the other. The result of a request that is refused is its error; it has changed nothing, and the others
        go on. Whatever else fails, fails all of them, and nothing is stored.

        Args:
            requests: Plans, each with what was asked. One that forgets people has to be the last: the state that the
                others need does not exist before all is read anew.
        """
        with self._lock, self._inside:
            patience = Patience()
            events: list[Event] = []
            found: list[Any] = []
            is_open = False  # whether they may have been stored through a connection that broke
            while True:
                try:
                    log = self._open()
                    with self._transaction(log, patience):
                        fold = self._catch_up(log)
                        # Under the lock nobody is left who could still be committing: what is not there never will be.
                        if not events or not self._is_stored(log, events):
                            events, found = [], []
                            if not self._do_all(log, fold, requests, events, found):
                                if self._log is log:
                                    log.rollback()
                                return found
                        self._refuse_if_forked(log)
                        log.commit()
                    self._fold = None if fold.knows_forgotten else fold
                    break
                except CampaignGone as error:
                    self._find_again(error)
                except ConnectionLost as error:
                    self._drop()
                    is_open = bool(events)
                    self._wait(patience, error, events)
                except StorageBusy as error:
                    if is_open:  # who holds the lock may be the other end of our own broken connection
                        raise outcome_unknown("the connection broke, and others have held the lock since") from error
                    raise
                except BrokenLog:
                    self._tell_of_damage()
                    raise
            self._afterwards(log, fold, events)
            return found

    @contextmanager
    def _transaction(
        self, log: Log, patience: Patience, after: tuple[int, bytes] | None = None
    ) -> Iterator[Tail | None]:
        """Around what is committed in it, or undone; with what came after an event, where one is given.

        One at a time: a signal may call this very thread in, and what it stored in the middle of another request would
        be committed with that, or undone.
        """
        if self._is_writing:
            raise StorageBusy(
                f"campaign {self.row.name!r}: this thread is in the middle of another request to it (a signal has "
                "called it in); nothing was changed: ask when that request has ended"
            )
        self._is_writing = True
        try:
            tail = None
            if after is None:
                log.begin(within_s=patience.left_s)
            else:
                tail = log.begin_after(*after, within_s=patience.left_s)
            try:
                yield tail
            except BaseException:
                if self._log is log:
                    log.rollback()
                raise
        finally:
            self._is_writing = False

    def _afterwards(self, log: Log, fold: Fold, events: Sequence[Event]) -> None:
        """What is stored is stored: nothing that goes wrong from here on may look as if it were not."""
        try:
            self._tell_of(events, fold)
            if not fold.knows_forgotten:
                self._save_if_due(log, fold)
        except Exception:
            logger.exception("campaign %r: what was asked is stored, but not all that follows was done", self.row.name)

    def _do_all(self, log: Log, fold: Fold, requests: Sequence[Ask], events: list[Event], found: list[Any]) -> bool:
        """Inside a transaction. Fills in the events that were appended and the results; False where all were refused,
        and there is nothing to commit.
        """
        unstored = self._join(fold)
        recovered = self._recover(log, fold)
        unstored += recovered
        events += unstored
        is_any = bool(recovered)
        if recovered:
            log.append(unstored)
            unstored = []
        for plan, asked in requests:
            if fold.knows_forgotten:
                raise ValueError("a request that forgets people must be the last of those that are stored together")
            stamp = Stamp(self.writer, time.time(), self.clock_tolerance_s)
            try:
                with self._understanding():
                    drafts, answer = plan(log, fold, *asked, stamp)
            except StorageError:
                raise
            except DoralError as error:
                found.append(error)
                continue
            is_any = True
            made = self._apply(fold, drafts)
            events += made
            unstored += made
            if unstored:
                log.append(unstored)  # the next one has to see its keys and identifiers
                unstored = []
            with self._understanding():
                found.append(answer(made))
        return is_any

    @contextmanager
    def _understanding(self) -> Iterator[None]:
        """Events that a snapshot stands for are not replayed, only looked up: they may say what nobody can understand,
        if somebody has tampered with them and computed the chain anew.
        """
        try:
            yield
        except (DoralError, AssertionError, MemoryError, OSError):
            raise
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise BrokenLog(
                f"campaign {self.row.name!r}: its log says what cannot be understood ({said}); "
                "see `doral campaign verify`"
            ) from error

    def _tell_of(self, events: Sequence[Event], fold: Fold) -> None:
        """Lines for who looks: what is rare, and what somebody may have to look after."""
        name = self.row.name
        for event in events:
            if event.kind == ENGINE_JOINED:
                logger.info("campaign %r: another engine writes to it from event %d on", name, event.sequence)
            elif event.kind == CLOCK_SET:
                logger.warning("campaign %r: its clock was set back by event %d", name, event.sequence)
        if fold.definition.is_in_seconds and events and fold.is_behind(events[-1]):
            logger.info("campaign %r: its clock stood still: this host's is behind, or it was decided by lease", name)

    def _tell_of_damage(self) -> None:
        # What exactly is wrong may quote what a cell holds: only who asked is told.
        logger.error("campaign %r: its log is damaged; whoever asked was told where", self.row.name)

    def try_to_write(self) -> None:
        """Begin a transaction, change nothing, and undo it."""
        self.read(lambda log, _: log.try_to_write())

    def _refuse_if_forked(self, log: Log) -> None:
        """A signal may have forked this very thread: in the child, the transaction is the parent's."""
        if self._log is not log:
            raise ConnectionLost("the process was forked in the middle of a request")

    def _join(self, fold: Fold) -> list[Event]:
        """An engine that writes to this log for the first time says so."""
        if not fold.is_new_engine:
            return []
        stamp = Stamp(self.writer, time.time(), math.inf)
        name = engine_name()
        return self._apply(fold, [stamp.put(Event(0, ENGINE_JOINED, 0.0, 0.0, 0, data=name), fold)])

    def _recover(self, log: Log, fold: Fold) -> list[Event]:
        """Budget that others have leased comes back if they are dead, before somebody goes without."""
        if not fold.leases:
            return []
        stamp = Stamp(self.writer, time.time(), math.inf)
        return self._apply(fold, recoveries(log, fold, stamp, self.lease_ttl_s))

    def _apply(self, fold: Fold, drafts: list[Event]) -> list[Event]:
        if not drafts:
            return []
        self._fold = None  # until all is committed
        engine = fold.engines.get(engine_name(), drafts[0].sequence)
        events = seal_all(apply(fold, drafts), before=fold.head, salt=fold.salt, engine=engine)
        fold.head = known(events[-1].chain)
        return events

    def _wait(self, patience: Patience, error: ConnectionLost, attempted: list[Event]) -> None:
        try:
            patience.wait(error)
        except ConnectionLost:
            if attempted:
                raise outcome_unknown(str(error)) from error
            raise

    def _is_stored(self, log: Log, attempted: list[Event]) -> bool:
        first = attempted[0]
        found = log.events([first.sequence]).get(first.sequence)
        return found is not None and found.writer == self.writer and found.kind == first.kind and found.at == first.at

    # --- the state --------------------------------------------------------------------------------------------------

    def _catch_up(self, log: Log) -> Fold:
        fold = self._fold
        if fold is not None and fold.engine.is_outdated:
            logger.info("campaign %r: its program is compiled; its log is read with it", self.row.name)
            self._fold = fold = None
        last, head = log.head()
        if fold is not None and fold.sequence == last and fold.head == head:
            return fold
        self._fold = None  # until it is whole again
        if fold is not None and self._leads_to(fold, log, last):
            fold = self._follow(fold, log, last)
        else:
            fold = self.fold_anew(log)
        if fold.sequence == last and fold.head != head:
            raise BrokenLog(f"campaign {self.row.name!r}: event {last} is not the last that was written")
        self._fold = fold
        return fold

    def _leads_to(self, fold: Fold, log: Log, last: int) -> bool:
        """Whether the log goes on from this state: a log that was restored from a backup is the truth, too."""
        following = log.after(fold.sequence, upto=last, limit=1)
        leads = bool(following) and is_intact(following[0], fold.head, fold.salt)
        if not leads:
            logger.warning("campaign %r: its log is not the one that was read; reading it anew", self.row.name)
        return leads

    def _follow(self, fold: Fold, log: Log, last: int, differs: Differs | None = None) -> Fold:
        """The state after the event `last`, or a later one; not the given one where that knows what was forgotten."""
        if last - fold.sequence > MOST_EVENTS:
            fold.engine.wait_for_program()
        while fold.sequence < last:
            replay(fold, log.following(fold.sequence, upto=last, limit=FOLD_EVENTS), differs)
            if fold.knows_forgotten:
                logger.info("campaign %r: people were forgotten; its log is read anew", self.row.name)
                if differs is not None:
                    raise ConnectionLost("people were forgotten while the log was read")
                fold = self._first_fold(log)
                fold.forgotten = _forgotten(log)
                last = max(last, log.head()[0])
            if fold.sequence == last and (fold.erased or fold.faceless):  # forgotten while we were reading
                last, _ = log.head()
        if fold.erased:
            raise BrokenLog(f"campaign {self.row.name!r}: the key of event {min(fold.erased)} was removed")
        if fold.faceless:
            raise BrokenLog(f"campaign {self.row.name!r}: the features of event {min(fold.faceless)} were removed")
        return fold

    def fold_anew(self, log: Log, differs: Differs | None = None) -> Fold:
        """The state as the log has it; from its very beginning where somebody wants to hear what differs."""
        last, _ = log.head()
        if differs is None:
            fold = self._restore(log, last)
        else:
            fold = self._first_fold(log)
            fold.forgotten = _forgotten(log) if fold.problem.person else frozenset()
        return self._follow(fold, log, last, differs)

    def _first_fold(self, log: Log) -> Fold:
        """After the first event."""
        first = log.after(0, limit=1)
        if not first or first[0].kind != CREATED or first[0].data is None:
            raise BrokenLog(f"campaign {self.row.name!r}: its log has no beginning")
        check(first, before=beginning(self.row.tag), salt=None)
        try:
            fold = Fold(Definition.from_json(first[0].data), self.row.tag)
        except StorageError:
            raise
        except Exception as error:  # whatever somebody has put there
            raise BrokenLog(f"campaign {self.row.name!r}: its first event cannot be understood: {error}") from error
        if fold.definition.name not in (None, self.row.name):
            raise BrokenLog(
                f"campaign {self.row.name!r}: its log is that of {fold.definition.name!r}; its name was changed"
            )
        fold.head = fold.salt = known(first[0].chain)
        self._warn_of_gone_options(fold.definition)
        return fold

    def _warn_of_gone_options(self, definition: Definition) -> None:
        """Log that the campaign goes on without options that this version does not have; once in a process."""
        mark = object()
        if definition.gone and _warned.setdefault(self.row.tag, mark) is mark:
            logger.warning(
                "campaign %r was created with options that are gone (%s): its log is replayed as it is, and it goes on "
                "with the nearest policy",
                self.row.name,
                ", ".join(definition.gone),
            )

    def _restore(self, log: Log, last: int) -> Fold:
        """From the newest snapshot that can be used, whatever is wrong with the others; else from the beginning."""
        self._saved_at = self._saved_bytes = 0
        first = self._first_fold(log)
        for sequence in log.snapshots():
            try:
                if not sequence <= last:
                    raise BadSnapshot("it is of another log")
                data = log.load_snapshot(sequence)
                fold = decode(data, first.definition, self.row.tag, sequence=sequence)
            except ConnectionLost:
                raise
            except Exception as error:  # noqa: BLE001  (a snapshot only saves time)
                self._skip(sequence, str(error) or type(error).__name__)
                continue
            if self._is_of(log, fold, first):
                self._refuse_gaps(log, fold)
                self._saved_at, self._saved_bytes = sequence, len(data)
                logger.debug("campaign %r: read from the snapshot of event %d", self.row.name, sequence)
                return fold
            self._skip(sequence, "it is of another log")
        return first

    def _skip(self, sequence: int, why: str) -> None:
        logger.warning("campaign %r: snapshot %r is skipped: %.200s", self.row.name, sequence, why)

    def _refuse_gaps(self, log: Log, fold: Fold, since: Fold | None = None) -> None:
        """Events that a snapshot stands for are not read: at least they must be there, and say what they are about; all
        of them, or those after a state that has read the others.
        """
        after, about, keyed = (since.sequence, since.counts.about, since.counts.keyed) if since else (0, 0, 0)
        counts = fold.counts
        found = log.count(after=after, upto=fold.sequence)
        expected = (fold.sequence - after, counts.about - about, counts.keyed - keyed)
        if found is not None and found != expected:
            raise BrokenLog(
                f"campaign {self.row.name!r}: after event {after} the log must have {expected[0]} events up to event "
                f"{fold.sequence}, {expected[1]} of them about a decision and {expected[2]} with a key, and has "
                f"{found[0]}, {found[1]} and {found[2]}: it was damaged; restore a backup"
            )

    def _is_of(self, log: Log, fold: Fold, first: Fold) -> bool:
        at = log.events([fold.sequence]).get(fold.sequence)
        return at is not None and at.chain == fold.head and fold.salt == first.salt

    def _save_if_due(self, log: Log, fold: Fold, *, every: int | None = None) -> None:
        """A snapshot only saves time: where it cannot be written, the campaign goes on without."""
        every = self.snapshot_every if every is None else every
        unsaved = fold.sequence - self._saved_at
        if fold.engine.is_interpreted:
            return
        if unsaved < every or unsaved < self._saved_bytes // SNAPSHOT_BYTES_PER_EVENT:
            return
        with suppress(StorageError):
            newest = next(iter(log.snapshots()), 0)
            if fold.sequence - newest < every and newest > 0:
                self._saved_at = newest
                return
            fold.check()
            data = encode(fold)
            self._saved_at, self._saved_bytes = fold.sequence, len(data)
            log.save_snapshot(fold.sequence, data)
            logger.debug("campaign %r: a snapshot of event %d was saved", self.row.name, fold.sequence)

    def save(self) -> None:
        """Write a snapshot now."""

        def now(log: Log, fold: Fold) -> None:
            if fold.sequence not in log.snapshots():
                log.save_snapshot(fold.sequence, encode(fold))
                logger.debug("campaign %r: a snapshot of event %d was saved", self.row.name, fold.sequence)
            self._saved_at = fold.sequence

        self.read(now)

    # --- the connection ---------------------------------------------------------------------------------------------

    def _open(self) -> Log:
        if os.getpid() != self._pid:  # forked by something that does not tell Python
            self.renew()
        if self._log is not None and self._log.is_lost:
            self._close_log()
        if self._log is None:
            self._log = self._storage.open_log(self.row)
        if self._opened is not None:
            self._opened.used(self)
        return self._log

    def _rest(self) -> None:
        """After the outermost call: the state stays, for the next one looks at the head of the log first."""
        if self._log is not None:
            self._log.rest()
        if self._opened is not None and self._fold is not None:
            try:
                self._opened.rested(self, self._fold, self.n_states)
            except Exception:  # whoever asked has the answer, and must not hear of another campaign's end
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
        self._fold = None
        self._close_log()

    def _close_log(self) -> None:
        if self._log is not None:
            with suppress(StorageError):
                self._log.close()
            self._log = None

    def close(self) -> None:
        """Give the connection back; the next use makes a new one."""
        with self._lock:
            self._drop()
        if self._opened is not None:
            self._opened.closed(self)

    def close_if_idle(self) -> bool:
        """The same, unless somebody is using it: False."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._inside.calls:  # by this very thread
                return False
            self._drop()
            return True
        finally:
            self._lock.release()


def _forgotten(log: Log) -> frozenset[int]:
    """Events whose people were forgotten: where that was interrupted, an archive may still know them."""
    said = (json.loads(known(event.data)) for event in log.of_kinds((FORGOTTEN,)))
    return frozenset(sequence for one in said for sequence in one.get("people", ()))


def outcome_unknown(what: str) -> OutcomeUnknown:
    return OutcomeUnknown(f"{what}; whether the change was stored is not known: ask again with the same key")
