"""What is sent to PostgreSQL by COPY is what it gives back."""

from __future__ import annotations

import math
from typing import Any

import psycopg
import pytest

from doral.live.storage.postgres_copy import FORMAT, copied

TEXTS = ["", "plain", 'a"b', "c\\d", "],[", "é☃", "null", "\\x00", "\\N", 'x"],["y', "\\.", "tab\\t", "'", ",", " a "]
CONTROLS = ["a\nb", "a\rb", "a\tb", "\x01", "\\\n", '"\n"']


def rows_of(texts: list[str]) -> list[tuple[Any, ...]]:
    numbers = [0.1, -0.0, 1e300, 5e-324, math.inf, -math.inf, 1.0 / 3.0]
    return [(i - 3, numbers[i % 7], text, text.encode(), None) for i, text in enumerate(texts)]


@pytest.mark.parametrize("texts", [TEXTS, TEXTS + CONTROLS, ["one"]])
def test_rows_come_back(postgres_url: str, texts: list[str]) -> None:
    rows = rows_of(texts)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TEMP TABLE sent (a bigint, b float8, c text, d bytea, e text)")
        with connection.cursor() as cursor:
            with cursor.copy(f"COPY sent FROM STDIN ({FORMAT})") as copy:
                copy.write(copied(rows))
            assert cursor.rowcount == len(rows)
        assert connection.execute("SELECT * FROM sent ORDER BY a").fetchall() == rows
