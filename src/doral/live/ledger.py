"""The budget, to the last digit: spent + reserved + left = total, in decimal arithmetic that never rounds."""

from __future__ import annotations

from decimal import Context, Decimal, Inexact
from typing import NamedTuple

from doral.live.errors import BrokenLog

# A float's shortest decimal has at most 17 digits, somewhere between 1e308 and 1e-324: no sum of them needs more.
_EXACT = Context(prec=2_000, traps=[Inexact])
_ZERO = Decimal(0)

_add, _subtract, _multiply = _EXACT.add, _EXACT.subtract, _EXACT.multiply


def exact(amount: float) -> Decimal:
    """The decimal that a person means by this float: 0.1 is one tenth.

    >>> exact(0.1) + exact(0.2)
    Decimal('0.3')
    """
    return Decimal(repr(amount))


def times(amount: Decimal, count: int) -> Decimal:
    return _multiply(amount, Decimal(count))


def minus(one: Decimal, other: Decimal) -> Decimal:
    return _subtract(one, other)


class Ledger(NamedTuple):
    """Where the budget is. A change makes a new ledger, and one that does not add up is never made.

    A tuple, because every event makes one.
    """

    total: Decimal
    spent: Decimal  # on decisions that are answered or expired
    reserved: Decimal  # for decisions that are pending
    released: Decimal  # came back so far; it is in `left` again, or spent anew
    left: Decimal

    @classmethod
    def of(cls, total: Decimal) -> Ledger:
        """Nothing is spent yet."""
        return cls(total, _ZERO, _ZERO, _ZERO, total)._checked()

    def _checked(self) -> Ledger:
        total, spent, reserved, _, left = self
        if left < 0 or reserved < 0 or spent < 0:
            raise BrokenLog(f"the budget was overdrawn: {self}")
        if _add(_add(spent, reserved), left) != total:
            raise BrokenLog(f"the ledger does not add up: {self}")
        return self

    def reserve(self, amount: Decimal) -> Ledger:
        total, spent, reserved, released, left = self
        return Ledger(total, spent, _add(reserved, amount), released, _subtract(left, amount))._checked()

    def spend(self, amount: Decimal, unused: Decimal = _ZERO) -> Ledger:
        """A reservation is used, up to what comes back."""
        total, spent, reserved, released, left = self
        return Ledger(
            total,
            _add(spent, _subtract(amount, unused)),
            _subtract(reserved, amount),
            _add(released, unused),
            _add(left, unused),
        )._checked()

    def refund(self, amount: Decimal) -> Ledger:
        """What was spent comes back (below 0: costs more after all)."""
        total, spent, reserved, released, left = self
        return Ledger(total, _subtract(spent, amount), reserved, _add(released, amount), _add(left, amount))._checked()

    def top_up(self, amount: Decimal) -> Ledger:
        total, spent, reserved, released, left = self
        return Ledger(_add(total, amount), spent, reserved, released, _add(left, amount))._checked()

    def to_dict(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in self._asdict().items()}

    def to_json(self) -> dict[str, str]:
        """For snapshots: not a digit is lost."""
        return {name: str(amount) for name, amount in self._asdict().items()}

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> Ledger:
        return cls(**{name: Decimal(amount) for name, amount in stored.items()})._checked()
