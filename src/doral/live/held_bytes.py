"""How much memory the state of a campaign takes."""

from __future__ import annotations

from doral.live.fold import Fold
from doral.person import Category

# Beside the arrays: their headers, the problem, names, counts, the ledger. Seen with `tracemalloc` for two and for
# forty arms; a test looks again.
_AROUND_BYTES = 36_000
_PER_ARM_BYTES = 1_500
_PER_LEVEL_BYTES = 200


def held_bytes(fold: Fold) -> int:
    """What would be free if this state were dropped, within a quarter or so. Takes some 40 microseconds."""
    arrays = sum(array.nbytes for _, array in fold.engine.arrays())
    levels = sum(len(fold.levels.names(one.name)) for one in fold.problem.person if isinstance(one, Category))
    return arrays + _AROUND_BYTES + _PER_ARM_BYTES * fold.problem.n_arms + _PER_LEVEL_BYTES * levels
