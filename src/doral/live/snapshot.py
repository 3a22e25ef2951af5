"""Snapshots: the fold as versioned, checksummed arrays. They only save time: if anything is wrong, the log is read.

Layout: magic, SHA-256 of the rest, length of the header, header (JSON: fingerprint, fold, arrays), then the bytes of
the arrays, compressed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import numpy as np

from doral._kernel.sources import sources_digest
from doral.live.definition import Definition
from doral.live.fold import Fold

VERSION = 2
_MAGIC = b"DORAL SNAPSHOT\n"
_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_HEAD = len(_MAGIC) + _DIGEST_BYTES + _LENGTH_BYTES


class BadSnapshot(Exception):
    """Not to be used: damaged, or of another version. Never leaves this package."""


def fingerprint(fold: Fold) -> str:
    """Which states fit: names, types and axes of all arrays, and the code that reads them."""
    layout = [(name, str(array.dtype), array.ndim) for name, array in fold.engine.arrays()]
    return hashlib.sha256(f"{VERSION} {sources_digest()} {np.__version__} {layout}".encode()).hexdigest()


def encode(fold: Fold) -> bytes:
    """The fold as bytes."""
    arrays = [(name, np.ascontiguousarray(array)) for name, array in fold.engine.arrays()]
    header = json.dumps(
        {
            "version": VERSION,
            "fingerprint": fingerprint(fold),
            "fold": fold.to_json(),
            "shapes": [[name, list(array.shape)] for name, array in arrays],
        }
    ).encode()
    body = zlib.compress(b"".join(array.tobytes() for _, array in arrays), 1)
    rest = len(header).to_bytes(_LENGTH_BYTES, "big") + header + body
    return _MAGIC + hashlib.sha256(rest).digest() + rest


def decode(data: bytes, definition: Definition, tag: str) -> Fold:
    """The fold again; BadSnapshot unless it is whole and fits this code."""
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        raise BadSnapshot("is no snapshot")
    rest = data[len(_MAGIC) + _DIGEST_BYTES :]
    if hashlib.sha256(rest).digest() != data[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES]:
        raise BadSnapshot("its checksum does not fit")
    length = int.from_bytes(rest[:_LENGTH_BYTES], "big")
    header: dict[str, Any] = json.loads(rest[_LENGTH_BYTES : _LENGTH_BYTES + length])
    if header["version"] != VERSION:
        raise BadSnapshot(f"is of version {header['version']}")
    fold = Fold.from_json(definition, tag, header["fold"])
    if header["fingerprint"] != fingerprint(fold):
        raise BadSnapshot("belongs to other code")
    body = zlib.decompress(rest[_LENGTH_BYTES + length :])
    arrays: dict[str, Any] = {}
    offset = 0
    for (name, template), (stored_name, shape) in zip(fold.engine.arrays(), header["shapes"], strict=True):
        if name != stored_name:
            raise BadSnapshot(f"has {stored_name} in place of {name}")
        count = int(np.prod(shape, dtype=np.int64))
        array = np.frombuffer(body, dtype=template.dtype, count=count, offset=offset).reshape(shape).copy()
        array.flags.writeable = template.flags.writeable  # part of the type for which kernels are compiled
        arrays[name] = array
        offset += count * template.dtype.itemsize
    fold.engine.restore(arrays)
    fold.check()
    return fold
