"""What tests that start processes share."""

from __future__ import annotations

import os
import sys


def environment() -> dict[str, str]:
    """Of a process that finds the same sources as the tests, and writes for a wide terminal without colours."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200", "NO_COLOR": "1"}
