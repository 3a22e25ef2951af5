"""From an LLVM module to machine code in memory, with llvmlite alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

OPTIMISATION = 2  # 3 takes a tenth longer to compile, and kernels are no faster for it
PROCESS_SYMBOLS = ("numba_", "NRT_", "Py")  # what only Numba or Python could provide


@cache
def _target_machine() -> Any:
    """This machine, with the options that Numba uses: the same bits."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    reloc = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=cpu_features(),
        opt=OPTIMISATION,
        reloc=reloc,
        codemodel="jitdefault",
        jit=True,
    )


def cpu_features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:
        return ""


def cpu_name() -> str:
    return str(llvm.get_host_cpu_name())


def to_bitcode(assembly: str) -> bytes:
    """An LLVM module, from text."""
    module = llvm.parse_assembly(assembly)
    module.triple = llvm.get_process_triple()
    module.verify()
    for function in module.functions:
        if function.is_declaration and function.name.startswith(PROCESS_SYMBOLS):
            raise NotImplementedError(f"not in the subset of kernels: {function.name}")
    bitcode: bytes = module.as_bitcode()
    return bitcode


def to_object(bitcode: bytes) -> bytes:
    """Optimised machine code for this machine."""
    machine = _target_machine()
    module = llvm.parse_bitcode(bitcode)
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


class Loaded:
    """Machine code in memory; it stays as long as this object."""

    def __init__(self, code: bytes) -> None:
        empty = llvm.parse_assembly("")
        empty.triple = llvm.get_process_triple()
        self._engine = llvm.create_mcjit_compiler(empty, _target_machine_for_engine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        found = int(self._engine.get_function_address(name))
        if found == 0:
            raise LookupError(f"the code has no entry {name!r}")
        return found


def _target_machine_for_engine() -> Any:
    """One of its own: an engine owns its target machine."""
    return _target_machine.__wrapped__()
