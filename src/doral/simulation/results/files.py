"""Results as files: one NumPy archive, plain arrays and JSON, equal to the bit when read back."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doral import _files
from doral.engine.certificates import Certificate
from doral.errors import InvalidValue
from doral.simulation.results.outcome import COURSE_COLUMNS, METRICS, ArrivalLog, DecisionLog, Outcome
from doral.simulation.results.result import SimulationResult

FORMAT = 5
_KIND = "doral simulation result"
_ARRAYS = ("rounds", "curve", "course", "certificates", "log", "arrivals")
_PLAIN_FIELDS = tuple(field.name for field in fields(Outcome) if field.name not in _ARRAYS)
_OF_DECISIONS, _OF_ARRIVALS = (
    tuple(field.name for field in fields(kind) if field.name not in ("person", "features", "contexts", "arms"))
    for kind in (DecisionLog, ArrivalLog)
)
_Arrays = dict[str, NDArray[Any]]


def save(result: SimulationResult, path: Path | str) -> None:
    """Write a result; the file is there whole or not at all."""
    target = _checked("path", path)
    if target.is_dir():
        raise InvalidValue("path", str(path), "is a folder: add the name of a file")
    if not target.parent.is_dir():
        raise InvalidValue("path", str(path), f"its folder {str(target.parent)!r} does not exist: make it first")
    arrays: _Arrays = {}
    rows = []
    for i, one in enumerate(result.outcomes):
        row = {field: getattr(one, field) for field in _PLAIN_FIELDS}
        row["certificates"] = [asdict(certificate) for certificate in one.certificates]
        if one.log is not None:
            row["log"] = _packed(one.log, f"log-{i}", _OF_DECISIONS, arrays)
        if one.arrivals is not None:
            names = {"contexts": one.arrivals.contexts, "arms": one.arrivals.arms}
            row["arrivals"] = {**_packed(one.arrivals, f"arrivals-{i}", _OF_ARRIVALS, arrays), **names}
        rows.append(row)
    header = {"kind": _KIND, "format": FORMAT, "seed": result.seed, "metrics": METRICS, "outcomes": rows}
    with _files.replacing(target) as file:
        np.savez_compressed(
            file,
            # Python writes the shortest decimals that read back as the same float.
            header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
            lengths=np.array([one.rounds.size for one in result.outcomes], dtype=np.int64),
            rounds=np.concatenate([one.rounds for one in result.outcomes]),
            curves=np.concatenate([one.curve for one in result.outcomes]),
            courses=np.concatenate([one.course for one in result.outcomes]),
            **arrays,  # type: ignore[arg-type]
        )


def _packed(log: DecisionLog | ArrivalLog, name: str, columns: tuple[str, ...], arrays: _Arrays) -> dict[str, Any]:
    """What JSON says of a log whose columns are put among the arrays."""
    kept = {column: getattr(log, column) for column in columns}
    if log.person is not None:
        kept["person"] = log.person
        kept |= {f"feature-{k}": values for k, values in enumerate(log.features.values())}
    arrays.update({f"{name}-{column}": values for column, values in kept.items()})
    return {"has_person": log.person is not None, "features": list(log.features)}


def load(path: str | Path) -> SimulationResult:
    """Read what `SimulationResult.save` wrote, equal to the bit: `doral.load(path) == result`.

    Only such files are taken; an exported campaign is read with `doral.read_log`, a campaign itself is opened with
    `doral.open`. Files hold numbers and text, and nothing that is run when they are read.

    Args:
        path: The file.
    """
    place = _checked("path", path)
    if place.is_dir():
        raise InvalidValue("path", str(path), "is a folder: name a file that result.save(path) wrote")
    if not place.exists():
        raise InvalidValue("path", str(path), "does not exist: name a file that result.save(path) wrote")
    try:
        if not zipfile.is_zipfile(place):
            remedy = "cannot be read: result.save(path) did not write it, or not all"
            raise InvalidValue("saved result", str(path), remedy)
        # Opened here: NumPy would leave a file open that it cannot read.
        with place.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "header" not in archive:
                raise InvalidValue("saved result", str(path), "cannot be read: it holds something else")
            return _read(json.loads(archive["header"].tobytes()), archive, path)
    except InvalidValue:
        raise
    except OSError as error:
        raise InvalidValue("path", str(path), f"cannot be read: {error.strerror or error}") from error
    except Exception as error:  # broken bytes make zipfile, NumPy and JSON raise a dozen kinds of errors
        raise InvalidValue("saved result", str(path), f"cannot be read ({error}); save it again") from error


def _checked(field: str, path: object) -> Path:
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InvalidValue(field, path, "must be the name of a file")
    return Path(path)


def _read(header: Any, archive: Mapping[str, NDArray[Any]], path: object) -> SimulationResult:
    if not isinstance(header, dict) or "format" not in header:
        raise InvalidValue("saved result", str(path), "cannot be read: it holds something else")
    if header.get("kind", _KIND) != _KIND:
        raise InvalidValue("saved result", str(path), f"cannot be read: it holds a {header['kind']}")
    if header["format"] != FORMAT or tuple(header["metrics"]) != METRICS:
        remedy = f"was written by another version of doral (format {header['format']}, not {FORMAT}); simulate again"
        raise InvalidValue("saved result", str(path), remedy)
    lengths = archive["lengths"]
    kept = [archive[name] for name in ("rounds", "curves", "courses")]
    if (lengths < 0).any() or {one.shape for one in kept} != _shapes(int(lengths.sum())):
        raise InvalidValue("saved result", str(path), "cannot be read: its columns have different lengths")
    columns = [np.split(one, np.cumsum(lengths)[:-1]) for one in kept]
    outcomes = tuple(
        Outcome(**_plain(row, i, archive), rounds=rounds, curve=curve, course=course)
        for i, (row, rounds, curve, course) in enumerate(zip(header["outcomes"], *columns, strict=True))
    )
    return SimulationResult(outcomes=outcomes, seed=header["seed"])


def _shapes(n: int) -> set[tuple[int, ...]]:
    """Of rounds, curves and courses with so many checkpoints."""
    return {(n,), (n, len(METRICS)), (n, len(COURSE_COLUMNS))}


def _plain(row: dict[str, Any], i: int, archive: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """JSON has lists where an outcome has tuples, and mappings where it has certificates and logs."""
    log, arrivals = row.get("log"), row.get("arrivals")
    return {
        **row,
        "rewards": tuple(row["rewards"]),
        "accepted": tuple(row["accepted"]),
        "certificates": tuple(Certificate(**one) for one in row["certificates"]),
        "log": None if log is None else DecisionLog(**_unpacked(log, f"log-{i}", _OF_DECISIONS, archive)),
        "arrivals": None
        if arrivals is None
        else ArrivalLog(
            contexts=tuple(arrivals["contexts"]),
            arms=tuple(arrivals["arms"]),
            **_unpacked(arrivals, f"arrivals-{i}", _OF_ARRIVALS, archive),
        ),
    }


def _unpacked(
    said: Mapping[str, Any], name: str, columns: tuple[str, ...], archive: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    features = {feature: archive[f"{name}-feature-{k}"] for k, feature in enumerate(said["features"])}
    person = {"person": archive[f"{name}-person"], "features": features} if said["has_person"] else {}
    return {**{column: archive[f"{name}-{column}"] for column in columns}, **person}
