"""Snapshots: the state as versioned, checksummed arrays. They only save time: if anything is wrong, the log is read.

Layout: magic, SHA-256 of the rest, length of the header, header (JSON: fingerprint, state, arrays), then the bytes of
the arrays, compressed. What a header promises is bounded before anything is made of it.
"""

from __future__ import annotations

import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np

from doral.engine.setup import GROWING, first_sizes, grown_sizes
from doral.live.events.event import ARM_STATUS_NAMES, STATE_NAMES
from doral.live.state.definition import Definition, decisions_digest
from doral.live.state.state import CampaignState
from doral.person import MAX_LEVELS, Category
from doral.problem import Problem

VERSION = 6
_MAGIC = b"DORAL SNAPSHOT\n"
_DIGEST_BYTES = 32
_LENGTH_BYTES = 8
_HEAD = len(_MAGIC) + _DIGEST_BYTES + _LENGTH_BYTES
_LISTS = ("states", "arm_plays", "arm_answers", "arm_rewards")
_ROOM = 4  # arrays that grow with the log have room for at most so many times what is in it


class BadSnapshot(Exception):
    """Not to be used: damaged, or of another version. Never leaves this package."""


def fingerprint(state: CampaignState) -> str:
    """Which states fit: names, types and axes of all arrays, and the code that reads them."""
    layout = [(name, str(array.dtype), array.ndim) for name, array in state.engine.arrays()]
    return hashlib.sha256(f"{VERSION} {decisions_digest()} {np.__version__} {layout}".encode()).hexdigest()


def encode_snapshot(state: CampaignState) -> bytes:
    """Return the state as bytes."""
    arrays = [(name, np.ascontiguousarray(array)) for name, array in state.engine.arrays()]
    header = json.dumps(
        {
            "version": VERSION,
            "fingerprint": fingerprint(state),
            "fold": state.to_json(),
            "shapes": [[name, list(array.shape)] for name, array in arrays],
        }
    ).encode()
    body = zlib.compress(b"".join(array.tobytes() for _, array in arrays), 1)
    rest = len(header).to_bytes(_LENGTH_BYTES, "big") + header + body
    return _MAGIC + hashlib.sha256(rest).digest() + rest


def decode_snapshot(data: bytes, definition: Definition, tag: str, *, sequence: int | None = None) -> CampaignState:
    """Return the state again; BadSnapshot unless it is whole and fits this code and the event that it is of."""
    try:
        return _decoded(data, definition, tag, sequence)
    except BadSnapshot:
        raise
    except Exception as error:  # whatever other code has written
        raise BadSnapshot(f"cannot be understood: {type(error).__name__}: {error}") from error


def _decoded(data: bytes, definition: Definition, tag: str, sequence: int | None) -> CampaignState:
    header, packed = _read(data)
    stored = header["fold"]
    _check_state(stored, definition.problem)
    if sequence is not None and stored["sequence"] != sequence:
        raise BadSnapshot(f"is of event {stored['sequence']}")
    state = CampaignState.from_json(definition, tag, stored)
    if header["fingerprint"] != fingerprint(state):
        raise BadSnapshot("belongs to other code")
    shapes = _shapes(state, header["shapes"])
    body = _unpack(packed, sum(math.prod(shapes[name]) * array.dtype.itemsize for name, array in state.engine.arrays()))
    arrays: dict[str, Any] = {}
    offset = 0
    for name, template in state.engine.arrays():
        count = math.prod(shapes[name])
        array = np.frombuffer(body, dtype=template.dtype, count=count, offset=offset).reshape(shapes[name]).copy()
        array.flags.writeable = template.flags.writeable  # part of the type for which kernels are compiled
        arrays[name] = array
        offset += count * template.dtype.itemsize
    state.engine.restore(arrays)
    state.check()
    return state


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


def _shapes(state: CampaignState, stored: list[Any]) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of the arrays by name; axes that double with the log have room for what it may hold."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in stored:
        if not isinstance(shape, list) or not all(type(length) is int for length in shape):
            raise BadSnapshot(f"{name!r:.40} has no shape")
        found[name] = tuple(shape)
    if len(found) != len(stored):
        raise BadSnapshot("an array is there twice")
    first, grown = first_sizes(state.engine.blueprint), grown_sizes(state.engine.blueprint, found)
    if any(grown[axis] > _ROOM * (first[axis] + state.sequence) for axis in GROWING):
        raise BadSnapshot("an array has an impossible size")
    return found


