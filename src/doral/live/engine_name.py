"""Which engine writes: named in the log, so that every stretch of it says by whom it was decided."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from doral.compiled.sources import sources_digest
from doral._version import VERSION


@cache
def engine_name() -> str:
    """Version, sources that decide, and processor: two that are named alike decide alike, to the bit."""
    from doral.compiled.machine import cpu_name

    return json.dumps(
        {"doral": VERSION, "sources": sources_digest()[:16], "processor": cpu_name(), "numpy": np.__version__}
    )
