"""Numbers as depths of colour, the same in the figures, on the page and on a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from doral.experiments.kit.claim import MARGIN_PERCENT

LEAST_LOSS, MOST_LOSS = 0.25, 60.0  # in % of the oracle's reward
SIGNS = {"best": "*", "tied": "=", "": "", "open": "?", "unknown": ""}
"""What stands behind a number, so that nothing is said by colour alone."""
SIGNS_KEY = f"* best of its row, = at most {MARGIN_PERCENT:g} point behind it, ? the runs do not tell"
SMALL_POINTS, MOST_POINTS = 0.1, 50.0


def depth_of_share(share_percent: float) -> float:
    """From 0 (pale) to 1 (deep), by the logarithm of what is lost to the oracle: 99.7 and 99.1 differ to the eye.

    >>> depth_of_share(100.0), depth_of_share(40.0)
    (1.0, 0.0)
    """
    loss = min(MOST_LOSS, max(LEAST_LOSS, 100.0 - share_percent))
    return math.log(MOST_LOSS / loss) / math.log(MOST_LOSS / LEAST_LOSS)


def depth_of_points(points: float) -> float:
    """From -1 (a loss) over 0 to 1 (a gain); small differences are drawn apart.

    >>> depth_of_points(0.0), depth_of_points(50.0), depth_of_points(-100.0)
    (0.0, 1.0, -1.0)
    """
    size = min(MOST_POINTS, abs(points))
    return math.copysign(math.log1p(size / SMALL_POINTS) / math.log1p(MOST_POINTS / SMALL_POINTS), points)


def worth_depth(row: Mapping[str, Any]) -> float:
    """The depth of what an ingredient is worth; 0 where its interval contains 0 or is not known."""
    points, low, high = (row[f"worth_points{end}"] for end in ("", "_low", "_high"))
    is_clear = low is not None and high is not None and (low > 0 or high < 0)
    return depth_of_points(points) if is_clear else 0.0
