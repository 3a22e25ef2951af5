"""The log of one campaign in SQLite or PostgreSQL: the same tables, the same statements."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from doral.live.chain import PLACE, Placed, beginning, damaged, is_intact
from doral.live.errors import BrokenLog, CampaignExists, CampaignGone, StorageError
from doral.live.events import COLUMNS, FORGOTTEN, LEASE_ENDED, LEAVE_LEASES, MAKES_DECISION, Event, has_types, known
from doral.live.storage.connection import Connection
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Pages, Tail

_BY_DECISION, _BY_KEY = "events_by_decision", "events_by_key_hash"
_INSERTED = ("campaign_id", *COLUMNS)
_MOST_UNHEARD = 10_000  # events of others that are looked through under the lock
_MOST_PARAMETERS = 500  # in one IN (...)


class _Statements:
    """SQL with the driver's placeholders and the schema of our tables, made once."""

    def __init__(self, connection: Connection) -> None:
        columns = ", ".join(COLUMNS)
        mark, schema = connection.placeholder, connection.schema
        self.mark, self.schema = mark, schema
        self.set_head = f"UPDATE {schema}campaigns SET last_sequence = {mark}, head = {mark} WHERE id = {mark}"
        self.end = (  # an error, where not all was stored
            f"WITH done AS (UPDATE {schema}campaigns SET last_sequence = {mark}, head = {mark} WHERE id = {mark} AND "
            f"{mark} = (SELECT count(*) FROM {schema}events WHERE campaign_id = {mark} AND sequence > {mark}) "
            "RETURNING 1) SELECT 1 / count(*) FROM done"
        )
        self.head = (
            "SELECT tag, archived, last_sequence, head, "
            f"(SELECT max(sequence) FROM {schema}events WHERE campaign_id = {mark}) "
            f"FROM {schema}campaigns WHERE id = {mark}"
        )
        self.select = f"SELECT {columns} FROM {schema}events WHERE campaign_id = {mark}"
        self.select_checked = (
            f"SELECT {', '.join(f'one.{column}' for column in COLUMNS)}, "
            f"(SELECT before.chain FROM {schema}events AS before "
            "WHERE before.campaign_id = one.campaign_id AND before.sequence = one.sequence - 1) "
            f"FROM {schema}events AS one{{}} WHERE one.campaign_id = {mark}"
        )
        makes, leaves = (", ".join(map(str, kinds)) for kinds in (MAKES_DECISION, LEAVE_LEASES))
        self.tail = (
            "SELECT one.tag, one.archived, one.last_sequence, one.head, (SELECT before.chain FROM "
            f"{schema}events AS before WHERE before.campaign_id = one.id AND before.sequence = {mark}), since.* "
            f"FROM {schema}campaigns AS one, (SELECT count(*), count(*) FILTER (WHERE kind NOT IN ({leaves})), "
            f"count(*) FILTER (WHERE kind = {LEASE_ENDED}), max(round) FILTER (WHERE kind IN ({makes})), "
            f"max(number) FILTER (WHERE kind IN ({makes})), max(clock), count(key_hash) "
            f"FROM (SELECT kind, round, number, clock, key_hash FROM {schema}events WHERE campaign_id = {mark} "
            f"AND sequence > {mark} ORDER BY sequence LIMIT {_MOST_UNHEARD}) AS next) AS since WHERE one.id = {mark}"
        )
        made = f"FROM {schema}events AS made WHERE campaign_id = {mark} AND sequence > {mark} AND sequence <= {mark}"
        kinds = ", ".join(map(str, MAKES_DECISION))
        made = f"{made} AND deadline IS NULL"  # those with one of their own are judged one by one
        self.first_young = f"SELECT min(sequence) {made} AND kind IN ({kinds}){{}} AND NOT ({{}})"
        self.overdue = (
            f"SELECT context, cost, count(*) {made} AND kind IN ({kinds}) AND arm IS NOT NULL AND state IS NULL{{}} "
            f"AND NOT EXISTS (SELECT 1 FROM {schema}events AS later "
            "WHERE later.campaign_id = made.campaign_id AND later.decision = made.sequence) "
            "GROUP BY context, cost ORDER BY context, cost"
        )
        self.own_deadlines = (
            f"one.deadline IS NOT NULL AND one.kind IN ({kinds}) AND one.arm IS NOT NULL AND one.state IS NULL "
            f"AND one.sequence > ? AND one.sequence <= ? AND NOT EXISTS (SELECT 1 FROM {schema}events AS later "
            "WHERE later.campaign_id = one.campaign_id AND later.decision = one.sequence)"
        )


