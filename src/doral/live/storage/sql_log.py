"""The log of one campaign in SQLite or PostgreSQL: the same tables, the same statements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from doral.live.errors import BrokenLog, CampaignExists, CampaignGone, StorageError
from doral.live.events.codec import decode
from doral.live.events.event import Deciding, Event, Settled, known
from doral.live.events.row import COLUMNS, FORGOTTEN, MAKES_DECISION, Row, beginning, damaged, has_types, is_intact
from doral.live.storage import old_archives
from doral.live.storage.connection import Connection
from doral.live.storage.contract import KEPT_SNAPSHOTS, PAGE_EVENTS, CampaignRow, Log, Pages, by_decision
from doral.live.storage.service_tables import ActRow, note_in

_BY_DECISION, _BY_KEY = "events_by_decision", "events_by_key_hash"
_INSERTED = ("campaign_id", *COLUMNS)
_MOST_PARAMETERS = 500  # in one IN (...)
_ROWS_AT_ONCE = 10_000  # removed by one statement: none takes long


class _Statements:
    """SQL with the driver's placeholders and the schema of our tables, made once."""

    def __init__(self, connection: Connection) -> None:
        columns = ", ".join(COLUMNS)
        mark, schema = connection.placeholder, connection.schema
        self.mark, self.schema = mark, schema
        marks = ", ".join([mark] * len(_INSERTED))
        self.insert = f"INSERT INTO {schema}events ({', '.join(_INSERTED)}) VALUES ({marks})"
        self.set_head = f"UPDATE {schema}campaigns SET last_sequence = {mark}, head = {mark} WHERE id = {mark}"
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
    """In SQLite or PostgreSQL."""

    def __init__(self, connection: Connection, row: CampaignRow) -> None:
        self._connection, self._row, self._id, self._tag = connection, row, row.id, row.tag
        self._sql = _Statements(connection)
        self._salt: bytes | None = None
        self._before = {1: beginning(row.tag)}  # checksums of what stands before an event, where that is not a row

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
            _store(self._connection, same, (self._id,))
        finally:
            self.rollback()

    def head(self) -> tuple[int, bytes]:
        rows = self._connection.execute(self._sql.head, (self._id, self._id))
        if not rows or rows[0][0] != self._tag:
            raise gone(self._row)
        _, archived, sequence, head, stored = rows[0]
        if archived:
            raise old_archives.refuse(self._connection, self._id)
        if not isinstance(sequence, int) or not isinstance(head, bytes) or sequence != stored:
            raise BrokenLog(
                f"the last event must be {sequence!r}, and the log has events up to {stored!r}: it was damaged; "
                "restore a backup"
            )
        return sequence, head

    def count(self, *, upto: int) -> tuple[int, int]:
        mark, table = self._sql.mark, f"{self._sql.schema}events"
        of_campaign = f"campaign_id = {mark} AND sequence <= {mark}"

        def counted(column: str, index: str) -> int:
            hint = self._connection.index_hint(index)
            sql = f"SELECT count(*) FROM {table}{hint} WHERE {of_campaign} AND {column} IS NOT NULL"
            return int(self._connection.execute(sql, (self._id, upto))[0][0])

        return counted("decision", _BY_DECISION), counted("key_hash", _BY_KEY)

    def append(self, rows: Sequence[Row]) -> None:
        last = rows[-1]
        if len(rows) == 1:
            stored = self._connection.execute_many(self._sql.insert, ((self._id, *last),))
        else:
            first = (self._id,)
            stored = self._connection.insert("events", _INSERTED, [first + row for row in rows])
        moved = self._connection.execute_many(self._sql.set_head, ((last.sequence, last.chain, self._id),))
        if stored != len(rows) or moved != 1:
            raise stored_less(min(stored, moved), len(rows))

    def erase(self, *, keys: Sequence[int], people: Sequence[int]) -> None:
        self._connection.be_thorough()
        self._erase("key", keys)
        if people:
            self._erase("person", people)
            self._drop_snapshots()

    def note(self, act: ActRow) -> None:
        note_in(self._connection, act)

    def _drop_snapshots(self) -> None:
        if self._connection.has_table("snapshots"):
            mark, schema = self._sql.mark, self._sql.schema
            self._connection.execute(f"DELETE FROM {schema}snapshots WHERE campaign_id = {mark}", (self._id,))

    def _erase(self, column: str, sequences: Sequence[int]) -> None:
        """What these events have there; its hashes stay."""
        sql = f"UPDATE {self._sql.schema}events SET {column} = NULL WHERE campaign_id = {{0}} AND sequence = {{0}}"
        if sequences:
            self._connection.execute_many(sql.format(self._sql.mark), [(self._id, one) for one in sequences])

    def _select(self, condition: str, *parameters: object, index: str = "") -> list[Any]:
        """Events, each of which is what was written."""
        sql = f"{self._sql.select_checked} AND {condition} ORDER BY one.sequence".replace("?", self._sql.mark)
        hint = self._connection.index_hint(index) if index else ""
        rows = self._connection.fetch(sql.format(hint), (self._id, *parameters))
        if rows and self._salt is None:
            first = self._connection.execute(f"{self._sql.select} AND sequence = 1", (self._id,))
            self._salt = Row._make(first[0]).chain if first else None
        found = []
        for *columns, before in rows:
            row = Row._make(columns)
            before = self._before.get(row.sequence, before)
            if not has_types(row) or not is_intact(row, before, self._salt):
                raise damaged(row.sequence)
            found.append(decode(row))
        return found

    def _select_in(self, column: str, values: Iterable[object], index: str = "") -> list[Any]:
        wanted = list(values)
        found: list[Event] = []
        for start in range(0, len(wanted), _MOST_PARAMETERS):
            some = wanted[start : start + _MOST_PARAMETERS]
            condition = f"one.{column} IS NOT NULL AND one.{column} IN ({', '.join('?' * len(some))})"
            found += self._select(condition, *some, index=index)
        return found

    def after(self, sequence: int, *, upto: int | None = None, limit: int = PAGE_EVENTS) -> list[Row]:
        last = sequence + limit if upto is None else min(upto, sequence + limit)
        mark = self._sql.mark
        sql = f"{self._sql.select} AND sequence > {mark} AND sequence <= {mark} ORDER BY sequence"
        return list(map(Row._make, self._connection.fetch(sql, (self._id, sequence, last))))

    def events(self, sequences: Iterable[int]) -> dict[int, Event]:
        return {event.sequence: event for event in self._select_in("sequence", sequences)}

    def about(self, decisions: Iterable[int]) -> dict[int, list[Settled]]:
        return by_decision(self._select_in("decision", decisions, _BY_DECISION))

    def about_range(self, first: int, last: int) -> dict[int, list[Settled]]:
        return by_decision(self._select("one.decision >= ? AND one.decision <= ?", first, last, index=_BY_DECISION))

    def by_keys(self, hashes: Iterable[bytes]) -> dict[bytes, Event]:
        return {known(event.place.key_hash): event for event in self._select_in("key_hash", hashes, _BY_KEY)}

    def decided_after(self, sequence: int, *, upto: int, limit: int) -> list[Deciding]:
        # Decided events are dense: a page of any events that is long enough holds the next decided ones.
        found: list[Deciding] = []
        kinds = ", ".join(map(str, MAKES_DECISION))
        while sequence < upto and len(found) < limit:
            last = min(upto, sequence + limit)
            page = f"one.sequence > ? AND one.sequence <= ? AND one.kind IN ({kinds})"
            found += self._select(page, sequence, last)
            sequence = last
        return found[:limit]

    def of_kinds(self, kinds: Sequence[int]) -> list[Event]:
        return self._select_in("kind", kinds)

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

    def own_deadlines(self, *, after: int, upto: int) -> list[Deciding]:
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
        return bool(self._connection.execute(sql, (self._id, sequence)))

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
        old_archives.forget(self._connection, self._id, keys=sequences, people=people)
        self._connection.wipe()

    def remove_all(self) -> None:
        run, schema, mark = self._connection.execute, self._sql.schema, self._sql.mark
        self._connection.be_thorough()
        if not run(f"SELECT 1 FROM {schema}campaigns WHERE id = {mark} AND tag = {mark}", (self._id, self._tag)):
            raise CampaignGone("the campaign is no longer there: it was deleted")
        # Whatever is wrong with it: a damaged campaign has to go before its backup is restored.
        some = f"SELECT sequence FROM {schema}events WHERE campaign_id = {mark} ORDER BY sequence LIMIT {{}}"
        while run(some.format(1), (self._id,)):
            sql = (
                f"DELETE FROM {schema}events WHERE campaign_id = {mark} AND sequence IN ({some.format(_ROWS_AT_ONCE)})"
            )
            run(sql, (self._id, self._id))
        for table in ("events", "snapshots", "archives", "archived_keys"):
            run(f"DELETE FROM {schema}{table} WHERE campaign_id = {mark}", (self._id,))
        run(f"DELETE FROM {schema}campaigns WHERE id = {mark}", (self._id,))

    def rest(self) -> None:
        self._connection.rest()

    def close(self) -> None:
        self._connection.close()


