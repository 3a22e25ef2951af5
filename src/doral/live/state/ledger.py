"""The budget, to the last digit: spent + reserved + left = total, in decimal arithmetic that never rounds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from decimal import Decimal

from doral._money import exact as exact
from doral._money import minus as minus
from doral._money import plus as plus
from doral._money import product as product
from doral._money import times as times
from doral.live.errors import BrokenLog
from doral.pages.notebook import card

_ZERO = Decimal(0)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Where the budget is. Every change is checked: a budget that does not add up is never written.

    Attributes:
        total: The whole budget, with what was added.
        spent: On decisions that are answered or expired.
        reserved: For decisions that are pending.
        released: Came back so far; it is in `left` again, or spent anew.
        left: What can still be reserved.
    """

    total: Decimal
    spent: Decimal = _ZERO
    reserved: Decimal = _ZERO
    released: Decimal = _ZERO
    left: Decimal

    def __repr__(self) -> str:
        parts = f"spent {self.spent} + reserved {self.reserved} + left {self.left}"
        return f"<Ledger: {self.total} = {parts}>"

    def _repr_html_(self) -> str:
        named = {name: getattr(self, name) for name in ("total", "spent", "reserved", "left", "released")}
        return card("Ledger", [(name, f"{amount:,f}") for name, amount in named.items()])

    def _check(self) -> None:
        if (self.left < _ZERO and not self.may_overdraw) or self.reserved < _ZERO or self.spent < _ZERO:
            raise BrokenLog(f"the budget was overdrawn: {self}")
        if plus(plus(self.spent, self.reserved), self.left) != self.total:
            raise BrokenLog(f"the ledger does not add up: {self}")

    @property
    def may_overdraw(self) -> bool:
        """Whether what is reserved may exceed the budget."""
        return False

    def reserve(self, amount: Decimal) -> None:
        self.left = minus(self.left, amount)
        self.reserved = plus(self.reserved, amount)
        self._check()

    def spend(self, reserved: Decimal, unused: Decimal = _ZERO) -> None:
        """A reservation is used, up to what comes back."""
        self.reserved = minus(self.reserved, reserved)
        self.spent = plus(self.spent, minus(reserved, unused))
        self.left = plus(self.left, unused)
        self.released = plus(self.released, unused)
        self._check()

    def refund(self, amount: Decimal) -> None:
        """What was spent comes back (below 0: costs more after all)."""
        self.spent = minus(self.spent, amount)
        self.left = plus(self.left, amount)
        self.released = plus(self.released, amount)
        self._check()

    def top_up(self, amount: Decimal) -> None:
        self.total = plus(self.total, amount)
        self.left = plus(self.left, amount)
        self._check()

    def copy(self) -> Ledger:
        """As it stands now, for somebody who keeps it."""
        return replace(self)

    def to_dict(self) -> dict[str, float]:
        return {name: float(amount) for name, amount in asdict(self).items()}

    def to_json(self) -> dict[str, str]:
        """For snapshots: not a digit is lost."""
        return {name: str(amount) for name, amount in asdict(self).items()}

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
