"""`add_up_rows` with its sums in registers: LLVM by itself would write and read them again for every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

_NUMBER = ir.DoubleType()
_KIND = str(types.float64)
_LANES = 4  # of a vector
_AT_ONCE = 4  # vectors, where there are so many columns


def _row_sums(context: Any, rows: Any, times: Any, total: Any) -> Any:
    """Each sum is added up as if it were alone: the same bits."""

    def write(target: Any, builder: Any, called: Any, arguments: Any) -> Any:
        data = [field_of(target, builder, kind, one, "data") for kind, one in zip(called.args, arguments, strict=True)]
        shape = field_of(target, builder, rows, arguments[0], "shape")
        _Sums(builder, *data, *(builder.extract_value(shape, axis) for axis in (0, 1))).write()
        return target.get_dummy_value()

    return signature(types.none, rows, times, total), write


written_row_sums = intrinsic(_row_sums)


class _Sums:
    def __init__(self, builder: Any, matrix: Any, times: Any, sums: Any, n_rows: Any, n_columns: Any) -> None:
        self.builder, self.matrix, self.times, self.sums = builder, matrix, times, sums
        self.n_rows, self.n_columns = n_rows, n_columns

    def write(self) -> None:
        """Many columns at once, then two vectors at once, of which the last ends with the last column.

        Where columns are fewer than a vector is long, one by one.
        """
        builder, wide = self.builder, _LANES * _AT_ONCE
        begin, end = _word(0), builder.and_(self.n_columns, _word(-wide))
        with self._loop(begin, end, wide) as column:
            self._add_up([builder.add(column, _word(_LANES * one)) for one in range(_AT_ONCE)], _LANES)
        last = builder.sub(self.n_columns, _word(_LANES))
        has_vector = builder.icmp_signed(">=", last, _word(0))
        begin, end = end, builder.select(has_vector, self.n_columns, end)
        with self._loop(begin, end, 2 * _LANES) as column:
            self._add_up([self._least(column, last), self._least(builder.add(column, _word(_LANES)), last)], _LANES)
        with self._loop(end, self.n_columns, 1) as column:
            self._add_up([column], 1)

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

    def _add_up(self, columns: Sequence[Any], lanes: int) -> None:
        """The sums of vectors of columns, which begin here."""
        builder, kind = self.builder, ir.VectorType(_NUMBER, lanes)
        zero = ir.Constant(kind, [0.0] * lanes)
        with builder.goto_entry_block():
            totals = [builder.alloca(kind) for _ in columns]
        for total in totals:
            builder.store(zero, total)
        with self._loop(_word(0), self.n_rows, 1) as row:
            times = tag_load(builder, builder.load(builder.gep(self.times, [row])), _KIND)
            start = builder.mul(row, self.n_columns)
            for column, total in zip(columns, totals, strict=True):
                place = self._vector_at(self.matrix, builder.add(start, column), kind)
                numbers = tag_load(builder, builder.load(place, align=WORD_BYTES), _KIND)
                added = builder.fmul(numbers, _spread(builder, times, kind))
                builder.store(builder.fadd(builder.load(total), added), total)
        for column, total in zip(columns, totals, strict=True):
            builder.store(builder.load(total), self._vector_at(self.sums, column, kind), align=WORD_BYTES)
            tag_store(builder, _KIND)

    def _vector_at(self, array: Any, position: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(array, [position]), kind.as_pointer())


def _word(number: int) -> Any:
    return ir.Constant(WORD, number)


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """A vector of the same number."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), lanes)
