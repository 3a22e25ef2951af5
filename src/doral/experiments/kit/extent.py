"""How much of an experiment is run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How often and how long, and whether more than the main table."""

    runs: int
    """Runs of the main table."""
    side_runs: int
    """Runs of sweeps and variants, where differences are large enough to be seen with fewer."""
    shrink: int = 1
    """Budgets and horizons are divided by it; delays and deadlines are not."""
    main_only: bool = False
    """Whether sweeps and variants are left out."""

    @property
    def is_quick(self) -> bool:
        """Whether this is a try-out, from which nothing follows."""
        return self.shrink != 1

    @property
    def with_sides(self) -> bool:
        """Whether sweeps and variants are run."""
        return not self.main_only

    def asked_for(self, *, runs: int | None, main_only: bool) -> Self:
        """This extent with what somebody asked for; sides never take more runs than the main table."""
        wanted = self.runs if runs is None else runs
        return dataclasses.replace(self, runs=wanted, side_runs=min(self.side_runs, wanted), main_only=main_only)
