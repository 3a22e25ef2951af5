"""Something in Python as it is loaded: its code, what it holds, and what it reads by name, in one digest.

Files are not looked at: one that is edited after its import plays as it was. The standard library and doral are known
by names (their versions are told elsewhere), installed packages by what was installed; all else by its compiled code,
through calls, base classes, closures, attributes and variables of modules.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

_ATOMS = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range)
_INSTALLED = ("site-packages", "dist-packages")
_PROTOCOL = 4  # of pickle: how objects say what they hold
_PARTS = {  # of what stands in a class around its functions
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    functools.cached_property: ("func",),
    MethodType: ("__func__", "__self__"),
}


class NotKnown(Exception):
    """It holds something of which nobody can say whether it is what it was: a lock, a connection, compiled C."""


def digest_of(written: object) -> str:
    """The same for what plays the same, also in another process; raises `NotKnown`."""
    walk = _Walk({})
    try:
        walk.add(written)
    except NotKnown:
        raise
    except Exception as error:  # whatever a foreign object raises
        raise NotKnown(f"{type(error).__name__}: {error}") from error
    return walk.digest()


class _Walk:
    """Through all that can be reached; what comes again is told by its number, so circles end."""

    def __init__(self, seen: dict[int, tuple[int, object]]) -> None:
        self._seen = seen  # with the objects themselves: a number of memory must not be given to another
        self._hash = hashlib.sha256()

    def digest(self) -> str:
        return self._hash.hexdigest()

    def add(self, value: Any) -> None:
        kind = type(value)
        if kind in _ATOMS or isinstance(value, np.dtype):
            self._say(kind.__name__, repr(value))
        elif kind is tuple:
            self._add_all("tuple", value)
        elif kind in (set, frozenset):
            self._add_set(kind.__name__, value)
        elif kind is CodeType:
            self._add_code(value)
        elif id(value) in self._seen:  # strings and the like never come here: who shares them is chance
            self._say("again", self._seen[id(value)][0])
        else:
            self._seen[id(value)] = (len(self._seen), value)
            self._add_new(value, kind)

    def _add_new(self, value: Any, kind: type) -> None:
        if kind is list:
            self._add_all("list", value)
        elif kind in (dict, MappingProxyType):
            self._add_all("dict", [part for pair in value.items() for part in pair])
        elif kind is FunctionType:
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif kind in _PARTS:
            self._add_all(kind.__name__, [getattr(value, name) for name in _PARTS[kind]])
        elif inspect.isgetsetdescriptor(value) or inspect.ismemberdescriptor(value):
            self._say("slot", value.__name__)
        elif kind is ModuleType:
            self._add_module(value, frozenset())
        else:
            self._add_object(value)

    def _say(self, *words: object) -> None:
        self._hash.update(f"{words!r}\n".encode(errors="surrogatepass"))

    def _add_all(self, what: str, values: Any) -> None:
        self._say(what, len(values))
        for one in values:
            self.add(one)

    def _add_named(self, what: str, named: dict[str, Any]) -> None:
        """In the order of names: it is chance when an attribute was set."""
        self._add_all(what, [part for name in sorted(named) for part in (name, named[name])])

    def _add_set(self, what: str, values: Any) -> None:
        """Its order is another in every process: each member by itself, as if it were the only one."""
        found = []
        for one in values:
            alone = _Walk(dict(self._seen))
            alone.add(one)
            found.append(alone.digest())
        self._say(what, sorted(found))

    def _add_code(self, code: CodeType) -> None:
        """All but the places in a file."""
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._say("code", code.co_name, code.co_code, code.co_exceptiontable, counts, names)
        self._add_all("constants", code.co_consts)

    def _add_function(self, function: FunctionType) -> None:
        space = function.__globals__
        home = str(space.get("__name__", ""))  # not __module__, which decorators copy
        self._say("function", home, function.__qualname__)
        if _is_known(home):
            self._add_version(home)
            if _found_by_name(home, function.__qualname__) is function:
                return
        else:
            self._add_read(function.__code__, space)
        self._add_code(function.__code__)
        self._add_all("defaults", [function.__defaults__, function.__kwdefaults__])
        self._add_named("attributes", vars(function))
        for cell in function.__closure__ or ():
            self._add_found(_content(cell), _names(function.__code__))

    def _add_read(self, code: CodeType, space: dict[str, Any]) -> None:
        """What the code reads by name from its module, and what it imports when it runs."""
        for read in sorted({read for one in _codes(code) for read in _reads(one)}):
            if read.is_import or read.name in space:  # the others are Python's own
                self._say("reads", read)
                self._add_found(read.value(space), _names(code))

    def _add_found(self, value: Any, names: frozenset[str]) -> None:
        if isinstance(value, ModuleType):
            self._add_module(value, names)
        else:
            self.add(value)

    def _add_module(self, module: ModuleType, names: frozenset[str]) -> None:
        """Of a module, what is read of it: whatever has one of these names."""
        pending, done = [module], set()
        while pending:
            one = pending.pop()
            if one.__name__ in done:
                continue
            done.add(one.__name__)
            self._say("module", one.__name__)
            if _is_known(one.__name__):
                self._add_version(one.__name__)
                continue
            if not names:
                raise NotKnown(f"the module {one.__name__}, of which anything may be read")
            for name in sorted(names & vars(one).keys()):
                value = vars(one)[name]
                if isinstance(value, ModuleType):
                    pending.append(value)
                else:
                    self._say(name)
                    self.add(value)

    def _add_class(self, kind: type) -> None:
        self._say("class", kind.__module__, kind.__qualname__)
        if _is_known(kind.__module__):
            self._add_version(kind.__module__)
            if _found_by_name(kind.__module__, kind.__qualname__) is kind:
                return
        self._add_all("above", [type(kind), *kind.__bases__])
        self._add_named("held", {name: value for name, value in vars(kind).items() if _counts(name, value)})

    def _add_version(self, module: str) -> None:
        self._say(_version_of(module.partition(".")[0]))

    def _add_object(self, value: Any) -> None:
        """As pickle takes it apart; its class comes with it."""
        home, name = (str(getattr(value, one, None) or "") for one in ("__module__", "__qualname__"))
        if name and _is_known(home) and _found_by_name(home, name) is value:
            self._say("name", home, name)
            self._add_version(home)
            return
        if type(value).__module__.startswith("numba.") and hasattr(value, "py_func"):  # pickled under a random name
            self._add_all("compiled", [type(value), value.py_func, value.targetoptions])
            return
        reduce = copyreg.dispatch_table.get(type(value))
        found = value.__reduce_ex__(_PROTOCOL) if reduce is None else reduce(value)
        self.add(type(value))
        if isinstance(found, str):  # the name under which it is found in its module
            self._say("name", home, found)
            if not _is_known(home or type(value).__module__):
                self.add(_wrapped(value, found))
            return
        for part in found:
            self.add(list(part) if isinstance(part, Iterator) else part)


def _content(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return None


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With all that is written within."""
    yield code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield from _codes(one)


