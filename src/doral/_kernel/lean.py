"""From kernels to one LLVM module, with as little of Numba as that takes.

What Numba does for every function by itself is left out: checks for exceptions after each call (kernels raise nothing),
optimisation and machine code of every function on its own, wrappers for Python objects. All functions are written into
one module, and a call is an ordinary call. Private parts of Numba are used here, in `context` and in `lowering`:
`self_test` sees to it that a Numba that works differently is noticed.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, compiler, types
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NopythonTypeInference, PreLowerStripPhis
from numba.core.types.functions import BaseFunction
from numba.core.untyped_passes import (
    ExtractByteCode,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)
from numba.misc.llvm_pass_timings import PassTimingsCollection

from doral._kernel.context import LeanContext
from doral._kernel.in_place import InPlace
from doral._kernel.kernels import Kernel
from doral._kernel.lowering import LeanLowering, describe_pointers
from doral._kernel.plain import OPTIONS, dispatchers_from
from doral._kernel.pointers import SCALARS, WORD, TreePointer
from doral._kernel.trees import TreeLayout


class Unit:
    """One program on its way: all functions go into one module. It takes the place of Numba's code libraries."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.context = copy.copy(cpu_target.target_context)
        self.context.__class__ = LeanContext
        self.context.unit = self
        self.context.ours, self.context.sizes, self.context.numbers = set(), {}, itertools.count()
        self.codegen = self.context.codegen()
        self.module = self.codegen._create_empty_module(name)
        self.recorded_timings = PassTimingsCollection(name)
        self.foreign: list[Any] = []  # what Numba compiled for itself
        self._reload_init: set[Any] = set()
        self.kinds: dict[Any, str] = {}  # of functions
        self._dispatchers: dict[Kernel, Any] = {}

    def create_ir_module(self, name: str) -> Any:
        return self.module

    def add_ir_module(self, module: Any) -> None:
        """It is ours already."""

    def add_linking_library(self, library: Any) -> None:
        if library is not self and library not in self.foreign:
            self.foreign.append(library)

    def dispatcher_of(self, kernel: Kernel) -> Any:
        if kernel not in self._dispatchers:
            self.kinds[kernel.function] = kernel.kind
            self._dispatchers[kernel] = LeanDispatcher(kernel, self)
        return self._dispatchers[kernel]


class _Target:
    """What a dispatcher of Numba wants to know of its target."""

    options = cpu_target.options

    def __init__(self, unit: Unit) -> None:
        self.typing_context, self.target_context = cpu_target.typing_context, unit.context


class LeanDispatcher(Dispatcher):
    """Compiles a kernel into the module of a unit, once per types of arguments."""

    def __init__(self, kernel: Kernel, unit: Unit) -> None:
        self.targetdescr = _Target(unit)
        self.kernel = kernel
        options = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **OPTIONS}
        super().__init__(kernel.function, targetoptions=options, pipeline_class=LeanCompiler)

    def add_overload(self, compiled: Any) -> None:
        self.overloads[tuple(compiled.signature.args)] = compiled


_found_calls: dict[Any, Any] = {}
_find_call = BaseFunction.get_call_type
_process_fully = PostProcessor.run


def _remembered_call(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    """The types of a call: Numba asks for the same few thousands of times."""
    key = function, arguments, tuple(keywords.items())
    if key not in _found_calls:
        _found_calls[key] = _find_call(function, context, arguments, keywords)
    return _found_calls[key]


@contextmanager
def in_a_hurry(unit: Unit) -> Iterator[None]:
    """Meanwhile, Numba does less for our functions. Hold its lock."""

    def process(processor: Any, *arguments: Any, **keywords: Any) -> None:
        """After every pass; without the lifetimes of variables, because nothing is ever freed."""
        if processor.func_ir.func_id.func not in unit.kinds:
            _process_fully(processor, *arguments, **keywords)
            return
        processor.func_ir.blocks = canonicalize_cfg(processor.func_ir.blocks)
        processor.func_ir.generator_info = None

    BaseFunction.get_call_type = _remembered_call  # type: ignore[method-assign, assignment]
    PostProcessor.run = process
    try:
        yield
    finally:
        BaseFunction.get_call_type = _find_call  # type: ignore[method-assign]
        PostProcessor.run = _process_fully


PASSES = (
    ExtractByteCode,
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    InPlace,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    LeanLowering,
)


class LeanCompiler(compiler.CompilerBase):
    """Only the passes that kernels need, one after another."""

    def compile_extra(self, function: Any) -> Any:
        state = self.state
        state.func_id = FunctionIdentity.from_function(function)
        state.lifted, state.lifted_from = (), None
        with ConfigStack().enter(state.flags.copy()):
            for one in PASSES:
                one().run_pass(state)
        state.pipeline = None
        return state.cr


def argument_type(kind: Any) -> Any:
    """The Numba type of an argument of an entry."""
    return TreePointer(kind) if isinstance(kind, TreeLayout) else SCALARS[kind]


class Lowered(NamedTuple):
    """The LLVM module of a program, and modules that it needs: functions that Numba has compiled for itself."""

    assembly: str
    foreign: list[bytes]


def lower_program(name: str, entries: Mapping[str, tuple[Kernel, tuple[Any, ...]]]) -> Lowered:
    """Entries by name: their kernels, and layouts or names of scalars."""
    with global_compiler_lock:
        cpu_target.target_context.refresh()
        unit = Unit(name)
        with in_a_hurry(unit), dispatchers_from(unit.dispatcher_of):
            for entry, (kernel, kinds) in entries.items():
                _add_entry(unit, entry, kernel, tuple(argument_type(kind) for kind in kinds))
        foreign = [library._get_module_for_linking().as_bitcode() for library in unit.foreign]
    return Lowered(cgutils.normalize_ir_text(str(unit.module)), foreign)


def _add_entry(unit: Unit, entry: str, kernel: Kernel, kinds: tuple[Any, ...]) -> None:
    """A function with the convention of C around a kernel."""
    dispatcher = unit.dispatcher_of(kernel)
    dispatcher.compile(kinds)
    description = dispatcher.overloads[kinds].fndesc
    context = unit.context
    result = description.restype
    kind = ir.VoidType() if result is types.none else context.get_value_type(result)
    if result is types.boolean:
        kind = WORD
    taken = [WORD if one is types.boolean else context.get_value_type(one) for one in kinds]
    function = ir.Function(unit.module, ir.FunctionType(kind, taken), entry)
    function.attributes.add("nounwind")
    describe_pointers(context, function, kinds)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = [
        builder.trunc(value, ir.IntType(1)) if one is types.boolean else value
        for value, one in zip(function.args, kinds, strict=True)
    ]
    callee = context.declare_function(unit.module, description)
    returned = builder.call(callee, context.get_arg_packer(kinds).as_arguments(builder, arguments))
    if result is types.none:
        builder.ret_void()
    elif result is types.boolean:
        builder.ret(builder.zext(returned, WORD))
    elif result in (types.int64, types.uint64, types.float64):
        builder.ret(returned)
    else:
        raise NotImplementedError(f"entry {entry} returns {result}, not a number")
