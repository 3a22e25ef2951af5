"""Campaigns that were created with options that are gone: they open, replay, and go on with the nearest policy.

`gone_options/` holds a SQLite file that a version with these options wrote, what that version said of its campaigns,
and the presets as it stored them.
"""

from __future__ import annotations

import gzip
import json
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.engine.options import POLICY_NAMES, PRINTED_READINGS, PolicyOptions, make_policy, read_stored
from doral.live.runtime import replay
from doral.live.store import Store
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.test_releases import decisions_now, decisions_then

SOMEBODY = {"age": 40, "clinic": "n"}
FOLDER = Path(__file__).parent / "gone_options"
EXPECTED: dict[str, Any] = json.loads(gzip.decompress((FOLDER / "expected.json.gz").read_bytes()))
PRESETS: dict[str, dict[str, Any]] = EXPECTED["presets"]

ON_THE_FLY = replace(make_policy("doral-otf", start_share=0.05), name="doral-otf")  # it keeps its first tries
# By campaign of the file: what is gone, and the policy with which it goes on.
CAMPAIGNS: dict[str, tuple[tuple[str, ...], PolicyOptions]] = {
    "draws": (("draws=3",), make_policy("d-lints")),
    "early": (("curve_points=32", "cutoff_share=0.5"), ON_THE_FLY),
    "ids": (("sampling=directed",), ON_THE_FLY),
    "ids of people": (("sampling=directed",), ON_THE_FLY),
    "kept": ((), ON_THE_FLY),
    "no window": (("window_bias=False",), make_policy("d-linucb")),
    "printed": ((), make_policy("d-alp/literal")),
    "untrained": (("race_trains=False",), make_policy("doral", min_answers=4)),
    "wide": (("race_delta=0.1", "tail_exponent=0.25"), make_policy("doral", min_answers=4)),
}
# Values that an option could have, and with which policy.
GONE: tuple[tuple[str, dict[str, Any], tuple[str, ...]], ...] = (
    ("doral-ids", {}, ("sampling=directed",)),
    ("doral-otf", {"sampling": "directed", "dropping": "never"}, ("sampling=directed",)),
    ("doral-otf", {"dropping": "never"}, ()),
    ("doral-otf", {"cutoff_share": 0.95}, ()),
    ("doral-otf", {"bonus": "ahead", "return_optimism": 0.7}, ()),
    ("doral-otf", {"return_optimism": 2.0}, ("return_optimism=2.0",)),
    ("doral-otf", {"cutoff_share": 0.5}, ("cutoff_share=0.5",)),
    ("doral-otf", {"curve_points": 100}, ("curve_points=100",)),
    ("doral", {"race_trains": False}, ("race_trains=False",)),
    ("doral", {"race_delta": 0.1}, ("race_delta=0.1",)),
    ("doral", {"tail_exponent": 2.0}, ("tail_exponent=2.0",)),
    ("d-lints", {"draws": 1}, ("draws=1",)),
    ("d-linucb", {"window_bias": False}, ("window_bias=False",)),
    ("doral", {"race_delta": 0.1, "race_trains": False}, ("race_delta=0.1", "race_trains=False")),
)
PRINTED: dict[str, dict[str, Any]] = {  # an option and its word, as they were, and the reading that says the same
    "acceptance": {"acceptance": "printed"},
    "baskets": {"baskets": "printed"},
    "bonus": {"bonus": "printed"},
    "choice": {"choice": "unweighted"},
    "cutoff": {"cutoff_over": "all"},
    "rate": {"rate": "printed"},
    "returns": {"return_by": "cutoff"},
    "window": {"window_bias": True},
}


@pytest.fixture
def first_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was said yet in this process."""
    monkeypatch.setattr(replay, "_warned", {})


@pytest.fixture
def warnings(first_time: None, caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what was said of options that are gone."""
    caplog.set_level(logging.WARNING, "doral")
    return lambda: [one for one in caplog.messages if "options that are gone" in one]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gone") / "campaigns.db"
    path.write_bytes(gzip.decompress((FOLDER / "campaigns.db.gz").read_bytes()))
    return path