def gone(row: CampaignRow) -> CampaignGone:
    return CampaignGone(
        f"campaign {row.name!r} is not the one that was opened: it was deleted, or the database was replaced or "
        "restored since; nothing was changed: open the store again"
    )


def _store(connection: Connection, sql: str, row: Sequence[object]) -> None:
    """One row, or nothing is acknowledged."""
    stored = connection.execute_many(sql, (row,))
    if stored != 1:
        raise stored_less(stored, 1)


def stored_less(stored: int, asked: int) -> StorageError:
    """Return the error of rows that the database did not store."""
    return StorageError(
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
    last: Row | None = None
    for page in pages():
        stored = connection.insert("events", _INSERTED, [(campaign_id, *row) for row in page])
        if stored != len(page):
            raise stored_less(stored, len(page))
        last = page[-1]
    if last is not None:
        _store(connection, sql.set_head, (last.sequence, last.chain, campaign_id))
    return campaign_id


def rows_of(connection: Connection, name: str | None = None) -> list[CampaignRow]:
    """All campaigns by name, or the one of this name."""
    one = "" if name is None else f"WHERE name = {connection.placeholder} "
    sql = f"SELECT id, name, tag, created_at FROM {connection.schema}campaigns {one}ORDER BY name"
    rows = connection.execute(sql, () if name is None else (name,))
    return [CampaignRow(id=row[0], name=row[1], tag=row[2], created_at=row[3]) for row in rows]
