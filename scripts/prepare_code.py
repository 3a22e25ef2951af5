"""Write the bitcode that a wheel carries, so that whoever installs it waits for no compiler; see `make wheel`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from doral.compiled.prepared import FOLDER, prepare
from doral.engine.blueprint import Blueprint
from doral.engine.compose import first_state
from doral.engine.entries import live_entries, program_of
from doral.engine.presets import POLICY_NAMES, policy

from doral import Arm, Problem
from doral._delay_kernels import DELAYS
from doral.compiled import Program
from doral.engine.options import PolicyOptions
from doral.pacing import PACING
from doral.simulation.world.logbook import LOGBOOK
from doral.simulation.world.loop import simulation_program
from doral.simulation.world.tape import WORLD

ANY = PolicyOptions(name="any", half_life=1.0)  # no preset: it runs on the composition that holds all pieces


def programs() -> Iterator[Program]:
    """Every preset, live and simulated, and what all simulations need."""
    yield from (WORLD, PACING, DELAYS, LOGBOOK)
    problem = Problem(arms=[Arm("arm", features=[1.0])], contexts=["context"], budget=1, horizon=4, deadline=1)
    for options in (ANY, *(policy(name) for name in POLICY_NAMES)):
        truth = np.zeros((1, 1, 1))
        state = first_state(Blueprint(options=options, problem=problem, seed=0, oracle=truth, true_values=truth))
        yield simulation_program(state)
        if "oracle" not in (options.return_probability, options.sampling):  # which only a simulation knows
            yield program_of("live", state, live_entries)


def main() -> None:
    for old in FOLDER.glob("*.bc"):
        old.unlink()
    size = 0
    for program in programs():
        path = prepare(program)
        size += path.stat().st_size
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)
    print(f"{size / 1e6:.1f} MB in {FOLDER}")


if __name__ == "__main__":
    main()
