"""Keys of code: digests of what functions do, without comments, docstrings, messages, type hints and line numbers.

A program's key covers the kernels that its entries reach, the constants that those read, the layouts of its trees, and
the compile layer itself. Decisions also depend on plain Python: `modules_digest` covers the functions and constants of
modules and of all of ours that they import. Only code objects are read, so that a process that finds its code in the
cache imports no compiler.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from importlib.metadata import version
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from doral.compiled.kernels import Kernel
from doral.trees import TreeLayout, describe

COMPILER = ("doral.compiled.translate", "doral.compiled.machine", "doral.compiled.kernels", "doral.trees")
LIBRARIES = ("llvmlite", "numpy")
_PACKAGE = "doral."
_HAS_DOCSTRING = 0x4000000  # a flag of code since Python 3.13
_OF_CLASSES = frozenset({"__module__", "__qualname__", "__doc__", "__annotations__", "__firstlineno__"})


def program_key(name: str, entries: Mapping[str, Any]) -> str:
    """Return the key of a program: the same in every process and on every machine."""
    lines = [name, compiler_digest()]
    for entry, (kernel, kinds, returns) in entries.items():
        lines += [f"{entry} -> {returns}", *(describe(one) if isinstance(one, TreeLayout) else one for one in kinds)]
        lines += [f"{one.kind} {one.function.__qualname__} {_kernel_digest(one)}" for one in reached(kernel)]
    return _digest(lines)


@cache
def compiler_digest() -> str:
    """Return a digest of what compiles: our own code, from Python's cache of it, and the versions of libraries."""
    lines = [f"python {sys.version_info[:2]}", *(f"{name} {version(name)}" for name in LIBRARIES)]
    for name in COMPILER:
        spec = importlib.util.find_spec(name)
        code = spec.loader.get_code(name) if spec and spec.loader else None  # type: ignore[attr-defined]
        lines += [] if code is None else _code_lines(code, with_messages=True)
    return _digest(lines)


def modules_digest(*names: str) -> str:
    """Return a digest of what these modules do, and all modules of ours that they import."""
    open_, known = [importlib.import_module(name) for name in names], dict[str, ModuleType]()
    while open_:
        module = open_.pop()
        if module.__name__ not in known:
            known[module.__name__] = module
            open_ += [sys.modules[one] for one in map(_origin, vars(module).values()) if one in sys.modules]
    lines = [compiler_digest()]
    for name in sorted(known):
        if not name.startswith("doral.compiled."):  # in the digest above, or without a say
            lines += [name, *_scope_lines(vars(known[name]), name)]
    return _digest(lines)


def reached(kernel: Kernel) -> list[Kernel]:
    """Return all kernels that this one calls, itself included, in a fixed order."""
    found: dict[Kernel, None] = {}
    open_ = [kernel]
    while open_:
        one = open_.pop()
        if one not in found:
            found[one] = None
            open_ += [value for _, value in _read_by(one.function) if isinstance(value, Kernel)]
    return list(found)


@cache
def _kernel_digest(kernel: Kernel) -> str:
    read = [f"{name} = {_constant(value)}" for name, value in _read_by(kernel.function)]
    return _digest([*_code_lines(kernel.function.__code__), repr(kernel.function.__defaults__), *read])


def _read_by(function: Any) -> Iterator[tuple[str, Any]]:
    """What a function reads from outside of it, by name: globals, attributes of modules, and its closure."""
    code = function.__code__
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            inner = ((one, getattr(value, one)) for one in code.co_names if hasattr(value, one))
            yield from ((f"{name}.{one}", what) for one, what in inner if value.__name__.startswith(_PACKAGE))
        elif value is not None:
            yield name, value
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def _code_lines(code: CodeType, *, with_messages: bool = False) -> Iterator[str]:
    """What a code object does."""
    yield f"{code.co_argcount} {code.co_kwonlyargcount} {code.co_code.hex()} {' '.join(code.co_names)}"
    for i, one in enumerate(code.co_consts):
        if isinstance(one, CodeType):
            yield from _code_lines(one, with_messages=with_messages)
        elif not (i == 0 and _is_documented(code)):
            yield _constant(one, with_messages=with_messages)


def _is_documented(code: CodeType) -> bool:
    """Whether its first constant is a docstring."""
    is_string = isinstance(code.co_consts[0], str)
    return is_string and (
        sys.version_info < (3, 13) or bool(code.co_flags & _HAS_DOCSTRING) or code.co_name == "<module>"
    )


def _constant(value: Any, *, with_messages: bool = False) -> str:
    """A constant in words; a string with a blank in it is a message, on which nothing depends."""
    if isinstance(value, str):
        return "a message" if " " in value and not with_messages else repr(value)
    if value is None or isinstance(value, (bool, int, float, complex, bytes, np.generic, np.dtype)):
        return repr(value)
    if isinstance(value, (tuple, list)):
        fields = " ".join(_constant(one, with_messages=with_messages) for one in value)
        return f"{type(value).__name__}({fields})"
    if isinstance(value, (set, frozenset)):
        return f"set({' '.join(sorted(map(_constant, value)))})"
    if isinstance(value, Mapping):
        return f"map({' '.join(f'{_constant(key)}: {_constant(one)}' for key, one in value.items())})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__} {_constant({key: vars(value).get(key) for key in value.__dataclass_fields__})}"
    if isinstance(value, type) and issubclass(value, tuple):
        return f"{value.__name__}({' '.join(getattr(value, '_fields', ()))})"
    return getattr(value, "__qualname__", type(value).__name__)


def _scope_lines(scope: Mapping[str, Any], module: str) -> Iterator[str]:
    """The functions, classes and constants of a module or a class."""
    for name, value in sorted(scope.items()):
        code = _code_of(value)
        if code is not None:
            if _origin(value) in (module, "") and not code.co_filename.startswith("<"):
                yield name
                yield from _code_lines(code)
        elif isinstance(value, type):
            if value.__module__ == module:
                yield f"{name}({', '.join(base.__name__ for base in value.__bases__)}) {_constant(value)}"
                yield from _scope_lines(
                    {key: one for key, one in vars(value).items() if key not in _OF_CLASSES}, module
                )
        elif isinstance(value, (bool, int, float, str, tuple, frozenset, np.generic, np.dtype)):
            if not (name.startswith("__") and name.endswith("__")):
                yield f"{name} = {_constant(value)}"
        elif name.isupper() and isinstance(value, (Mapping, list)):
            yield f"{name} = {_constant(value)}"


def _code_of(value: Any) -> CodeType | None:
    """The code of a function, however it is wrapped."""
    for name in ("function", "fget", "__func__", "_compute", "func", "__wrapped__"):
        inner = vars(value).get(name) if hasattr(value, "__dict__") and not isinstance(value, type) else None
        inner = (
            getattr(value, name, None)
            if inner is None and isinstance(value, (property, staticmethod, classmethod))
            else inner
        )
        if callable(inner):
            return _code_of(inner)
    return value.__code__ if isinstance(value, FunctionType) else None


def _origin(value: Any) -> str:
    """The module of ours that something comes from."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) and name.startswith(_PACKAGE) else ""


def _digest(lines: Any) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
