"""The same calls on a campaign here, behind a service, and behind a service while others go on: what came of each."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

import doral
from doral.client.remote_async import AsyncStore
from doral.errors import DoralError
from doral.live.views.decision import Decision


class Waiting:
    """An object whose calls are awaited, for scripts that do not."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target, self._loop = target, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if name == "problem":
            return self._loop.run_until_complete(found())
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            result = found(*args, **kwargs)
            if isinstance(result, AsyncIterator):
                return self._items(result)
            made = self._loop.run_until_complete(result)
            is_ours = isinstance(self._target, AsyncStore) and name in ("create", "campaign")
            return Waiting(made, self._loop) if is_ours else made

        return call

    def _items(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        async def following() -> Any:
            return await anext(items, None)

        while (one := self._loop.run_until_complete(following())) is not None:
            yield one


class Told:
    """What calls have returned or raised, as it can be compared between campaigns."""

    def __init__(self) -> None:
        self.outcomes: list[Any] = []

    def ask(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call it; what came of it is noted, and returned."""
        try:
            result = call(*args, **kwargs)
            if isinstance(result, Iterator):
                result = list(result)
        except DoralError as error:
            self.outcomes.append((type(error), str(error)))
            return None
        self.outcomes.append(result)
        return result


def comparable(value: Any, tag: str) -> Any:
    """Without what differs between two campaigns that are the same: identifiers, and keys that were drawn."""
    if isinstance(value, Decision):
        key = value.key if value.key is not None and value.key.startswith("own") else None
        return replace(value, id=value.id.replace(tag, "TAG"), key=key)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(comparable(one, tag) for one in value)
    if isinstance(value, DoralError):
        return (type(value), str(value).replace(tag, "TAG"))
    if isinstance(value, str):
        return value.replace(tag, "TAG")
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


PROBLEM = doral.Problem(
    arms=[doral.Arm("letter", cost=1.0), doral.Arm("call", cost=2.5)],
    contexts={"young": 0.5, "old": 0.5},
    budget=60,
    horizon=60,
    deadline=20,
)


def play(store: Any, name: str) -> list[Any]:
    """Everything that can be done to a campaign, right and wrong; what came of it."""
    told = Told()
    campaign = store.create(name, PROBLEM, policy=doral.policy("doral-otf", exploration=0.5), seed=3, clock="rounds")
    tag = campaign.decide("young").id.partition("-")[0]
    ask = told.ask
    made = [ask(campaign.decide, one) for one in ("young", "old", "old", "young", "young")]
    again = ask(campaign.decide, "old", key="own 1")
    ask(campaign.decide, "old", key="own 1")
    ask(campaign.decide, "young", key="own 1")
    for wrong in (
        {"context": "yuong"},
        {"context": None},
        {"context": "old", "available": ["lettre"]},
        {"context": "old", "available": "letter"},
        {"context": "old", "key": ""},
        {"context": "old", "features": {"age": 3.5}},
        {"context": "old", "weight": -1},
    ):
        ask(campaign.decide, **wrong)
    ask(campaign.decide, "old", available=["call"], key="own é/?#%")
    ask(campaign.decide, "old", available=(one for one in ["letter"]))
    ask(campaign.decide_many, ["young", {"context": "old", "key": "own 2"}, {"context": "young", "available": []}])
    ask(campaign.decide_many, ["young", "yuong"])
    ask(campaign.decide_many, [])
    ask(campaign.decide_many, "young")
    pending = [one.id for one in [*made, again] if one.state == "pending"]
    ask(campaign.feedback, pending[0], 1.0)
    ask(campaign.feedback, pending[0], 1.0, key="own 9")
    ask(campaign.feedback, pending[0], 0.0)
    ask(campaign.feedback, pending[0], float("inf"))
    ask(campaign.feedback, pending[1], 0.5, key="own 3", actual_cost=0.25)
    ask(campaign.feedback, "no such", 1.0)
    ask(campaign.feedback, f"{tag}-99999", 1.0)
    ask(campaign.correct, pending[0], 0.75)
    ask(campaign.correct, pending[2], 0.75)
    ask(campaign.cancel, pending[2], key="own 4")
    ask(campaign.cancel, pending[2], key="own 10")
    more = [one.id for one in campaign.decide_many(["young"] * 8) if one.state == "pending"]
    ask(campaign.feedback_many, [(more[0], 1.0), {"decision_id": more[1], "reward": 0.0, "key": "own 5"}])
    ask(campaign.feedback_many, [(more[2], 1.0), ("no such", 0.0)])
    ask(campaign.feedback_many, [])
    ask(campaign.feedback_each, [(more[2], 0.5), ("no such", 0.0), (more[3], "much"), (more[3], 0.25), {"reward": 1}])
    ask(campaign.feedback_each, [])
    ask(campaign.decision_with_key, "own 5")
    ask(campaign.decision_with_key, "own 2")
    ask(campaign.decision_with_key, "")
    ask(lambda: campaign.decision_page(after=more[0], limit=3).decisions)
    ask(lambda: campaign.decision_page(state="pending", limit=1).next)
    ask(campaign.decision_page, limit=0)
    ask(campaign.decision_page, after="no such")
    ask(campaign.decision, more[2])
    ask(campaign.record, "old", "letter", 3, reward=1.0, answered_at=5)
    ask(campaign.record, "old", None, 3, key="own 6")
    ask(campaign.record, "old", "ltter", 3)
    ask(campaign.record_many, [{"context": "old", "arm": "call", "at": 4, "spend": True}, {"arm": "call", "at": 4}])
    ask(campaign.record_many, [{"context": "old", "arm": "call", "at": 4, "cost": 2.0, "probability": 0.5}])
    ask(campaign.add_arm, doral.Arm("visit", cost={"young": 1.0, "old": 2.0}), key="own 7")
    ask(campaign.add_arm, doral.Arm("letter", cost=9.0))
    ask(campaign.add_arm, "visit")
    ask(campaign.pause_arm, "call")
    ask(campaign.pause_arm, "cal")
    ask(campaign.resume_arm, "call")
    ask(campaign.retire_arm, "call")
    ask(campaign.resume_arm, "call")
    ask(campaign.top_up, 10.5, key="own 8")
    ask(campaign.top_up, 10.5, key="own 8")
    ask(campaign.top_up, 11.5, key="own 8")
    ask(campaign.top_up, -1)
    ask(campaign.extend, 20)
    ask(campaign.extend)
    ask(campaign.extend, until="2099-01-01")
    ask(campaign.repair_clock)
    ask(campaign.expire, now=40)
    ask(campaign.expire, now=1e9)
    ask(campaign.expire, key=3)
    ask(campaign.forget, "own 1")
    ask(campaign.forget, ["own 2", "own 3"])
    ask(campaign.forget, "never used")
    ask(campaign.decisions)
    ask(campaign.decisions, "returned")
    ask(campaign.decisions, "retruned")
    ask(campaign.ledger)
    ask(campaign.report)
    ask(campaign.close)
    ask(campaign.close)
    ask(campaign.decide, "old")
    ask(store.create, name, PROBLEM)
    ask(store.create, "another", "no problem")
    ask(store.create, "another", PROBLEM, policy="doral-oft")
    ask(store.create, "another", PROBLEM, seed=-1)
    ask(store.create, "", PROBLEM)
    ask(store.campaign, "nowhere near")
    told.outcomes.append(campaign.problem)
    return [comparable(one, tag) for one in told.outcomes]
