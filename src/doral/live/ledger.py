"""The budget, to the last digit: spent + reserved + left = total, in decimal arithmetic that never rounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Context, Decimal, Inexact

from doral.live.errors import BrokenLog
from doral.pages.notebook import card

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


def product(one: Decimal, other: Decimal) -> Decimal:
    return _multiply(one, other)


def plus(one: Decimal, other: Decimal) -> Decimal:
    return _add(one, other)


def minus(one: Decimal, other: Decimal) -> Decimal:
    return _subtract(one, other)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Where the budget is. Every change is checked: a budget that does not add up is never written.

    Attributes:
        total: The whole budget, with what was added.
        spent: On decisions that are answered or expired.
        reserved: For decisions that are pending.
        released: Came back so far; it is in `left` again, or spent anew.
        left: What can still be reserved.
        leased: The part of `left` that some of several processes have to themselves for a while, see `doral.open`.
    """

    total: Decimal
    spent: Decimal = _ZERO
    reserved: Decimal = _ZERO
    released: Decimal = _ZERO
    left: Decimal
    leased: Decimal = _ZERO

    def __repr__(self) -> str:
        parts = f"spent {self.spent} + reserved {self.reserved} + left {self.left}{self.leased_words}"
        return f"<Ledger: {self.total} = {parts}>"

    @property
    def leased_words(self) -> str:
        """What follows the amount that is left."""
        return f" (of which {self.leased} leased)" if self.leased else ""

    def _repr_html_(self) -> str:
        named = {name: getattr(self, name) for name in ("total", "spent", "reserved", "left", "released")}
        if self.leased:
            named["leased"] = self.leased
        return card("Ledger", [(name, f"{amount:,f}") for name, amount in named.items()])

    def _check(self) -> None:
        if (self.left < _ZERO and not self.may_overdraw) or self.reserved < _ZERO or self.spent < _ZERO:
            raise BrokenLog(f"the budget was overdrawn: {self}")
        if self.leased and not _ZERO <= self.leased <= self.left:
            raise BrokenLog(f"more is leased than is left: {self}")
        if _add(_add(self.spent, self.reserved), self.left) != self.total:
            raise BrokenLog(f"the ledger does not add up: {self}")

    @property
    def may_overdraw(self) -> bool:
        """Whether what is reserved may exceed the budget."""
        return False

    def reserve(self, amount: Decimal) -> None:
        self.left = _subtract(self.left, amount)
        self.reserved = _add(self.reserved, amount)
        self._check()

    def spend(self, reserved: Decimal, unused: Decimal = _ZERO) -> None:
        """A reservation is used, up to what comes back."""
        self.reserved = _subtract(self.reserved, reserved)
        self.spent = _add(self.spent, _subtract(reserved, unused))
        self.left = _add(self.left, unused)
        self.released = _add(self.released, unused)
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

    def lease(self, amount: Decimal) -> None:
        """A part of what is left is somebody's own from now on (below 0: it is not any more)."""
        self.leased = _add(self.leased, amount)
        self._check()

    def copy(self) -> Ledger:
        """As it stands now, for somebody who keeps it."""
        return replace(self)

    def to_dict(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in asdict(self).items()}

    def to_json(self) -> dict[str, str]:
        """For snapshots: not a digit is lost."""
        return {name: str(amount) for name, amount in asdict(self).items() if name != "leased" or amount}

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> Ledger:
        ledger = cls(**{name: Decimal(amount) for name, amount in stored.items()})
        ledger._check()
        return ledger


class LikelyLedger(Ledger):
    """Of a problem whose `reserve` is below 1: list prices of open decisions may exceed the budget, since most of them
    will not be paid.
    """

    __slots__ = ()

    @property
    def may_overdraw(self) -> bool:
        return True
