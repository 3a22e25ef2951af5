"""What remote campaigns and stores ask of their service: each call as a request. Arguments are checked as there.

Whatever changes something carries a key: the caller's, or one that is drawn for the call and stays the same however
often it is sent.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from doral import _check
from doral.client import calls as plain
from doral.client.calls import Call, Download, Page, body_of, described_as, nothing, path_of
from doral.client.following import Feed
from doral.engine.options import POLICY_NAMES, PolicyOptions, policy_of
from doral.engine.setup import MAX_SEED
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.events.event import DECIDE_SCOPE, STATE_NAMES
from doral.live.kinds.answer import Answer, answer_of, make_answer
from doral.live.kinds.change import top_up_amount
from doral.live.kinds.decide import Arrival, arrival_of, make_arrival
from doral.live.kinds.record import Elsewhere, make_record, record_of
from doral.live.kinds.request import as_batch
from doral.live.page.facts import CampaignFacts
from doral.live.state.parts import Ledger
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.live.views.decision_pages import MAX_PAGE, DecisionPage
from doral.live.views.files import given_path
from doral.live.views.health import Health
from doral.live.views.report import Report
from doral.live.views.verify import Verification
from doral.person import FeaturesLike
from doral.prediction.external import External
from doral.problem import MAX_HORIZON, Arm, Problem
from doral.problem.arm import arm_to_dict
from doral.wire.problems import from_problem
from doral.wire.values import decision_from_dict, read_as, read_ledger, read_report

_SCOPE_CHARACTERS = len(DECIDE_SCOPE)  # all scopes are as long


@described_as(Campaign)
class CampaignCalls:
    """The requests about one campaign."""

    def __init__(self, name: str, draw_key: Callable[[], str]) -> None:
        self.name, self._draw_key = name, draw_key

    # --- decisions --------------------------------------------------------------------------------------------------

    def decide(
        self,
        context: str | None = None,
        available: Iterable[str] | None = None,
        key: str | None = None,
        at: object = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Call[Decision]:
        asked = make_arrival(context, available, key, at, features=features, weight=weight, deadline=deadline)
        return self._change("decisions", body=_arrival(asked), read=decision_from_dict, key=key)

    def decide_many(self, arrivals: Iterable[str | Mapping[str, Any]]) -> Call[list[Decision]]:
        """Many arrivals in their order, stored together or not at all.

        Args:
            arrivals: Each is the name of a context, or a mapping with the arguments of `decide`; one request carries
                them all, and services take 10,000 in one unless told otherwise.
        """
        asked = [arrival_of(one) for one in as_batch("arrivals", arrivals)]
        return self._batch("decisions", {"arrivals": list(map(_arrival, asked))}, _decisions)

    # --- answers ----------------------------------------------------------------------------------------------------

    def feedback(
        self,
        decision_id: str,
        reward: float,
        key: str | None = None,
        actual_cost: float | None = None,
        at: object = None,
    ) -> Call[Decision]:
        body = _answer(make_answer(decision_id, reward, key, actual_cost, at))
        return self._change("feedback", body=body, read=decision_from_dict, key=key)

    def feedback_many(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> Call[list[Decision]]:
        """Many answers in their order, stored together or not at all.

        Args:
            answers: Each is a pair (decision_id, reward), or a mapping with the arguments of `feedback`; one request
                carries them all, and services take 10,000 in one unless told otherwise.
        """
        asked = [answer_of(one) for one in as_batch("answers", answers)]
        body = {"answers": list(map(_answer, asked)), "all_or_none": True}
        return self._batch("feedback", body, _whole_results)

    def feedback_each(
        self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]
    ) -> Call[list[Decision | DoralError]]:
        asked = [_answer_or_error(one) for one in as_batch("answers", answers)]
        sent = [one for one in asked if not isinstance(one, DoralError)]

        def read(given: Mapping[str, Any]) -> list[Decision | DoralError]:
            told = iter(_results(given, len(sent)))
            return [one if isinstance(one, DoralError) else next(told) for one in asked]

        return self._batch("feedback", {"answers": sent}, read)

    def correct(
        self,
        decision_id: str,
        reward: float,
        key: str | None = None,
        actual_cost: float | None = None,
        at: object = None,
    ) -> Call[Decision]:
        body = _answer(make_answer(decision_id, reward, key, actual_cost, at))
        return self._change("feedback", "correct", body=body, read=decision_from_dict, key=key)

    def cancel(self, decision_id: str, key: str | None = None, at: object = None) -> Call[Decision]:
        body = _given(at=plain.moment("at", at))
        path = ("decisions", _id(decision_id), "cancel")
        return self._change(*path, body=body, read=decision_from_dict, key=_key(key))

    def expire(self, now: object = None, key: str | None = None) -> Call[int]:
        body = _given(now=plain.moment("now", now))
        return self._change("expire", body=body, read=lambda given: int(given["expired"]), key=_key(key))

    # --- decisions that were made elsewhere -------------------------------------------------------------------------

    def record(
        self,
        context: str | None,
        arm: str | None,
        at: object,
        reward: float | None = None,
        answered_at: object = None,
        cost: float | None = None,
        probability: float | None = None,
        spend: bool = False,
        key: str | None = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Call[Decision]:
        asked = make_record(
            context, arm, at, reward, answered_at, cost, probability, spend, key,
            features=features, weight=weight, deadline=deadline,
        )  # fmt: skip
        return self._change("records", body=_record(asked), read=decision_from_dict, key=key)

    def record_many(self, records: Iterable[Mapping[str, Any]]) -> Call[list[Decision]]:
        """Many of them, entered in the order in which they happened, stored together or not at all.

        Args:
            records: Each is a mapping with the arguments of `record`; one request carries them all, and services take
                10,000 in one unless told otherwise.
        """
        asked = [record_of(one) for one in as_batch("records", records)]
        return self._batch("records", {"records": list(map(_record, asked))}, _decisions)

    # --- changes while it runs --------------------------------------------------------------------------------------

    def add_arm(self, arm: Arm, key: str | None = None) -> Call[None]:
        if not isinstance(arm, Arm):
            raise InvalidValue("arm", arm, "must be an Arm; write Arm(name, features=[...])")
        return self._change("arms", body=arm_to_dict(arm), read=nothing, key=_key(key))

    def pause_arm(self, name: str, key: str | None = None) -> Call[None]:
        return self._change("arms", _check.name("arm", name), "pause", read=nothing, key=_key(key))

    def resume_arm(self, name: str, key: str | None = None) -> Call[None]:
        return self._change("arms", _check.name("arm", name), "resume", read=nothing, key=_key(key))

    def retire_arm(self, name: str, key: str | None = None) -> Call[None]:
        return self._change("arms", _check.name("arm", name), "retire", read=nothing, key=_key(key))

    def top_up(self, amount: float, key: str | None = None) -> Call[None]:
        amount = top_up_amount(amount)
        return self._change("budget", body={"amount": amount}, read=nothing, key=_key(key))

    def extend(self, rounds: int | None = None, key: str | None = None, until: object = None) -> Call[None]:
        key = _key(key)
        if (rounds is None) == (until is None):
            raise InvalidValue("until", until, f"and rounds = {rounds!r}: give one of them; a key comes with it")
        if rounds is not None:
            rounds = _check.whole_number("rounds", rounds, at_least=1, at_most=MAX_HORIZON)
        body = _given(rounds=rounds, until=plain.end(until))
        return self._change("horizon", body=body, read=nothing, key=key)

    def repair_clock(self, to: object = None, key: str | None = None) -> Call[None]:
        return self._change("clock", body=_given(to=plain.moment("to", to)), read=nothing, key=_key(key))

    def forget(self, key: str | Iterable[str], request_key: str | None = None) -> Call[int]:
        keys = [key] if isinstance(key, str) else as_batch("key", key)
        body = {"keys": [_check.name("key", one) for one in keys]}
        return self._change("forget", body=body, read=lambda given: int(given["forgotten"]), key=_key(request_key))

    def pause(self, key: str | None = None) -> Call[None]:
        return self._change("pause", read=nothing, key=_key(key))

    def resume(self, key: str | None = None) -> Call[None]:
        return self._change("resume", read=nothing, key=_key(key))

    def close(self, key: str | None = None) -> Call[None]:
        return self._change("close", read=nothing, key=_key(key))

    # --- looking ----------------------------------------------------------------------------------------------------

    def definition(self) -> Call[Mapping[str, Any]]:
        """What the campaign is, in plain values: problem, policy, seed, clock, and how it stands."""
        return self._look(read=dict)

    def problem(self) -> Call[Problem]:
        """The problem as it is now, with the arms that were added."""
        return self._look(read=lambda given: Problem.from_dict(given["problem"]))

    def decision(self, decision_id: str) -> Call[Decision]:
        return self._look("decisions", _id(decision_id), read=decision_from_dict)

    def decisions(self, state: str | None = None) -> Call[Page[Decision]]:
        if state is not None and not _check.is_among(state, STATE_NAMES):
            raise UnknownName("state", state, STATE_NAMES)
        return self._page_of_decisions(state, None)

    def decision_page(self, after: str | None = None, state: str | None = None, limit: int = 100) -> Call[DecisionPage]:
        if state is not None and not _check.is_among(state, STATE_NAMES):
            raise UnknownName("state", state, STATE_NAMES)
        limit = _check.whole_number("limit", limit, at_least=1, at_most=MAX_PAGE)

        def read(given: Mapping[str, Any]) -> DecisionPage:
            return DecisionPage(_decisions(given), given["next"])

        return self._look("decisions", read=read, is_long=True, state=state, after=after, limit=limit)

    def decision_with_key(self, key: str) -> Call[Decision | None]:
        key = _check.name("key", key)
        return self._look("decisions", read=lambda given: next(iter(_decisions(given)), None), key=key)

    def _page_of_decisions(self, state: str | None, after: str | int | None) -> Call[Page[Decision]]:
        def read(given: Mapping[str, Any]) -> Page[Decision]:
            following = given["next"]
            return Page(
                items=_decisions(given),
                following=None if following is None else self._page_of_decisions(state, following),
            )

        return self._look("decisions", read=read, is_long=True, state=state, after=after, limit=MAX_PAGE)

    def ledger(self) -> Call[Ledger]:
        return self._look("ledger", read=read_ledger)

    def report(self) -> Call[Report]:
        return self._look("report", read=read_report, is_long=True)

    def facts(self) -> Call[CampaignFacts]:
        return self._look("facts", read=lambda given: read_as(CampaignFacts, given), is_long=True)

    def verify(self) -> Call[Verification]:
        return self._look("verify", read=lambda given: read_as(Verification, given), is_long=True)

    def health(self) -> Call[Health]:
        """Whether the store can be used, how the clocks stand, and what somebody should look after.

        A store that the service cannot reach is not well; a service that cannot be reached is an error.
        """
        return self._look("health", read=lambda given: read_as(Health, given), is_long=True)

    def alarms(self) -> Call[list[dict[str, Any]]]:
        """What the service has raised an alarm about in this campaign, in plain values."""
        return self._look("alarms", read=lambda given: [dict(one) for one in given["alarms"]])

    def export(self, path: str | Path) -> tuple[Path, Download]:
        file = given_path(path, suffixes=(".parquet", ".csv"))
        kind = file.suffix.removeprefix(".")
        return file, Download(path=path_of("campaigns", self.name, "export", format=kind), format=kind)

    def events(self, after: int | None = None) -> Feed:
        """What happens to the campaign, while it happens, without an end; a lost connection is made anew.

        Args:
            after: Only what comes after this event, by its sequence number; None: only what comes from now on.
        """
        if after is not None:
            after = _check.whole_number("after", after, at_least=0, at_most=2**53)
        last: Call[int] = self._look(read=lambda given: int(given["summary"]["events"]))
        return Feed(path=path_of("campaigns", self.name, "events"), after=after, last=last)

    # --- how requests are made --------------------------------------------------------------------------------------

    def _look(
        self, *parts: str, read: Callable[[Any], Any], is_long: bool = False, **query: str | int | None
    ) -> Call[Any]:
        return Call(method="GET", path=path_of("campaigns", self.name, *parts, **query), read=read, is_long=is_long)

    def _change(
        self,
        *parts: str,
        read: Callable[[Any], Any],
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Call[Any]:
        """Where the caller has given no key, one is drawn: every change can be sent again."""
        key = self._draw_key() if key is None else key
        sent = {**(body or {}), "key": key}
        path = path_of("campaigns", self.name, *parts)
        return Call(method="POST", path=path, read=read, body=body_of(sent), key=key, is_change=True)

    def _batch(self, what: str, body: Mapping[str, Any], read: Callable[[Any], Any]) -> Call[Any]:
        """One key is drawn for all items; each that has none of its own gets it with its place added."""
        items: Sequence[Mapping[str, Any]] = next(iter(body.values()))
        lacks_keys = any("key" not in one for one in items)
        return Call(
            method="POST",
            path=path_of("campaigns", self.name, what, "batch"),
            read=read,
            body=body_of(body),
            header_key=self._draw_key() if lacks_keys else None,
            is_change=True,
            is_long=True,
        )


def _key(key: str | None) -> str | None:
    return None if key is None else _check.name("key", key)


def _id(decision_id: object) -> str:
    """Whatever it is, the service says what is wrong with it."""
    return decision_id if isinstance(decision_id, str) and decision_id else repr(decision_id)


def _given(**fields: object) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def _own_key(scoped: str | None) -> str | None:
    return None if scoped is None else scoped[_SCOPE_CHARACTERS:]


def _arrival(asked: Arrival) -> dict[str, Any]:
    return _given(
        context=plain.word("context", asked.context),
        available=None if asked.available is None else [plain.word("available", one) for one in asked.available],
        key=_own_key(asked.key),
        at=plain.moment("at", asked.at),
        features=plain.features(asked.who.features),
        weight=asked.who.weight,
        deadline=asked.who.deadline,
    )


def _answer(asked: Answer) -> dict[str, Any]:
    return _given(
        decision_id=_id(asked.decision_id),
        reward=asked.reward,
        key=_own_key(asked.key),
        actual_cost=asked.actual_cost,
        at=plain.moment("at", asked.at),
    )


def _record(asked: Elsewhere) -> dict[str, Any]:
    # That nobody was served is said, not left out.
    return {"arm": plain.word("arm", asked.arm)} | _given(
        context=plain.word("context", asked.context),
        at=plain.moment("at", asked.at),
        reward=asked.reward,
        answered_at=plain.moment("answered_at", asked.answered_at),
        cost=asked.cost,
        probability=asked.probability,
        spend=asked.spend,
        key=_own_key(asked.key),
        features=plain.features(asked.who.features),
        weight=asked.who.weight,
        deadline=asked.who.deadline,
    )


def _decisions(given: Mapping[str, Any]) -> list[Decision]:
    return [decision_from_dict(one) for one in given["decisions"]]


def _answer_or_error(one: object) -> dict[str, Any] | DoralError:
    """What cannot be sent is refused here, and keeps the others out no more than what the service refuses."""
    try:
        return _answer(answer_of(one))
    except DoralError as error:
        return error


def _results(given: Mapping[str, Any], expected: int) -> list[Decision | DoralError]:
    found: list[Decision | DoralError] = [
        decision_from_dict(one["decision"])
        if one.get("decision") is not None
        else from_problem(one["problem"], status=int(one["problem"].get("status", 422)))
        for one in given["results"]
    ]
    if len(found) != expected:
        raise ValueError(f"{len(found)} results of {expected} answers")
    return found


def _whole_results(given: Mapping[str, Any]) -> list[Decision]:
    return [decision_from_dict(one["decision"]) for one in given["results"]]


_PAGE_NAMES = 1_000


@described_as(Store)
class StoreCalls:
    """The requests about campaigns as a whole."""

    def __init__(self, draw_key: Callable[[], str]) -> None:
        self._draw_key = draw_key

    def create(
        self,
        name: str,
        problem: Problem,
        policy: str | PolicyOptions = "doral-otf",
        seed: int | None = None,
        clock: str = "seconds",
        at: object = None,
        until: object = None,
    ) -> Call[str]:
        name = _check.name("name of a campaign", name)
        if not isinstance(problem, Problem):
            raise InvalidValue("problem", problem, "must be a doral.Problem")
        if seed is not None:
            seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
        asked: dict[str, Any] = {"name": name, "problem": problem.to_dict(), "seed": seed, "clock": clock}
        asked |= {"at": plain.moment("at", at), "until": plain.end(until), **_policy(policy)}
        return Call(
            method="POST",
            path=path_of("campaigns"),
            read=lambda given: str(given["name"]),
            body=body_of({field: value for field, value in asked.items() if value is not None}),
            header_key=self._draw_key(),
            is_change=True,
            is_long=True,
        )

    def campaign(self, name: str) -> Call[str]:
        """A campaign by name.

        Args:
            name: As it was created with.
        """
        path = path_of("campaigns", _check.name("name of a campaign", name))
        return Call(method="GET", path=path, read=lambda given: str(given["name"]))

    def list(self) -> Call[Page[str]]:
        return self._page(None)

    def _page(self, after: str | None) -> Call[Page[str]]:
        def read(given: Mapping[str, Any]) -> Page[str]:
            following = given.get("next")
            return Page(
                items=[str(one["name"]) for one in given["campaigns"]],
                following=None if following is None else self._page(following),
            )

        return Call(method="GET", path=path_of("campaigns", after=after, limit=_PAGE_NAMES), read=read)

    def alarms(self) -> Call[builtins.list[dict[str, Any]]]:
        """What the service has raised an alarm about, in plain values; of the campaigns that the key is for."""
        return Call(method="GET", path=path_of("alarms"), read=lambda given: [dict(one) for one in given["alarms"]])


def _policy(policy: object) -> dict[str, Any]:
    if isinstance(policy, str):
        return {"policy": policy}
    if isinstance(policy, External):
        remedy = "predicts in the process that holds the model: open the store itself there, with doral.open"
        raise InvalidValue("policy", policy, remedy)
    if not isinstance(policy, PolicyOptions):
        remedy = "must be a name or doral.policy(...); code of your own is named where the service runs"
        raise InvalidValue("policy", policy, remedy)
    return _named(policy)


def _named(policy: PolicyOptions) -> dict[str, Any]:
    """A name that ships, what differs from it, and what the whole is called."""
    base = policy.name.partition("(")[0]
    base = base if base in POLICY_NAMES else "doral"
    usual = policy_of(base, {}).to_dict()
    options = {name: value for name, value in policy.to_dict().items() if name != "name" and value != usual[name]}
    return {"policy": base, "options": options} | ({} if policy.name == base else {"label": policy.name})
