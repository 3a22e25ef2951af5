"""Who comes to the demonstration, and the half hour that it begins with."""

from __future__ import annotations

import math
import time

import pytest

import doral
from doral.errors import InvalidValue
from doral.live.store import Store
from doral.service.demo.history import HISTORY_S, prepare, refuse_others
from doral.service.demo.population import MAIN, populations
from tests.live.checks import adds_up


@pytest.fixture(scope="module")
def prepared() -> Store:
    """A store with both campaigns; nothing in it is changed."""
    store, now = doral.open("memory://"), time.time()
    for one in populations():
        prepare(store, one, now=now)
    return store


def test_what_happens_to_somebody_depends_on_the_seed_and_on_who_it_is_alone() -> None:
    one, same, other = populations(3)[0], populations(3)[0], populations(4)[0]
    numbers = range(1, 200)
    assert [one.arrival(n) for n in numbers] == [same.arrival(n) for n in reversed(numbers)][::-1]
    assert [one.arrival(n) for n in numbers] != [other.arrival(n) for n in numbers]
    asked = {"cost": 1.0, "began_s": 0.0}
    assert one.outcome(7, "worker", "pharmacy", **asked) == same.outcome(7, "worker", "pharmacy", **asked)


def test_delays_have_heavy_tails_that_depend_on_the_arm_and_some_never_answer() -> None:
    main = populations()[0]
    for arm, law in main.delays.items():
        drawn = sorted(main.outcome(n, "worker", arm, cost=1.0, began_s=0.0).after_s for n in range(2_000))
        assert drawn[1_000] == pytest.approx(float(law.sample([0.5])[0]), rel=0.2)
        assert math.isinf(drawn[-1])
        assert max(one for one in drawn if one < math.inf) > 20 * drawn[0]


def test_an_arm_that_went_silent_stays_so_and_one_that_was_added_answers() -> None:
    reminders = populations()[1]
    silent = [reminders.outcome(n, "check-up", "text message", cost=0.1, began_s=1_600.0).after_s for n in range(50)]
    assert all(math.isinf(one) for one in silent)
    added = [reminders.outcome(n, "check-up", "somebody's own", cost=0.1, began_s=1_600.0).after_s for n in range(50)]
    assert any(one < 100 for one in added)


def test_the_half_hour_before_is_a_campaign_like_any_other(prepared: Store) -> None:
    campaign = prepared.campaign(MAIN)
    decisions = adds_up(campaign)
    assert len(decisions) > 3_000
    assert {one.state for one in decisions} == {"skipped", "pending", "returned", "expired", "late", "cancelled"}
    facts = campaign.facts()
    assert facts.last_at - facts.began_at == pytest.approx(HISTORY_S, abs=60)
    assert all(one.plays > 50 for one in facts.arms)
    assert facts.spending.pace == "on plan"
    first, last = decisions[0].decided_at, decisions[-1].decided_at
    assert [one.decided_at for one in decisions] == sorted(one.decided_at for one in decisions)
    assert last - first > 0.9 * HISTORY_S


def test_the_same_seed_gives_the_same_half_hour(prepared: Store) -> None:
    again, small = doral.open("memory://"), populations()[1]
    prepare(again, small, now=time.time())
    told = [
        [(one.context, one.arm, one.reward, one.state) for one in store.campaign(small.name).decisions()]
        for store in (prepared, again)
    ]
    # Times are of today, and a policy that weighs delays may see the last digit of one: who came is the same at least.
    assert [one[0] for one in told[0]] == [one[0] for one in told[1]]
    assert sum(a == b for a, b in zip(*told, strict=True)) > 0.9 * len(told[0])


def test_one_that_was_stopped_goes_on_where_it_was(prepared: Store) -> None:
    campaign, main = prepared.campaign(MAIN), populations()[0]
    events = campaign.report().events
    crowd = prepare(prepared, main, now=time.time())
    assert campaign.report().events == events
    assert crowd.came == campaign.report().arrivals
    _, arrival = crowd.next_arrival()
    assert arrival["key"] == f"demo/{crowd.came}"
    pending = {one.id for one in campaign.decisions("pending")}
    assert {one.decision_id for one in crowd.due} <= pending
    assert crowd.due


@pytest.mark.parametrize("name", ["mine", MAIN])
def test_somebodys_own_campaign_is_not_fed(name: str) -> None:
    store = doral.open("memory://")
    store.create(name, doral.Problem(arms=["a", "b"], contexts=["c"], budget=10, horizon=10, deadline=60))
    with pytest.raises(InvalidValue, match=f"{name}.*is not of the demonstration"):
        refuse_others(store, populations())


def test_what_people_did_to_the_demonstration_makes_it_no_other(prepared: Store) -> None:
    refuse_others(prepared, populations())
    store = doral.open("memory://")
    main = populations()[0]
    campaign = store.create(main.name, main.problem)
    campaign.add_arm(doral.Arm("drone", cost=3.0))
    campaign.top_up(500)
    refuse_others(store, populations())
