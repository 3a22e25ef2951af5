"""Snapshots: the fold as versioned, checksummed arrays. They only save time: if anything is wrong, the log is read.

Layout: magic, SHA-256 of the rest, length of the header, header (JSON: fingerprint, fold, arrays), then the bytes of
the arrays, compressed. What a header promises is bounded before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from doral.engine.setup import GROWING, first_sizes, grown_sizes
from doral.live.definition import Definition
from doral.live.engine_name import decisions_digest
from doral.live.fold import Fold
from doral.live.snapshot_checks import BadSnapshot, check_fold

VERSION = 4
_MAGIC = b"DORAL SNAPSHOT\n"
_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_HEAD = len(_MAGIC) + _DIGEST_BYTES + _LENGTH_BYTES
_ROOM = 4  # arrays that grow with the log have room for at most so many times what is in it


def fingerprint(fold: Fold) -> str:
    """Which states fit: names, types and axes of all arrays, and the code that reads them."""
    layout = [(name, str(array.dtype), array.ndim) for name, array in fold.engine.arrays()]
    return hashlib.sha256(f"{VERSION} {decisions_digest()} {np.__version__} {layout}".encode()).hexdigest()


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


def copied(fold: Fold, *, run: int = 0) -> Fold:
    """Another fold that knows the same; its coin falls otherwise in another run."""
    stored = json.loads(json.dumps(fold.to_json()))
    twin = Fold.from_json(fold.definition, fold.names.tag, stored, run=run)
    arrays: dict[str, Any] = {}
    for name, array in fold.engine.arrays():
        arrays[name] = array.copy()
        arrays[name].flags.writeable = array.flags.writeable  # part of the type for which kernels are compiled
    twin.engine.restore(arrays)
    twin.forgotten = fold.forgotten
    return twin


def decode(data: bytes, definition: Definition, tag: str, *, sequence: int | None = None, run: int = 0) -> Fold:
    """The fold again; BadSnapshot unless it is whole and fits this code, and the event after which it was made."""
    try:
        return _decoded(data, definition, tag, sequence, run)
    except BadSnapshot:
        raise
    except Exception as error:  # whatever other code has written
        raise BadSnapshot(f"cannot be understood: {type(error).__name__}: {error}") from error


def _decoded(data: bytes, definition: Definition, tag: str, sequence: int | None, run: int) -> Fold:
    header, packed = _read(data)
    stored = header["fold"]
    check_fold(stored, definition.problem)
    if sequence is not None and stored["sequence"] != sequence:
        raise BadSnapshot(f"is of event {stored['sequence']}")
    fold = Fold.from_json(definition, tag, stored, run=run)
    if header["fingerprint"] != fingerprint(fold):
        raise BadSnapshot("belongs to other code")
    shapes = _shapes(fold, header["shapes"])
    body = _unpack(packed, sum(math.prod(shapes[name]) * array.dtype.itemsize for name, array in fold.engine.arrays()))
    arrays: dict[str, Any] = {}
    offset = 0
    for name, template in fold.engine.arrays():
        count = math.prod(shapes[name])
        array = np.frombuffer(body, dtype=template.dtype, count=count, offset=offset).reshape(shapes[name]).copy()
        array.flags.writeable = template.flags.writeable  # part of the type for which kernels are compiled
        arrays[name] = array
        offset += count * template.dtype.itemsize
    fold.engine.restore(arrays)
    fold.check()
    return fold


def _read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the packed arrays, after the checksum was found to fit."""
    if len(data) < _HEAD or not data.startswith(_MAGIC):
        raise BadSnapshot("is no snapshot")
    rest = data[len(_MAGIC) + _DIGEST_BYTES :]
    if hashlib.sha256(rest).digest() != data[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES]:
        raise BadSnapshot("its checksum does not fit")
    end = _LENGTH_BYTES + int.from_bytes(rest[:_LENGTH_BYTES], "big")
    header = json.loads(rest[_LENGTH_BYTES:end]) if end <= len(rest) else None
    if not isinstance(header, dict):
        raise BadSnapshot("has no header")
    if header["version"] != VERSION:
        raise BadSnapshot(f"is of version {header['version']!r:.20}")
    return header, rest[end:]


def _shapes(fold: Fold, stored: list[Any]) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of the arrays by name; axes that double with the log have room for what it may hold."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in stored:
        if not isinstance(shape, list) or not all(type(length) is int for length in shape):
            raise BadSnapshot(f"{name!r:.40} has no shape")
        found[name] = tuple(shape)
    if len(found) != len(stored):
        raise BadSnapshot("an array is there twice")
    first, grown = first_sizes(fold.engine.blueprint), grown_sizes(fold.engine.blueprint, found)
    if any(grown[axis] > _ROOM * (first[axis] + fold.sequence) for axis in GROWING):
        raise BadSnapshot("an array has an impossible size")
    return found


def _unpack(packed: bytes, size: int) -> bytes:
    """So many bytes, and not one more is ever made."""
    reader = zlib.decompressobj()
    body = reader.decompress(packed, size + 1)
    if len(body) != size or not reader.eof:
        raise BadSnapshot("its arrays are not of the size that it says")
    return body
