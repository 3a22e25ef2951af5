"""The kernels of `rows` with their sums in registers: LLVM by itself would write and read them again for every row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing import signature
from numba.extending import intrinsic

from doral._kernel.aliases import tag_load, tag_store
from doral._kernel.indexing import WORD, field_of
from doral._kernel.loops import keep_short
from doral._kernel.pointers import WORD_BYTES
from doral._kernel.rows import VECTOR

_NUMBER = ir.DoubleType()
_KIND = str(types.float64)
_AT_ONCE = 2  # vectors, where there are so many columns
_HALF = VECTOR // 2


def _row_sums(context: Any, rows: Any, times: Any, total: Any) -> Any:
    """Each sum is added up as if it were alone: the same bits."""

    def write(columns: _Columns, data: Sequence[Any]) -> None:
        matrix, by, sums = data
        columns.add_up_all(matrix, by, lambda place, found: columns.store(found, sums, place))

    return _written(write, rows, times, total)


def _shift(context: Any, rows: Any, times: Any, gain: Any, line: Any) -> Any:
    def write(columns: _Columns, data: Sequence[Any]) -> None:
        matrix, by, gained, shifted = data
        columns.add_up(matrix, by, lambda place, found: columns.shift(found, gained, shifted, place))

    return _written(write, rows, times, gain, line)


def _narrow(context: Any, rows: Any, times: Any, scale: Any, squared: Any) -> Any:
    def write(columns: _Columns, data: Sequence[Any]) -> None:
        matrix, by, scaled, narrowed = data
        columns.add_up(matrix, by, lambda place, found: columns.narrow(found, scaled, narrowed, place))

    return _written(write, rows, times, scale, squared)


def _move(context: Any, rows: Any, times: Any, gain: Any, line: Any, scale: Any, squared: Any) -> Any:
    def write(columns: _Columns, data: Sequence[Any]) -> None:
        matrix, by, gained, shifted, scaled, narrowed = data

        def use(place: Any, found: Any) -> None:
            columns.shift(found, gained, shifted, place)
            columns.narrow(found, scaled, narrowed, place)

        columns.add_up(matrix, by, use)

    return _written(write, rows, times, gain, line, scale, squared)


def _take_off(context: Any, rows: Any, times: Any, scale: Any) -> Any:
    def write(columns: _Columns, data: Sequence[Any]) -> None:
        columns.take_off(*data)

    return _written(write, rows, times, scale)


def _written(write: Callable[[_Columns, Sequence[Any]], None], *kinds: Any) -> Any:
    """What Numba wants to know: the types of a call, and how it is written. The first argument is the matrix."""

    def write_call(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
        pairs = list(zip(called.args, arguments, strict=True))
        data = [
            field_of(target, builder, kind, one, "data") if isinstance(kind, types.Array) else one
            for kind, one in pairs
        ]
        shape = field_of(target, builder, *pairs[0], "shape")
        write(_Columns(builder, *(builder.extract_value(shape, axis) for axis in (0, 1))), data)
        return target.get_dummy_value()

    taken = (kind if isinstance(kind, types.Array) else types.float64 for kind in kinds)
    return signature(types.none, *taken), write_call


written_row_sums, written_shift, written_narrow = intrinsic(_row_sums), intrinsic(_shift), intrinsic(_narrow)
written_move, written_take_off = intrinsic(_move), intrinsic(_take_off)

Use = Callable[[Any, Any], None]  # of the sums of a vector of columns, which begins here


class _Columns:
    """The columns of a matrix, some vectors of them at once."""

    def __init__(self, builder: Any, n_rows: Any, n_columns: Any) -> None:
        self.builder, self.n_rows, self.n_columns = builder, n_rows, n_columns

    def add_up_all(self, matrix: Any, times: Any, use: Use) -> None:
        """The rest of columns as two shorter vectors, of which the last ends with the last column, and some come twice.

        Where columns are fewer than such a vector is long, one by one.
        """
        builder = self.builder
        begin = self._add_up_vectors(matrix, times, use)
        last = builder.sub(self.n_columns, _word(_HALF))
        has_vector = builder.icmp_signed(">=", last, _word(0))
        end = builder.select(has_vector, self.n_columns, begin)
        with self._loop(begin, end, VECTOR) as column:
            places = [self._least(column, last), self._least(builder.add(column, _word(_HALF)), last)]
            self._add_up(matrix, times, places, _HALF, use)
        with self._loop(end, self.n_columns, 1) as column:
            self._add_up(matrix, times, [column], 1, use)

    def add_up(self, matrix: Any, times: Any, use: Use) -> None:
        """The rest of columns one by one: none comes twice."""
        begin = self._add_up_vectors(matrix, times, use)
        with self._loop(begin, self.n_columns, 1) as column:
            self._add_up(matrix, times, [column], 1, use)

    def _add_up_vectors(self, matrix: Any, times: Any, use: Use) -> Any:
        """All whole ones; where the rest begins."""
        begin = _word(0)
        for at_once in (_AT_ONCE, 1):
            end = self.builder.and_(self.n_columns, _word(-VECTOR * at_once))
            with self._loop(begin, end, VECTOR * at_once) as column:
                places = [self.builder.add(column, _word(VECTOR * one)) for one in range(at_once)]
                self._add_up(matrix, times, places, VECTOR, use)
            begin = end
        return begin

    def _add_up(self, matrix: Any, times: Any, columns: Sequence[Any], lanes: int, use: Use) -> None:
        """The sums of vectors of columns, which begin here."""
        builder, kind = self.builder, _vector(lanes)
        with builder.goto_entry_block():
            totals = [builder.alloca(kind) for _ in columns]
        for total in totals:
            builder.store(ir.Constant(kind, [0.0] * lanes), total)
        with self._loop(_word(0), self.n_rows, 1) as row:
            by = self._spread(self._number_at(times, row), kind)
            start = builder.mul(row, self.n_columns)
            for column, total in zip(columns, totals, strict=True):
                added = builder.fmul(self._load(matrix, builder.add(start, column), kind), by)
                builder.store(builder.fadd(builder.load(total), added), total)
        for column, total in zip(columns, totals, strict=True):
            use(column, builder.load(total))

    def shift(self, found: Any, gain: Any, line: Any, column: Any) -> None:
        kind = found.type
        added = self.builder.fmul(found, self._spread(gain, kind))
        self.store(self.builder.fadd(self._load(line, column, kind), added), line, column)

    def narrow(self, found: Any, scale: Any, squared: Any, column: Any) -> None:
        builder, kind = self.builder, found.type
        taken = builder.fmul(builder.fmul(found, found), self._spread(scale, kind))
        left, none = builder.fsub(self._load(squared, column, kind), taken), ir.Constant(kind, [0.0] * kind.count)
        self.store(builder.select(builder.fcmp_ordered(">", none, left), none, left), squared, column)

    def take_off(self, matrix: Any, times: Any, scale: Any) -> None:
        builder = self.builder
        begin = _word(0)
        for lanes in (VECTOR, 1):
            kind, end = _vector(lanes), builder.and_(self.n_columns, _word(-lanes))
            with self._loop(begin, end, lanes) as column:
                scaled = builder.fmul(self._load(times, column, kind), self._spread(scale, kind))
                with self._loop(_word(0), self.n_rows, 1) as row:
                    place = builder.add(builder.mul(row, self.n_columns), column)
                    taken = builder.fmul(scaled, self._spread(self._number_at(times, row), kind))
                    self.store(builder.fsub(self._load(matrix, place, kind), taken), matrix, place)
            begin = end

    def store(self, numbers: Any, array: Any, position: Any) -> None:
        self.builder.store(numbers, self._vector_at(array, position, numbers.type), align=WORD_BYTES)
        tag_store(self.builder, _KIND)

    def _load(self, array: Any, position: Any, kind: Any) -> Any:
        place = self._vector_at(array, position, kind)
        return tag_load(self.builder, self.builder.load(place, align=WORD_BYTES), _KIND)

    def _number_at(self, array: Any, position: Any) -> Any:
        return tag_load(self.builder, self.builder.load(self.builder.gep(array, [position])), _KIND)

    def _vector_at(self, array: Any, position: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [position]), kind.as_pointer())

    def _spread(self, number: Any, kind: Any) -> Any:
        """A vector of the same number."""
        undefined, zero = ir.Constant(kind, ir.Undefined), ir.IntType(32)
        first = self.builder.insert_element(undefined, number, ir.Constant(zero, 0))
        lanes = ir.Constant(ir.VectorType(zero, kind.count), [0] * kind.count)
        return self.builder.shuffle_vector(first, undefined, lanes)

    def _least(self, first: Any, second: Any) -> Any:
        return self.builder.select(self.builder.icmp_signed("<", first, second), first, second)

    @contextmanager
    def _loop(self, begin: Any, end: Any, step: int) -> Iterator[Any]:
        """Gives the index."""
        builder = self.builder
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(WORD)
        index.add_incoming(begin, before)
        builder.cbranch(builder.icmp_signed("<", index, end), body, after)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, _word(step)), builder.block)
        keep_short(builder, builder.branch(head))
        builder.position_at_end(after)


def _vector(lanes: int) -> Any:
    return ir.VectorType(_NUMBER, lanes)


def _word(number: int) -> Any:
    return ir.Constant(WORD, number)
