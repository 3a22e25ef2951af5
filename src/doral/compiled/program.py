"""Programs: entries that are compiled together, once, and called by their address."""

from __future__ import annotations

import ctypes
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from doral._cached import cached_property
from doral._forks import lock_across_forks
from doral.compiled import store
from doral.compiled.cache import is_shared
from doral.compiled.kernels import Kernel
from doral.compiled.key import program_key
from doral.trees.block import Block
from doral.trees.layout import BOOL, FLOAT, INT, UINT64, TreeLayout, layout_of, memory_class

if TYPE_CHECKING:
    from doral.compiled.machine import Loaded

Kind = TreeLayout | str
Function = Callable[..., Any]

_SCALARS: dict[Any, str] = {int: INT, float: FLOAT, bool: BOOL, np.uint64: UINT64}
_C_TYPES: dict[str, Any] = {INT: ctypes.c_int64, FLOAT: ctypes.c_double, BOOL: ctypes.c_int64, UINT64: ctypes.c_uint64}
_PYTHON_TYPES: dict[str, Any] = {INT: int, FLOAT: float, BOOL: bool, UINT64: np.uint64}
# One thread at a time makes code, and nobody forks meanwhile: a child would have half a compiler.
_making = lock_across_forks()
WAY = "DORAL_COMPILE"  # environment variable: `plain`, or `lean` to hear of errors instead of falling back


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

    def __getitem__(self, entry: str) -> Function:
        """The function to call; compiled or loaded when the first of them is asked for."""
        if not self._functions:
            with _making:
                if not self._functions:
                    self._functions = self._make()
        return self._functions[entry]

    @property
    def is_at_hand(self) -> bool:
        """Whether the machine code is there already: nothing has to be compiled."""
        return bool(self._functions) or (os.environ.get(WAY) != "plain" and store.is_there(self))

    @property
    def is_kept(self) -> bool:
        """Whether machine code that another process makes is found here."""
        return os.environ.get(WAY) is None and is_shared()

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
        """What the code is made of, whatever machine it is for."""
        return program_key(self.name, self.entries)

    def _make(self) -> dict[str, Function]:
        if os.environ.get(WAY) != "plain":
            try:
                code = store.load(self)
                return {name: _c_function(code, name, entry) for name, entry in self.entries.items()}
            except Exception as error:  # whatever it is: a mistake in a kernel is then Numba's to tell
                if os.environ.get(WAY) == "lean":
                    raise
                _warn_once(error)
        return {name: _plain_function(entry) for name, entry in self.entries.items()}


_has_warned = False


def _warn_once(error: Exception) -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        message = f"doral's programs run as ordinary Numba functions, which is slower ({type(error).__name__}: {error})"
        warnings.warn(message, RuntimeWarning, stacklevel=5)


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


def _plain_function(entry: TypedEntry) -> Function:
    """The same call on the trees themselves."""
    casts = [_tree_of if isinstance(kind, TreeLayout) else _PYTHON_TYPES[kind] for kind in entry.kinds]

    def call(*arguments: Any) -> Any:
        return entry.kernel(*(cast(one) for cast, one in zip(casts, arguments, strict=True)))

    return call


def _tree_of(block: Block[Any]) -> Any:
    return block.tree
