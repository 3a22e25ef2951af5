"""What workers receive, and the versions that they must have to give the same numbers."""

from __future__ import annotations

import hashlib
import math
import pickle
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np

from doral._version import VERSION
from doral.compiled.key import modules_digest
from doral.errors import InvalidValue

REMEDY = "install the same on both sides, on processors of one kind"
_LIBRARIES = ("numpy", "llvmlite", "scipy", "polars")


@cache
def versions() -> dict[str, str]:
    """Of ourselves, of all our sources, of Python, of the libraries that compute, and of what they compute with.

    Logarithms and powers are the C library's and NumPy's: another one may round the last bit otherwise, and so may the
    same on an older processor. Products of matrices are added up in one order (`simulation.sums`).
    """
    return {
        "doral": VERSION,
        "sources of doral": modules_digest("doral.simulation.api")[:16],
        "Python": platform.python_version(),
        "processor": platform.machine(),
        "C library": " ".join(platform.libc_ver()).strip() or platform.system(),
        "last bits of exp, log and power": _last_bits(),
        **{name: version(name) for name in _LIBRARIES},
    }


def _last_bits() -> str:
    """A digest of some thousand values, by NumPy and by the C library: both have several ways, by processor."""
    x = np.linspace(0.01, 30.0, 4_001)
    by_numpy = (np.exp(-x), np.log(x), np.log1p(x), np.expm1(-x), np.power(x, -1.7))
    by_library = [[math.exp(-one), math.log(one), math.pow(one, -1.7), math.lgamma(one)] for one in x.tolist()]
    return hashlib.sha256(np.array(by_numpy).tobytes() + np.array(by_library).tobytes()).hexdigest()[:8]


def difference(theirs: Mapping[str, str], ours: Mapping[str, str]) -> str:
    """What differs, both sides named; nothing where all is the same.

    >>> difference({"numpy": "2.1.0", "doral": "1"}, {"numpy": "2.2.0", "doral": "1"})
    'numpy 2.1.0 there, 2.2.0 here'
    """
    names = [name for name in ours if theirs.get(name) != ours[name]]
    return "; ".join(f"{name} {theirs.get(name, 'missing')} there, {ours[name]} here" for name in names)


Play = Callable[[Any, Any], Any]  # of what is shared, and one piece of work


@dataclass(frozen=True)
class Packed:
    """Bytes, with the versions that a worker must have."""

    versions: dict[str, str]
    content: bytes


def pack(play: Play, shared: object) -> Packed:
    """Classes of a program itself (`__main__`) travel whole, others by the name of their module."""
    return Packed(versions(), pack_pieces((play, shared)))


def pack_pieces(pieces: object) -> bytes:
    """In bytes: a task that cannot unpack them tells so; an engine that cannot may lose its worker."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(pieces))
    except Exception as error:  # a foreign object may raise anything
        remedy = f"cannot be sent to other processes ({error}): keep files, locks and connections out of it"
        raise InvalidValue("policy or scenario", pieces, remedy) from error


def work(packed: Packed, pieces: bytes) -> bytes:
    """One task, where it is computed. What it found is one string of bytes: engines send every array by itself."""
    differs = difference(versions(), packed.versions)
    if differs:
        raise InvalidValue("worker", _place(), f"{differs}: numbers would differ; {REMEDY}")
    play, shared = _unpacked(packed.content)
    try:
        found = [play(shared, piece) for piece in _loaded(pieces)]
    except SystemExit as error:  # it would end the worker, and the next one, without a reason
        remedy = "a policy or law ends the program, which would end the worker: raise an error instead"
        raise InvalidValue("SystemExit", error.code, remedy) from error
    return pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL)


@lru_cache(maxsize=4)  # a worker that serves several experiments in turns unpacks each once
def _unpacked(content: bytes) -> tuple[Play, Any]:
    play, shared = _loaded(content)
    return play, shared


def _loaded(content: bytes) -> Any:
    try:
        return pickle.loads(content)
    except (ImportError, AttributeError) as error:
        remedy = (
            f"worker {_place()} cannot read it ({error}): install the module that holds the policy or law on the "
            "workers, or write the class into the program that is run"
        )
        raise InvalidValue("policy or law", getattr(error, "name", None) or "of this program", remedy) from error


def _place() -> str:
    import os
    import socket

    return f"{socket.gethostname()}, process {os.getpid()}"
