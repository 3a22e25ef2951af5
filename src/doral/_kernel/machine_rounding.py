"""`rounded_up` by the one instruction that most machines have for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

_NUMBER = ir.DoubleType()


def _rounded_up(context: Any, x: Any) -> Any:
    def write(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
        ceiling = builder.module.declare_intrinsic("llvm.ceil", [_NUMBER])
        return builder.fadd(builder.call(ceiling, arguments), ir.Constant(_NUMBER, 0.0))  # a zero has no minus

    return signature(types.float64, types.float64), write


written_rounded_up = intrinsic(_rounded_up)