def _unpack(packed: bytes, size: int) -> bytes:
    """So many bytes, and not one more is ever made."""
    reader = zlib.decompressobj()
    body = reader.decompress(packed, size + 1)
    if len(body) != size or not reader.eof:
        raise BadSnapshot("its arrays are not of the size that it says")
    return body


# --- what a snapshot says, before it is believed: a checksum only shows accidents -------------------------------------


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise BadSnapshot(f"{what} is not what a snapshot has")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")  # type: ignore[arg-type]


def _is_exact(value: object) -> bool:
    """A decimal, as text."""
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _are_pairs(value: object, kinds: tuple[type, type]) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and type(one[0]) is kinds[0] and type(one[1]) is kinds[1]
        for one in value
    )


def _check_state(stored: Any, problem: Problem) -> None:
    """Types and sizes of all that `CampaignState.to_json` wrote."""
    n_contexts = problem.n_contexts
    _require(isinstance(stored, dict), "the state")
    for name in ("sequence", "round", "swept"):
        _require(_is_count(stored[name]), name)
    _require(_is_amount(stored["clock"]) and stored["clock"] >= 0, "clock")
    _require(type(stored["closed"]) is bool, "closed")
    _require(len(stored["plan"]) == 2 and all(_is_amount(one) and one >= 0 for one in stored["plan"]), "plan")
    _require(_are_pairs(stored["engines"], (str, int)), "engines")
    _require(_are_pairs(stored["repairs"], (int, float)), "repairs")
    _require(_are_pairs(stored["made_otherwise"], (int, int)), "made_otherwise")
    _require(_are_pairs(stored["expiries"], (list, bool)), "expiries")
    for upto, _ in stored["expiries"]:
        _require(len(upto) == n_contexts and all(map(_is_count, upto)), "expiries")
    for name, amount in stored["ledger"].items():
        _require(isinstance(amount, str) and Decimal(amount).is_finite(), f"ledger: {name}")
    _check_counts(stored["counts"], stored["arms"])
    _check_people(stored["own_expiries"], stored["levels"], problem)


def _check_people(own: Any, levels: Any, problem: Problem) -> None:
    _require(_is_count(own["upto"]) and isinstance(own["calls"], list), "own_expiries")
    for sequence, clock, releases in own["calls"]:
        _require(_is_count(sequence) and _is_amount(clock) and type(releases) is bool, "own_expiries")
    categories = [one for one in problem.person if isinstance(one, Category)]
    _require(isinstance(levels, list) and len(levels) == len(categories), "levels")
    for category, names in zip(categories, levels, strict=True):
        _require(isinstance(names, list) and all(isinstance(one, str) for one in names), "levels")
        _require(tuple(names[: len(category.levels)]) == category.levels, "levels")
        _require(len(set(names)) == len(names) <= MAX_LEVELS, "levels")


def _check_counts(counts: Any, arms: Any) -> None:
    lists = (arms["added"], arms["status"], *(counts[name] for name in _LISTS))
    _require(all(isinstance(one, list) for one in lists), "a list")
    _require(type(arms["is_paused"]) is bool, "is_paused")
    n_arms = len(arms["status"])
    _require(all(type(one) is int and 0 <= one < len(ARM_STATUS_NAMES) for one in arms["status"]), "status")
    _require(len(counts["states"]) == len(STATE_NAMES) and all(map(_is_count, counts["states"])), "states")
    _require(_are_pairs(counts["reasons"], (int, int)), "reasons")
    for name, is_right in (("arm_plays", _is_count), ("arm_answers", _is_count), ("arm_rewards", _is_exact)):
        _require(len(counts[name]) == n_arms and all(map(is_right, counts[name])), name)
    for name in ("clock_went_back", "corrections", "about", "keyed", "outside"):
        _require(_is_count(counts[name]), name)
    for name in ("reward", "late_reward"):
        _require(_is_exact(counts[name]), name)
