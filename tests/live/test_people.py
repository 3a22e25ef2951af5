"""Live campaigns for people who have features: what is asked, kept, learned and told again."""

from __future__ import annotations

import math
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import InvalidValue, UnknownName
from doral.live.errors import BrokenLog, CampaignClosed, KeyReused
from doral.live.events.row import Row, link
from doral.live.state.snapshot import BadSnapshot
from doral.live.state.snapshot import decode_snapshot as decode
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from doral.live.views.export import read_decisions
from tests.live import people
from tests.live.checks import adds_up, expire_as_before, fold_of, log_is_whole
from tests.live.damage import rewrite
from tests.live.tapes import same_bits

ADA = {"age": 71.0, "clinic": "north", "km": 3.5}


# --- the same as without a log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("contexts", [None, {"near": 0.5, "far": 0.5}])
def test_a_campaign_decides_as_an_engine_without_a_log(contexts: Any, open_store: Callable[[str], Store]) -> None:
    problem = people.make_problem(contexts=contexts) if contexts else people.make_problem()
    campaign = people.make(open_store("memory://"), problem=problem)
    beside = people.Beside(campaign)
    rng = random.Random(5)
    waiting: list[tuple[int, doral.Decision]] = []
    for i in range(400):
        for due, one in [pair for pair in waiting if pair[0] == i]:
            answered = campaign.feedback(one.id, people.brings(one, rng))
            beside.answer(answered, at=float(i + 1))
            waiting.remove((due, one))
        weight, deadline = rng.choice((None, 2.0)), rng.choice((None, 20.0))
        context = rng.choice(problem.context_names)
        one = campaign.decide(context, features=people.somebody(rng), weight=weight, deadline=deadline)
        beside.asks(one)
        if one.arm is not None and rng.random() < 0.8:
            waiting.append((i + rng.randint(1, 25), one))
    assert same_bits(fold_of(campaign).engine.state, beside.engine.state) == []
    played = [one for one in campaign.decisions() if one.arm is not None]
    assert len({one.arm for one in played}) > 1  # it was no trivial campaign
    adds_up(campaign)
    log_is_whole(campaign)


def test_many_at_once_are_as_one_by_one(open_store: Callable[[str], Store]) -> None:
    store = open_store("memory://")
    one_by_one, together = people.make(store, "one"), people.make(store, "many")
    rng = random.Random(2)
    arrivals = [{"features": people.somebody(rng), "weight": rng.choice((None, 2.0))} for _ in range(150)]
    made = [one_by_one.decide(**one) for one in arrivals]  # type: ignore[arg-type]
    many = together.decide_many(arrivals)
    assert [(one.arm, one.value, one.effects) for one in made] == [(one.arm, one.value, one.effects) for one in many]
    assert same_bits(fold_of(one_by_one).engine.state, fold_of(together).engine.state) == []
    log_is_whole(together)


def test_read_again_and_from_a_snapshot(store: Store) -> None:
    campaign = people.make(store, problem=people.make_problem(contexts=["near", "far"]))
    people.busy(campaign, 200)
    campaign.expire()
    state, kept = fold_of(campaign).engine.state, fold_of(campaign).to_json()
    listed = list(campaign.decisions())
    campaign._session.close()
    assert same_bits(fold_of(campaign).engine.state, state) == []
    campaign.save_snapshot()
    campaign._session.close()
    again = fold_of(campaign)
    assert campaign._session.reader.saved_at == again.sequence
    assert same_bits(again.engine.state, state) == []
    assert again.to_json() == kept
    assert list(campaign.decisions()) == listed
    assert again.levels.names("clinic")[0] == "north"  # as declared, whoever came first
    known = again.levels.names("clinic")
    campaign.decide("near", features={**ADA, "clinic": "never seen before"})
    assert fold_of(campaign).levels.names("clinic") == (*known, "never seen before")
    log_is_whole(campaign)


