"""What LLVM may know about memory: values of different kinds lie in different places.

Every load and store of an array element or of a record's field is tagged with its kind (LLVM's `tbaa`): a number type
of arrays, or one field of one record type. A tree never shows the same memory as two kinds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import LoadInstr, StoreInstr

_ROOT = "doral"


def tag_load(builder: Any, value: Any, kind: str) -> Any:
    """Say of which kind a value is that was just loaded."""
    source = value
    while not isinstance(source, LoadInstr) and getattr(source, "operands", None) and len(source.operands) == 1:
        source = source.operands[0]  # a number of another width was made of it
    if isinstance(source, LoadInstr):
        source.set_metadata("tbaa", _tag(builder.module, kind))
    return value


def tag_store(builder: Any, kind: str) -> None:
    """Say of which kind the value is that was just stored."""
    last = builder.block.instructions[-1] if builder.block.instructions else None
    if isinstance(last, StoreInstr):
        last.set_metadata("tbaa", _tag(builder.module, kind))


def _tag(module: Any, kind: str) -> Any:
    tags = module.__dict__.setdefault("doral_tags", {})
    if kind not in tags:
        root = module.add_metadata([ir.MetaDataString(module, _ROOT)])
        zero = ir.Constant(ir.IntType(64), 0)
        node = module.add_metadata([ir.MetaDataString(module, kind), root, zero])
        tags[kind] = module.add_metadata([node, node, zero])
    return tags[kind]
