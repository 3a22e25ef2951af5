"""Files that were fetched: how many decisions they hold, and what is said when they cannot be written."""

from __future__ import annotations

import csv
from pathlib import Path

from doral.errors import shown
from doral.live.errors import StorageError


def count_rows(path: str, kind: str) -> int:
    """How many decisions are in the file; StorageError where it is not whole."""
    if kind == "csv":
        with Path(path).open(encoding="utf-8", newline="") as file:
            return max(0, sum(1 for _ in csv.reader(file)) - 1)
    import polars as pl

    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        raise StorageError(f"what the service has sent is no whole Parquet file: {error}") from None


def refused(path: Path, error: OSError) -> StorageError:
    remedy = "nothing was written: does its folder exist, has it space, and may it be written to?"
    return StorageError(f"path = {shown(str(path))}: {error.strerror or error}; {remedy}")
