"""`min`, `max` and `int` written in place: Numba would compile a function of its own for each type of argument."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typing import signature
from numba.cpython.builtins import cast_int, do_minmax
from numba.extending import intrinsic


def _choice(compare: Any) -> Any:
    def choose(context: Any, first: Any, second: Any) -> Any:
        def write(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
            return do_minmax(target, builder, list(called.args), list(arguments), compare)

        return signature(context.unify_types(first, second), first, second), write

    return intrinsic(choose)


IN_PLACE = {max: _choice(operator.gt), min: _choice(operator.lt), int: cast_int}


@register_pass(mutates_CFG=False, analysis_only=False)
class BuiltinsInPlace(FunctionPass):
    """Puts them in place of the builtins, before types are inferred."""

    _name = "doral_builtins_in_place"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Global):
                    value = statement.value.value
                    if value is max or value is min or value is int:
                        statement.value.value = IN_PLACE[value]
        return True