class SqlLog(Log):
    """Of a campaign whose events are all in the database; `ArchivedLog` is what is used."""

    def __init__(self, connection: Connection, row: CampaignRow) -> None:
        self._connection, self._row, self._id, self._tag = connection, row, row.id, row.tag
        self._sql = _Statements(connection)
        self._salt: bytes | None = None
        self._before = {1: beginning(row.tag)}  # checksums of what stands before an event, where that is not a row

    @property
    def is_lost(self) -> bool:
        return self._connection.is_lost

    def begin(self, *, within_s: float | None = None) -> None:
        self._connection.begin(self._id, within_s=within_s)

    def commit(self) -> None:
        self._connection.commit()

    def rollback(self) -> None:
        self._connection.rollback()

    def try_to_write(self) -> None:
        # A lock alone is given to those, too, who may only read.
        schema, mark = self._sql.schema, self._sql.mark
        same = f"UPDATE {schema}campaigns SET last_sequence = last_sequence WHERE id = {mark}"
        self.begin()
        try:
            _store(self._connection, same, [(self._id,)])
        finally:
            self.rollback()

    def head(self) -> tuple[int, bytes]:
        rows = self._connection.execute(self._sql.head, (self._id, self._id))
        if not rows or rows[0][0] != self._tag:
            raise gone(self._row)
        _, archived, sequence, head, stored = rows[0]
        if not isinstance(archived, int | None):
            raise BrokenLog(f"old events are archived up to {archived!r}: it was damaged; restore a backup")
        self.archived = archived or 0
        if not isinstance(sequence, int) or not isinstance(head, bytes) or sequence != stored:
            raise BrokenLog(
                f"the last event must be {sequence!r}, and the log has events up to {stored!r}: it was damaged; "
                "restore a backup"
            )
        return sequence, head

    def count(self, *, after: int = 0, upto: int) -> tuple[int, int, int] | None:
        if after < self.archived:
            return None
        mark = self._sql.mark
        sql = (
            f"SELECT count(*), count(decision), count(key_hash) FROM {self._sql.schema}events "
            f"WHERE campaign_id = {mark} AND sequence > {mark} AND sequence <= {mark}"
        )
        events, about, keyed = self._connection.execute(sql, (self._id, after, upto))[0]
        return events, about, keyed

    def append(self, events: Sequence[Event]) -> None:
        first = (self._id,)
        _insert(self._connection, [first + event for event in events])
        _store(self._connection, self._sql.set_head, [(events[-1].sequence, events[-1].chain, self._id)])
        if events[-1].kind == FORGOTTEN:
            said = json.loads(known(events[-1].data))
            self._connection.be_thorough()
            self._erase("key", said["events"])
            if "people" in said:
                self._erase("person", said["people"])
                self._drop_snapshots()

    def pack(self, columns: Sequence[Sequence[Any]]) -> object:
        own = (self._id,) * len(columns[0])
        return self._connection.pack("events", dict(zip(_INSERTED, (own, *columns), strict=True)), PLACE)

    def append_and_commit(self, placed: Placed, packed: object = None) -> None:
        if packed is None:
            super().append_and_commit(placed)
            return
        n = len(placed.chains)
        ended = (placed.last, placed.chains[-1], self._id, n, self._id, placed.sequence)
        _refuse_less(self._connection.insert_and_commit(packed, placed.columns, self._sql.end, ended), n)

    def _drop_snapshots(self) -> None:
        if self._connection.has_table("snapshots"):
            mark, schema = self._sql.mark, self._sql.schema
            self._connection.execute(f"DELETE FROM {schema}snapshots WHERE campaign_id = {mark}", (self._id,))

    def _erase(self, column: str, sequences: Sequence[int]) -> None:
        """What these events have there; its hashes stay."""
        sql = f"UPDATE {self._sql.schema}events SET {column} = NULL WHERE campaign_id = {{0}} AND sequence = {{0}}"
        if sequences:
            self._connection.execute_many(sql.format(self._sql.mark), [(self._id, one) for one in sequences])

    def _select(self, condition: str, *parameters: object, index: str = "") -> list[Event]:
        """Events, each of which is what was written."""
        sql = f"{self._sql.select_checked} AND {condition} ORDER BY one.sequence".replace("?", self._sql.mark)
        hint = self._connection.index_hint(index) if index else ""
        rows = self._connection.fetch(sql.format(hint), (self._id, *parameters))
        if rows and self._salt is None:
            first = self._connection.execute(f"{self._sql.select} AND sequence = 1", (self._id,))
            self._salt = Event._make(first[0]).chain if first else None
        found = []
        for *columns, before in rows:
            event = Event._make(columns)
            before = self._before.get(event.sequence, before)
            if not has_types(event) or not is_intact(event, before, self._salt):
                raise damaged(event.sequence)
            found.append(event)
        return found

    def _select_in(self, column: str, values: Iterable[object], index: str = "") -> list[Event]:
        wanted = list(values)
        found: list[Event] = []
        for start in range(0, len(wanted), _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            condition = f"one.{column} IS NOT NULL AND one.{column} IN ({', '.join('?' * len(some))})"
            found += self._select(condition, *some, index=index)
        return found

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Event]:
        last = sequence + limit if upto is None else min(upto, sequence + limit)
        mark = self._sql.mark
        sql = f"{self._sql.select} AND sequence > {mark} AND sequence <= {mark} ORDER BY sequence"
        return list(map(Event._make, self._connection.fetch(sql, (self._id, sequence, last))))

    def by_others(self, sequence: int, *, upto: int, writer: int) -> list[Event]:
        if sequence < self.archived:
            return super().by_others(sequence, upto=upto, writer=writer)
        mark = self._sql.mark
        sql = f"{self._sql.select} AND sequence > {mark} AND sequence <= {mark} AND writer <> {mark} ORDER BY sequence"
        return list(map(Event._make, self._connection.fetch(sql, (self._id, sequence, upto, writer))))

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        return {event.sequence: event for event in self._select_in("sequence", sequences)}

    def about(self, decisions: Iterable[int]) -> dict[int, list[Event]]:
        return _by_decision(self._select_in("decision", decisions, _BY_DECISION))

    def about_range(self, first: int, last: int) -> dict[int, list[Event]]:
        return _by_decision(self._select("one.decision >= ? AND one.decision <= ?", first, last, index=_BY_DECISION))

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        return {known(event.key_hash): event for event in self._select_in("key_hash", hashes, _BY_KEY)}

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Event]:
        # Decided events are dense: a page of any events that is long enough holds the next decided ones.
        found: list[Event] = []
        kinds = ", ".join(map(str, MAKES_DECISION))
        while sequence < upto and len(found) < limit:
            last = min(upto, sequence + limit)
            page = f"one.sequence > ? AND one.sequence <= ? AND one.kind IN ({kinds})"
            found += self._select(page, sequence, last)
            sequence = last
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return self._select_in("kind", kinds)

    def tail(self, after: int, head: bytes) -> Tail | None:
        return self._tail(after, head, self._connection.execute(self._sql.tail, (after, self._id, after, self._id)))

    def begin_after(self, sequence: int, head: bytes, *, within_s: float | None = None) -> Tail | None:
        asked = (sequence, self._id, sequence, self._id)
        begin = self._connection.begin_with
        rows = begin(self._id, self._sql.tail, asked, then=self._sql.end, within_s=within_s)
        try:
            return self._tail(sequence, head, rows)
        except BaseException:
            self.rollback()
            raise

    def _tail(self, after: int, head: bytes, rows: Sequence[tuple[Any, ...]]) -> Tail | None:
        if not rows or rows[0][0] != self._tag:
            raise gone(self._row)
        _, archived, last, now, before, n, n_odd, n_ended, round_, number, clock, n_keys = rows[0]
        if (archived or 0) >= after or before != head or last != after + n or n_odd or not isinstance(now, bytes):
            return None
        ended = self._select("one.kind = ? AND one.sequence > ?", LEASE_ENDED, after) if n_ended else []
        return Tail(
            last=last,
            head=now,
            round=round_,
            number=number,
            clock=clock,
            is_keyed=n_keys > 0,
            ended=tuple(json.loads(known(event.data))["lease"] for event in ended),
        )

    def hold(self, writer: int) -> None:
        self._connection.hold(writer)

    def is_held(self, writer: int) -> bool:
        return self._connection.is_held(writer)

    def lead(self) -> bool:
        return self._connection.lead(self._id)

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
        run, mark = self._connection.execute, self._sql.mark
        only = "" if contexts is None else f" AND context IN ({', '.join(str(int(one)) for one in contexts)})"
        is_old = f"{mark} - coalesce(happened, clock) > {mark}"
        limits = [clock, age_limit]
        latest = math.inf
        bands = []
        for sequence, shown in reversed(repairs):  # what was made before several of them, was so before the earliest
            latest = min(latest, shown)
            bands.append(f"WHEN sequence < {sequence:d} THEN {latest!r}")
        if bands:
            cap = f"CASE {' '.join(reversed(bands))} ELSE coalesce(happened, clock) END"
            is_old, limits = f"{is_old} OR {mark} - {cap} > {mark}", [*limits, *limits]
        young = run(self._sql.first_young.format(only, is_old), (self._id, after, upto, *limits))[0][0]
        last = upto if young is None else int(young) - 1
        return last, [
            (int(one[0]), float(one[1]), int(one[2]))
            for one in run(self._sql.overdue.format(only), (self._id, after, last))
        ]

    def own_deadlines(self, *, after: int, upto: int) -> list[Event]:
        return self._select(self._sql.own_deadlines, after, upto)

    def server_time(self) -> float | None:
        return self._connection.server_time()

    def schema_revision(self) -> str | None:
        rows = self._connection.execute(f"SELECT version_num FROM {self._sql.schema}alembic_version")
        return str(rows[0][0]) if rows else None

    def check_indexes(self) -> None:
        self._connection.check_indexes()

    def save_snapshot(self, sequence: int, data: bytes) -> None:
        mark, schema = self._sql.mark, self._sql.schema
        connection = self._connection
        with self.writing():
            self.head()  # nothing is left behind for a campaign that was deleted meanwhile
            if self._was_forgotten_since(sequence):
                return
            connection.execute(
                f"INSERT INTO {schema}snapshots (campaign_id, sequence, data) "
                f"VALUES ({mark}, {mark}, {mark}) ON CONFLICT DO NOTHING",
                (self._id, sequence, data),
            )
            for old in self.snapshots()[KEPT_SNAPSHOTS:]:
                connection.execute(
                    f"DELETE FROM {schema}snapshots WHERE campaign_id = {mark} AND sequence = {mark}",
                    (self._id, old),
                )

    def _was_forgotten_since(self, sequence: int) -> bool:
        """Whether a state after this event may know what was erased meanwhile."""
        mark = self._sql.mark
        sql = (
            f"SELECT 1 FROM {self._sql.schema}events "
            f"WHERE campaign_id = {mark} AND sequence > {mark} AND kind = {FORGOTTEN} LIMIT 1"
        )
        return sequence < self.archived or bool(self._connection.execute(sql, (self._id, sequence)))

    def snapshots(self) -> list[int]:
        mark, schema = self._sql.mark, self._sql.schema
        if not self._connection.has_table("snapshots"):
            return []  # they only save time
        sql = f"SELECT sequence FROM {schema}snapshots WHERE campaign_id = {mark} ORDER BY sequence DESC"
        return [row[0] for row in self._connection.execute(sql, (self._id,))]

    def load_snapshot(self, sequence: int) -> bytes:
        mark, schema = self._sql.mark, self._sql.schema
        sql = f"SELECT data FROM {schema}snapshots WHERE campaign_id = {mark} AND sequence = {mark}"
        rows = self._connection.execute(sql, (self._id, sequence))
        found = rows[0][0] if rows else None
        return bytes(found) if isinstance(found, bytes | memoryview) else b""

    def wipe(self, sequences: Sequence[int] = (), *, people: Sequence[int] = ()) -> None:
        self._connection.wipe()

    def rest(self) -> None:
        self._connection.rest()

    def close(self) -> None:
        self._connection.close()


