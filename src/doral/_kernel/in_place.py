"""What is written in place of a call.

`min`, `max` and `int`, because Numba would compile a function of its own for each type of argument; and kernels for
which a machine has better instructions than a compiler finds: the same results to the bit.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typing import signature
from numba.cpython.builtins import cast_int, do_minmax
from numba.extending import intrinsic

from doral._kernel.machine_rounding import written_rounded_up
from doral._kernel.philox import whole_product
from doral._kernel.rounding import rounded_up
from doral._kernel.row_sums import written_move, written_narrow, written_row_sums, written_shift, written_take_off
from doral._kernel.rows import add_up_rows, move_by_rows, narrow_by_rows, shift_by_rows, take_off_products
from doral._kernel.wide_products import written_whole_product


def _choice(compare: Any) -> Any:
    def choose(context: Any, first: Any, second: Any) -> Any:
        def write(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
            return do_minmax(target, builder, list(called.args), list(arguments), compare)

        return signature(context.unify_types(first, second), first, second), write

    return intrinsic(choose)


IN_PLACE: tuple[tuple[Any, Any], ...] = (
    (max, _choice(operator.gt)),
    (min, _choice(operator.lt)),
    (int, cast_int),
    (add_up_rows, written_row_sums),
    (shift_by_rows, written_shift),
    (narrow_by_rows, written_narrow),
    (move_by_rows, written_move),
    (take_off_products, written_take_off),
    (whole_product, written_whole_product),
    (rounded_up, written_rounded_up),
)


@register_pass(mutates_CFG=False, analysis_only=False)
class InPlace(FunctionPass):
    """Puts them in the place of what is called, before types are inferred."""

    _name = "doral_in_place"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Global):
                    for called, written in IN_PLACE:
                        if statement.value.value is called:
                            statement.value.value = written
        return True
