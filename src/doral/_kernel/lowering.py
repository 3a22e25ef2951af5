"""From a typed kernel to LLVM instructions in the module of its unit."""

from __future__ import annotations

from typing import Any

from numba.core import compiler, lowering
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.typing import signature
from numba.np.arrayobj import load_item, store_item

from doral._kernel.aliases import tag_load, tag_store
from doral._kernel.context import LoweredFunction
from doral._kernel.indexing import element_pointer, takes_element
from doral._kernel.kernels import INLINED, RARE
from doral._kernel.loops import keep_short
from doral._kernel.pointers import WORD_BYTES, TreePointer

ATTRIBUTES = {INLINED: ("inlinehint",), RARE: ("noinline", "optsize", "cold")}


class Lower(lowering.Lower):
    """Numba's lowering, without the object that a function of Numba carries along."""

    def emit_environment_object(self) -> None:
        """Only Python objects would need it."""

    def lower_block(self, block: Any) -> None:
        self.pre_block(block)
        for statement in block.body:
            self.loc = statement.loc
            self.lower_inst(statement)
        if any(self.blkmap[label].is_terminated for label in block.terminator.get_targets()):  # written before: a loop
            keep_short(self.builder, self.builder.block.terminator)
        self.post_block(block)

    def lower_getitem(self, result: Any, expression: Any, value: Any, index: Any, signature: Any) -> Any:
        array_type, index_type = signature.args
        if not takes_element(array_type, index_type):
            return super().lower_getitem(result, expression, value, index, signature)
        found = load_item(self.context, self.builder, array_type, self._element(value, index, array_type, index_type))
        tag_load(self.builder, found, str(array_type.dtype))
        return self.context.cast(self.builder, found, signature.return_type, result)

    def lower_setitem(self, target: Any, index: Any, value: Any, signature: Any) -> None:
        array_type, index_type, value_type = signature.args
        if not takes_element(array_type, index_type):
            super().lower_setitem(target, index, value, signature)
            return
        kind = self.typeof(value.name)
        written = self.context.cast(self.builder, self.loadvar(value.name), kind, value_type)
        written = self.context.cast(self.builder, written, value_type, array_type.dtype)
        pointer = self._element(target, index, array_type, index_type)
        store_item(self.context, self.builder, array_type, written, pointer)
        tag_store(self.builder, str(array_type.dtype))

    def _element(self, array: Any, index: Any, array_type: Any, index_type: Any) -> Any:
        context, builder = self.context, self.builder
        at = context.cast(builder, self.loadvar(index.name), self.typeof(index.name), index_type)
        return element_pointer(context, builder, array_type, self.loadvar(array.name), index_type, at)

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
            if kind.bytes:
                parts[0].attributes.dereferenceable = kind.bytes


class LeanLowering:
    """Writes a typed function into the module of its unit."""

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        unit = context.unit
        state.library = unit
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
        metadata = {"attributes": ATTRIBUTES.get(unit.kinds[state.func_id.func], ("noinline",))}
        with context.push_code_library(unit):
            lower = Lower(context, unit, description, state.func_ir, metadata=metadata)
            lower.lower()
        function = LoweredFunction()
        context.insert_user_function(function, description)
        state.cr = compiler.compile_result(
            typing_context=state.typingctx,
            target_context=context,
            entry_point=function,
            library=unit,
            signature=signature(state.return_type, *state.args),
            objectmode=False,
            fndesc=description,
        )
        return True
