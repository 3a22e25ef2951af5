"""Snapshots that cannot be used, whatever the reason, are skipped: quickly, without a trace, and the log is read."""

from __future__ import annotations

import hashlib
import json
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from doral.live.campaign import Campaign
from doral.live.errors import StorageError
from doral.live.state.snapshot import _HEAD, _LENGTH_BYTES, _MAGIC, BadSnapshot
from doral.live.state.snapshot import decode_snapshot as decode
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from doral.live.views.report import make_report
from tests.live.checks import adds_up, fold_of
from tests.live.tapes import same_bits
from tests.live.test_campaign import problem

Opener = Callable[[str], Store]
Header = dict[str, Any]


def parts(data: bytes) -> tuple[Header, bytes]:
    length = int.from_bytes(data[_HEAD - _LENGTH_BYTES : _HEAD], "big")
    return json.loads(data[_HEAD : _HEAD + length]), zlib.decompress(data[_HEAD + length :])


def packed(header: object, body: bytes, *, is_packed: bool = False) -> bytes:
    """With a checksum that fits."""
    said = json.dumps(header).encode()
    rest = len(said).to_bytes(_LENGTH_BYTES, "big") + said + (body if is_packed else zlib.compress(body))
    return _MAGIC + hashlib.sha256(rest).digest() + rest


