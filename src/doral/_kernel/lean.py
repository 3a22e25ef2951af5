"""From kernels to one LLVM module, with as little of Numba as that takes. Private parts of Numba are used here only.

What Numba does for every function by itself is left out: checks for exceptions after each call (kernels raise nothing),
optimisation and machine code of every function on its own, wrappers for Python objects. All functions are written into
one module, and a call is an ordinary call: `self_test` sees to it that a Numba that works differently is noticed.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import callconv, cgutils, compiler, cpu, imputils, lowering, types
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NopythonTypeInference, PreLowerStripPhis
from numba.core.types.functions import BaseFunction
from numba.core.typing import signature
from numba.core.untyped_passes import (
    ExtractByteCode,
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)
from numba.misc.llvm_pass_timings import PassTimingsCollection

from doral._kernel.builtins import BuiltinsInPlace
from doral._kernel.kernels import INLINED, RARE, Kernel
from doral._kernel.plain import OPTIONS, dispatchers_from
from doral._kernel.pointers import SCALARS, WORD, WORD_BYTES, TreePointer
from doral._kernel.trees import TreeLayout

ATTRIBUTES = {INLINED: ("inlinehint",), RARE: ("noinline", "optsize", "cold")}


class DirectCalls(callconv.CPUCallConv):
    """Functions of ours return their result; what Numba compiles for itself keeps its own convention."""

    def _is_ours(self, function: Any) -> bool:
        return function.name in self.context.ours

    def return_value(self, builder: Any, value: Any) -> None:
        if self._is_ours(builder.function):
            builder.ret(value)
        else:
            super().return_value(builder, value)

    def _trap(self, builder: Any) -> None:
        """A kernel that raises ends the process: there is nobody who could catch it."""
        trap = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), ()), "llvm.trap")
        builder.call(trap, ())
        builder.unreachable()

    def return_user_exc(self, builder: Any, *arguments: Any, **keywords: Any) -> None:
        if self._is_ours(builder.function):
            self._trap(builder)
        else:
            super().return_user_exc(builder, *arguments, **keywords)

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        if self._is_ours(builder.function):
            self._trap(builder)
        else:
            super().return_status_propagate(builder, status)

    def return_native_none(self, builder: Any) -> None:
        if self._is_ours(builder.function):
            raise NotImplementedError("a kernel returns a value in all cases or in none")
        super().return_native_none(builder)

    def get_arguments(self, function: Any) -> Any:
        return function.args if self._is_ours(function) else super().get_arguments(function)


class LeanContext(cpu.CPUContext):
    """Numba's context for this machine, with direct calls between our functions."""

    session: Session
    ours: set[str]  # names of our functions
    sizes: dict[str, int]  # of LLVM types
    is_waiting = False
    numbers: Iterator[int]

    @property
    def call_conv(self) -> Any:
        return DirectCalls(self)

    def refresh(self) -> None:
        """All but what was made meanwhile is loaded: this context was copied from one that is complete."""
        if self.is_waiting:
            for registry in tuple(self._registries):
                self.install_registry(registry)

    def get_function(self, function: Any, signature: Any, _firstcall: bool = True) -> Any:
        self.is_waiting = True  # for a definition that is not there yet
        try:
            return super().get_function(function, signature, _firstcall)
        finally:
            self.is_waiting = False

    def get_abi_sizeof(self, kind: Any) -> int:
        """Numba asks LLVM for it every time, with a module made for the question."""
        words = str(kind)
        if words not in self.sizes:
            self.sizes[words] = super().get_abi_sizeof(kind)
        return self.sizes[words]

    def mangler(self, name: str, types: Any, **keywords: Any) -> str:
        """Short names: they are written and read with every call."""
        return f"{name.rpartition('.')[2]}.{next(self.numbers)}"

    def declare_function(self, module: Any, description: Any) -> Any:
        if description.mangled_name not in self.ours:
            return super().declare_function(module, description)
        packer = self.get_arg_packer(description.argtypes)
        result = self.data_model_manager[description.restype].get_return_type()
        kind = ir.FunctionType(result, packer.argument_types)
        return cgutils.get_or_insert_function(module, kind, description.mangled_name)

    def insert_user_function(self, key: Any, description: Any, libraries: Any = ()) -> None:
        if description.mangled_name not in self.ours:
            super().insert_user_function(key, description, libraries)
            return

        def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = context.declare_function(builder.module, description)
            packed = context.get_arg_packer(description.argtypes).as_arguments(builder, arguments)
            result = builder.call(function, packed)
            result = context.get_returned_value(builder, description.restype, result)
            return imputils.impl_ret_new_ref(context, builder, description.restype, result)

        call.signature = description.argtypes  # type: ignore[attr-defined]
        call.libs = ()  # type: ignore[attr-defined]
        self._defns[key].append(call, call.signature)  # type: ignore[attr-defined]

    def post_lowering(self, module: Any, library: Any) -> None:
        """No runtime is linked in: nothing is counted or allocated."""

    def get_executable(self, library: Any, description: Any, environment: Any) -> Any:
        return LoweredFunction()


_found_calls: dict[Any, Any] = {}
_find_call = BaseFunction.get_call_type


