"""The arrays of a state by name: for snapshots, for comparing, and for exchanging some of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays with their names, such as ("ridge.weight", array); numbers that never change are left out."""
    for name, value in zip(tree._fields, tree, strict=True):
        if hasattr(value, "_fields"):
            yield from leaves(value, f"{path}{name}.")
        elif isinstance(value, np.ndarray):
            yield path + name, value


def replace_leaves(tree: Any, arrays: Mapping[str, Any], path: str = "") -> Any:
    """The same tree with these arrays in place of its own."""
    return type(tree)(
        *(
            replace_leaves(value, arrays, f"{path}{name}.")
            if hasattr(value, "_fields")
            else arrays.get(path + name, value)
            for name, value in zip(tree._fields, tree, strict=True)
        )
    )
