"""From LLVM's assembly language to machine code in memory, with llvmlite alone; and a self-test of it."""

from __future__ import annotations

import ctypes
import math
from functools import cache
from typing import Any, NamedTuple, cast

import llvmlite.binding as llvm
import numpy as np

from doral.compiled.kernels import Kernel, kernel, rare, shared
from doral.trees import INT, Block, layout_of, memory_class

OPTIMISATION = 2  # 3 takes a tenth longer to compile, and kernels are no faster for it


class Target(NamedTuple):
    """A kind of processor."""

    cpu: str
    features: str = ""


def _host_features() -> Any:
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:
        return {}


TRIPLE = str(llvm.get_process_triple())
HOST = Target(str(llvm.get_host_cpu_name()), _host_features().flatten() if _host_features() else "")
# What a wheel is made for, and which features this takes.
_IS_X86 = TRIPLE.startswith("x86_64")
BASELINE = Target("x86-64-v3" if _IS_X86 else "generic")
_NEEDED = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe") if _IS_X86 else ()


def runs_baseline() -> bool:
    """Whether code for the baseline runs on this processor."""
    found = _host_features()
    return all(found.get(name, False) for name in _NEEDED)


def _target_machine(target: Target) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=OPTIMISATION,
        reloc="static" if _IS_X86 else "default",
        codemodel="jitdefault",
        jit=True,
    )


def to_object(assembly: str, target: Target) -> bytes:
    """Return optimised machine code. No fast-math, and nothing is fused: every processor gives the same bits."""
    machine = _target_machine(target)
    module = llvm.parse_assembly(assembly)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


class Loaded:
    """Machine code in memory; it stays as long as this object."""

    def __init__(self, code: bytes) -> None:
        empty = llvm.parse_assembly("")
        empty.triple = TRIPLE
        self._engine = llvm.create_mcjit_compiler(empty, _target_machine(HOST))  # which owns the target machine
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        found = int(self._engine.get_function_address(name))
        if found == 0:
            raise LookupError(f"the code has no entry {name!r}")
        return found


class _Part(NamedTuple):
    table: Any
    limit: int


class _Tree(NamedTuple):
    now: Any
    part: _Part
    scale: float
    is_on: bool
    seed: np.uint64


class _Pair(NamedTuple):
    low: float
    high: float


@rare
def _count(tree: _Tree, value: float) -> None:
    now = tree.now[0]
    now.total += value
    now.count += int(value)
    now.small = now.count


@shared
def _scaled(tree: _Tree, value: float) -> float:
    return tree.scale * value if tree.is_on else 0.0


@kernel
def _bounds(table: Any, row: int) -> _Pair:
    low, high = math.inf, -math.inf
    for column in range(table.shape[1]):
        low, high = min(low, table[row, column]), max(high, table[row, column])
    return _Pair(low, high)


@kernel
def _walk(tree: _Tree, start: int) -> float:
    spread = 0.0
    for row in range(start, tree.part.table.shape[0]):
        bounds = _bounds(tree.part.table, row)
        spread += bounds.high - bounds.low
        _count(tree, _scaled(tree, bounds.high))
    return spread + tree.part.limit + (tree.seed >> np.uint64(1))


@cache
def check_once() -> None:
    """RuntimeError unless a program gives what it must."""
    from doral.compiled.translate import translate

    table = np.array([[9.0, 9.0, 9.0], [1.5, -2.0, 4.0], [8.0, 0.5, 3.0]])
    tree = _Tree(
        np.zeros(1, dtype=[("total", "f8"), ("count", "i8"), ("small", "i4")]),
        _Part(table, 7),
        0.5,
        True,
        np.uint64(2**63 + 4),
    )
    layout = layout_of(tree)
    code = Loaded(to_object(translate({"walk": (cast(Kernel, _walk), (layout, INT), float)}), HOST))
    walk = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.POINTER(memory_class(layout)), ctypes.c_int64)(code.address("walk"))
    found = walk(Block(tree), 1), tree.now[0].item()
    if found != (6.0 + 7.5 + 7.0 + float(2**62 + 2), (6.0, 6, 6)):
        raise RuntimeError(f"the self-test of the compile layer gave {found}")