def _remembered_call(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    key = function, arguments, tuple(keywords.items())
    if key not in _found_calls:
        _found_calls[key] = _find_call(function, context, arguments, keywords)
    return _found_calls[key]


def _postprocess(processor: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What Numba does to a function after every pass, without the lifetimes of variables: nothing is ever freed."""
    processor.func_ir.blocks = canonicalize_cfg(processor.func_ir.blocks)
    processor.func_ir.generator_info = None


@contextmanager
def in_a_hurry() -> Iterator[None]:
    """Meanwhile, Numba remembers the types of calls, which it asks for again and again. Hold its lock."""
    earlier = BaseFunction.get_call_type, PostProcessor.run
    BaseFunction.get_call_type = _remembered_call  # type: ignore[method-assign, assignment]
    PostProcessor.run = _postprocess
    try:
        yield
    finally:
        BaseFunction.get_call_type, PostProcessor.run = earlier  # type: ignore[method-assign]


class LoweredFunction:
    """Stands for a function that has no address yet."""


class Session:
    """One program on its way: all functions go into one module. It takes the place of Numba's code libraries."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.context = copy.copy(cpu_target.target_context)
        self.context.__class__ = LeanContext
        self.context.session = self
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

    def __init__(self, session: Session) -> None:
        self.typing_context, self.target_context = cpu_target.typing_context, session.context


class LeanDispatcher(Dispatcher):
    """Compiles a kernel into the module of a session, once per types of arguments."""

    def __init__(self, kernel: Kernel, session: Session) -> None:
        self.targetdescr = _Target(session)
        self.kernel = kernel
        options = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **OPTIONS}
        super().__init__(kernel.function, targetoptions=options, pipeline_class=LeanCompiler)

    def add_overload(self, compiled: Any) -> None:
        self.overloads[tuple(compiled.signature.args)] = compiled


class _Lower(lowering.Lower):
    """Numba's lowering, without the object that a function of Numba carries along."""

    def emit_environment_object(self) -> None:
        """Only Python objects would need it."""

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)
        self.post_block(block)

    def setup_function(self, description: Any) -> None:
        self.context.ours.add(description.mangled_name)
        super().setup_function(description)
        self.function.linkage = "internal"
        self.function.attributes.add("nounwind")
        for name in self.metadata["attributes"]:
            self.function.attributes.add(name)
        describe_pointers(self.context, self.function, description.argtypes)


def describe_pointers(context: Any, function: Any, kinds: Any) -> None:
    """What LLVM may rely on: blocks are there, and nobody writes into them."""
    arguments = iter(function.args)
    for kind in kinds:
        parts = [next(arguments) for _ in context.get_arg_packer((kind,)).argument_types]
        if isinstance(kind, TreePointer):
            for word in ("noalias", "nonnull"):
                parts[0].add_attribute(word)
            parts[0].attributes.align = WORD_BYTES
            parts[0].attributes.dereferenceable = kind.bytes


class LeanLowering:
    """Writes a typed function into the module of its session."""

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        session = context.session
        state.library = session
        description = PythonFunctionDescriptor.from_specialized_function(
            state.func_ir,
            state.typemap,
            state.return_type,
            state.calltypes,
            mangler=context.mangler,
            inline=False,
            noalias=False,
            abi_tags=[flags.get_mangle_string()],
        )
        metadata = {"attributes": ATTRIBUTES.get(session.kinds[state.func_id.func], ("noinline",))}
        with context.push_code_library(session):
            lower = _Lower(context, session, description, state.func_ir, metadata=metadata)
            lower.lower()
        function = LoweredFunction()
        context.insert_user_function(function, description)
        state.cr = compiler.compile_result(
            typing_context=state.typingctx,
            target_context=context,
            entry_point=function,
            library=session,
            signature=signature(state.return_type, *state.args),
            objectmode=False,
            fndesc=description,
        )
        return True


PASSES = (
    ExtractByteCode,
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    BuiltinsInPlace,
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
        session = Session(name)
        with in_a_hurry(), dispatchers_from(session.dispatcher_of):
            for entry, (kernel, kinds) in entries.items():
                _add_entry(session, entry, kernel, tuple(argument_type(kind) for kind in kinds))
        foreign = [library._get_module_for_linking().as_bitcode() for library in session.foreign]
    return Lowered(cgutils.normalize_ir_text(str(session.module)), foreign)


def _add_entry(session: Session, entry: str, kernel: Kernel, kinds: tuple[Any, ...]) -> None:
    """A function with the convention of C around a kernel."""
    dispatcher = session.dispatcher_of(kernel)
    dispatcher.compile(kinds)
    description = dispatcher.overloads[kinds].fndesc
    context = session.context
    result = description.restype
    kind = ir.VoidType() if result is types.none else context.get_value_type(result)
    if result is types.boolean:
        kind = WORD
    taken = [WORD if one is types.boolean else context.get_value_type(one) for one in kinds]
    function = ir.Function(session.module, ir.FunctionType(kind, taken), entry)
    function.attributes.add("nounwind")
    describe_pointers(context, function, kinds)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    arguments = [
        builder.trunc(value, ir.IntType(1)) if one is types.boolean else value
        for value, one in zip(function.args, kinds, strict=True)
    ]
    callee = context.declare_function(session.module, description)
    returned = builder.call(callee, context.get_arg_packer(kinds).as_arguments(builder, arguments))
    if result is types.none:
        builder.ret_void()
    elif result is types.boolean:
        builder.ret(builder.zext(returned, WORD))
    elif result in (types.int64, types.uint64, types.float64):
        builder.ret(returned)
    else:
        raise NotImplementedError(f"entry {entry} returns {result}, not a number")
