"""One decision after the other, from a shell."""

from __future__ import annotations

import json
import time

import pytest

from doral.live.campaign import PAGE_DECISIONS
from tests.cli.campaign_shell import Shell

BEGAN = 1_767_225_600  # 2026-01-01T00:00Z


@pytest.fixture
def kits(doral_: Shell) -> Shell:
    doral_("create", "kits", doral_.problem, "--seed", 1, "--at", "2026-01-01T00:00Z")
    return doral_


def decided(kits: Shell, *words: object) -> str:
    """The id of a decision that was not skipped."""
    for _ in range(50):
        (made,) = kits.json("decide", "kits", "old", *words)
        if made["arm"] is not None:
            return str(made["id"])
    raise AssertionError("it always skips")


@pytest.mark.parametrize("number", ["-0.5", "-.5", "-5e-1", "-0.50"])
def test_a_negative_reward_is_a_number_and_no_option(kits: Shell, number: str) -> None:
    first, second = decided(kits), decided(kits)
    kits("feedback", "kits", first, "0.25")
    assert kits.json("correct", "kits", first, number)[0]["reward"] == -0.5
    # In any place, with a flag before it, after `--`, and beside an option whose value looks like a number.
    assert kits.json("feedback", "kits", second, "--key", "-7", number)[0]["reward"] == -0.5
    assert "reward -0.5" in kits("feedback", "kits", "--key", "-7", "--", second, number)
    assert "used before" in kits("feedback", "kits", second, "-0.75", "--key", "-7", code=2)
    recorded = kits.json("record", "kits", "old", "a0", "--at", BEGAN, "--reward", number, "--answered-at", BEGAN + 9)
    assert (recorded[0]["reward"], recorded[0]["delay"]) == (-0.5, 9)


def test_a_misspelt_option_beside_a_number_is_still_one(kits: Shell) -> None:
    assert "--acutal-cost" in kits("feedback", "kits", decided(kits), "-0.5", "--acutal-cost", "1", code=2)
    assert "finite" in kits("feedback", "kits", decided(kits), "-inf", code=2)


def test_decisions_are_listed_by_state_and_up_to_a_limit(kits: Shell) -> None:
    answered, cancelled = decided(kits), decided(kits)
    kits("feedback", "kits", answered, 1)
    assert "cancelled" in kits("cancel", "kits", cancelled, "--key", "c1")
    assert "cancelled" in kits("cancel", "kits", cancelled, "--key", "c1")
    listed = kits("decisions", "kits").splitlines()
    assert {answered, cancelled} <= {line.split()[0] for line in listed}
    assert [line.split()[0] for line in kits("decisions", "kits", "--state", "returned").splitlines()] == [answered]
    assert kits("decisions", "kits", "--limit", 1).splitlines() == listed[:1]
    assert kits("decisions", "kits", "--limit", 0) == ""
    assert kits.json("decisions", "kits", "--state", "cancelled")[0]["id"] == cancelled
    assert "'pending'" in kits("decisions", "kits", "--state", "pendin", code=2)


def test_all_pages_are_listed(kits: Shell) -> None:
    count = PAGE_DECISIONS + 1
    kits("decide", "kits", "--from", "-", typed="context\n" + "old\n" * count)
    assert len(kits("decisions", "kits").splitlines()) == count


def test_times_are_seconds_or_say_their_zone(kits: Shell) -> None:
    for word, stamp in (("2026-01-02T00:00Z", BEGAN + 86_400), (str(BEGAN + 90_000.5), BEGAN + 90_000.5)):
        assert kits.json("decide", "kits", "old", "--at", word)[0]["decided_at"] == stamp
    for word, part in (
        ("2026-01-03T00:00", "time zone"),
        ("tomorrow", "seconds since 1970"),
        ("2025-12-31T00:00Z", "--at 2025-12-31T00:00Z:"),
        ("1767225600000", "milliseconds"),
        ("nan", "finite"),
    ):
        assert part in kits("decide", "kits", "old", "--at", word, code=2)


def test_expiry_spends_what_was_reserved_and_counts_once_by_key(kits: Shell) -> None:
    decided(kits, "--at", BEGAN + 10)
    assert kits("expire", "kits", "--at", BEGAN + 20) == "0 decisions expired\n"
    for _ in range(2):
        assert kits("expire", "kits", "--at", BEGAN + 100, "--key", "monday") == "1 decision expired\n"
    assert kits("expire", "kits", "--at", BEGAN + 100) == "0 decisions expired\n"
    assert "spent 0." in kits("show", "kits")


def test_the_clock_may_be_ahead_as_far_as_is_said_and_can_be_set_back(kits: Shell) -> None:
    ahead = time.time() + 5_000
    assert "--at" in kits("decide", "kits", "old", "--at", ahead, code=2)
    kits("decide", "kits", "old", "--at", ahead, "--clock-tolerance", 6_000)
    assert "repair-clock" in kits("decide", "kits", "old", code=2)
    assert kits.json("repair-clock", "kits") == [{"campaign": "kits", "clock": None}]
    kits("decide", "kits", "old")


def test_a_record_takes_all_that_the_library_takes(kits: Shell) -> None:
    words = ["record", "kits", "old", "a2", "--at", BEGAN, "--reward", 0.5, "--answered-at", BEGAN + 7]
    words += ["--cost", 0.25, "--probability", 0.125, "--spend", "--key", "r1"]
    (made,) = kits.json(*words)
    assert kits.json(*words) == [made]
    wanted = {"arm": "a2", "reward": 0.5, "delay": 7, "cost": 0.25, "probability": 0.125, "key": "r1"}
    assert {name: made[name] for name in wanted} == wanted
    assert made["is_in_ledger"] is True
    assert "spent 0.25" in kits("show", "kits")
    assert kits.json("record", "kits", "old", "-", "--at", BEGAN)[0]["state"] == "skipped"
    assert "together" in kits("record", "kits", "old", "a2", "--at", BEGAN, "--reward", 1, code=2)


def test_who_is_skipped_can_be_answered_where_doing_nothing_has_an_outcome(doral_: Shell) -> None:
    stored = json.loads(doral_.problem.read_text())
    problem = doral_.file("trial.json", json.dumps(stored | {"baseline": "observed"}))
    doral_("create", "trial", problem, "--seed", 1, "--at", "2026-01-01T00:00Z")
    made = [doral_.json("decide", "trial", "old")[0] for _ in range(8)]
    skipped = next(one for one in made if one["arm"] is None)
    assert skipped["state"] == "pending"
    assert skipped["cost"] == 0.0
    assert "returned" in doral_("feedback", "trial", skipped["id"], 0.5)
    assert "-  returned  reward 0.5" in doral_("decisions", "trial", "--state", "returned")
    assert "nothing   brings" in doral_("show", "trial")
    assert doral_.json("record", "trial", "old", "-", "--at", BEGAN, "--reward", 1, "--answered-at", BEGAN + 9)
