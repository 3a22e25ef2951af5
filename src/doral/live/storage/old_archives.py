"""Archives, which earlier versions could write: their events come back into the database, once, when it is opened.

An archive held the events 2 to n of a campaign in Parquet files, all columns as they were in the log; the table
`archives` says where each file is, and what the chain is before and after it. When the events are back, nothing needs
the files any more. Their rows stay in the table, so that `forget` erases in them, too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from doral._files import replacing
from doral.live.errors import ArchiveMissing, BrokenLog, StorageError
from doral.live.events.codec import decode
from doral.live.events.event import Forgotten
from doral.live.events.row import COLUMNS, FORGOTTEN, Row, check
from doral.live.storage.connection import Connection
from doral.live.views.files import write_parquet

if TYPE_CHECKING:
    import polars as pl

_PAGE = 5_000  # rows that are read, checked and inserted together
_TEXTS, _BYTES = ("key", "data", "person"), ("available", "key_hash", "chain", "person_hash")
_NUMBERS = (
    "clock", "at", "cost", "value", "price", "probability", "reward", "previous", "actual_cost", "previous_cost",
    "happened", "delay", "weight", "deadline",
)  # fmt: skip
logger = logging.getLogger("doral.live")


class _File(NamedTuple):
    """A row of the table of archives."""

    first: int
    last: int
    path: str
    before: bytes
    after: bytes


def bring_back(connection: Connection) -> None:
    """The events of all archives. A campaign whose files cannot be read is left as it is: opening it says so."""
    schema = connection.schema
    rows = connection.execute(f"SELECT id, name FROM {schema}campaigns WHERE archived > 0 ORDER BY id")
    for campaign_id, name in rows:
        try:
            paths = _bring_back(connection, campaign_id)
        except StorageError as error:
            logger.error("campaign %r: its archived events could not be brought back: %s", name, error)
        else:
            shown = ", ".join(paths)
            logger.warning("campaign %r: its archived events are in the database again; delete %s", name, shown)


def _bring_back(connection: Connection, campaign_id: int) -> list[str]:
    run, schema, mark = connection.execute, connection.schema, connection.placeholder
    where = f"WHERE campaign_id = {mark}"
    connection.begin(campaign_id)
    try:
        files = _files(connection, campaign_id)
        archived = run(f"SELECT archived FROM {schema}campaigns WHERE id = {mark}", (campaign_id,))[0][0]
        if archived:  # another process may have been faster
            salt = run(f"SELECT chain FROM {schema}events {where} AND sequence = 1", (campaign_id,))[0][0]
            following = 2
            for file in files:
                if file.first != following:
                    raise BrokenLog(f"the table of archives was damaged at event {following}; restore a backup")
                for page in _pages(file, salt):
                    connection.insert("events", ("campaign_id", *COLUMNS), [(campaign_id, *row) for row in page])
                following = file.last + 1
            if following != archived + 1:
                raise BrokenLog(f"events up to {archived} are archived, and there are files up to {following - 1}")
            _forget_again(connection, campaign_id)
            run(f"DELETE FROM {schema}archived_keys {where}", (campaign_id,))
            run(f"UPDATE {schema}campaigns SET archived = NULL WHERE id = {mark}", (campaign_id,))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
    return [file.path for file in files]


def _forget_again(connection: Connection, campaign_id: int) -> None:
    """Where forgetting was interrupted, a file still knows what the log says is erased."""
    schema, mark = connection.schema, connection.placeholder
    asked = f"SELECT {', '.join(COLUMNS)} FROM {schema}events WHERE campaign_id = {mark} AND kind = {FORGOTTEN}"
    for event in (decode(Row._make(row)) for row in connection.execute(asked, (campaign_id,))):
        assert isinstance(event, Forgotten)
        for column, sequences in (("key", event.keys), ("person", event.people)):
            sql = f"UPDATE {schema}events SET {column} = NULL WHERE campaign_id = {mark} AND sequence = {mark}"
            if sequences:
                connection.execute_many(sql, [(campaign_id, one) for one in sequences])


def _files(connection: Connection, campaign_id: int) -> list[_File]:
    sql = (
        f"SELECT first, last, path, chain_before, chain_after FROM {connection.schema}archives "
        f"WHERE campaign_id = {connection.placeholder} ORDER BY first"
    )
    return [_File(*row) for row in connection.execute(sql, (campaign_id,))]


def _pages(file: _File, salt: bytes) -> Iterator[list[Row]]:
    """All events of a file, each checked."""
    import polars as pl

    before, following = file.before, file.first
    while following <= file.last:
        try:
            frame = _all_columns(pl.scan_parquet(file.path, glob=False)).slice(following - file.first, _PAGE).collect()
        except FileNotFoundError:
            raise ArchiveMissing(f"{file.path}: is not there: put it back, and open the store again") from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise BrokenLog(f"{file.path}: cannot be read ({error}): put the right file back") from error
        page = list(map(Row._make, frame.rows()))
        if [row.sequence for row in page] != list(range(following, following + len(page))) or not page:
            raise BrokenLog(f"{file.path}: lacks events after {following - 1}: put the right file back")
        check(page, before=before, salt=salt)
        before, following = page[-1].chain or b"", page[-1].sequence + 1
        yield page
    if following != file.last + 1 or before != file.after:
        raise BrokenLog(f"{file.path}: does not end with event {file.last}: put the right file back")


def refuse(connection: Connection, campaign_id: int) -> ArchiveMissing:
    """The error of a campaign whose events could not be brought back."""
    paths = ", ".join(file.path for file in _files(connection, campaign_id))
    return ArchiveMissing(
        f"older events of this campaign are in archives of an earlier version ({paths}), and they could not be read "
        "when the store was opened, or the store is read-only: put the files back, and open the store where it can be "
        "written to"
    )


def forget(connection: Connection, campaign_id: int, *, keys: Sequence[int], people: Sequence[int]) -> None:
    """Erase keys, and who others are, in the files that events came back from.

    A file that is not there is told of once: it may have been deleted, or moved.
    """
    for file in _files(connection, campaign_id):
        keyless, faceless = (
            [one for one in sequences if file.first <= one <= file.last] for sequences in (keys, people)
        )
        if not keyless and not faceless:
            continue
        if not Path(file.path).exists():
            sql = f"DELETE FROM {connection.schema}archives WHERE campaign_id = {{0}} AND first = {{0}}"
            connection.execute(sql.format(connection.placeholder), (campaign_id, file.first))
            raise ArchiveMissing(
                f"{file.path}: is not there. What was to be forgotten is erased in the database, which needs this "
                "archive no more; if the file was moved, it still holds it: delete it. Ask again to go on"
            )
        try:
            _without(Path(file.path), keyless, faceless)
        except OSError as error:
            raise StorageError(
                f"{file.path}: {error.strerror or error}; it is erased in the database, and not yet in this archive, "
                "which nothing needs any more: delete the file, or make it writable, and ask again"
            ) from error


def _without(path: Path, keyless: Sequence[int], faceless: Sequence[int]) -> None:
    """Write the file anew, in one step."""
    import polars as pl

    frame = _all_columns(pl.scan_parquet(path, glob=False))
    for column, sequences in (("key", keyless), ("person", faceless)):
        is_erased = pl.col("sequence").is_in(pl.Series(list(sequences), dtype=pl.Int64).implode())
        frame = frame.with_columns(pl.when(is_erased).then(None).otherwise(pl.col(column)).alias(column))
    whole = frame.collect()
    with replacing(path, is_private=True) as file:
        write_parquet(file, iter([whole]), _schema(), group_rows=_PAGE)


def _all_columns(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Files of an earlier version lack the last ones."""
    import polars as pl

    there = frame.collect_schema().names()
    return frame.select(
        [pl.col(name) if name in there else pl.lit(None, dtype=kind).alias(name) for name, kind in _schema().items()]
    )


def _schema() -> dict[str, Any]:
    import polars as pl

    kinds = {**dict.fromkeys(_TEXTS, pl.String), **dict.fromkeys(_BYTES, pl.Binary)}
    kinds.update(dict.fromkeys(_NUMBERS, pl.Float64))
    return {name: kinds.get(name, pl.Int64) for name in COLUMNS}
