"""Bitcode that a wheel has brought along: it is optimised for this machine, and Numba is not needed."""

from __future__ import annotations

import hashlib
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from doral.compiled.ownership import read_beside

if TYPE_CHECKING:
    from doral.compiled.program import Program

FOLDER = Path(__file__).parent / "prepared"


def prepared_path(program: Program) -> Path:
    """Where it is, if it is there: for these sources, this LLVM and this kind of machine."""
    import llvmlite.binding as llvm

    fits = f"{program.key} {version('llvmlite')} {llvm.get_process_triple()}"
    return FOLDER / f"{program.name}-{hashlib.sha256(fits.encode()).hexdigest()[:24]}.bc"


def prepared_bitcode(program: Program) -> bytes | None:
    """The bitcode; None if there is none, if it is damaged, or if others could write it and not our sources."""
    data = read_beside(prepared_path(program), Path(__file__))
    try:
        return None if data is None else zlib.decompress(data)
    except zlib.error:
        return None


def prepare(program: Program) -> Path:
    """Write it, for a wheel."""
    from doral.compiled.store import lower

    path = prepared_path(program)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(lower(program), 9))
    return path
