"""What LLVM may know about loops: they are short.

Most run over the arms or the features of a problem, some ten of them. LLVM would unroll a loop whose number of turns it
does not know by eight: longer code, of which a short loop only ever sees the prologue and the rest. Loops whose number
of turns is a constant are still unrolled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def keep_short(builder: Any, jump: Any) -> None:
    """Say so at the jump back to the beginning of a loop."""
    module = builder.module
    no_runtime_unrolling = module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.runtime.disable")])
    loops = module.__dict__.setdefault("doral_loops", [])
    loop = module.add_metadata([ir.Constant(ir.IntType(64), len(loops)), no_runtime_unrolling])
    loop.operands = (loop, no_runtime_unrolling)  # a node that names itself is this loop's and no other's
    loops.append(loop)
    jump.set_metadata("llvm.loop", loop)
