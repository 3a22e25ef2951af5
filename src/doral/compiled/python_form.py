"""Kernels and trees as Python: slow, without a compiler, and the same numbers to the bit.

Machine code raises nothing. Where Python would raise, `make_total` lets a division give an infinity or NaN (0 for
integers), and a function outside its domain what the C library gives.
"""

from __future__ import annotations

import ast
import copy
import math
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from doral.compiled.kernels import Kernel
from doral.compiled.key import reached

# --- trees, as kernels in Python see them ----------------------------------------------------------------------------


class Row:
    """One record, with plain numbers as attributes."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        return self._record[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self._record[name] = value


class Rows:
    """Records, of which each is a `Row`."""

    __slots__ = ("records", "shape", "size")

    def __init__(self, records: Any) -> None:
        self.records, self.size, self.shape = records, records.size, records.shape

    def __getitem__(self, index: Any) -> Row:
        return Row(self.records[index])


def as_python(tree: Any) -> Any:
    """Return the same tree, on the same arrays, for kernels that run as Python."""
    return tree._make(_readable(value) for value in tree)


def _readable(value: Any) -> Any:
    if hasattr(value, "_fields"):
        return as_python(value)
    return Rows(value) if isinstance(value, np.ndarray) and value.dtype.names else value


def arrays_of(tree: Any) -> Iterator[Any]:
    """Return all arrays of a tree."""
    for value in tree:
        if hasattr(value, "_fields"):
            yield from arrays_of(value)
        elif isinstance(value, np.ndarray):
            yield value


# --- the arithmetic of machine code ----------------------------------------------------------------------------------


def make_total(kernels: Iterable[Kernel]) -> None:
    """Let these kernels, and all that they call, run as Python with the arithmetic of machine code."""
    for kernel in {one for entry in kernels for one in reached(entry)}:
        kernel.python = _total_form(kernel.function)


def _total_form(function: Any) -> Callable[..., Any]:
    """Return a function with total arithmetic; where its source cannot be read, the function itself."""
    from doral.compiled.translate import Unsupported, definition_of

    try:
        node = copy.deepcopy(definition_of(function))
    except Unsupported:
        return function
    code, closure = function.__code__, function.__closure__ or ()
    outer = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)} | _ARITHMETIC
    node.decorator_list, node.returns = [], None
    for argument in node.args.args:
        argument.annotation = None
    module = ast.parse(f"def make({', '.join(outer)}): return {node.name}")
    for maker in module.body:
        maker.body.insert(0, _Total().visit(node))  # type: ignore[attr-defined]
    made: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(module), code.co_filename, "exec"), function.__globals__, made)
    return made["make"](**outer)


class _Total(ast.NodeTransformer):
    """Puts calls in the place of operators that may raise."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _called(node.op, node.left, node.right) if type(node.op) in _OPERATORS else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if type(node.op) not in _OPERATORS:
            return node
        before = copy.deepcopy(node.target)
        before.ctx = ast.Load()
        return ast.Assign([node.target], _called(node.op, before, node.value), lineno=node.lineno)


def _called(operator: ast.operator, *operands: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_OPERATORS[type(operator)], ast.Load()), list(operands), [])


def _divided(a: Any, b: Any) -> Any:
    try:
        return a / b
    except ZeroDivisionError:
        return float(np.float64(a) / np.float64(b))


def _quotient(a: Any, b: Any) -> Any:
    return a // b if b else 0


def _remainder(a: Any, b: Any) -> Any:
    return a % b if b else 0


def _power(a: Any, b: Any) -> Any:
    try:
        return a**b
    except (OverflowError, ZeroDivisionError):
        return float(np.power(np.float64(a), np.float64(b)))


def _or_limit(function: Callable[..., float], limit: Any) -> Callable[..., float]:
    def call(*arguments: float) -> float:
        try:
            return function(*arguments)
        except (ValueError, OverflowError):
            return float(limit(*map(np.float64, arguments)))

    return call


_OPERATORS: dict[type, str] = {
    ast.Div: "_divided",
    ast.FloorDiv: "_quotient",
    ast.Mod: "_remainder",
    ast.Pow: "_power",
}
_WITH_LIMITS = ("sqrt", "exp", "log", "log1p", "expm1", "pow")
_MATH = SimpleNamespace(**vars(math))
for _name in _WITH_LIMITS:
    setattr(_MATH, _name, _or_limit(getattr(math, _name), getattr(np, _name)))
_ARITHMETIC = {
    "math": _MATH,
    "_divided": _divided,
    "_quotient": _quotient,
    "_remainder": _remainder,
    "_power": _power,
}
