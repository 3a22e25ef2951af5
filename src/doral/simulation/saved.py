"""Results as files: one NumPy archive, plain arrays and JSON, equal to the bit when read back.

Decisions (`keep_decisions=True`) are not kept: they are large, and the same seed plays them again.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from doral import _files
from doral.engine.view import Certificate
from doral.errors import InvalidValue
from doral.simulation.outcome import METRICS, Outcome
from doral.simulation.result import SimulationResult

FORMAT = 3
_PLAIN_FIELDS = (
    "scenario",
    "policy",
    "run",
    "clairvoyant",
    "clairvoyant_error",
    "rewards",
    "expected",
    "decisions",
    "spend",
    "race_rounds",
    "race_spend",
    "race_ended",
    "race_capped",
    "accepted",
    "cutoff",
    "explored",
    "explored_loss",
)


def save(result: SimulationResult, path: Path | str) -> None:
    """Write a result; the file is there whole or not at all."""
    rows = [
        {
            **{field: getattr(one, field) for field in _PLAIN_FIELDS},
            "certificates": [asdict(certificate) for certificate in one.certificates],
        }
        for one in result.outcomes
    ]
    header = {"format": FORMAT, "seed": result.seed, "metrics": METRICS, "outcomes": rows}
    with _files.replacing(path) as file:
        np.savez_compressed(
            file,
            # Python writes the shortest decimals that read back as the same float.
            header=np.frombuffer(json.dumps(header).encode(), dtype=np.uint8),
            lengths=np.array([one.rounds.size for one in result.outcomes], dtype=np.int64),
            rounds=np.concatenate([one.rounds for one in result.outcomes]),
            curves=np.concatenate([one.curve for one in result.outcomes]),
            courses=np.concatenate([one.course for one in result.outcomes]),
        )


def load(path: Path | str) -> SimulationResult:
    """Read a result that `save` wrote."""
    try:
        # Opened here: NumPy would leave a file open that it cannot read.
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            header = json.loads(archive["header"].tobytes())
            if header["format"] != FORMAT or tuple(header["metrics"]) != METRICS:
                raise InvalidValue("saved result", str(path), "was written by another version of doral; simulate again")
            ends = np.cumsum(archive["lengths"])[:-1]
            columns = [np.split(archive[name], ends) for name in ("rounds", "curves", "courses")]
            outcomes = tuple(
                Outcome(**_plain(row), rounds=rounds, curve=curve, course=course)
                for row, rounds, curve, course in zip(header["outcomes"], *columns, strict=True)
            )
            return SimulationResult(outcomes=outcomes, seed=header["seed"])
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue("saved result", str(path), f"cannot be read ({error}); save it again") from error


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where an outcome has tuples, and mappings where it has certificates."""
    return {
        **row,
        "rewards": tuple(row["rewards"]),
        "accepted": tuple(row["accepted"]),
        "certificates": tuple(Certificate(**one) for one in row["certificates"]),
    }
