"""Decisions as a file for other tools: Parquet or CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from doral._files import replacing
from doral.errors import InvalidValue
from doral.live.decision import Decision

_PAGE = 20_000


def write_decisions(path: Path, decisions: Iterable[Decision]) -> int:
    """One row per decision; the file is there whole or not at all."""
    import polars as pl

    if path.suffix not in (".parquet", ".csv"):
        raise InvalidValue("path", str(path), "must end in .parquet or .csv")
    schema: dict[str, Any] = {
        "id": pl.String,
        "round": pl.Int64,
        "decided_at": pl.Float64,
        "context": pl.String,
        "available": pl.List(pl.String),
        "arm": pl.String,
        "value": pl.Float64,
        "price": pl.Float64,
        "probability": pl.Float64,
        "reason": pl.String,
        "cost": pl.Float64,
        "actual_cost": pl.Float64,
        "state": pl.String,
        "reward": pl.Float64,
        "answered_at": pl.Float64,
        "delay": pl.Float64,
        "key": pl.String,
    }
    pages = [pl.DataFrame(page, schema=schema, orient="row") for page in _pages(decisions, tuple(schema))]
    frame = pl.concat(pages) if pages else pl.DataFrame(schema=schema)
    with replacing(path) as file:
        if path.suffix == ".csv":
            frame.with_columns(pl.col("available").list.join("|")).write_csv(file)
        else:
            frame.write_parquet(file)
    return frame.height


def _pages(decisions: Iterable[Decision], columns: tuple[str, ...]) -> Iterator[list[tuple[Any, ...]]]:
    remaining = iter(decisions)
    while page := [tuple(getattr(one, column) for column in columns) for one in islice(remaining, _PAGE)]:
        yield page