def busy(campaign: Campaign, count: int = 30) -> None:
    made = campaign.decide_many(["old", "young"] * (count // 2))
    campaign.feedback_many([(one.id, 0.5) for one in made[::2] if one.arm is not None])


def make(store: Store, name: str = "kits", policy: str = "doral-otf") -> Campaign:
    return store.create(name, problem(budget=1e3), policy=policy, seed=1, clock="rounds")


def put(campaign: Campaign, data: object, sequence: object = None) -> None:
    """In the place of all that are there; the campaign forgets what it knows."""
    session = campaign._session
    connection = session._open()._connection  # type: ignore[attr-defined]
    mark, table = connection.placeholder, f"{connection.schema}snapshots"
    last = fold_of(campaign).sequence
    connection.execute(f"DELETE FROM {table}")
    connection.execute(
        f"INSERT INTO {table} (campaign_id, sequence, data) VALUES ({mark}, {mark}, {mark})",
        (session.row.id, last if sequence is None else sequence, data),
    )
    session.close()


def is_skipped(campaign: Campaign, data: object, sequence: object = None) -> None:
    """And all is as it would be without; soon, and with little memory."""
    before, state = fold_of(campaign).to_json(), fold_of(campaign).engine.state
    put(campaign, data, sequence)
    tracemalloc.start()
    started = time.monotonic()
    fold = fold_of(campaign)
    took, (_, most) = time.monotonic() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert campaign._session.reader.saved_at == 0
    assert fold.to_json() == before
    assert same_bits(fold.engine.state, state) == []
    assert took < 5
    assert most < 100e6


def test_a_good_one_is_used(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    busy(campaign)
    header, body = parts(encode(fold_of(campaign)))
    put(campaign, packed(header, body))
    assert fold_of(campaign).sequence == campaign._session.reader.saved_at > 30


def test_any_bytes(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    busy(campaign)
    good, rng = encode(fold_of(campaign)), random.Random(1)
    for size in (0, 1, _HEAD - 1, _HEAD, 1000):
        is_skipped(campaign, rng.randbytes(size))
        is_skipped(campaign, (_MAGIC + rng.randbytes(size))[:size])
        is_skipped(campaign, good[: len(good) - size - 1])
    header, body = parts(good)
    others: list[Any] = [None, [], "x", 5, {}, {"version": 2}, {**header, "version": "2"}, {**header, "fold": []}]
    for wrong in others:
        is_skipped(campaign, packed(wrong, body))
    is_skipped(campaign, packed([[[]]] * 3, b""))
    is_skipped(campaign, packed(header, body, is_packed=True))
    is_skipped(campaign, packed(header, body + b"x"))
    is_skipped(campaign, packed(header, body[:-1]))
    deep = b"[" * 100_000
    rest = len(deep).to_bytes(_LENGTH_BYTES, "big") + deep
    is_skipped(campaign, _MAGIC + hashlib.sha256(rest).digest() + rest)
    beyond = (2**63).to_bytes(_LENGTH_BYTES, "big") + json.dumps(header).encode()
    is_skipped(campaign, _MAGIC + hashlib.sha256(beyond).digest() + beyond)


def test_what_would_fill_the_memory(durable_url: str, open_store: Opener) -> None:
    """A few kilobytes that expand to gigabytes, with a header that says so, or does not."""
    campaign = make(open_store(durable_url))
    busy(campaign)
    header, _ = parts(encode(fold_of(campaign)))
    packer = zlib.compressobj(1)
    bomb = b"".join([*(packer.compress(bytes(10_000_000)) for _ in range(40)), packer.flush()])
    is_skipped(campaign, packed(header, bomb, is_packed=True))
    for length in (2**31, 2**62, 2**63, 10**30, -1, 1.5, "5", None, True, [1]):
        shapes = [[name, [length, *shape[1:]] if name == "ring" else shape] for name, shape in header["shapes"]]
        is_skipped(campaign, packed({**header, "shapes": shapes}, bomb, is_packed=True))
    sequence = {**header["fold"], "sequence": 10**15}  # which would allow for much
    shapes = [[name, [2**31] if name == "ring" else shape] for name, shape in header["shapes"]]
    is_skipped(campaign, packed({**header, "fold": sequence, "shapes": shapes}, bomb, is_packed=True))


def test_shapes_that_do_not_fit(open_store: Opener) -> None:
    campaign = make(open_store("memory://"))
    busy(campaign)
    fold = fold_of(campaign)
    header, body = parts(encode(fold))
    shapes = header["shapes"]
    wrong_ones = [shapes[:-1], shapes[::-1], [], None, [[]], shapes + shapes[:1]]
    for number, (name, shape) in enumerate(shapes):
        others = [[], [*shape, 1], [0] * len(shape), [length + 1 for length in shape], [-1] * len(shape), "x"]
        wrong_ones += [[*shapes[:number], [name, one], *shapes[number + 1 :]] for one in others if one != shape]
    for wrong in wrong_ones:
        with pytest.raises((BadSnapshot, TypeError, ValueError)):
            decode(packed({**header, "shapes": wrong}, body * 2), fold.definition, fold.names.tag)


JUNK: tuple[object, ...] = (
    None,
    -1,
    1.5,
    "x",
    "",
    [],
    {},
    [[]],
    [None],
    True,
    10**30,
    [[1, 2, 3]],
    ["x"],
    float("nan"),
)


def test_a_header_of_other_types(open_store: Opener) -> None:
    """Every value of the fold, one by one, becomes something else: refused, or the same could have been written."""
    campaign = make(open_store("memory://"))
    busy(campaign)
    fold = fold_of(campaign)
    header, body = parts(encode(fold))
    refused = 0
    for path in places(header["fold"]):
        for junk in JUNK:
            changed = json.loads(json.dumps(header))
            before = put_at(changed["fold"], path, junk)
            try:
                found = decode(packed(changed, body), fold.definition, fold.names.tag, sequence=fold.sequence)
            except Exception:  # noqa: BLE001  (whatever it is, the session takes it for a reason to read the log)
                refused += 1
                continue
            assert isinstance(junk, list) or type(junk) in (type(before), int, float), (path, before, junk)
            make_report("kits", found)
            decode(encode(found), fold.definition, fold.names.tag)
    assert refused > 500


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, each in inner for one in [(*path, key), *places(each, (*path, key))]]


def put_at(value: Any, path: tuple[Any, ...], junk: object) -> object:
    for key in path[:-1]:
        value = value[key]
    before, value[path[-1]] = value[path[-1]], junk
    return before


def test_counts_and_indices_that_make_no_sense(durable_url: str, open_store: Opener) -> None:
    """Its checksum fits, and its types do: compiled code would be led astray."""
    campaign = make(open_store(durable_url))
    busy(campaign)
    good = fold_of(campaign)
    header, _ = parts(encode(good))
    for name, value in (("next", 10**12), ("next", -1), ("first", -(10**12)), ("first", 10**12), ("budget_left", 1e9)):
        arrays = {each: array.copy() for each, array in good.engine.arrays()}
        arrays["now"][name] = value
        is_skipped(campaign, packed(header, b"".join(array.tobytes() for array in arrays.values())))
    for name in ("context", "arm"):
        for value in (-1, 10**6):
            arrays = {each: np.array(array) for each, array in good.engine.arrays()}
            arrays["ring"][name] = value
            is_skipped(campaign, packed(header, b"".join(array.tobytes() for array in arrays.values())))
    adds_up(campaign)


@pytest.mark.parametrize("data", [None, "text", "", 5, 10**12, 1.5])
def test_other_things_in_the_column(data: object, tmp_path: Any, open_store: Opener) -> None:
    """SQLite stores anything anywhere."""
    campaign = make(open_store(f"sqlite:///{tmp_path / 'campaigns.db'}"))
    busy(campaign)
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    connection.execute("DROP TABLE snapshots")
    connection.execute("CREATE TABLE snapshots (campaign_id, sequence, data)")
    good = encode(fold_of(campaign))
    is_skipped(campaign, data)
    for sequence in ("text", b"bytes", 0, -5, 2**62, 1.5):
        is_skipped(campaign, good, sequence)
    busy(campaign)


def test_snapshots_of_others(durable_url: str, open_store: Opener) -> None:
    """Of another campaign, of another log of the same one, and of an event that is not there yet."""
    store = open_store(durable_url)
    one, other = make(store), make(store, "other")
    busy(one)
    busy(other)
    assert fold_of(one).sequence == fold_of(other).sequence
    is_skipped(one, encode(fold_of(other)))
    theirs = encode(fold_of(make(store, "of another policy", policy="d-linucb")))
    is_skipped(one, theirs)
    busy(other)
    is_skipped(one, encode(fold_of(other)), fold_of(other).sequence)
    assert one.decide("old").round == 31


def test_without_the_table(durable_url: str, open_store: Opener) -> None:
    campaign = make(open_store(durable_url))
    busy(campaign)
    campaign.save_snapshot()
    connection = campaign._session._open()._connection  # type: ignore[attr-defined]
    connection.execute(f"ALTER TABLE {connection.schema}snapshots RENAME TO elsewhere")
    try:
        campaign._session.close()
        campaign.decide("old")  # read anew, in a transaction
        campaign._session.close()
        assert len(adds_up(campaign)) == 31
        with pytest.raises(StorageError, match="snapshots"):
            campaign.save_snapshot()
    finally:
        connection = campaign._session._open()._connection  # type: ignore[attr-defined]
        connection.execute(f"ALTER TABLE {connection.schema}elsewhere RENAME TO snapshots")
