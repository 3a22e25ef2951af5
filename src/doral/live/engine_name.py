"""Which engine writes: named in the log, so that every stretch of it says by whom it was decided."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from doral._version import VERSION
from doral.compiled.key import modules_digest


@cache
def decisions_digest() -> str:
    """Return a digest of the code that decides: kernels, and the Python that sets them up."""
    return modules_digest("doral.engine.engine")


@cache
def engine_name() -> str:
    """Version, sources that decide, and processor: two that are named alike decide alike, to the bit."""
    from doral.compiled.machine import HOST

    return json.dumps(
        {"doral": VERSION, "sources": decisions_digest()[:16], "processor": HOST.cpu, "numpy": np.__version__}
    )