@pytest.fixture
def old_store(packed: Path, url: str, tmp_path: Path, open_store: Callable[[str], Store]) -> Store:
    """The file itself, snapshots and all; elsewhere, restored from it."""
    if url.startswith("sqlite"):
        (tmp_path / "campaigns.db").write_bytes(packed.read_bytes())
        return open_store(url)
    store = open_store(url)
    assert store.restore(packed) == list(CAMPAIGNS)
    return store


# --- stored policies ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_stored_presets_are_those_of_today(name: str) -> None:
    made, gone = read_stored(PRESETS[name])
    if name == "doral-ids":
        assert (replace(made, name="doral-otf"), gone) == (ON_THE_FLY, ("sampling=directed",))
    else:
        assert (made, gone) == (_policy_now(name), ())


def _policy_now(name: str) -> PolicyOptions:
    """What a preset of before is today."""
    return ON_THE_FLY if name == "doral-otf" else make_policy(name)


def test_every_preset_of_before_is_here_but_one() -> None:
    assert set(PRESETS) - set(POLICY_NAMES) == {"doral-ids"}
    assert set(POLICY_NAMES) - set(PRESETS) == {"ts-lp"}


def test_every_option_that_is_gone_is_tested() -> None:
    gone = set(PRESETS["doral"]) - set(make_policy("doral").to_dict())
    tested = {option for _, options, _ in GONE for option in options} | {
        option for words in PRINTED.values() for option in words
    }
    assert gone <= tested
    assert set(PRINTED) == set(PRINTED_READINGS)


@pytest.mark.parametrize(("name", "options", "expected"), GONE)
def test_the_nearest_policy(name: str, options: dict[str, Any], expected: tuple[str, ...]) -> None:
    made, gone = read_stored({**PRESETS[name], **options})
    nearest = "doral-otf" if name == "doral-ids" else name
    assert (replace(made, name=nearest), gone) == (_policy_now(nearest), expected)
    assert read_stored(made.to_dict()) == (made, ())  # as it is stored from now on


@pytest.mark.parametrize("reading", PRINTED)
def test_words_that_are_readings_now(reading: str) -> None:
    made, gone = read_stored({**PRESETS["doral"], **PRINTED[reading]})
    assert (replace(made, name="doral"), gone) == (replace(make_policy("doral", printed=[reading]), name="doral"), ())


def test_an_option_of_a_version_to_come_is_refused() -> None:
    with pytest.raises(LookupError, match="unknown policy option 'foresight'"):
        read_stored({**PRESETS["doral"], "foresight": 3})


# --- campaigns ------------------------------------------------------------------------------------------------------


def test_history_is_what_it_was(old_store: Store) -> None:
    assert old_store.list() == list(CAMPAIGNS)
    for name, (gone, policy) in CAMPAIGNS.items():
        campaign = old_store.campaign(name)
        assert decisions_now(campaign, EXPECTED) == decisions_then(EXPECTED, name)
        report, then = campaign.report(), EXPECTED[name]["report"]
        assert {key: str(value) for key, value in report.ledger.to_json().items()} == EXPECTED[name]["ledger"]
        assert {field: getattr(report, field) for field in then} == then
        definition = fold_of(campaign).definition
        assert (definition.gone, replace(definition.policy, name=policy.name)) == (gone, policy)
        log_is_whole(campaign)
        found = campaign.verify()
        assert found.events == report.events


def test_they_go_on(old_store: Store) -> None:
    for name in CAMPAIGNS:
        campaign = old_store.campaign(name)
        before = {one.id: one for one in campaign.decisions()}
        known = next(one for one in before.values() if one.key is not None)
        traits: dict[str, Any] = {"features": SOMEBODY} if name == "ids of people" else {}
        given: dict[str, Any] = {} if known.features is None else {"features": known.features}
        assert campaign.decide(known.context, known.available, key=known.key, **given) == known
        pending = next(one for one in before.values() if one.state == "pending")
        assert campaign.feedback(pending.id, 0.5).reward == 0.5
        made = [campaign.decide("xy"[i % 2], **traits) for i in range(40)]
        for one in made[:20]:
            if one.state == "pending":
                campaign.feedback(one.id, 0.25)
        assert any(one.arm is not None for one in made)
        campaign.top_up(1.0)
        campaign._session.close()
        after = {one.id: one for one in adds_up(campaign)}
        changed = {pending.id, *(one.id for one in before.values() if after[one.id].state != one.state)}
        assert all(before[one].state == "pending" for one in changed)  # by time, or by its answer
        assert {id_: after[id_] for id_ in before if id_ not in changed} == {
            id_: one for id_, one in before.items() if id_ not in changed
        }
        log_is_whole(campaign)


