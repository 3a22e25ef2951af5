"""A session that decides out of a lease, beside others that do the same.

What it decides by lease is decided before the campaign's lock is taken, on a state of its own. Under the lock it only
looks at what others have appended since: where that leaves the lease as it was, the decisions get their places in the
log and are appended; otherwise they are thrown away, nobody having heard of them, and decided the ordinary way.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, TypeAlias

from doral.engine.setup import PREDICTION_PREFIX as PREFIX
from doral.errors import DoralError
from doral.live.apply import Differs, apply
from doral.live.chain import Placed, Unplaced
from doral.live.drafts import Stamp
from doral.live.errors import CampaignGone, ConnectionLost, StorageBusy, StorageError
from doral.live.events import Event
from doral.live.fold import Fold
from doral.live.leases.own_events import OwnEvents
from doral.live.leases.planning import Granted, plan_lease, plan_return
from doral.live.leases.scratch import Scratch, run_of
from doral.live.plan_decisions import plan_decision, plan_decisions, plan_decisions_each
from doral.live.requests import ArrivalRequest
from doral.live.session import SNAPSHOT_BYTES_PER_EVENT, Ask, Session, outcome_unknown
from doral.live.snapshot import decode
from doral.live.snapshot_checks import BadSnapshot
from doral.live.storage.connection import AT_ONCE
from doral.live.storage.contract import Log, Tail
from doral.live.storage.patience import Patience

logger = logging.getLogger("doral.live")

ALONE_AFTER_S = 10.0  # whoever has not seen others write for so long takes himself to be alone
MERGE_EVERY_S = 1.0  # how long a state may not have heard of what others did, where hearing of it costs little
# And by how much a log may grow before it has to: whoever has not heard of a tenth has standard errors that are at most
# 5% larger than those of somebody who knows all, whatever the campaign is (docs/scale.md).
UNHEARD_SHARE = 0.1
_AWAITED_EVENTS = 5_000  # after which a snapshot is saved where others wait for it
_WORTH_A_SNAPSHOT = 2_000  # events, which are read in the time in which a small state is
_READ_S = 10e-6  # that it takes to read an event again
_READ_SHARE = 0.05  # of the time, which that may take before snapshots are read instead
_GIVE_BACK_S = 0.2  # that whoever closes waits for the lock, at most: some ten times as long as a write takes
_ASK_AGAIN_S = 0.005
_PATIENCE = 10  # how many times longer a state may be used where a snapshot is expected
_DECIDE = (plan_decision, plan_decisions, plan_decisions_each)

_Answer: TypeAlias = tuple[int, Callable[[Sequence[Event]], Any]]  # of how many decisions, and what makes it of them


class LeasedSession(Session):
    """As `Session`, for processes that share one hot campaign."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._scratch: Scratch | None = None
        self._granted = Granted()
        self._has_lease = False  # as far as is known
        self._own = OwnEvents()
        self._n_calls = 0  # a signal may call this very thread in, in the middle of another call
        self._met_at = -math.inf  # when others were last seen to write, on this process's own clock
        self.merge_every_s, self.unheard_share = MERGE_EVERY_S, UNHEARD_SHARE
        self._looked_at = -math.inf  # for a snapshot, on this process's own clock
        super().__init__(*given, **named)
        self._be_known()

    def renew(self) -> None:
        """In a forked child: the lease is the parent's."""
        super().renew()
        self._be_known()
        self._forget_lease()

    def _be_known(self) -> None:
        """Others look after one lock for all sessions of a process: their numbers tell which."""
        number = self._storage.number()
        if number is not None:
            self.writer = number

    def _forget_lease(self) -> None:
        self._scratch, self._granted, self._has_lease = None, Granted(), False

    @property
    def _may_have_lease(self) -> bool:
        """Also one that it does not decide by any more, because nobody knew what was left of it."""
        return self._has_lease or (self._fold is not None and self._fold.leases.has(self.writer))

    @property
    def n_states(self) -> int:
        """The one that it decides on is another one."""
        return 1 + self._has_lease

    # --- writing ----------------------------------------------------------------------------------------------------

    def write_together(self, requests: Sequence[Ask]) -> list[Any]:
        """Decisions by lease, as far as that goes; everything else the ordinary way, in the order of the requests.

        Where a later part fails, the earlier ones are stored: the failure is then the result of those that failed.
        """
        with self._lock, self._inside:
            self._n_calls += 1
            parts = [(is_one, list(some)) for is_one, some in groupby(requests, key=lambda one: one[0] in _DECIDE)]
            found: list[Any] = []
            for decides, some in parts:
                write = partial(self._written, self._decide_all if decides else self._write_others)
                found += write(some) if not found else _results_of(write, some)
            return found

    def _written(self, write: Callable[[Sequence[Ask]], list[Any]], requests: Sequence[Ask]) -> list[Any]:
        """Whatever ends it early, even an interrupt: what was sent may be stored later. It is then stored under the
        lock, so that whoever waits for that next knows what is left of the lease, and nobody else does.
        """
        try:
            return write(requests)
        except BaseException as error:
            if isinstance(error, StorageError) or not isinstance(error, DoralError):
                self._forget_lease()
            raise

    def _write_others(self, requests: Sequence[Ask]) -> list[Any]:
        """The ordinary way. A correction may have been paid out of the lease, and then a state that has not heard of it
        would spend that again.
        """
        n_calls, kept = self._n_calls, self._set_aside()
        if kept is not None:
            self._follow_others()
        found = super().write_together(requests)
        lease = None if self._fold is None else self._fold.leases.of(self.writer)
        if kept is not None and lease is not None and lease.left == kept.lease.left and n_calls == self._n_calls:
            self._scratch = kept
        return found

    def _decide_all(self, requests: Sequence[Ask]) -> list[Any]:
        arrivals = [one for plan, asked in requests for one in ((asked[0],) if plan is plan_decision else asked[0])]
        if not arrivals:
            return super().write_together(requests)
        if self._is_alone:  # the ordinary way is as quick, and keeps nothing from anybody
            return self._decide_alone(requests)
        n_calls = self._n_calls
        scratch = self._ready_for(arrivals)
        if scratch is not None:
            found = self._decide_by_lease(requests, scratch, n_calls)
            if found is not None:
                return found
        return self._decide_and_lease(requests, len(arrivals))

    @property
    def _is_alone(self) -> bool:
        return time.monotonic() - self._met_at > ALONE_AFTER_S

    def _decide_alone(self, requests: Sequence[Ask]) -> list[Any]:
        self._set_aside()
        if not self._may_have_lease:
            return super().write_together(requests)
        found = super().write_together([(plan_return, ()), *requests])[1:]
        self._forget_lease()
        return found

    def _decide_and_lease(self, requests: Sequence[Ask], n: int) -> list[Any]:
        """The ordinary way, and with it a lease for those who come next."""
        self._set_aside()
        self.read(lambda log, _: log.hold(self.writer))  # follows the log, too: under the lock both would take a while
        asked = (n, self._granted, self.lease_ttl_s)
        *found, granted = super().write_together([*requests, (_plan_lease_if_any, asked)])
        self._granted = granted if isinstance(granted, Granted) else Granted()
        self._has_lease = isinstance(granted, Granted)
        return found

    def _follow_others(self) -> None:
        """Before the lock is taken: under it nobody else can go on."""
        self.read(lambda log, fold: None)

    # --- by lease ---------------------------------------------------------------------------------------------------

    def _ready_for(self, arrivals: Sequence[ArrivalRequest]) -> Scratch | None:
        """A state to decide on, with a lease that pays for all of these."""
        if not self._has_lease:
            return None
        scratch = self._scratch
        if scratch is None or self._is_due(scratch):
            scratch = self._merge()
        if scratch is None or not scratch.has_room(len(arrivals)):
            return None
        keys = [one.key for one in arrivals if one.key is not None]
        if len(set(keys)) < len(keys):
            return None
        if not scratch.fold.definition.is_in_seconds and any(one.at is not None for one in arrivals):
            return None  # how far ahead they may lie depends on what others did
        return scratch

    def _is_due(self, scratch: Scratch) -> bool:
        if scratch.is_pure:
            return scratch.known - self._saved_at >= self.snapshot_every
        now = time.monotonic()
        looks = now - self._looked_at > self.merge_every_s / 4
        return self._has_grown(scratch) or (looks and now - scratch.made_at > self.merge_every_s)

    def _has_grown(self, scratch: Scratch) -> bool:
        """Whether there is too much that it has not heard of."""
        return scratch.known - scratch.base > self.unheard_share * scratch.base

    def _merge(self) -> Scratch | None:
        """A state that has heard of everything so far, or of what a snapshot of it says.

        Where much happens, one of all reads it again and saves snapshots, and the others read those.
        """
        scratch = self._scratch
        if scratch is not None and self._is_far_behind(scratch) and self._rebase(scratch):
            return scratch

        def look(log: Log, fold: Fold) -> Fold:
            self._save_if_due(log, fold, every=min(self.snapshot_every, _AWAITED_EVENTS))
            return fold

        fold = self.read(look)
        if not fold.leases.has(self.writer):
            self._forget_lease()
            return None
        self._scratch = Scratch(fold, self.writer)
        return self._scratch

    def _is_far_behind(self, scratch: Scratch) -> bool:
        """Whether reading what happened would take a good part of the time in which it happened."""
        read_upto = 0 if self._fold is None else self._fold.sequence
        unread = scratch.known - max(read_upto, scratch.base)
        return unread * _READ_S > _READ_SHARE * (time.monotonic() - scratch.made_at)

    def _rebase(self, scratch: Scratch) -> bool:
        """Read the newest snapshot instead; False where there is none that helps, or others wait for ours."""
        try:
            log = self._open()
            if log.lead():
                return False
            newest = next(iter(log.snapshots()), 0)
            if scratch.base < newest <= scratch.known:
                fold = self._saved(log, scratch.fold, newest, run=run_of(self.writer, newest))
                if fold is not None and scratch.rebase(fold):
                    self._own.forget(upto=newest)  # who follows the log from before reads that snapshot, too
                    return True
        except Exception:  # noqa: BLE001  (a snapshot only saves time)
            return False
        # Where whoever saves them does not, this one reads for itself.
        self._looked_at = time.monotonic()
        return self._looked_at - scratch.made_at < _PATIENCE * self.merge_every_s and not self._has_grown(scratch)

    def _saved(self, log: Log, fold: Fold, sequence: int, *, run: int = 0) -> Fold | None:
        """A later state than this one, of the same log, as a snapshot has it."""
        data = log.load_snapshot(sequence)
        found = decode(data, fold.definition, self.row.tag, sequence=sequence, run=run)
        at = log.events([sequence]).get(sequence)
        if at is None or at.chain != found.head or found.salt != fold.salt:
            return None
        self._saved_bytes = len(data)
        return found

    def _ahead(self, fold: Fold, log: Log, last: int) -> Fold:
        """This state, or a later one of a snapshot, where that is read sooner than what others did meanwhile."""
        worth = max(_WORTH_A_SNAPSHOT, self._saved_bytes // SNAPSHOT_BYTES_PER_EVENT)
        if last - fold.sequence > worth:
            newest = next(iter(log.snapshots()), 0)
            if fold.sequence + worth < newest <= last:
                with suppress(BadSnapshot):
                    found = self._saved(log, fold, newest)
                    if found is not None:
                        self._refuse_gaps(log, found, since=fold)
                        return found
        return fold

    def _set_aside(self) -> Scratch | None:
        """The state on which was decided so far; none where nobody else wrote: then it is what the log adds up to, and
        takes the place of the one that follows the log.
        """
        scratch, self._scratch = self._scratch, None
        if scratch is None or not scratch.is_pure:
            return scratch
        self._fold = scratch.fold
        return None

    def _follow(self, fold: Fold, log: Log, last: int, differs: Differs | None = None) -> Fold:
        if differs is None:
            fold = self._ahead(fold, log, last)
            if self.writer == self._own.writer:
                self._own.follow(fold, log, last)
        return super()._follow(fold, log, last, differs)

    def _catch_up(self, log: Log) -> Fold:
        if self._scratch is not None and self._scratch.is_pure:
            self._set_aside()
        return super()._catch_up(log)

    def _leads_to(self, fold: Fold, log: Log, last: int) -> bool:
        self._met_at = time.monotonic()
        leads = super()._leads_to(fold, log, last)
        if not leads:
            self._own = OwnEvents()  # of another log
        return leads

    def _decide_by_lease(self, requests: Sequence[Ask], scratch: Scratch, n_calls: int) -> list[Any] | None:
        """None: nothing was stored, and it has to be decided the ordinary way."""
        self._scratch = None  # until all is committed
        patience = Patience()
        made: Unplaced | None = None
        packed: object = None
        placed: Placed | None = None
        answers: list[_Answer] = []
        is_open = False  # whether they may have been stored through a connection that broke
        while True:
            try:
                log = self._open()
                if self.writer != scratch.writer:  # in a forked child, which has no lease
                    return None
                if made is None:
                    made, answers = self._decide_on(log, scratch, requests)
                    if made is None:
                        return None
                    packed = log.pack(made.columns)
                log.hold(self.writer)
                with self._transaction(log, patience, (scratch.known, scratch.head)) as tail:
                    if placed is not None:
                        log.head()  # they may have been archived meanwhile: it finds where
                        if self._is_stored(log, placed.events()):
                            log.rollback()
                            break
                    # A signal may have called this very thread in: then that has used the lease meanwhile.
                    placed = self._place(log, scratch, made, tail) if n_calls == self._n_calls else None
                    if placed is None:
                        log.rollback()
                        return None
                    self._refuse_if_forked(log)
                    log.append_and_commit(placed, packed)
                break
            except CampaignGone as error:
                self._find_again(error)
                return None
            except ConnectionLost as error:
                self._drop()
                if made is None:  # some requests may have been decided on the state, which would decide them again
                    return None
                is_open = placed is not None
                self._wait(patience, error, [] if placed is None else placed.events())
            except StorageBusy as error:
                if is_open:
                    raise outcome_unknown("the connection broke, and others have held the lock since") from error
                raise
        scratch.stored(placed)
        # Whoever was called in has used the lease as well, and this state does not know it.
        self._scratch = scratch if n_calls == self._n_calls else None
        self._keep(scratch, placed)
        return self._answered(answers, placed)  # not before: others wait for the lock

    def _keep(self, scratch: Scratch, placed: Placed) -> None:
        """They need not be read; where that fails, they are. What is stored is stored."""
        try:
            if not scratch.is_pure:
                self._own.add(scratch.writer, placed)
            self._tell_of([placed.last_event], scratch.fold)
        except Exception:
            logger.exception("campaign %r: what was decided is stored, and will be read again", self.row.name)
            self._own = OwnEvents()

    def _answered(self, answers: Sequence[_Answer], placed: Placed) -> list[Any]:
        """Whatever fails here, the decisions are stored: it must not look as if they could be asked for once more."""
        found, done = [], 0
        try:
            events = placed.events()
            for count, answer in answers:
                found.append(answer(events[done : done + count]))
                done += count
        except Exception as error:
            raise outcome_unknown(f"what was decided could not be told ({type(error).__name__}: {error})") from error
        return found

    def _decide_on(self, log: Log, scratch: Scratch, requests: Sequence[Ask]) -> tuple[Unplaced | None, list[_Answer]]:
        """Decisions that nobody has heard of yet, and what makes answers of them; none where one of them is not plain:
        it is refused, or its key has served before.
        """
        made: list[Event] = []
        answers: list[_Answer] = []
        stamp = Stamp(self.writer, time.time(), self.clock_tolerance_s)
        for plan, asked in requests:
            try:
                with self._understanding():
                    drafts, answer = plan(log, scratch.fold, *asked, stamp)
            except StorageError:
                raise
            except DoralError:
                return None, []
            if len(drafts) != (1 if plan is plan_decision else len(asked[0])):
                return None, []
            made += apply(scratch.fold, drafts) if drafts else []
            answers.append((len(drafts), answer))
        return (scratch.prepare(made) if made else None), answers

    def _place(self, log: Log, scratch: Scratch, made: Unplaced, tail: Tail | None) -> Placed | None:
        """Under the lock: the decisions as they follow on what others did; None where they cannot."""
        if tail is None:  # it may be another log
            self._own = OwnEvents()
            return None
        if tail.last != scratch.known:
            self._met_at = time.monotonic()
        if scratch.lease.sequence in tail.ended:
            self._forget_lease()
            return None
        if tail.is_keyed:
            hashes = [key_hash for key_hash in made.key_hashes if key_hash is not None]
            if hashes and log.by_keys(hashes):
                return None
        return scratch.place(made, tail, self.clock_tolerance_s)

    # --- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The lease is given back as well, where nobody has to be waited for longer than a write takes."""
        with self._lock:
            self._give_back(within_s=_GIVE_BACK_S)
        super().close()

    def close_if_idle(self) -> bool:
        """The same."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not self._inside.calls:
                self._give_back(within_s=0.0)
        finally:
            self._lock.release()
        return super().close_if_idle()

    def _give_back(self, *, within_s: float) -> None:
        """Hardly waiting for the lock, and not for a server that is gone: what is not given back is recovered by who
        needs it. Nor does it count as a use: whoever is closed to make room must not ask for it.
        """
        log = self._log
        if self._may_have_lease and log is not None and not log.is_lost and not self._is_writing:
            with suppress(DoralError):
                _begin_soon(log, within_s)
                try:
                    fold = self._catch_up(log)
                    stamp = Stamp(self.writer, time.time(), math.inf)
                    if made := self._apply(fold, plan_return(log, fold, stamp)[0]):
                        log.append(made)
                    self._refuse_if_forked(log)
                    log.commit()
                except BaseException:
                    log.rollback()
                    raise
        self._forget_lease()


def _begin_soon(log: Log, within_s: float) -> None:
    """Asks again and again: whoever waits for the lock itself waits for as long as the store says."""
    until = time.monotonic() + within_s
    while True:
        try:
            log.begin(within_s=AT_ONCE)
            return
        except StorageBusy:
            if time.monotonic() >= until:
                raise
        time.sleep(_ASK_AGAIN_S)


def _plan_lease_if_any(log: Log, fold: Fold, *asked: Any) -> Any:
    """No lease where what is reserved may exceed the budget, or where a model from outside decides with."""
    problem = fold.problem
    if problem.reserve < 1.0 or fold.closed or any(one.name.startswith(PREFIX) for one in problem.person):
        return [], lambda _: None
    return plan_lease(log, fold, *asked)


def _results_of(write: Callable[[Sequence[Ask]], list[Any]], requests: Sequence[Ask]) -> list[Any]:
    """The results, of which each may be what went wrong: others before it are stored, and have to hear of that."""
    try:
        return write(requests)
    except DoralError as error:
        return [error] * len(requests)
    except Exception as error:  # noqa: BLE001  (see above)
        if len(requests) == 1:
            return [StorageError(f"a request failed in a way that nobody foresaw: {type(error).__name__}: {error}")]
    return [result for one in requests for result in _results_of(write, [one])]
