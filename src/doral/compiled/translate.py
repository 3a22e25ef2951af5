"""Translate kernels to LLVM's assembly language.

Kernels are written in a small part of Python: numbers, arrays, records of arrays, trees, tuples, branches, loops, and
calls of other kernels. Each function is translated once per types of its arguments, from its source. A name has one
type in a function: where an integer meets a float, it is a float. All else raises `Unsupported`.

Nothing raises: a division by zero gives an infinity or NaN, that of integers gives 0. A function's variables are slots
in memory (`alloca`), which LLVM's first pass turns into registers.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import linecache
import math
import operator
import struct
import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from doral.compiled.kernels import INLINED, RARE, Kernel, position, whole_product
from doral.trees import BOOL, FLOAT, INT, SCALARS, UINT64, ArrayLeaf, TreeLayout, words_of

NONE, OBJECT = "none", "object"  # types of what has no value at run time
ATTRIBUTES = {INLINED: "inlinehint", RARE: "noinline optsize cold"}
MATH = {  # functions of one float: the name in LLVM or in the C library
    "sqrt": "llvm.sqrt.f64",
    "exp": "llvm.exp.f64",
    "log": "llvm.log.f64",
    "floor": "llvm.floor.f64",
    "ceil": "llvm.ceil.f64",
    "fabs": "llvm.fabs.f64",
    "log1p": "log1p",
    "expm1": "expm1",
    "erfc": "erfc",
}
FOLDED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
ARITHMETIC = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
BITS = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr"}
COMPARED = {  # of floats, of signed and of unsigned integers
    ast.Eq: ("oeq", "eq", "eq"),
    ast.NotEq: ("une", "ne", "ne"),
    ast.Lt: ("olt", "slt", "ult"),
    ast.LtE: ("ole", "sle", "ule"),
    ast.Gt: ("ogt", "sgt", "ugt"),
    ast.GtE: ("oge", "sge", "uge"),
}
SLOT = {INT: "i64", UINT64: "i64", FLOAT: "double", BOOL: "i1"}
STORED = {  # dtypes: type, LLVM's type, how it is widened
    "f8": (FLOAT, "double", ""),
    "i8": (INT, "i64", ""),
    "u8": (UINT64, "i64", ""),
    "i4": (INT, "i32", "sext"),
    "i2": (INT, "i16", "sext"),
    "i1": (INT, "i8", "sext"),
    "u1": (INT, "i8", "zext"),
}


class Unsupported(Exception):
    """A kernel uses what this translation does not know."""


class _Retyped(Exception):
    """A name turned out to have another type: translate the function again."""


class ArrayType(NamedTuple):
    """An array in row order."""

    dtype: np.dtype[Any]
    ndim: int


class RecordType(NamedTuple):
    """One element of an array of records, by its address."""

    dtype: np.dtype[Any]


class TupleType(NamedTuple):
    """A tuple, or one with names."""

    fields: tuple[Any, ...]
    tuple_class: type = tuple


class Value:
    """What an expression gives: its type, and LLVM's names of its parts, which may be written when they are needed."""

    def __init__(
        self, kind: Any, parts: Sequence[str] | Callable[[int], str], constant: Any = None, is_natural: bool = False
    ) -> None:
        self.kind, self._parts, self.constant, self.is_natural = kind, parts, constant, is_natural

    def part(self, i: int = 0) -> str:
        return self._parts(i) if callable(self._parts) else self._parts[i]

    def parts(self) -> list[str]:
        return [self.part(i) for i in range(len(slots_of(self.kind)))]


def slots_of(kind: Any) -> list[str]:
    """LLVM's types of the parts of a value."""
    if isinstance(kind, ArrayType):
        return ["ptr"] + ["i64"] * kind.ndim
    if isinstance(kind, TupleType):
        return [slot for field in kind.fields for slot in slots_of(field)]
    if isinstance(kind, (TreeLayout, RecordType)):
        return ["ptr"]
    return [SLOT[kind]] if kind in SLOT else []


def joined(one: Any, other: Any) -> Any:
    """The type of a name that has values of both types."""
    if one == other:
        return one
    for widest in (FLOAT, INT):
        if {one, other} <= {BOOL, INT, FLOAT} and widest in (one, other):
            return widest
    raise Unsupported(f"{one} and {other} in one place")