def gone(row: CampaignRow) -> CampaignGone:
    return CampaignGone(
        f"campaign {row.name!r} is not the one that was opened: it was deleted, or the database was replaced or "
        "restored since; nothing was changed: open the store again"
    )


def _store(connection: Connection, sql: str, rows: Sequence[Sequence[object]]) -> None:
    """One row each, or nothing is acknowledged."""
    _refuse_less(connection.execute_many(sql, rows), len(rows))


def _insert(connection: Connection, rows: Sequence[Sequence[object]]) -> None:
    """The same for events."""
    _refuse_less(connection.insert("events", _INSERTED, rows), len(rows))


def _refuse_less(stored: int, asked: int) -> None:
    if stored != asked:
        raise StorageError(
            f"the database stored {stored} of {asked} rows and said nothing; nothing was changed: remove the rules "
            "and triggers that somebody has put on the tables of doral"
        )


def put_in(connection: Connection, row: CampaignRow, pages: Pages, *, if_taken: str = "delete it first") -> int:
    """A whole campaign, inside a transaction; its number. `if_taken` is the remedy where its name is."""
    sql = _Statements(connection)
    schema, mark = connection.schema, connection.placeholder
    if connection.execute(f"SELECT 1 FROM {schema}campaigns WHERE name = {mark}", (row.name,)):
        raise CampaignExists(f"name = {row.name!r}: this store has a campaign of that name; {if_taken}")
    found = connection.execute(f"SELECT name FROM {schema}campaigns WHERE tag = {mark}", (row.tag,))
    if found:
        raise CampaignExists(f"campaign {row.name!r} is in this store already, as {found[0][0]!r}; delete that first")
    insert = f"INSERT INTO {schema}campaigns (name, tag, created_at) VALUES ({mark}, {mark}, {mark}) RETURNING id"
    campaign_id = int(connection.execute(insert, (row.name, row.tag, row.created_at))[0][0])
    last: Event | None = None
    for page in pages():
        _insert(connection, [(campaign_id, *event) for event in page])
        last = page[-1]
    if last is not None:
        _store(connection, sql.set_head, [(last.sequence, last.chain, campaign_id)])
    return campaign_id


def rows_of(connection: Connection, name: str | None = None) -> list[CampaignRow]:
    """All campaigns by name, or the one of this name."""
    one = "" if name is None else f"WHERE name = {connection.placeholder} "
    sql = f"SELECT id, name, tag, created_at FROM {connection.schema}campaigns {one}ORDER BY name"
    rows = connection.execute(sql, () if name is None else (name,))
    return [CampaignRow(id=row[0], name=row[1], tag=row[2], created_at=row[3]) for row in rows]


def _by_decision(events: Iterable[Event]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for event in events:
        assert event.decision is not None
        found.setdefault(event.decision, []).append(event)
    return found
