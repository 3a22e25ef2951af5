"""Numba's view of this machine, with direct calls between our functions: no status, no exceptions, no references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import callconv, cgutils, cpu, imputils, types

from doral._kernel.aliases import tag_load, tag_store
from doral._kernel.indexing import field_of


class LoweredFunction:
    """Stands for a function that has no address yet."""


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

    unit: Any  # to whose module functions are added
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

    def get_getattr(self, kind: Any, name: str) -> Any:
        if isinstance(kind, types.Array) and name in ("size", "shape"):
            field = "nitems" if name == "size" else "shape"
            return lambda context, builder, _, value, __: field_of(context, builder, kind, value, field)
        read = super().get_getattr(kind, name)
        if not isinstance(kind, types.Record):
            return read
        return lambda context, builder, *rest: tag_load(builder, read(context, builder, *rest), f"{kind}.{name}")

    def get_setattr(self, name: str, signature: Any) -> Any:
        write = super().get_setattr(name, signature)
        record = signature.args[0]
        if not isinstance(record, types.Record):
            return write

        def tagged(builder: Any, arguments: Any) -> Any:
            result = write(builder, arguments)
            tag_store(builder, f"{record}.{name}")
            return result

        return tagged

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
