"""The budget, to the last digit: spent + reserved + left = total, in decimal arithmetic that never rounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Context, Decimal, Inexact

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


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """Where the budget is. `released` is what came back so far; it is in `left` again (or spent anew)."""

    total: Decimal
    spent: Decimal  # on decisions that are answered or expired
    reserved: Decimal  # for decisions that are pending
    released: Decimal
    left: Decimal

    def to_dict(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in asdict(self).items()}


class Book:
    """The ledger while it changes. Every change is checked: a budget that does not add up is never written."""

    __slots__ = ("left", "released", "reserved", "spent", "total")

    def __init__(self, total: Decimal) -> None:
        self.total = total
        self.left = total
        self.spent = self.reserved = self.released = _ZERO

    def _check(self) -> None:
        if self.left < 0 or self.reserved < 0 or self.spent < 0:
            raise BrokenLog(f"the budget was overdrawn: {self.view()}")
        if _add(_add(self.spent, self.reserved), self.left) != self.total:
            raise BrokenLog(f"the ledger does not add up: {self.view()}")

    def reserve(self, amount: Decimal) -> None:
        self.left = _subtract(self.left, amount)
        self.reserved = _add(self.reserved, amount)
        self._check()

    def spend(self, reserved: Decimal, released: Decimal) -> None:
        """A reservation is used, up to what comes back."""
        self.reserved = _subtract(self.reserved, reserved)
        self.spent = _add(self.spent, _subtract(reserved, released))
        self.left = _add(self.left, released)
        self.released = _add(self.released, released)
        self._check()

    def refund(self, amount: Decimal) -> None:
        """What was spent comes back (below 0: costs more after all)."""
        self.spent = _subtract(self.spent, amount)
        self.left = _add(self.left, amount)
        self.released = _add(self.released, amount)
        self._check()

    def top_up(self, amount: Decimal) -> None:
        self.total = _add(self.total, amount)
        self.left = _add(self.left, amount)
        self._check()

    def view(self) -> Ledger:
        return Ledger(
            total=self.total, spent=self.spent, reserved=self.reserved, released=self.released, left=self.left
        )

    def to_json(self) -> dict[str, str]:
        return {name: str(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> Book:
        book = cls(_ZERO)
        for name in cls.__slots__:
            setattr(book, name, Decimal(stored[name]))
        book._check()
        return book