def test_what_was_decided_since_is_decided_again_alike(packed: Path, open_store: Callable[[str], Store]) -> None:
    """A log of two versions has one course: the state that goes on is the one that a replay makes."""
    one, other = open_store("memory://"), open_store("memory://")
    for store in (one, other):
        store.restore(packed, name="ids")
    decided = [one.campaign("ids").decide("xy"[i % 2]) for i in range(30)]
    again = other.campaign("ids")
    for i, first in enumerate(decided):
        second = again.decide("xy"[i % 2])
        assert (second.arm, second.value, second.price) == (first.arm, first.value, first.price)


def test_snapshots_of_before_are_passed_over(
    packed: Path, tmp_path: Path, open_store: Callable[[str], Store], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "campaigns.db").write_bytes(packed.read_bytes())
    with caplog.at_level(logging.WARNING, "doral"):
        campaign = open_store(f"sqlite:///{tmp_path / 'campaigns.db'}").campaign("ids of people")
        campaign.decide("x", features=SOMEBODY)
    assert sum("is skipped" in one for one in caplog.messages) == 1
    campaign._session.reader.snapshot_every = 1
    campaign.decide("x", features=SOMEBODY)
    campaign._session.close()
    caplog.clear()
    with caplog.at_level(logging.WARNING, "doral"):
        assert campaign.report().arrivals == EXPECTED["ids of people"]["report"]["arrivals"] + 2
    assert campaign._session.reader.saved_at > 0  # from a snapshot of this version
    assert not any("is skipped" in one for one in caplog.messages)


# --- it is said once ------------------------------------------------------------------------------------------------


def said(name: str) -> str:
    return (
        f"campaign {name!r} was created with options that are gone ({', '.join(CAMPAIGNS[name][0])}): its log is "
        "replayed as it is, and it goes on with the nearest policy"
    )


def test_it_is_said_once_for_each_campaign(old_store: Store, warnings: Callable[[], list[str]]) -> None:
    assert old_store.list() == list(CAMPAIGNS)
    assert warnings() == []  # a list of names reads no policy
    with old_store.glimpses() as glimpses:
        for glimpse in glimpses:
            glimpse.read(lambda _, fold: fold.sequence)
    expected = [said(name) for name, (gone, _) in CAMPAIGNS.items() if gone]
    assert sorted(warnings()) == sorted(expected)
    for name in CAMPAIGNS:
        campaign = old_store.campaign(name)
        for _ in range(3):
            campaign.report()
            campaign._session.close()  # a state that was given back is made anew
    assert sorted(warnings()) == sorted(expected)


def test_another_store_of_the_process_does_not_say_it_again(
    packed: Path, warnings: Callable[[], list[str]], open_store: Callable[[str], Store]
) -> None:
    for _ in range(2):
        store = open_store("memory://")
        store.restore(packed, name="ids")
        store.campaign("ids").report()
    assert warnings() == [said("ids")]


def test_a_campaign_of_today_says_nothing(store: Store, warnings: Callable[[], list[str]]) -> None:
    problem = doral.Problem(arms=[doral.Arm("a", cost=1.0)], contexts=["x"], budget=5.0, horizon=5, deadline=2)
    for name in (one for one in POLICY_NAMES if one not in ("oracle", "doral/literal")):
        store.create(name, problem, policy=name, clock="rounds").decide("x")
    assert warnings() == []
    assert fold_of(store.campaign("eva")).definition.gone == ()
