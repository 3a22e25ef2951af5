"""Parquet files that are written page by page: memory does not grow with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import polars as pl


def write_parquet(file: BinaryIO, pages: Iterable[pl.DataFrame], schema: dict[str, Any], *, group_rows: int) -> None:
    """All pages into a file that is open; OSError where the disk fails."""
    from polars.exceptions import ComputeError
    from polars.io.plugins import register_io_source

    failed: list[BaseException] = []

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        try:
            yield from pages
        except BaseException as error:
            failed.append(error)
            raise

    try:
        register_io_source(source, schema=schema).sink_parquet(file, row_group_size=group_rows)
    except ComputeError as error:
        if failed:  # Polars has made a text of it
            raise failed[0] from None
        if "os error" not in str(error):
            raise
        raise OSError(str(error)) from error
