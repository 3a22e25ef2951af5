"""What compiled code is made of, in one digest: sources, entries, layouts of trees, compositions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from doral.compiled.sources import sources_digest
from doral.compiled.trees import TreeLayout, describe


def program_key(name: str, entries: Mapping[str, Any]) -> str:
    """A digest that is the same in every process and on every machine."""
    digest = hashlib.sha256(f"{name} {sources_digest()}".encode())
    for entry, (kernel, kinds, returns) in entries.items():
        digest.update(f"\n{entry}: {_name(kernel)} -> {returns}".encode())
        for kind in kinds:
            digest.update(f"\n  {describe(kind) if isinstance(kind, TreeLayout) else kind}".encode())
            for words in _compositions(kind):
                digest.update(words.encode())
    return digest.hexdigest()


def _compositions(kind: TreeLayout | str) -> Iterator[str]:
    composition = getattr(kind.tree_class, "composition", None) if isinstance(kind, TreeLayout) else None
    if composition is not None:
        yield f"\n    {composition.name}"
        for place, kernels in sorted(composition.hooks.items()):
            yield f"\n    {place}: {', '.join(_name(kernel) for kernel in kernels)}"


def _name(kernel: Any) -> str:
    return f"{kernel.function.__module__}.{kernel.function.__qualname__}"
