"""`memory://`: the log in this process, gone with it. For tests, trials and simulations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from operator import attrgetter
from threading import RLock

from doral._forks import renew_in_child
from doral.live.errors import CampaignExists, CampaignGone, StorageBusy
from doral.live.events import FORGOTTEN, LEASE_ENDED, LEAVE_LEASES, MAKES_DECISION, Event, known
from doral.live.storage.books import Books
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Pages, Storage, Tail
from doral.live.storage.memory_books import MemoryBooks


class _Kept:
    """One campaign's data, shared by all its logs."""

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        self.lock = RLock()
        self.events: list[Event] = []  # the event with sequence s is at s - 1
        self.about: dict[int, list[Event]] = {}
        self.keys: dict[bytes, Event] = {}
        self.snapshots: dict[int, bytes] = {}
        self.is_deleted = False
        self.leader: MemoryLog | None = None
        self.holders: dict[int, MemoryLog] = {}  # writers who live, and through which log
        self._indexed = 0  # of the events

    def append(self, events: Sequence[Event]) -> None:
        self.events.extend(events)  # in one step: a process that is forked now has all of them or none
        self._index(events)

    def _index(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.decision is not None:
                self.about.setdefault(event.decision, []).append(event)
            if event.key_hash is not None:
                self.keys[event.key_hash] = event
        self._indexed = len(self.events)

    def renew(self) -> None:
        """In a forked child: a thread that it does not have may have been about to append."""
        self.lock = RLock()
        if self._indexed != len(self.events):
            self.about, self.keys = {}, {}
            self._index(self.events)

    def erase(self, *, keys: Sequence[int], people: Sequence[int]) -> None:
        """The keys of these events, and who those are; their hashes stay."""
        keyless, faceless = set(keys), set(people)
        for sequence in keyless | faceless:
            event = self.events[sequence - 1]
            event = event._replace(
                key=None if sequence in keyless else event.key, person=None if sequence in faceless else event.person
            )
            self.events[sequence - 1] = event
            if event.key_hash is not None:
                self.keys[event.key_hash] = event
            if event.decision is not None:
                about = self.about[event.decision]
                about[:] = [event if one.sequence == sequence else one for one in about]


class MemoryLog(Log):
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept
        self._own = _Kept(kept.row)  # what this transaction has appended, which nobody else sees before it ends
        self._is_open = False

    def begin(self, *, within_s: float | None = None) -> None:
        if not self._kept.lock.acquire(timeout=-1 if within_s is None else max(0.0, within_s)):
            raise StorageBusy(f"campaign {self._kept.row.name!r}: others have kept it locked; try again")
        self._is_open = True

    def commit(self) -> None:
        self._kept.append(self._own.events)
        for event in self._own.events:
            if event.kind == FORGOTTEN:
                said = json.loads(known(event.data))
                self._kept.erase(keys=said["events"], people=said.get("people", ()))
                if "people" in said:
                    self._kept.snapshots.clear()
        self.rollback()

    def rollback(self) -> None:
        if self._is_open:
            if self._own.events:
                self._own = _Kept(self._kept.row)
            self._is_open = False
            self._kept.lock.release()

    def head(self) -> tuple[int, bytes]:
        if self._kept.is_deleted:
            raise CampaignGone("the campaign is no longer there: it was deleted")
        last = (self._own.events or self._kept.events)[-1]
        return last.sequence, known(last.chain)

    def count(self, *, after: int = 0, upto: int) -> tuple[int, int, int] | None:
        events = self._some(after, upto)
        about = sum(event.decision is not None for event in events)
        return len(events), about, sum(event.key_hash is not None for event in events)

    def append(self, events: Sequence[Event]) -> None:
        self._own.append(events)

    def _some(self, after: int, upto: int) -> list[Event]:
        """The events after one, up to another."""
        kept, own = self._kept.events, self._own.events
        if not own or upto <= len(kept):
            return kept[after:upto]
        return kept[after:] + own[max(0, after - len(kept)) : upto - len(kept)]

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        return self._some(sequence, sequence + limit if upto is None else min(upto, sequence + limit))

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        kept, own = self._kept.events, self._own.events
        n_kept, n = len(kept), len(kept) + len(own)
        return {
            sequence: kept[sequence - 1] if sequence <= n_kept else own[sequence - 1 - n_kept]
            for sequence in sequences
            if 1 <= sequence <= n
        }

    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        kept, own = self._kept.about, self._own.about
        return {
            decision: [*kept.get(decision, ()), *own.get(decision, ())]
            for decision in decisions
            if decision in kept or decision in own
        }

    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        return self.about(range(first, last + 1))

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        kept, own = self._kept.keys, self._own.keys
        return {
            hashed: own[hashed] if hashed in own else kept[hashed]
            for hashed in hashes
            if hashed in kept or hashed in own
        }

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        found: list[Event] = []
        while sequence < upto and len(found) < limit:
            some = self._some(sequence, min(upto, sequence + limit))
            if not some:
                break
            found += [event for event in some if event.kind in MAKES_DECISION]
            sequence += len(some)
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return [event for event in (*self._kept.events, *self._own.events) if event.kind in kinds]

    def tail(self, after: int, head: bytes) -> Tail | None:
        known_one = self.events((after,)).get(after)
        since = self._some(after, self.head()[0])
        if known_one is None or known_one.chain != head or any(event.kind not in LEAVE_LEASES for event in since):
            return None
        made = [event for event in since if event.kind in MAKES_DECISION]
        numbers = [event.number for event in made if event.number is not None]
        return Tail(
            last=since[-1].sequence if since else after,
            head=known(since[-1].chain) if since else head,
            round=max((known(event.round) for event in made), default=None),
            number=max(numbers, default=None),
            clock=since[-1].clock if since else None,
            is_keyed=any(event.key_hash is not None for event in since),
            ended=tuple(json.loads(known(event.data))["lease"] for event in since if event.kind == LEASE_ENDED),
        )

    def hold(self, writer: int) -> None:
        self._kept.holders[writer] = self

    def is_held(self, writer: int) -> bool:
        return writer in self._kept.holders

    def lead(self) -> bool:
        if self._kept.leader is None:
            self._kept.leader = self
        return self._kept.leader is self

    def overdue(
        self,
        *,
        after: int,
        upto: int,
        clock: float,
        age_limit: float,
        repairs: Sequence[tuple[int, float]] = (),
        contexts: Sequence[int] | None = None,
    ) -> tuple[int, list[tuple[int, float, int]]]:
        if age_limit == math.inf:
            return after, []
        last = upto
        found: dict[tuple[int, float], int] = {}
        for event in self._some(after, upto):
            if event.kind not in MAKES_DECISION or (contexts is not None and event.context not in contexts):
                continue
            if event.deadline is not None:
                continue
            made = min([event.own, *(shown for sequence, shown in repairs if event.sequence < sequence)])
            if not clock - made > age_limit:
                last = event.sequence - 1
                break
            if event.arm is not None and event.state is None and not self.about((event.sequence,)):
                group = (known(event.context), known(event.cost))
                found[group] = found.get(group, 0) + 1
        return last, [(context, cost, count) for (context, cost), count in sorted(found.items())]

    def own_deadlines(self, *, after: int, upto: int) -> list[Event]:
        return [
            event
            for event in self._some(after, upto)
            if event.kind in MAKES_DECISION
            and event.deadline is not None
            and event.arm is not None
            and event.state is None
            and not self.about((event.sequence,))
        ]

    def save_snapshot(self, sequence: int, data: bytes) -> None:
        if any(event.kind == FORGOTTEN for event in self._kept.events[sequence:]):
            return
        snapshots = self._kept.snapshots
        snapshots[sequence] = data
        for old in self.snapshots()[KEPT_SNAPSHOTS:]:
            del snapshots[old]

    def snapshots(self) -> list[int]:
        return sorted(self._kept.snapshots, reverse=True)

    def load_snapshot(self, sequence: int) -> bytes:
        return self._kept.snapshots.get(sequence, b"")

    def remove_all(self) -> None:
        self._kept.is_deleted = True

    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        """Nothing is left."""

    def close(self) -> None:
        holders = self._kept.holders
        for writer in [writer for writer, log in holders.items() if log is self]:
            del holders[writer]
        if self._kept.leader is self:
            self._kept.leader = None


class MemoryStorage(Storage):
    url = "memory://"

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._lock = RLock()
        self._numbers = count(1)
        self._books = MemoryBooks()
        renew_in_child(self)

    def renew(self) -> None:
        self._lock = RLock()
        for kept in self._kept.values():
            kept.renew()

    def create(self, *, name: str, tag: str, first: Event) -> CampaignRow:
        with self._lock:
            if name in self._kept:
                raise CampaignExists(f"name = {name!r}: this store has a campaign of that name; choose another")
            row = CampaignRow(id=next(self._numbers), name=name, tag=tag, created_at=first.at)
            kept = _Kept(row)
            kept.append([first])
            self._kept[name] = kept
            return row

    def campaigns(self) -> list[CampaignRow]:
        return sorted((kept.row for kept in self._kept.values()), key=attrgetter("name"))

    def open_log(self, row: CampaignRow) -> Log:
        kept = self._kept.get(row.name)
        if kept is None or kept.row.tag != row.tag:
            raise CampaignGone(f"campaign {row.name!r} is not the one that was opened: it was deleted")
        return MemoryLog(kept)

    @contextmanager
    def reading(self, *, holds_off_forks: bool = False) -> Iterator[list[tuple[CampaignRow, Log]]]:
        del holds_off_forks  # none would end it
        found: list[tuple[CampaignRow, Log]] = []
        for row in self.campaigns():
            kept = self._kept[row.name]
            with kept.lock:
                copy = _Kept(row)
                copy.events = list(kept.events)  # all that a reader of the whole log needs
            found.append((row, MemoryLog(copy)))
        yield found

    def restore(self, campaigns: Sequence[tuple[CampaignRow, Pages]]) -> None:
        made: dict[str, _Kept] = {}
        with self._lock:
            for row, pages in campaigns:
                if row.name in self._kept or row.tag in [kept.row.tag for kept in self._kept.values()]:
                    raise CampaignExists(f"name = {row.name!r}: this store has that campaign already; delete it first")
                kept = made[row.name] = _Kept(replace(row, id=next(self._numbers)))
                for page in pages():
                    kept.append(page)
            self._kept.update(made)

    def delete(self, row: CampaignRow) -> None:
        with self._lock:
            log = self.open_log(row)
            with log.writing():
                log.remove_all()
            del self._kept[row.name]

    def books(self) -> Books:
        return self._books

    def close(self) -> None:
        """The log lives as long as this object."""
