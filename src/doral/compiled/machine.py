"""From LLVM's assembly language to machine code in memory, with llvmlite alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import llvmlite.binding as llvm

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
