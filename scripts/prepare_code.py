"""Compile all programs: for this machine into the user's cache folder, or with `--wheel` into the package."""

from __future__ import annotations

import sys
import time

from doral.compiled.store import PREPARED, is_there, load, prepare
from doral.delays.kernels import DELAYS
from doral.engine import engine
from doral.pacing import PACING
from doral.simulation.world import loop
from doral.simulation.world.logbook import LOGBOOK
from doral.simulation.world.tape import WORLD

PROGRAMS = (WORLD, PACING, DELAYS, LOGBOOK, loop.PROGRAM, engine.PROGRAM)


def prepare_wheel() -> None:
    for old in PREPARED.glob("*.code"):
        old.unlink()
    sizes = [prepare(program).stat().st_size for program in PROGRAMS]
    print(f"machine code of {len(sizes)} programs, {sum(sizes) / 1e6:.1f} MB, is in {PREPARED}")


def prepare_cache() -> None:
    missing = [program for program in PROGRAMS if not is_there(program)]
    if not missing:
        print("doral's machine code for this machine is ready")
        return
    print("doral compiles its machine code for this machine, once: about 20 s ...", flush=True)
    start = time.perf_counter()
    for program in missing:
        load(program)
    print(f"... ready after {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    prepare_wheel() if "--wheel" in sys.argv[1:] else prepare_cache()
