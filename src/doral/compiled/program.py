"""Programs: entries that are compiled together, once, and called by their address; or run as Python.

As Python they are slow, and give the same numbers to the bit. Machine code raises nothing. Where Python would raise,
`make_total` lets a division give an infinity or NaN (0 for integers), and a function outside its domain what the C
library gives.
"""

from __future__ import annotations

import ast
import copy
import ctypes
import math
import os
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from doral._cached import cached_property
from doral._forks import lock_across_forks
from doral.compiled import store
from doral.compiled.kernels import Kernel
from doral.compiled.key import program_key, reached
from doral.trees import BOOL, FLOAT, INT, UINT64, Block, TreeLayout, layout_of, memory_class

if TYPE_CHECKING:
    from doral.compiled.machine import Loaded

Kind = TreeLayout | str
Function = Callable[..., Any]

_SCALARS: dict[Any, str] = {int: INT, float: FLOAT, bool: BOOL, np.uint64: UINT64}
_C_TYPES: dict[str, Any] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_int64, UINT64: ctypes.c_uint64}
_PYTHON_TYPES: dict[str, Any] = {INT: int, FLOAT: float, BOOL: bool, UINT64: np.uint64}
# One thread at a time makes code, and no process forks meanwhile: a child would have half a compiler.
_making = lock_across_forks()
WAY = "DORAL_COMPILE"  # environment variable: `plain` interprets, `lean` raises errors instead of interpreting
WAYS = ("", "plain", "lean")


class Entry(NamedTuple):
    """A kernel that Python calls, what it takes, and what it returns.

    It takes `int`, `float`, `bool`, `np.uint64`, a tree like this one or its layout; it returns `int`, `float`, `bool`
    or None.
    """

    kernel: Any
    arguments: tuple[Any, ...]
    returns: type | None = None


class TypedEntry(NamedTuple):
    """An entry with the layouts of its trees in their place."""

    kernel: Kernel
    kinds: tuple[Kind, ...]
    returns: type | None


class Program:
    """Entries by name; each takes blocks in the place of trees.

    `seconds` is about how long it takes to compile, and `label` what people call it, for those who wait.
    """

    def __init__(
        self,
        *,
        name: str,
        entries: Mapping[str, Entry] | Callable[[], Mapping[str, Entry]],
        seconds: float = 1.0,
        label: str = "",
    ) -> None:
        self.name, self.seconds, self.label, self._given = name, seconds, label or name, entries
        self._functions: dict[str, Function] = {}
        self._is_interpreted = False

    def __getitem__(self, entry: str) -> Function:
        """The function to call; compiled or loaded when the first of them is asked for."""
        if not self._functions:
            with _making:
                if not self._functions:
                    self._functions = self._make()
        return self._functions[entry]

    @property
    def is_at_hand(self) -> bool:
        """Whether nothing has to be compiled: the machine code is there already, or cannot be had."""
        if self._functions or _way() == "plain":
            return True
        try:
            return store.is_there(self)
        except Exception:  # noqa: BLE001  (of any kind: making the program names it, and interprets)
            return True

    @property
    def is_kept(self) -> bool:
        """Whether machine code that a child makes is found here."""
        return not _way() and bool(store.folders())

    def load(self) -> None:
        """Compile it, or load what was compiled."""
        _ = self[next(iter(self.entries))]

    @cached_property
    def entries(self) -> dict[str, TypedEntry]:
        given = self._given() if callable(self._given) else self._given
        return {
            name: TypedEntry(entry.kernel, tuple(_kind(one) for one in entry.arguments), entry.returns)
            for name, entry in given.items()
        }

    @cached_property
    def key(self) -> str:
        """The digest of what the code is made of, the same on every machine."""
        return program_key(self.name, self.entries)

    @property
    def is_interpreted(self) -> bool:
        """Whether the entries run as Python, because they are not to be compiled or could not be."""
        self.load()
        return self._is_interpreted

    def _make(self) -> dict[str, Function]:
        if _way() != "plain":
            try:
                code = store.load(self)
                return {name: _c_function(code, name, entry) for name, entry in self.entries.items()}
            except Exception as error:  # of any kind: Python needs nothing of it
                if _way() == "lean":
                    raise
                _warn_once(error)
        self._is_interpreted = True
        make_total(entry.kernel for entry in self.entries.values())
        return {name: interpreted(entry) for name, entry in self.entries.items()}


def processor() -> str:
    """Return the name of this processor, as LLVM knows it; where LLVM cannot be had, as the platform does."""
    try:
        from doral.compiled.machine import HOST
    except Exception:  # noqa: BLE001  (of any kind, as above)
        return platform.machine()
    return HOST.cpu


_has_warned = False


def _warn_once(error: Exception) -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        reason = f"{type(error).__name__}: {error}"
        message = f"doral runs as Python, which takes some hundred times as long: it could not be compiled ({reason})"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


def _way() -> str:
    given = os.environ.get(WAY, "").strip().lower()
    if given in WAYS:
        return given
    warnings.warn(
        f"{WAY}={given} is ignored: it is plain (run as Python), lean (raise what fails) or not set",
        RuntimeWarning,
        stacklevel=3,
    )
    return ""


def _kind(argument: Any) -> Kind:
    if isinstance(argument, TreeLayout):
        return argument
    return _SCALARS[argument] if isinstance(argument, type) else layout_of(argument)


def _c_function(code: Loaded, name: str, entry: TypedEntry) -> Function:
    """ctypes checks that each block has the layout that was compiled."""
    arguments = [
        ctypes.POINTER(memory_class(kind)) if isinstance(kind, TreeLayout) else _C_TYPES[kind] for kind in entry.kinds
    ]
    result = None if entry.returns is None else _C_TYPES[_SCALARS[entry.returns]]
    function: Any = ctypes.CFUNCTYPE(result, *arguments)(code.address(name))
    function.code = code  # kept: the code is in memory as long as this object
    return cast(Function, function)


def interpreted(entry: TypedEntry) -> Function:
    """Return the same call as Python, on the trees of the blocks."""
    casts = [_tree_of if isinstance(kind, TreeLayout) else _PYTHON_TYPES[kind] for kind in entry.kinds]
    returns = entry.returns or _nothing

    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):  # integers of 64 bits wrap around
            return returns(entry.kernel(*(cast(one) for cast, one in zip(casts, arguments, strict=True))))

    return call


def _tree_of(block: Block[Any]) -> Any:
    return as_python(block.tree)


def _nothing(_: object) -> None:
    return None


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
