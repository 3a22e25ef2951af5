"""Elements and sizes of arrays, written with the fewest instructions: Numba's own way costs a third of the front end.

Only for contiguous arrays and an integer per axis; everything else takes Numba's way.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types.containers import BaseTuple

WORD = ir.IntType(64)


def takes_element(array_type: Any, index_type: Any) -> bool:
    """Whether this index denotes one element."""
    if not isinstance(array_type, types.Array) or array_type.layout != "C" or not array_type.aligned:
        return False
    if isinstance(index_type, BaseTuple):
        return len(index_type) == array_type.ndim and all(isinstance(one, types.Integer) for one in index_type.types)
    return array_type.ndim == 1 and isinstance(index_type, types.Integer)


def element_pointer(context: Any, builder: Any, array_type: Any, array: Any, index_type: Any, index: Any) -> Any:
    """The address of the element; indices below 0 count from the end, as everywhere."""
    kinds, indices = (index_type,), (index,)
    if isinstance(index_type, BaseTuple):
        kinds, indices = index_type.types, cgutils.unpack_tuple(builder, index, count=array_type.ndim)
    shape = field_of(context, builder, array_type, array, "shape")
    position = None
    for axis, (kind, value) in enumerate(zip(kinds, indices, strict=True)):
        extent = builder.extract_value(shape, axis) if kind.signed or axis > 0 else None
        at = _whole(builder, kind, value, extent)
        position = at if position is None else builder.add(builder.mul(position, extent), at)
    data = field_of(context, builder, array_type, array, "data")
    return builder.gep(data, [position])


def _whole(builder: Any, kind: Any, value: Any, extent: Any) -> Any:
    """An index in 64 bits, from the start."""
    is_constant = isinstance(value, ir.Constant)
    if kind.bitwidth < WORD.width:
        value = builder.sext(value, WORD) if kind.signed else builder.zext(value, WORD)
    if not kind.signed or (is_constant and value.constant >= 0):
        return value
    from_end = builder.icmp_signed("<", value, ir.Constant(WORD, 0))
    return builder.select(from_end, builder.add(value, extent), value)


def field_of(context: Any, builder: Any, array_type: Any, array: Any, name: str) -> Any:
    """A part of an array: its data, its shape, or how many items it has."""
    model = context.data_model_manager[array_type]
    return builder.extract_value(array, model.get_field_position(name))
