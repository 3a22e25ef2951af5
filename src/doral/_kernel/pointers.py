"""Trees by pointer, as a type of Numba: `state.ridge.weight` becomes a load from the block."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_getattr_generic
from numba.core.types.misc import CPointer
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import models, register_model
from numba.np import numpy_support

from doral._kernel.trees import BOOL, FLOAT, INT, UINT64, ArrayLeaf, TreeLayout, words_of

WORD = ir.IntType(64)
WORD_BYTES = 8
SCALARS = {INT: types.int64, FLOAT: types.float64, BOOL: types.boolean, UINT64: types.uint64}


class TreePointer(types.Type):
    """A pointer to the part of a block that holds a tree of this layout."""

    def __init__(self, layout: TreeLayout) -> None:
        self.layout = layout
        self.instance_class = layout.tree_class
        self.fields: dict[str, tuple[int, Any]] = {}
        offset = 0
        for name, leaf in zip(layout.tree_class._fields, layout.leaves, strict=True):  # type: ignore[attr-defined]
            self.fields[name] = offset, leaf_type(leaf)
            offset += words_of(leaf)
        self.bytes = WORD_BYTES * offset
        super().__init__(name=f"{layout.tree_class.__name__}*{_number_of(layout)}")

    @property
    def key(self) -> Any:
        return self.layout


_numbers: dict[TreeLayout, int] = {}


def _number_of(layout: TreeLayout) -> int:
    """A short name of a layout: names of types enter the names of functions, which are printed and parsed again."""
    return _numbers.setdefault(layout, len(_numbers))


def leaf_type(leaf: ArrayLeaf | str | TreeLayout) -> Any:
    """The Numba type of a field."""
    if isinstance(leaf, TreeLayout):
        return TreePointer(leaf)
    if isinstance(leaf, ArrayLeaf):
        return types.Array(numpy_support.from_dtype(leaf.dtype), leaf.ndim, "C")
    return SCALARS[leaf]


register_model(TreePointer)(models.OpaqueModel)


@infer_getattr
class _Fields(AttributeTemplate):
    key = TreePointer

    def generic_resolve(self, tree: Any, name: str) -> Any:
        return tree.fields[name][1] if name in tree.fields else None


def _load(builder: Any, pointer: Any, offset: int, kind: Any) -> Any:
    """A word of the block. No compiled code ever writes there: loads need not be repeated after a store."""
    address = builder.gep(pointer, [ir.Constant(ir.IntType(32), WORD_BYTES * offset)], inbounds=True)
    loaded = builder.load(builder.bitcast(address, kind.as_pointer()), align=WORD_BYTES)
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def _array(context: Any, builder: Any, array_type: Any, pointer: Any, offset: int) -> Any:
    """The array as Numba keeps it: what nobody asks for, LLVM leaves out again."""
    model = context.data_model_manager[array_type]
    data = _load(builder, pointer, offset, context.get_value_type(CPointer(array_type.dtype)))
    shape = [_load(builder, pointer, offset + 1 + axis, WORD) for axis in range(array_type.ndim)]
    itemsize = ir.Constant(WORD, context.get_abi_sizeof(context.get_data_type(array_type.dtype)))
    stride, strides, items = itemsize, [], ir.Constant(WORD, 1)
    for axis, extent in reversed(list(enumerate(shape))):
        strides.append(stride)
        items = extent if len(strides) == 1 else builder.mul(items, extent)
        if axis > 0:
            stride = builder.mul(stride, extent)
    value = ir.Constant(model.get_value_type(), None)  # no owner: the caller keeps the arrays alive
    for name, part in (
        ("nitems", items),
        ("itemsize", itemsize),
        ("data", data),
        ("shape", cgutils.pack_array(builder, shape, ty=WORD)),
        ("strides", cgutils.pack_array(builder, strides[::-1], ty=WORD)),
    ):
        value = builder.insert_value(value, part, model.get_field_position(name))
    return value


@lower_getattr_generic(TreePointer)
def _get_field(context: Any, builder: Any, tree: Any, pointer: Any, name: str) -> Any:
    offset, kind = tree.fields[name]
    if isinstance(kind, TreePointer):
        return builder.gep(pointer, [ir.Constant(ir.IntType(32), WORD_BYTES * offset)], inbounds=True)
    if isinstance(kind, types.Array):
        return _array(context, builder, kind, pointer, offset)
    if kind is types.boolean:
        return builder.trunc(_load(builder, pointer, offset, WORD), ir.IntType(1))
    return _load(builder, pointer, offset, context.get_value_type(kind))