def _names(code: CodeType) -> frozenset[str]:
    """All that it may read from modules and objects."""
    return frozenset(name for one in _codes(code) for name in one.co_names)


class _Read(NamedTuple):
    """A name that code reads from its module, or imports when it runs: `from ..name import parts` has two levels."""

    is_import: bool
    name: str
    parts: tuple[str, ...] = ()
    level: int = 0

    def value(self, space: dict[str, Any]) -> Any:
        if not self.is_import:
            return space[self.name]
        if not self.level and _is_known(self.name):  # not loaded for this
            return sys.modules.get(self.name) or ModuleType(self.name)
        return __import__(self.name, space, None, self.parts, self.level)


def _reads(code: CodeType) -> Iterator[_Read]:
    steps = list(dis.get_instructions(code))
    for number, one in enumerate(steps):
        if one.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield _Read(False, str(one.argval))
        elif one.opname == "IMPORT_NAME":  # after its level and the names of its parts
            yield _Read(True, str(one.argval), steps[number - 1].argval or (), steps[number - 2].argval)


def _counts(name: str, value: object) -> bool:
    """Whether an attribute of a class has a say: not what Python keeps there for itself (also caches, `abc`'s)."""
    is_special = name.startswith("__") and name.endswith("__")
    return not name.startswith("_abc_") and not (is_special and not (callable(value) or hasattr(value, "__get__")))


def _wrapped(value: object, name: str) -> object:
    """The function in a wrapper that is found by its name, as `functools.cache` makes them."""
    if not hasattr(value, "__wrapped__"):
        raise NotKnown(f"{name}, which has no code in Python")
    return value.__wrapped__


def _found_by_name(module: str, qualified: str) -> object:
    found: Any = sys.modules.get(module)
    for name in qualified.split("."):
        found = getattr(found, name, None)
    return found


def _is_known(module: str) -> bool:
    """Whether it is told by its name: of Python, of doral, or installed."""
    top = module.partition(".")[0]
    if top == "__main__":  # whoever runs it from where (`python -m pytest`): what is written there may be typed in
        return False
    return top == "doral" or top in sys.stdlib_module_names or _is_installed(top)


@cache
def _is_installed(top: str) -> bool:
    found = sys.modules.get(top)
    if found is None:
        spec = importlib.util.find_spec(top) if top else None
        places = [] if spec is None else [spec.origin, *(spec.submodule_search_locations or ())]
    else:
        places = [getattr(found, "__file__", None), *getattr(found, "__path__", ())]
    return any(part in _INSTALLED for place in places if place for part in Path(place).parts)


@cache
def _version_of(top: str) -> str:
    """What was installed, file by file; where nobody wrote that down, what it says of itself."""
    if top == "doral" or top in sys.stdlib_module_names:
        return ""
    found = _distribution(top)
    said = "" if found is None else found.read_text("RECORD") or found.version
    return hashlib.sha256(said.encode()).hexdigest() if said else str(getattr(sys.modules.get(top), "__version__", ""))


def _distribution(top: str) -> Distribution | None:
    try:
        return distribution(top)
    except PackageNotFoundError:  # scikit-learn is imported as sklearn
        names = packages_distributions().get(top, ())
        return distribution(names[0]) if names else None