def constant_of(value: Any) -> Value:
    """A value that is known while compiling."""
    if isinstance(value, (bool, np.bool_)):
        return Value(BOOL, ["true" if value else "false"], bool(value))
    if isinstance(value, np.uint64):
        return Value(UINT64, [str(int(value.view(np.int64)))], value)
    if isinstance(value, (int, np.integer)):
        return Value(INT, [str(int(value))], int(value), bool(value >= 0))
    if isinstance(value, (float, np.floating)):
        return Value(FLOAT, [f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"], float(value))
    if isinstance(value, tuple):
        return tuple_of([constant_of(one) for one in value], type(value))
    return Value(NONE if value is None else OBJECT, [], value)


def tuple_of(values: Sequence[Value], tuple_class: type = tuple) -> Value:
    parts = [part for value in values for part in value.parts()]
    return Value(TupleType(tuple(value.kind for value in values), tuple_class), parts)


@cache
def _functions_in(path: str) -> dict[int, tuple[ast.FunctionDef, Any]]:
    """Definitions and code of the functions in a file (or a cell of a notebook), by their first line."""
    linecache.checkcache(path)
    tree = ast.parse("".join(linecache.getlines(path)))
    code: dict[int, Any] = {}
    open_ = [compile(tree, path, "exec", dont_inherit=True)]
    while open_:
        for inner in open_.pop().co_consts:
            if isinstance(inner, types.CodeType):
                code.setdefault(inner.co_firstlineno, inner)
                open_.append(inner)
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    firsts = [min([node.lineno, *(one.lineno for one in node.decorator_list)]) for node in nodes]
    return {first: (node, code[first]) for first, node in zip(firsts, nodes, strict=True) if first in code}


def definition_of(function: Any) -> ast.FunctionDef:
    """The source of a function, if it is still what runs."""
    runs = function.__code__
    node, code = _functions_in(runs.co_filename).get(runs.co_firstlineno, (None, None))
    if node is None or code is None or (code.co_code, code.co_names) != (runs.co_code, runs.co_names):
        raise Unsupported(f"{function.__qualname__}: the source is not what was imported")
    return node


class Unit:
    """A program on its way: the text of a module, and which functions are in it."""

    def __init__(self) -> None:
        self.functions: list[str] = []
        self._known: dict[Any, tuple[str, Any] | None] = {}
        self._tags: dict[str, int] = {}
        self._declared: dict[str, str] = {}
        self.n_metadata = 3  # !0: empty, !1: the root of kinds of memory, !2: loops are short
        self.metadata = ["!0 = !{}", '!1 = !{!"doral"}', '!2 = !{!"llvm.loop.unroll.runtime.disable"}']

    def tag(self, kind: str) -> int:
        """LLVM may know that values of different kinds lie in different places: an array's dtype, a record's field."""
        if kind not in self._tags:
            words = kind.replace('"', "'").replace("\\", "/")
            n = self.n_metadata
            self.metadata += [f'!{n} = !{{!"{words}", !1, i64 0}}', f"!{n + 1} = !{{!{n}, !{n}, i64 0}}"]
            self._tags[kind], self.n_metadata = n + 1, n + 2
        return self._tags[kind]

    def loop(self) -> int:
        """A loop is not unrolled where its number of turns is unknown: most have some ten."""
        n = self.n_metadata
        self.metadata.append(f"!{n} = distinct !{{!{n}, !2}}")
        self.n_metadata += 1
        return n

    def declare(self, name: str, signature: str) -> str:
        self._declared[name] = signature
        return f"@{name}"

    def function_of(self, kernel: Kernel, kinds: tuple[Any, ...]) -> tuple[str, Any]:
        """The name and the returned type of a kernel for these types."""
        key = kernel, kinds
        if key not in self._known:
            self._known[key] = None
            name = f'@"{kernel.function.__name__}.{len(self._known)}"'
            self._known[key] = name, self._translated(kernel, kinds, name)
        found = self._known[key]
        if found is None:
            raise Unsupported(f"{kernel}: a kernel does not call itself")
        return found

    def _translated(self, kernel: Kernel, kinds: tuple[Any, ...], name: str) -> Any:
        names: dict[str, Any] = {}
        while True:
            try:
                function = _Function(self, kernel, kinds, names)
                text = function.text(name)
            except _Retyped:
                continue
            except Unsupported as error:
                code = kernel.function.__code__
                raise Unsupported(f"{error} ({kernel.function.__qualname__}, {code.co_filename})") from None
            self.functions.append(text)
            return names.get("return", NONE)

    def entry(self, name: str, kernel: Kernel, kinds: tuple[Any, ...], returns: Any) -> None:
        """A function with the convention of C around a kernel: a bool is a word."""
        callee, result = self.function_of(kernel, kinds)
        if result not in (INT, FLOAT, BOOL, UINT64, NONE):
            raise Unsupported(f"entry {name} returns {result}, not a number")
        if result != returns:
            raise Unsupported(f"entry {name} returns {result}, not {returns}")
        lines, taken, given = [], [], []
        for i, kind in enumerate(kinds):
            slot = _parameter(kind)
            taken.append(f"{'i64' if kind == BOOL else slot} %a{i}")
            given.append(f"{slots_of(kind)[0]} %{'b' if kind == BOOL else 'a'}{i}")
            if kind == BOOL:
                lines.append(f"  %b{i} = trunc i64 %a{i} to i1")
        slot = slots_of(result)[0] if result != NONE else "void"
        call = f"call {slot} {callee}({', '.join(given)})"
        if result == NONE:
            lines += [f"  {call}", "  ret void"]
        elif result == BOOL:
            lines += [f"  %r = {call}", "  %w = zext i1 %r to i64", "  ret i64 %w"]
        else:
            lines += [f"  %r = {call}", f"  ret {slot} %r"]
        head = f"define {'i64' if result == BOOL else slot} @{name}({', '.join(taken)}) nounwind {{"
        self.functions.append("\n".join([head, *lines, "}"]))

    def assembly(self) -> str:
        declared = [f"declare {signature.replace('(', f' @{name}(', 1)}" for name, signature in self._declared.items()]
        return "\n".join([*declared, *self.functions, *self.metadata, ""])


def translate(entries: Mapping[str, tuple[Kernel, tuple[Any, ...], Any]]) -> str:
    """Return a module in LLVM's assembly language: entries by name, their kernels, what they take and return."""
    unit = Unit()
    for name, (kernel, kinds, returns) in entries.items():
        unit.entry(name, kernel, kinds, NONE if returns is None else SCALARS[returns])
    return unit.assembly()


def _parameter(kind: Any) -> str:
    """LLVM's type of a parameter; a block is there, and nothing writes into it."""
    if isinstance(kind, TreeLayout):
        return f"ptr noalias nonnull readonly align 8 dereferenceable({8 * max(1, words_of(kind))})"
    return ", ".join(slots_of(kind))


class _Function:
    """One kernel for one list of types. `names` holds the types of its names, found so far."""

    def __init__(self, unit: Unit, kernel: Kernel, kinds: tuple[Any, ...], names: dict[str, Any]) -> None:
        self.unit, self.kernel, self.kinds, self.names = unit, kernel, kinds, names
        self.node = definition_of(kernel.function)
        self.lines: list[str] = []
        self.allocas: dict[str, str] = {}
        self.numbers = itertools.count()
        self.targets: set[str] = set()  # labels that something jumps to
        self.is_open = True  # whether the current block still needs an end
        self.loops: list[tuple[str, str]] = []  # where `continue` and `break` go
        self.fixed: dict[str, Value] = {}  # names that are bound once, before anything branches
        self.depth = 0
        code, closure = kernel.function.__code__, kernel.function.__closure__ or ()
        self.outer = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
        self.bound: dict[str, list[ast.AST]] = {}
        self._find_bindings(self.node.body)
        given = {one.arg for one in self.node.args.args}
        self.naturals = {
            name for name, at in self.bound.items() if name not in given and all(self._counts_up(one) for one in at)
        }

    # --- text --------------------------------------------------------------------------------------------------------

    def text(self, name: str) -> str:
        parameters = []
        for argument, kind in zip(self.node.args.args, self.kinds, strict=True):
            parts = [f"%in.{argument.arg}.{i}" for i in range(len(slots_of(kind)))]
            slots = [_parameter(kind)] if isinstance(kind, TreeLayout) else slots_of(kind)
            parameters += [f"{slot} {part}" for slot, part in zip(slots, parts, strict=True)]
            value = Value(kind, parts)
            if argument.arg in self.bound:
                self.assign(argument.arg, value)
            else:
                self.fixed[argument.arg] = value
        self.body(self.node.body)
        returned = self.names.get("return", NONE)
        slots = slots_of(returned)
        kind = "void" if not slots else slots[0] if len(slots) == 1 else f"{{{', '.join(slots)}}}"
        if self.is_open and returned != NONE:
            raise Unsupported("a kernel returns a value in all cases or in none")
        self.jump("end")
        self.begin("end")
        self.write(self._return(slots, kind))
        attributes = f"{ATTRIBUTES.get(self.kernel.kind, 'noinline')} nounwind"
        head = f"define internal {kind} {name}({', '.join(parameters)}) {attributes} {{"
        allocas = [f"  {place} = alloca {slot}" for place, slot in self.allocas.items()]
        return "\n".join([head, "start:", *allocas, *self.lines, "}"])

    def _return(self, slots: list[str], kind: str) -> str:
        parts = [self.emit(f"load {slot}, ptr %return.{i}") for i, slot in enumerate(slots)]
        if len(parts) <= 1:
            return f"ret {kind} {parts[0]}" if parts else "ret void"
        whole = "undef"
        for i, (slot, part) in enumerate(zip(slots, parts, strict=True)):
            whole = self.emit(f"insertvalue {kind} {whole}, {slot} {part}, {i}")
        return f"ret {kind} {whole}"

    def write(self, line: str) -> None:
        self.lines.append("  " + line)

    def emit(self, instruction: str) -> str:
        name = f"%t{next(self.numbers)}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def label(self) -> str:
        return f"l{next(self.numbers)}"

    def begin(self, label: str) -> None:
        """Go on at a place, if anything leads there."""
        self.is_open = label in self.targets
        if self.is_open:
            self.lines.append(f"{label}:")

    def jump(self, label: str, metadata: str = "") -> None:
        if self.is_open:
            self.write(f"br label %{label}{metadata}")
            self.targets.add(label)
        self.is_open = False

    def branch(self, condition: str, yes: str, no: str) -> None:
        if condition in ("true", "false"):
            self.jump(yes if condition == "true" else no)
            return
        self.write(f"br i1 {condition}, label %{yes}, label %{no}")
        self.targets |= {yes, no}
        self.is_open = False

    # --- names -------------------------------------------------------------------------------------------------------

    def _find_bindings(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            for node in ast.walk(statement):
                if isinstance(node, (ast.Assign, ast.AnnAssign, ast.For, ast.AugAssign)):
                    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                        for name in ast.walk(target):
                            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                                self.bound.setdefault(name.id, []).append(node)

    def _counts_up(self, node: ast.AST) -> bool:
        """Whether a loop gives its name no number below 0."""
        if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)):
            return False
        given = node.iter.args
        numbers = [self._known_integer(one) for one in given]
        if len(given) == 3 and not (isinstance(numbers[2], int) and numbers[2] > 0):
            is_down = isinstance(numbers[2], int) and numbers[2] < 0
            return is_down and isinstance(numbers[1], int) and numbers[1] >= -1
        return len(given) == 1 or (isinstance(numbers[0], int) and numbers[0] >= 0)

    def _known_integer(self, node: ast.expr) -> Any:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            known = self._known_integer(node.operand)
            return -known if isinstance(known, int) else None
        if isinstance(node, ast.Name) and node.id not in self.bound:
            return self.kernel.function.__globals__.get(node.id)
        return node.value if isinstance(node, ast.Constant) else None

    def assign(self, name: str, value: Value) -> None:
        """Keep a value under a name; if its type is new for that name, all begins again."""
        if name not in self.names:
            self.names[name] = value.kind
        kind = joined(self.names[name], value.kind)
        if kind != self.names[name]:
            self.names[name] = kind
            raise _Retyped
        for i, (slot, part) in enumerate(zip(slots_of(kind), self.convert(value, kind).parts(), strict=True)):
            place = f"%{name}.{i}"
            self.allocas[place] = slot
            self.write(f"store {slot} {part}, ptr {place}")

    def load(self, name: str) -> Value:
        kind = self.names[name]
        slots = slots_of(kind)
        if len(slots) == 1:
            parts = [self.emit(f"load {slots[0]}, ptr %{name}.0")]
            return Value(kind, parts, is_natural=name in self.naturals)
        return Value(kind, lambda i: self.emit(f"load {slots[i]}, ptr %{name}.{i}"))

    def named(self, name: str) -> Value:
        if name in self.fixed:
            return self.fixed[name]
        if name in self.bound:
            if name not in self.names:
                raise Unsupported(f"{name} has no value yet")
            return self.load(name)
        function = self.kernel.function
        for scope in (self.outer, function.__globals__, vars(builtins)):
            if name in scope:
                return constant_of(scope[name])
        raise Unsupported(f"unknown name {name}")

    # --- statements --------------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            if not self.is_open:
                return
            getattr(self, f"do_{type(statement).__name__}", self.refuse)(statement)

    def refuse(self, node: ast.AST) -> Any:
        raise Unsupported(f"line {getattr(node, 'lineno', 0)}: {type(node).__name__}")

    def do_Expr(self, node: ast.Expr) -> None:  # noqa: N802  (as ast names it)
        self.value(node.value)

    def do_Pass(self, node: ast.Pass) -> None:  # noqa: N802
        """Nothing."""

    def do_Return(self, node: ast.Return) -> None:  # noqa: N802
        value = constant_of(None) if node.value is None else self.value(node.value)
        self.assign("return", value)
        self.jump("end")

    def do_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        value = self.value(node.value)
        for target in node.targets:
            self.set(target, value, is_only=len(node.targets) == 1)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        if node.value is not None:
            self.set(node.target, self.value(node.value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        if isinstance(node.target, ast.Name):
            before = self.named(node.target.id)
            self.assign(node.target.id, self.calculate(node.op, before, self.value(node.value)))
            return
        place, dtype, kind = self.place(node.target)
        self.store(place, dtype, kind, self.calculate(node.op, self.read(place, dtype, kind), self.value(node.value)))

    def set(self, target: ast.expr, value: Value, is_only: bool = False) -> None:
        if isinstance(target, ast.Name):
            if is_only and self.depth == 0 and len(self.bound[target.id]) == 1:
                self.fixed[target.id] = Value(value.kind, value.parts(), value.constant, value.is_natural)
            else:
                self.assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            for i, (one, kind) in enumerate(zip(target.elts, self.fields(value), strict=True)):
                self.set(one, self.field(value, i, kind), is_only)
        else:
            place, dtype, kind = self.place(target)
            self.store(place, dtype, kind, value)

    def do_If(self, node: ast.If) -> None:  # noqa: N802
        yes, no, after = self.label(), self.label(), self.label()
        self.depth += 1
        self.decide(node.test, yes, no)
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            self.body(body)
            self.jump(after)
        self.depth -= 1
        self.begin(after)

    def do_While(self, node: ast.While) -> None:  # noqa: N802
        head, body, after = self.label(), self.label(), self.label()
        self.jump(head)
        self.begin(head)
        self.depth += 1
        self.decide(node.test, body, after)
        self.loops.append((head, after))
        self.begin(body)
        self.body(node.body)
        self.jump(head, f", !llvm.loop !{self.unit.loop()}")
        self.loops.pop()
        self.depth -= 1
        self.begin(after)

    def do_For(self, node: ast.For) -> None:  # noqa: N802
        if not (isinstance(node.iter, ast.Call) and isinstance(node.iter.func, ast.Name)):
            self._for_each(node, self.value(node.iter))
            return
        given = [self.convert(self.value(one), INT) for one in node.iter.args]
        if node.iter.func.id != "range" or not isinstance(node.target, ast.Name):
            raise Unsupported(f"line {node.lineno}: a loop over {node.iter.func.id}")
        start, stop = (constant_of(0), given[0]) if len(given) == 1 else given[:2]
        step = given[2] if len(given) == 3 else constant_of(1)
        counter = f"%counter.{next(self.numbers)}"
        self.allocas[counter] = "i64"
        start_part, stop_part, step_part = start.part(), stop.part(), step.part()
        self.write(f"store i64 {start_part}, ptr {counter}")
        head, body, latch, after = self.label(), self.label(), self.label(), self.label()
        self.jump(head)
        self.begin(head)
        at = self.emit(f"load i64, ptr {counter}")
        up, down = (f"icmp {word} i64 {at}, {stop_part}" for word in ("slt", "sgt"))
        if step.constant is None:
            is_up = self.emit(f"icmp sgt i64 {step_part}, 0")
            goes_on = self.emit(f"select i1 {is_up}, i1 {self.emit(up)}, i1 {self.emit(down)}")
        else:
            goes_on = self.emit(up if step.constant > 0 else down)
        self.branch(goes_on, body, after)
        self.begin(body)
        self.depth += 1
        self.assign(node.target.id, Value(INT, [at]))
        self.loops.append((latch, after))
        self.body(node.body)
        self.loops.pop()
        self.depth -= 1
        self.jump(latch)
        self.begin(latch)
        self.write(f"store i64 {self.emit(f'add nsw i64 {at}, {step_part}')}, ptr {counter}")
        self.jump(head, f", !llvm.loop !{self.unit.loop()}")
        self.begin(after)

    def _for_each(self, node: ast.For, values: Value) -> None:
        """A loop over a tuple is written out."""
        self.depth += 1
        for i, kind in enumerate(self.fields(values)):
            self.set(node.target, self.field(values, i, kind))
            self.body(node.body)
        self.depth -= 1

    def do_Break(self, node: ast.Break) -> None:  # noqa: N802
        self.jump(self.loops[-1][1])

    def do_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.jump(self.loops[-1][0])

    # --- conditions --------------------------------------------------------------------------------------------------

    def decide(self, node: ast.expr, yes: str, no: str) -> None:
        """Go on at one of two places."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.decide(node.operand, no, yes)
        elif isinstance(node, ast.BoolOp):
            for one in node.values[:-1]:
                if not self.is_open:
                    return
                following = self.label()
                self.decide(one, *((following, no) if isinstance(node.op, ast.And) else (yes, following)))
                self.begin(following)
            if self.is_open:
                self.decide(node.values[-1], yes, no)
        else:
            self.branch(self.convert(self.value(node), BOOL).part(), yes, no)

    def get_BoolOp(self, node: ast.expr) -> Value:  # noqa: N802
        name, yes, no, after = f"{self.label()}.bool", self.label(), self.label(), self.label()
        self.names.setdefault(name, BOOL)
        self.decide(node, yes, no)
        for label, truth in ((yes, True), (no, False)):
            self.begin(label)
            if self.is_open:
                self.assign(name, constant_of(truth))
            self.jump(after)
        self.begin(after)
        return self.load(name)

    def get_IfExp(self, node: ast.IfExp) -> Value:  # noqa: N802
        name, yes, no, after = f"if.{node.lineno}.{node.col_offset}", self.label(), self.label(), self.label()
        self.decide(node.test, yes, no)
        for label, one in ((yes, node.body), (no, node.orelse)):
            self.begin(label)
            if self.is_open:
                self.assign(name, self.value(one))
            self.jump(after)
        self.begin(after)
        return self.load(name)

    def get_Compare(self, node: ast.Compare) -> Value:  # noqa: N802
        values = [self.value(one) for one in (node.left, *node.comparators)]
        found = [self._compared(type(op), *values[i : i + 2]) for i, op in enumerate(node.ops)]
        whole = found[0]
        for one in found[1:]:
            whole = self.emit(f"and i1 {whole}, {one}")
        return Value(BOOL, [whole])

    def _compared(self, op: type, one: Value, other: Value) -> str:
        if op not in COMPARED:
            raise Unsupported(f"comparison {op.__name__}")
        kind, (one, other) = self.alike(one, other)
        if kind == BOOL:
            kind, one, other = INT, self.convert(one, INT), self.convert(other, INT)
        words = COMPARED[op]
        if kind == FLOAT:
            return self.emit(f"fcmp {words[0]} double {one.part()}, {other.part()}")
        return self.emit(f"icmp {words[1 if kind == INT else 2]} i64 {one.part()}, {other.part()}")

    # --- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Value:
        found: Value = getattr(self, f"get_{type(node).__name__}", self.refuse)(node)
        return found

    def get_Constant(self, node: ast.Constant) -> Value:  # noqa: N802
        return constant_of(node.value)

    def get_Name(self, node: ast.Name) -> Value:  # noqa: N802
        return self.named(node.id)

    def get_Tuple(self, node: ast.Tuple) -> Value:  # noqa: N802
        return tuple_of([self.value(one) for one in node.elts])

    def get_UnaryOp(self, node: ast.UnaryOp) -> Value:  # noqa: N802
        if isinstance(node.op, ast.Not):
            return self.get_BoolOp(node)
        value = self.value(node.operand)
        if not isinstance(node.op, ast.USub) or value.kind not in (INT, FLOAT):
            self.refuse(node)
        if value.constant is not None:
            return constant_of(-value.constant)
        if value.kind == FLOAT:
            return Value(FLOAT, [self.emit(f"fneg double {value.part()}")])
        return Value(INT, [self.emit(f"sub i64 0, {value.part()}")])

    def get_BinOp(self, node: ast.BinOp) -> Value:  # noqa: N802
        return self.calculate(node.op, self.value(node.left), self.value(node.right))

    def alike(self, one: Value, other: Value) -> tuple[Any, tuple[Value, Value]]:
        """Two numbers of one type."""
        for a, b in ((one, other), (other, one)):
            if a.kind == UINT64 and b.kind == FLOAT:
                return FLOAT, (self.convert(one, FLOAT), self.convert(other, FLOAT))
            if a.kind == UINT64 and b.kind in (INT, BOOL):
                raise Unsupported("a signed and an unsigned integer")
        kind = joined(one.kind, other.kind)
        if kind not in SLOT:
            raise Unsupported(f"{kind} is not a number")
        return kind, (self.convert(one, kind), self.convert(other, kind))

    def calculate(self, op: ast.operator, one: Value, other: Value) -> Value:
        sort = type(op)
        if sort in FOLDED and {one.kind, other.kind} <= {INT, FLOAT} and None not in (one.constant, other.constant):
            return constant_of(FOLDED[sort](one.constant, other.constant))
        if sort is ast.Pow:
            return self._power(one, other)
        if sort is ast.Div:
            one, other = self.convert(one, FLOAT), self.convert(other, FLOAT)
            return Value(FLOAT, [self.emit(f"fdiv double {one.part()}, {other.part()}")])
        kind, (one, other) = self.alike(one, other)
        if kind == BOOL and sort not in BITS:
            kind, one, other = INT, self.convert(one, INT), self.convert(other, INT)
        if sort in BITS and kind != FLOAT:
            word = BITS[sort]
            word = word if word != "shr" else "ashr" if kind == INT else "lshr"
            is_natural = word == "and" and (one.is_natural or other.is_natural)
            return Value(kind, [self.emit(f"{word} {SLOT[kind]} {one.part()}, {other.part()}")], None, is_natural)
        if sort in ARITHMETIC:
            is_natural = sort is not ast.Sub and one.is_natural and other.is_natural
            word = f"f{ARITHMETIC[sort]} double" if kind == FLOAT else f"{ARITHMETIC[sort]} i64"
            return Value(kind, [self.emit(f"{word} {one.part()}, {other.part()}")], None, is_natural)
        if sort in (ast.FloorDiv, ast.Mod) and kind == INT:
            return self._divide(one, other, is_quotient=sort is ast.FloorDiv)
        raise Unsupported(f"{sort.__name__} of {kind}")

    def _power(self, one: Value, other: Value) -> Value:
        """A float to the power of a float. A square is written x * x: its last bit differs from that of x ** 2."""
        if other.kind != FLOAT:
            raise Unsupported(f"power of {one.kind} and {other.kind}; write a square as x * x")
        return self.call_c("llvm.pow.f64", one, other)

    def _divide(self, one: Value, other: Value, *, is_quotient: bool) -> Value:
        """Rounded down, and 0 where the divisor is."""
        a, b, n = one.part(), other.part(), other.constant
        is_natural = one.is_natural and other.is_natural
        if isinstance(n, int) and n > 0 and one.is_natural:
            return Value(INT, [self.emit(f"{'sdiv' if is_quotient else 'srem'} i64 {a}, {b}")], None, True)
        is_zero = self.emit(f"icmp eq i64 {b}, 0")
        divisor = self.emit(f"select i1 {is_zero}, i64 1, i64 {b}")
        quotient, rest = (self.emit(f"{word} i64 {a}, {divisor}") for word in ("sdiv", "srem"))
        differs = self.emit(f"icmp slt i64 {self.emit(f'xor i64 {rest}, {b}')}, 0")
        is_below = self.emit(f"and i1 {differs}, {self.emit(f'icmp ne i64 {rest}, 0')}")
        if is_quotient:
            least = self.emit(f"sub i64 {quotient}, {self.emit(f'zext i1 {is_below} to i64')}")
            return Value(INT, [self.emit(f"select i1 {is_zero}, i64 0, i64 {least}")], None, is_natural)
        least = self.emit(f"add i64 {rest}, {self.emit(f'select i1 {is_below}, i64 {b}, i64 0')}")
        return Value(INT, [self.emit(f"select i1 {is_zero}, i64 0, i64 {least}")], None, is_natural)

    def convert(self, value: Value, kind: Any) -> Value:
        """The same value as another type."""
        given = value.kind
        if given == kind:
            return value
        if value.constant is not None and given in (INT, BOOL) and kind in (FLOAT, INT, BOOL):
            return constant_of({FLOAT: float, INT: int, BOOL: bool}[kind](value.constant))
        wanted = (given, kind)
        words = {
            (INT, FLOAT): "sitofp i64 {} to double",
            (UINT64, FLOAT): "uitofp i64 {} to double",
            (BOOL, FLOAT): "uitofp i1 {} to double",
            (BOOL, INT): "zext i1 {} to i64",
            (FLOAT, INT): "fptosi double {} to i64",
            (FLOAT, UINT64): "fptoui double {} to i64",
            (INT, BOOL): "icmp ne i64 {}, 0",
            (UINT64, BOOL): "icmp ne i64 {}, 0",
            (FLOAT, BOOL): "fcmp une double {}, 0.0",
            (BOOL, UINT64): "zext i1 {} to i64",
        }
        if wanted in ((INT, UINT64), (UINT64, INT)):
            return Value(kind, [value.part()])
        if wanted not in words:
            raise Unsupported(f"{given} where {kind} is wanted")
        return Value(kind, [self.emit(words[wanted].format(value.part()))], None, wanted == (BOOL, INT))

    # --- parts of what is in memory ----------------------------------------------------------------------------------

    def fields(self, value: Value) -> tuple[Any, ...]:
        if not isinstance(value.kind, TupleType):
            raise Unsupported(f"{value.kind} is not a tuple")
        return value.kind.fields

    def field(self, value: Value, i: int, kind: Any) -> Value:
        first = sum(len(slots_of(one)) for one in value.kind.fields[:i])
        return Value(kind, [value.part(first + part) for part in range(len(slots_of(kind)))])

    def get_Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802
        base = self.value(node.value)
        kind, name = base.kind, node.attr
        if kind == OBJECT:
            return constant_of(getattr(base.constant, name))
        if isinstance(kind, TreeLayout):
            return self._leaf(base, name)
        if isinstance(kind, RecordType):
            return self.read(*self.place(node, base))
        if isinstance(kind, TupleType) and name in getattr(kind.tuple_class, "_fields", ()):
            i = kind.tuple_class._fields.index(name)  # type: ignore[attr-defined]
            return self.field(base, i, kind.fields[i])
        if isinstance(kind, ArrayType) and name == "shape":
            return tuple_of([Value(INT, [base.part(1 + i)], None, True) for i in range(kind.ndim)])
        if isinstance(kind, ArrayType) and name == "size":
            return Value(INT, [self._product([base.part(1 + i) for i in range(kind.ndim)])], None, True)
        raise Unsupported(f"line {node.lineno}: {kind} has no {name}")

    def _product(self, parts: Sequence[str]) -> str:
        whole = parts[0] if parts else "1"
        for part in parts[1:]:
            whole = self.emit(f"mul nsw i64 {whole}, {part}")
        return whole

    def _leaf(self, tree: Value, name: str) -> Value:
        """A field of a tree, from its block: words that nothing ever changes while code runs."""
        names = tree.kind.tree_class._fields
        if name not in names:
            raise Unsupported(f"{tree.kind.tree_class.__name__} has no field {name}")
        i = names.index(name)
        leaf, start, base = tree.kind.leaves[i], sum(map(words_of, tree.kind.leaves[:i])), tree.part()

        def word(part: int, slot: str) -> str:
            place = self.emit(f"getelementptr inbounds i8, ptr {base}, i64 {8 * (start + part)}")
            return self.emit(f"load {slot}, ptr {place}, align 8, !invariant.load !0")

        if isinstance(leaf, TreeLayout):
            return Value(leaf, [self.emit(f"getelementptr inbounds i8, ptr {base}, i64 {8 * start}")])
        if isinstance(leaf, ArrayLeaf):
            return Value(ArrayType(leaf.dtype, leaf.ndim), lambda i: word(i, "i64" if i else "ptr"))
        if leaf == BOOL:
            return Value(BOOL, [self.emit(f"trunc i64 {word(0, 'i64')} to i1")])
        return Value(leaf, [word(0, SLOT[leaf])])

    def place(self, node: ast.expr, base: Value | None = None) -> tuple[str, Any, str]:
        """The address of an element or of a record's field, its dtype, and its kind of memory."""
        if isinstance(node, ast.Attribute):
            record = self.value(node.value) if base is None else base
            if not isinstance(record.kind, RecordType) or node.attr not in (record.kind.dtype.names or ()):
                raise Unsupported(f"line {node.lineno}: {record.kind} has no {node.attr}")
            dtype, offset = dict(record.kind.dtype.fields or {})[node.attr][:2]
            place = self.emit(f"getelementptr inbounds i8, ptr {record.part()}, i64 {offset}")
            return place, dtype, f"{record.kind.dtype}.{node.attr}"
        if not isinstance(node, ast.Subscript):
            raise Unsupported(f"line {node.lineno}: {type(node).__name__} on the left")
        array = self.value(node.value)
        found = self.element(array, node.slice)
        if not isinstance(found.kind, RecordType) or found.kind.dtype.names:
            self.refuse(node)
        return found.part(), found.kind.dtype, str(found.kind.dtype)

    def read(self, place: str, dtype: Any, kind: str) -> Value:
        known = STORED.get(dtype.str[1:])
        if known is None or not dtype.isnative:
            raise Unsupported(f"a value of dtype {dtype}")
        loaded, slot, widened = known
        part = self.emit(f"load {slot}, ptr {place}, align {dtype.alignment}, !tbaa !{self.unit.tag(kind)}")
        return Value(loaded, [self.emit(f"{widened} {slot} {part} to i64") if widened else part])

    def store(self, place: str, dtype: Any, kind: str, value: Value) -> None:
        known = STORED.get(dtype.str[1:])
        if known is None or not dtype.isnative:
            raise Unsupported(f"a value of dtype {dtype}")
        stored, slot, widened = known
        part = self.convert(value, stored).part()
        part = self.emit(f"trunc i64 {part} to {slot}") if widened else part
        self.write(f"store {slot} {part}, ptr {place}, align {dtype.alignment}, !tbaa !{self.unit.tag(kind)}")

    def get_Subscript(self, node: ast.Subscript) -> Value:  # noqa: N802
        base = self.value(node.value)
        if isinstance(base.kind, TupleType):
            return self._item(base, self.value(node.slice))
        found = self.element(base, node.slice)
        if isinstance(found.kind, RecordType) and not found.kind.dtype.names:
            return self.read(found.part(), found.kind.dtype, str(found.kind.dtype))
        return found

    def _item(self, base: Value, index: Value) -> Value:
        kinds = self.fields(base)
        if index.constant is None:
            raise Unsupported("an item of a tuple that is not constant")
        i = range(len(kinds))[index.constant]
        return self.field(base, i, kinds[i])

    def whole(self, index: Value, extent: str) -> str:
        """An index from the start: below 0 it counts from the end."""
        at = self.convert(index, INT) if index.kind == BOOL else index
        if at.kind not in (INT, UINT64):
            raise Unsupported(f"an index of type {at.kind}")
        if at.kind == UINT64 or at.is_natural:
            return at.part()
        is_below = self.emit(f"icmp slt i64 {at.part()}, 0")
        return self.emit(f"select i1 {is_below}, i64 {self.emit(f'add i64 {at.part()}, {extent}')}, i64 {at.part()}")

    def element(self, array: Value, index: ast.expr) -> Value:
        """An element of an array by its address (as a record), or a part of the array."""
        if not isinstance(array.kind, ArrayType):
            raise Unsupported(f"line {index.lineno}: {array.kind} has no elements")
        dtype, ndim = array.kind
        values = [self.value(one) for one in (index.elts if isinstance(index, ast.Tuple) else [index])]
        at = ""
        for axis, one in enumerate(values):
            needs_extent = axis > 0 or not (one.is_natural or one.kind == UINT64)
            extent = array.part(1 + axis) if needs_extent else ""
            here = self.whole(one, extent)
            at = here if axis == 0 else self.emit(f"add nsw i64 {self.emit(f'mul nsw i64 {at}, {extent}')}, {here}")
        rest = [array.part(1 + axis) for axis in range(len(values), ndim)]
        place = self.emit(
            f"getelementptr [{dtype.itemsize} x i8], ptr {array.part()}, i64 {self._product([at, *rest])}"
        )
        return Value(ArrayType(dtype, len(rest)), [place, *rest]) if rest else Value(RecordType(dtype), [place])

    # --- calls -------------------------------------------------------------------------------------------------------

    def get_Call(self, node: ast.Call) -> Value:  # noqa: N802
        if isinstance(node.func, ast.Attribute) and node.func.attr == "view":
            return self._reread(self.value(node.func.value), self.value(node.args[0]).constant)
        called = self.value(node.func).constant
        arguments = [self.value(one) for one in node.args]
        if node.keywords or called is None:
            self.refuse(node)
        if isinstance(called, Kernel):
            return self.call_kernel(called, arguments)
        if isinstance(called, type) and issubclass(called, tuple) and hasattr(called, "_fields"):
            if len(arguments) != len(called._fields):
                self.refuse(node)
            return tuple_of(arguments, called)
        if called in (min, max):
            return self._extreme(arguments, "lt" if called is min else "gt")
        if called in (int, float, bool, np.uint64, np.float64, np.int64):
            kind = {int: INT, np.int64: INT, bool: BOOL, np.uint64: UINT64}.get(called, FLOAT)
            return self.convert(arguments[0], kind)
        if called is abs or called is math.fabs:
            return self._absolute(arguments[0])
        if called in (math.floor, math.ceil):
            return self.convert(self.call_c(MATH[called.__name__], *arguments), INT)
        if called in (math.pow, np.ceil, np.floor):
            return self.call_c(MATH.get(called.__name__, "llvm.pow.f64"), *arguments)
        if called is math.isnan:
            part = self.convert(arguments[0], FLOAT).part()
            return Value(BOOL, [self.emit(f"fcmp uno double {part}, {part}")])
        if called is math.isinf:
            part = self._absolute(self.convert(arguments[0], FLOAT)).part()
            return Value(BOOL, [self.emit(f"fcmp oeq double {part}, 0x7FF0000000000000")])
        if getattr(called, "__module__", "") == "math" and called.__name__ in MATH:
            return self.call_c(MATH[called.__name__], *arguments)
        raise Unsupported(f"line {node.lineno}: a call of {called}")

    def call_kernel(self, kernel: Kernel, arguments: Sequence[Value]) -> Value:
        if kernel is position:  # so common that it is written in its place
            part = self.convert(arguments[0], INT).part()
            return Value(INT, [self.emit(f"and i64 {part}, {2**63 - 1}")], None, True)
        if kernel is whole_product:
            return self._whole_product(*arguments)
        missing = kernel.function.__code__.co_argcount - len(arguments)
        defaults = kernel.function.__defaults__ or ()
        if not 0 <= missing <= len(defaults):
            raise Unsupported(f"{kernel} takes {kernel.function.__code__.co_argcount} arguments")
        values = [*arguments, *(constant_of(one) for one in defaults[len(defaults) - missing :])]
        name, result = self.unit.function_of(kernel, tuple(value.kind for value in values))
        given = [f"{s} {p}" for v in values for s, p in zip(slots_of(v.kind), v.parts(), strict=True)]
        slots = slots_of(result)
        if not slots:
            self.write(f"call void {name}({', '.join(given)})")
            return constant_of(None)
        kind = slots[0] if len(slots) == 1 else f"{{{', '.join(slots)}}}"
        whole = self.emit(f"call {kind} {name}({', '.join(given)})")
        if len(slots) == 1:
            return Value(result, [whole])
        return Value(result, [self.emit(f"extractvalue {kind} {whole}, {i}") for i in range(len(slots))])

    def call_c(self, name: str, *arguments: Value) -> Value:
        """A function of LLVM or of the C library, of floats or of integers."""
        kind = INT if name.endswith(".i64") else FLOAT
        slot = SLOT[kind]
        called = self.unit.declare(name, f"{slot} ({', '.join([slot] * len(arguments))})")
        given = ", ".join(f"{slot} {self.convert(one, kind).part()}" for one in arguments)
        return Value(kind, [self.emit(f"call {slot} {called}({given})")])

    def _extreme(self, arguments: Sequence[Value], word: str) -> Value:
        """`min` or `max`: the first of equals, and of those that cannot be compared."""
        best = arguments[0]
        for other in arguments[1:]:
            kind, (one, two) = self.alike(best, other)
            slot, test = (
                ("double", f"fcmp o{word}")
                if kind == FLOAT
                else (SLOT[kind], f"icmp {'u' if kind == UINT64 else 's'}{word}")
            )
            is_better = self.emit(f"{test} {slot} {two.part()}, {one.part()}")
            is_natural = (one.is_natural or two.is_natural) if word == "gt" else (one.is_natural and two.is_natural)
            part = self.emit(f"select i1 {is_better}, {slot} {two.part()}, {slot} {one.part()}")
            best = Value(kind, [part], None, is_natural)
        return best

    def _absolute(self, value: Value) -> Value:
        if value.kind == FLOAT:
            return self.call_c("llvm.fabs.f64", value)
        below = self.emit(f"sub i64 0, {self.convert(value, INT).part()}")
        return self.call_c("llvm.smax.i64", value, Value(INT, [below]))

    def _whole_product(self, one: Value, other: Value) -> Value:
        wide = [self.emit(f"zext i64 {value.part()} to i128") for value in (one, other)]
        product = self.emit(f"mul i128 {wide[0]}, {wide[1]}")
        high = self.emit(f"trunc i128 {self.emit(f'lshr i128 {product}, 64')} to i64")
        low = self.emit(f"trunc i128 {product} to i64")
        return tuple_of([Value(UINT64, [high]), Value(UINT64, [low])])

    def _reread(self, value: Value, wanted: Any) -> Value:
        """The bits of a number as those of another."""
        if value.kind == FLOAT and wanted is np.uint64:
            return Value(UINT64, [self.emit(f"bitcast double {value.part()} to i64")])
        if value.kind == UINT64 and wanted is np.float64:
            return Value(FLOAT, [self.emit(f"bitcast i64 {value.part()} to double")])
        raise Unsupported(f"{value.kind} seen as {wanted}")
