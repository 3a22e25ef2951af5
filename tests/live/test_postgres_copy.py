"""What is sent to PostgreSQL by COPY is what it gives back."""

from __future__ import annotations

import math
from typing import Any

import psycopg
import pytest

import doral
from doral.live.errors import StorageError
from doral.live.events import COLUMNS
from doral.live.storage.postgres import SCHEMA
from doral.live.storage.postgres_copy import Packed, types_of
from tests.live.test_postgres_pool import pool_of

TEXTS = ["", "plain", 'a"b', "c\\d", "],[", "é☃", "null", "\\x00", "\\N", 'x"],["y', "\\.", "tab\\t", "'", ",", " a "]
CONTROLS = ["a\nb", "a\rb", "a\tb", "\x01", "\\\n", '"\n"']
NAMES = ("sequence", "clock", "key", "chain", "data", "kind", "arm")


def rows_of(texts: list[str]) -> list[tuple[Any, ...]]:
    numbers = [0.1, -0.0, 1e300, 5e-324, math.inf, -math.inf, 1.0 / 3.0]
    return [
        (2**62 - i, numbers[i % 7], text, text.encode(), None, -(2**15) + i, 2**31 - 1 - i)
        for i, text in enumerate(texts)
    ]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS + CONTROLS, ["one"]])
@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize("holes", [(), ("sequence", "chain"), ("clock",), ("arm",), NAMES])
def test_rows_come_back(postgres_url: str, texts: list[str], is_binary: bool, holes: tuple[str, ...]) -> None:
    rows = rows_of(texts)
    table = ", ".join(f"{name} {type_}" for name, type_ in zip(NAMES, types_of(NAMES), strict=True))
    with psycopg.connect(postgres_url) as connection:
        connection.execute(f"CREATE TEMP TABLE sent ({table})")
        with connection.cursor() as cursor:
            columns = list(zip(*rows, strict=True))
            packed = Packed("sent", NAMES, columns, holes)
            with cursor.copy(packed.statement) as copy:
                copy.write(packed.filled([columns[NAMES.index(name)] for name in holes]))
            assert cursor.rowcount == len(rows)
        found = connection.execute("SELECT * FROM sent ORDER BY sequence DESC", binary=is_binary).fetchall()
        assert found == rows
        assert [math.copysign(1.0, row[1]) for row in found] == [math.copysign(1.0, row[1]) for row in rows]


@pytest.mark.parametrize(
    ("name", "value"),
    [("kind", 2**15), ("arm", -(2**31) - 1), ("sequence", 2**63), ("reason", 1.5), ("key", b"x"), ("clock", "x")],
)
def test_what_does_not_fit_a_column_is_refused(postgres_url: str, name: str, value: object) -> None:
    """The driver would cut numbers off, and store what is left."""
    with doral.open(postgres_url) as store:
        connection = pool_of(store).take()
        row = {"campaign_id": 1, "sequence": 1, "kind": 2, "clock": 0.0, "at": 0.0, "writer": 1, name: value}
        connection.begin(1)
        with pytest.raises(StorageError, match="does not fit its column|integer out of range"):
            connection.insert("events", tuple(row), [tuple(row.values())] * 9)
        connection.rollback()
        assert connection.execute(f"SELECT count(*) FROM {SCHEMA}.events") == [(0,)]
        connection.close()


def test_types_are_those_of_the_table(postgres_url: str) -> None:
    with doral.open(postgres_url):
        pass
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "SELECT attname, typname FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid "
            "WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (f"{SCHEMA}.events",),
        ).fetchall()
    columns = ("campaign_id", *COLUMNS)
    assert dict(found) == dict(zip(columns, types_of(columns), strict=True))