@pytest.mark.parametrize(
    "levels",
    [[["south", "north"]], [["north", "north"]], [["north", 5]], [], [["north"], []], ["north"], None],
)
def test_a_snapshot_with_other_levels_is_not_used(levels: Any, open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"))
    people.busy(campaign, 20)
    fold = fold_of(campaign)
    stored = fold.to_json()
    fold.to_json = lambda: {**stored, "levels": levels}  # type: ignore[method-assign]
    with pytest.raises((BadSnapshot, TypeError)):
        decode(encode(fold), fold.definition, fold.names.tag)


def test_a_process_that_is_killed(durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store(durable_url))
    people.busy(campaign, 40)
    program = (
        "import sys, doral\n"
        "from tests.live import people\n"
        "campaign = doral.open(sys.argv[1]).campaign('kits')\n"
        "campaign._session.reader.snapshot_every = 30\n"
        "for seed in range(100, 1000):\n"
        "    print(len(people.busy(campaign, 5, seed)), flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, durable_url], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    for _ in range(6):
        assert writer.stdout.readline() == "5\n"
    time.sleep(0.01)
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    after = open_store(durable_url).campaign("kits")
    assert after.report().arrivals >= 70
    people.busy(after, 10, 5)
    adds_up(after)
    log_is_whole(after)
    assert after.verify().n_differences == 0


# --- what is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (None, "feature 'age'"),
        ({}, "feature 'age'"),
        ({"age": 71.0, "clinic": "north"}, "feature 'km'"),
        ({**ADA, "km": math.nan}, "feature 'km'"),
        ({**ADA, "km": math.inf}, "feature 'km'"),
        ({**ADA, "age": "old"}, "feature 'age'"),
        ({**ADA, "clinic": 5.5}, "feature 'clinic'"),
        ({**ADA, "clinic": ""}, "feature 'clinic'"),
        ({**ADA, "clinic": "a\x00b"}, "feature 'clinic'"),
        ([71.0, "north"], "number of features"),
        ("north", "features"),
    ],
)
def test_wrong_features_are_named(given: Any, named: str, store: Store) -> None:
    campaign = people.make(store)
    before = campaign.report().events
    asks: list[Callable[[], Any]] = [
        lambda: campaign.decide(features=given),
        lambda: campaign.decide_many([{"features": ADA}, {"features": given}]),
        lambda: campaign.record(None, "a0", at=1, features=given),
    ]
    for ask in asks:
        with pytest.raises(InvalidValue, match=named):
            ask()
    assert campaign.report().events == before
    assert fold_of(campaign).levels.names("clinic") == ("north",)


