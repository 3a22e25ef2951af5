"""What a decision would bring in a world, and when: drawn by the simulator's kernels, in a program of their own."""

from __future__ import annotations

from doral.compiled import Block, Entry, Program
from doral.simulation.world.tape import World, draw_delay, draw_reward, example


def _entries() -> dict[str, Entry]:
    world, _ = example()
    return {
        "reward": Entry(draw_reward, (world, int, int, int, float), float),
        "delay": Entry(draw_delay, (world, int, int, float, float), float),
    }


_DRAWS = Program(name="tests-draws", entries=_entries)


def reward_in(world: Block[World], round_: int, context: int, arm: int, noise: float) -> float:
    return float(_DRAWS["reward"](world, round_, context, arm, noise))


def delay_in(world: Block[World], context: int, arm: int, reward: float, uniform: float) -> float:
    return float(_DRAWS["delay"](world, context, arm, reward, uniform))
