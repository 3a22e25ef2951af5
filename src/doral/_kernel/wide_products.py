"""`whole_product` by the one instruction that most machines have for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.types.containers import UniTuple
from numba.core.typing import signature
from numba.extending import intrinsic

from doral._kernel.indexing import WORD

_WIDE = ir.IntType(128)


def _whole_product(context: Any, a: Any, b: Any) -> Any:
    halves = UniTuple(types.uint64, 2)

    def write(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
        product = builder.mul(*(builder.zext(one, _WIDE) for one in arguments))
        high = builder.lshr(product, ir.Constant(_WIDE, WORD.width))
        return target.make_tuple(builder, halves, [builder.trunc(half, WORD) for half in (high, product)])

    return signature(halves, types.uint64, types.uint64), write


written_whole_product = intrinsic(_whole_product)