def test_names_that_nobody_knows(store: Store) -> None:
    campaign = people.make(store)
    with pytest.raises(UnknownName, match="height"):
        campaign.decide(features={**ADA, "height": 1.7})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"weight": 0.0}, "weight"),
        ({"weight": math.inf}, "weight"),
        ({"weight": "much"}, "weight"),
        ({"deadline": 0.0}, "deadline"),
        ({"deadline": 61.0}, "must be at most 60"),
        ({"deadline": math.nan}, "deadline"),
        ({"context": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_requests(asked: dict[str, Any], said: str, open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"))
    with pytest.raises((InvalidValue, UnknownName), match=said):
        campaign.decide(features=ADA, **asked)
    with pytest.raises((InvalidValue, UnknownName), match=said):
        campaign.record(asked.pop("context", None), "a0", at=1, features=ADA, **asked)


def test_problems_without_people_take_none(open_store: Callable[[str], Store]) -> None:
    problem = doral.Problem(arms=people.ARMS, contexts=["all"], budget=9, horizon=9, deadline=5)
    campaign = people.make(open_store("memory://"), problem=problem)
    others: list[dict[str, Any]] = [{"features": ADA}, {"features": []}, {"weight": 2.0}, {"deadline": 3.0}]
    for asked in others:
        with pytest.raises(InvalidValue, match=r"Problem\(person="):
            campaign.decide("all", **asked)
    made = campaign.decide()  # the only context
    assert (made.context, made.features, made.effects, made.weight) == ("all", None, None, None)


def test_the_context_is_needed_where_there_are_several(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"), problem=people.make_problem(contexts=["near", "far"]))
    with pytest.raises(InvalidValue, match="context = None: say which: near, far"):
        campaign.decide(features=ADA)
    assert campaign.decide("far", features=ADA).context == "far"


def test_costs_paid_on_answer_go_by_the_deadline_of_the_context(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"), problem=people.make_problem(paid="on_answer"))
    with pytest.raises(InvalidValue, match="paid on answer"):
        campaign.decide(features=ADA, deadline=5.0)
    made = people.busy(campaign, 60, own=False)
    assert any(one.arm for one in made)
    adds_up(campaign)
    log_is_whole(campaign)


def test_what_is_missing_may_be_as_on_average(store: Store) -> None:
    campaign = people.make(store, problem=people.make_problem(missing="mean"))
    people.busy(campaign, 60)
    made = [campaign.decide(features=one) for one in ({"age": 50.0}, {}, None, [None, "north", math.nan])]
    assert [one.features for one in made] == [
        {"age": 50.0, "clinic": None, "km": None},
        {"age": None, "clinic": None, "km": None},
        {"age": None, "clinic": None, "km": None},
        {"age": None, "clinic": "north", "km": None},
    ]
    assert made[1].effects is not None
    assert max(map(abs, made[1].effects.values())) < 1e-12 or made[1].effects["age"] == made[2].effects["age"]  # type: ignore[index]
    log_is_whole(campaign)


def test_what_was_refused_leaves_no_level(durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store(durable_url))
    campaign.decide(features=ADA)
    new = {**ADA, "clinic": "a new one"}
    with pytest.raises(UnknownName):
        campaign.decide(features=new, available=["no such arm"])
    with pytest.raises(InvalidValue):
        campaign.decide_many([{"features": new}, {"features": {**ADA, "km": "far"}}])
    log = campaign._session._open()
    commit = log.commit

    def fails() -> None:
        raise BrokenLog("on purpose")

    log.commit = fails  # type: ignore[method-assign]
    with pytest.raises(BrokenLog):
        campaign.decide(features=new)
    log.commit = commit  # type: ignore[method-assign]
    assert fold_of(campaign).levels.names("clinic") == ("north",)
    campaign.decide(features={**ADA, "clinic": "another"})
    assert fold_of(campaign).levels.names("clinic") == ("north", "another")
    campaign.close()
    with pytest.raises(CampaignClosed):
        campaign.decide(features=new)
    log_is_whole(campaign)


def test_a_key_stands_for_one_person(store: Store) -> None:
    campaign = people.make(store)
    made = campaign.decide(features=ADA, weight=2.0, key="k")
    assert campaign.decide(features=list(ADA.values()), weight=2.0, key="k") == made
    for other in ({"age": 70.0}, {"clinic": "south"}):
        with pytest.raises(KeyReused):
            campaign.decide(features={**ADA, **other}, weight=2.0, key="k")
    for asked in ({"weight": 3.0}, {}, {"weight": 2.0, "deadline": 5.0}):
        with pytest.raises(KeyReused):
            campaign.decide(features=ADA, key="k", **asked)  # type: ignore[arg-type]
    recorded = campaign.record(None, "a1", at=1, features=ADA, key="r")
    assert campaign.record(None, "a1", at=1, features=ADA, key="r").id == recorded.id
    with pytest.raises(KeyReused):
        campaign.record(None, "a1", at=1, features={**ADA, "km": 4.0}, key="r")


# --- weights and deadlines of single requests ------------------------------------------------------------------------


def test_every_decision_is_judged_by_its_own_deadline(store: Store) -> None:
    """Against each decision looked at by itself."""
    problem = people.make_problem(
        contexts=[doral.Context("near", 0.5, deadline=12.0), doral.Context("far", 0.5, weight=2.0)], budget=2000.0
    )
    campaign = people.make(store, problem=problem)
    rng = random.Random(4)
    limits: dict[str, float] = {}
    worth, late_worth, released = 0.0, 0.0, 0.0
    for i in range(260):
        context = rng.choice(("near", "far"))
        weight, deadline = rng.choice((None, 0.25, 4.0)), rng.choice((None, 2.0, 30.0, 60.0))
        one = campaign.decide(context, features=people.somebody(rng), weight=weight, deadline=deadline)
        limits[one.id] = deadline if deadline is not None else {"near": 12.0, "far": 60.0}[context]
        if i % 5 == 4:
            pending = [each for each in campaign.decisions(state="pending") if rng.random() < 0.3]
            for each in pending:
                answered = campaign.feedback(each.id, 0.5)
                age = campaign.decision(each.id).answered_at - each.decided_at  # type: ignore[operator]
                assert answered.state == ("late" if age > limits[each.id] else "returned")
                unit = each.weight if each.weight is not None else {"near": 1.0, "far": 2.0}[each.context]
                if answered.state == "late":
                    late_worth += 0.5 * unit
                else:
                    worth += 0.5 * unit
        if i % 20 == 19:
            now, release = float(i + 1), i % 40 == 39
            due = [one for one in campaign.decisions(state="pending") if now - one.decided_at > limits[one.id]]
            assert campaign.health().overdue is not None
            assert expire_as_before(campaign, now, release=release) == len(due)
            released += sum(one.cost for one in due) if release else 0.0
            for one in due:
                after = campaign.decision(one.id)
                assert (after.state, after.actual_cost) == ("expired", 0.0 if release else one.cost)
            assert campaign.expire(now) == 0
    report = campaign.report()
    assert report.reward == pytest.approx(worth)
    assert report.late_reward == pytest.approx(late_worth)
    assert float(report.ledger.released) == pytest.approx(released)
    assert len([one for one in limits.values() if one == 2.0]) > 20
    adds_up(campaign)
    log_is_whole(campaign)
    campaign.save_snapshot()
    campaign._session.close()
    adds_up(campaign)


def test_a_clock_that_is_set_back_expires_nobody_afterwards(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"), problem=people.make_problem(budget=2000.0))
    made = [campaign.decide(features=ADA, at=900 + i, deadline=50.0) for i in range(6)]
    campaign.expire(910)  # of somebody whose clock was wrong
    campaign.repair_clock()
    people.busy(campaign, 20)
    pending = [one for one in made if one.arm is not None]
    assert [campaign.decision(one.id).state for one in pending] == ["pending"] * len(pending)
    adds_up(campaign)
    log_is_whole(campaign)


# --- later -----------------------------------------------------------------------------------------------------------


def test_decisions_that_the_engine_has_forgotten(store: Store) -> None:
    """Cancelled, corrected, or answered long after they have left the ring: the engine is told who they were for."""
    campaign = people.make(store, problem=people.make_problem(deadline=5, horizon=3000, budget=900.0))
    beside = people.Beside(campaign)
    rng = random.Random(8)
    early: list[doral.Decision] = []
    for i in range(260):
        one = campaign.decide(features=people.somebody(rng))
        beside.asks(one)
        if one.arm is not None and i < 60:
            early.append(one)
        if one.arm is not None and i % 2 and len(early) % 3:
            beside.answer(campaign.feedback(one.id, people.brings(one, rng)), at=float(i + 2))
    engine = fold_of(campaign).engine
    gone = [one for one in early if beside.numbers[one.id] < engine.state.now["first"][0]]
    late = [one for one in gone if campaign.decision(one.id).state == "pending"][:3]
    done = [one for one in map(campaign.decision, (one.id for one in gone)) if one.state == "returned"][:3]
    assert len(late) == 3
    assert done
    told = campaign.feedback(late[0].id, 0.9, at=late[0].decided_at + 2)
    beside.answer(told, at=late[0].decided_at + 2, is_recalled=True)
    assert told.state == "returned"
    assert same_bits(fold_of(campaign).engine.state, beside.engine.state) == []
    before = done[0].reward
    campaign.correct(done[0].id, 5.0)
    number, arm = beside.numbers[done[0].id], campaign.problem.arm_index(str(done[0].arm))
    beside.engine.recall_features(number, 0, beside.who(done[0]))
    beside.engine.correct(number=number, context=0, arm=arm, previous=before or 0.0, reward=5.0)
    assert same_bits(fold_of(campaign).engine.state, beside.engine.state) == []
    campaign.cancel(late[1].id)
    number, arm = beside.numbers[late[1].id], campaign.problem.arm_index(str(late[1].arm))
    beside.engine.recall_features(number, 0, beside.who(late[1]))
    clock = fold_of(campaign).clock
    beside.engine.cancel(number=number, context=0, arm=arm, cost=late[1].cost, reason=1, clock=clock)
    assert same_bits(fold_of(campaign).engine.state, beside.engine.state) == []
    adds_up(campaign)
    log_is_whole(campaign)


def test_an_arm_is_added_and_the_budget_grows(store: Store) -> None:
    campaign = people.make(store)
    people.busy(campaign, 80)
    campaign.add_arm(doral.Arm("new", features=[0.4], cost=0.5))
    campaign.top_up(100.0)
    campaign.extend(50)
    made = people.busy(campaign, 120, 2)
    assert any(one.arm == "new" for one in made)
    report = campaign.report()
    assert {one.arm for one in report.effects} == {*campaign.problem.arm_names}
    campaign.save_snapshot()
    campaign._session.close()
    people.busy(campaign, 20, 3)
    adds_up(campaign)
    log_is_whole(campaign)


def test_records_teach_what_decisions_do(store: Store) -> None:
    campaign = people.make(store)
    rng = random.Random(3)
    for i in range(0, 60, 3):
        who = people.somebody(rng)
        campaign.record(
            None, "a0", at=i + 1, reward=0.01 * who["age"], answered_at=i + 3, features=who, weight=2.0, deadline=9.0
        )
    campaign.record_many([{"arm": None, "at": 5, "features": ADA}, {"arm": "a1", "at": 2, "features": ADA}])
    made = campaign.record(None, "a1", at=3, reward=1.0, answered_at=30, features=ADA, deadline=20.0)
    assert (made.state, made.features, made.deadline, made.effects) == ("late", ADA, 20.0, None)
    people.busy(campaign, 40)
    adds_up(campaign)
    log_is_whole(campaign)


# --- explained -------------------------------------------------------------------------------------------------------


def test_a_decision_says_what_spoke_for_it(store: Store) -> None:
    campaign = people.make(store)
    people.busy(campaign, 300, own=False)
    asked = {"clinic": "north", "km": 10.0}
    made = campaign.decide(features={"age": 90.0, **asked}, weight=2.0, available=["a0"])
    young = campaign.decide(features={"age": 20.0, **asked}, weight=2.0, available=["a0"])
    assert made.effects is not None
    assert young.effects is not None
    assert made.effects["age"] > 0.0 > young.effects["age"]
    before = (made.base, made.effects)
    people.busy(campaign, 100, 2)
    campaign._session.close()
    again = campaign.decision(made.id)
    assert (again.base, again.effects) == before  # what was thought then
    effects = {one.arm: one for one in campaign.report().effects if one.feature == "age"}
    assert 0.0 < effects["a0"].low <= 0.01 <= effects["a0"].high  # the arm that was played most, by a unit of its own
    assert effects["a1"].low <= 0.0
    assert effects["a0"].change == "one more"


def test_who_is_served(open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store("memory://"))
    made = people.busy(campaign, 250)
    report = campaign.report()
    for name, groups in (("age", 4), ("km", 4), ("clinic", 4)):
        table = report.served_by(name)
        assert len(table) == groups
        assert sum(one.arrivals for one in table) == 250
        assert sum(one.served for one in table) == sum(one.arm is not None for one in made)
        assert sum(one.spend for one in table) == pytest.approx(float(report.ledger.spent + report.ledger.reserved))
    ages = sorted(one.features["age"] for one in made if one.features is not None)  # type: ignore[type-var]
    quarter = [one for one in made if one.features is not None and one.features["age"] <= ages[62]]  # type: ignore[operator]
    oldest = report.served_by("age")[0]
    assert oldest.arrivals == len(quarter)
    assert oldest.served == sum(one.arm is not None for one in quarter)
    assert len(report.served_by("age", bins=2)) == 2
    with pytest.raises(UnknownName, match="height"):
        report.served_by("height")
    assert "effects" in report.to_dict()
    assert "age" in "\n".join(report.served_lines())


# --- kept ------------------------------------------------------------------------------------------------------------


def test_the_chain_of_problems_without_people_is_what_it_was() -> None:
    event = Row(
        5, 2, 7.5, 1.0e9, 99, key="d:x", number=3, context=0, arm=1, cost=0.1, round=4, reason=1, value=0.5,
        price=0.25, probability=1.0, available=b"\xa0", engine=1, key_hash=b"\x01" * 16,
    )  # fmt: skip
    assert link(b"doral log 1 0000000a", event).hex() == "e1e29575e6f1d18df26cc541b7c3d6c2"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE events SET person = replace(person, '71.0', '70.0') WHERE sequence = 2",
        "UPDATE events SET person = NULL WHERE sequence = 2",
        "UPDATE events SET person = NULL, person_hash = NULL WHERE sequence = 2",
        "UPDATE events SET weight = 3.0 WHERE sequence = 2",
        "UPDATE events SET deadline = NULL WHERE sequence = 2",
    ],
)
def test_what_somebody_has_changed_is_damage(sql: str, durable_url: str, open_store: Callable[[str], Store]) -> None:
    campaign = people.make(open_store(durable_url))
    campaign.decide(features=ADA, weight=2.0, deadline=9.0)
    people.busy(campaign, 5)
    rewrite(campaign, sql)
    with pytest.raises(BrokenLog):
        campaign.report()


@pytest.mark.parametrize(
    "text", ["{}", "[]", '{"salt":"","features":[1.0]}', '{"salt":"","features":["x","north",1.0]}', '"x"', "{"]
)
def test_nonsense_with_a_chain_that_fits(text: str, open_store: Callable[[str], Store], tmp_path: Path) -> None:
    campaign = people.make(open_store(f"sqlite:///{tmp_path / 'campaigns.db'}"))
    campaign.decide(features=ADA)
    people.busy(campaign, 5)
    from doral.live.events.row import hash_key

    hashed = hash_key(fold_of(campaign).salt, text).hex()
    rewrite(
        campaign, f"UPDATE events SET person = '{text}', person_hash = X'{hashed}' WHERE sequence = 2", with_chain=True
    )
    with pytest.raises(BrokenLog, match="cannot be understood"):
        campaign.report()


def test_a_column_for_every_feature(durable_url: str, tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    person: list[doral.Number | doral.Category] = [doral.Number("age"), doral.Category("cost"), doral.Number("=1+1")]
    problem = doral.Problem(arms=people.ARMS, person=person, budget=50, horizon=99, deadline=9, missing="mean")
    campaign = people.make(open_store(durable_url), problem=problem)
    given: list[dict[str, Any]] = [
        {"age": 1.5, "cost": "=cmd", "=1+1": 2.0},
        {"age": None, "cost": "low", "=1+1": -3.0},
        {},
    ]
    made = [campaign.decide(features=one, weight=2.0) for one in given]
    for name in ("all.parquet", "all.csv"):
        assert campaign.export(tmp_path / name) == 3
        frame = read_decisions(tmp_path / name)
        own = [one for one in frame.columns if one.lstrip("'") in ("age", "feature:cost", "=1+1")]
        assert len(own) == 3
        assert frame["age"].to_list() == [1.5, None, None]
        assert frame["feature:cost"].to_list() == ["=cmd", "low", None]
        assert frame[own[-1]].to_list() == [2.0, -3.0, None]
        assert frame["weight"].to_list() == [2.0] * 3
        assert frame["base"].to_list() == [one.base for one in made]
        assert frame["effect:age"].null_count() == 0
    assert "'=cmd" in (tmp_path / "all.csv").read_text()


def test_backups_hold_everything(durable_url: str, tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    store = open_store(durable_url)
    campaign = people.make(store)
    people.busy(campaign, 60, keyed=True)
    campaign.forget(["visit-1-0", "visit-1-3"])
    state, listed = fold_of(campaign).engine.state, list(campaign.decisions())
    store.backup(tmp_path / "copy.db")
    other = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    other.restore(tmp_path / "copy.db")
    again = other.campaign("kits")
    assert list(again.decisions()) == listed
    assert same_bits(fold_of(again).engine.state, state) == []
    log_is_whole(again)
