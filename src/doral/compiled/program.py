"""Programs: entries that are compiled together, once, and called by their address."""

from __future__ import annotations

import ctypes
import os
import platform
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from doral._cached import cached_property
from doral._forks import lock_across_forks
from doral.compiled import store
from doral.compiled.kernels import Kernel
from doral.compiled.key import program_key
from doral.compiled.python_form import as_python, make_total
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
