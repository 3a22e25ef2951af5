"""COPY in the middle of a message of several statements: the driver has no words for it, libpq has.

So whoever has the campaign's lock waits for the server twice instead of five times.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeAlias

import psycopg
from psycopg.pq import ExecStatus
from psycopg.waiting import Ready, Wait

_AT_ONCE = 2**16  # bytes: libpq takes no more than it has room for
_BYTEA, _FLOAT = 17, 701
_READS: dict[int, Callable[[bytes], Any]] = {  # by the server's number of a type
    **dict.fromkeys((20, 21, 23), int),
    _FLOAT: float,
    _BYTEA: lambda text: bytes.fromhex(text[2:].decode()),
}
Talk: TypeAlias = Generator[Wait, Ready, list[Any]]


def asking(connection: Any, message: str) -> Talk:
    """Results of a message of several statements; for `Connection.wait`."""
    connection.send_query(message.encode())
    yield from _flushed(connection)
    return (yield from _results(connection))


def copying(connection: Any, message: str, data: bytes) -> Talk:
    """Results of a message whose first statement copies this, as far as the server got; for `Connection.wait`."""
    connection.send_query(message.encode())
    yield from _flushed(connection)
    found = yield from _results(connection)
    if found and found[-1].status == ExecStatus.COPY_IN:
        for start in range(0, len(data), _AT_ONCE):
            while connection.put_copy_data(data[start : start + _AT_ONCE]) == 0:
                yield Wait.W
        while connection.put_copy_end() == 0:
            yield Wait.W
        yield from _flushed(connection)
        found = yield from _results(connection)
    return found


def _flushed(connection: Any) -> Talk:
    while connection.flush() != 0:
        if (yield Wait.RW) & Ready.R:
            connection.consume_input()
    return []


def _results(connection: Any) -> Talk:
    found: list[Any] = []
    while True:
        while connection.is_busy():
            if (yield Wait.R):
                connection.consume_input()
        result = connection.get_result()
        if result is None:
            return found
        found.append(result)
        if result.status == ExecStatus.COPY_IN:
            return found


def rows_of(results: Sequence[Any]) -> list[tuple[Any, ...]]:
    """What the last statement gave, of columns of the types that a log has; the error, where one of them failed."""
    failed = next((one for one in results if one.status == ExecStatus.FATAL_ERROR), None)
    if failed is not None:
        raise psycopg.errors.error_from_result(failed)
    last = results[-1]
    reads = [_READS.get(last.ftype(column), bytes.decode) for column in range(last.nfields)]
    return [
        tuple(
            None if (value := last.get_value(row, column)) is None else read(value) for column, read in enumerate(reads)
        )
        for row in range(last.ntuples)
    ]


def copied(results: Sequence[Any]) -> tuple[int, psycopg.Error | None]:
    """How many rows were copied, and what failed after that, or instead of it."""
    failed = next((one for one in results if one.status == ExecStatus.FATAL_ERROR), None)
    stored = 0 if not results or results[0] is failed else int(results[0].command_tuples or 0)
    if failed is not None:
        return stored, psycopg.errors.error_from_result(failed)
    if not results or results[-1].command_status != b"COMMIT":
        return stored, psycopg.OperationalError("the server has not said that it has committed")
    return stored, None
