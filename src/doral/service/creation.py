"""A campaign out of a request, and whether one that is there is what the request asks for."""

from __future__ import annotations

from dataclasses import dataclass

from doral.engine.options import PolicyOptions
from doral.live.campaign import Campaign
from doral.live.errors import CampaignExists
from doral.live.runtime.clock import ending
from doral.live.state.own_policy import OWN
from doral.live.storage.service_tables import ActRow
from doral.live.store import Store
from doral.problem import Problem
from doral.service.models.campaigns import CampaignGiven
from doral.service.requests import moment
from doral.simulation.scenario.notation import plain_problem


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A campaign that somebody asks for, over HTTP or by a form: the arguments of `Store.create`."""

    name: str
    problem: Problem
    policy: PolicyOptions | str  # "own": what the configuration of the service names for this campaign
    clock: str
    seed: int | None = None
    at: object = None
    until: object = None


def wanted_by(asked: CampaignGiven) -> Wanted:
    """What a body asks for."""
    read = plain_problem(asked.problem, clock=asked.clock, until=None if asked.until is None else str(asked.until))
    is_own = asked.policy == OWN and not asked.options and asked.label is None
    return Wanted(
        name=asked.name,
        problem=read.problem,
        policy=OWN if is_own else PolicyOptions.named(asked.policy, asked.options, label=asked.label),
        clock=asked.clock,
        seed=asked.seed,
        at=moment("at", asked.at),
        until=read.until,
    )


def create(store: Store, wanted: Wanted, *, may_be_there: bool, act: ActRow | None = None) -> tuple[Campaign, bool]:
    """The campaign, and whether it is new; if it is, `act` is noted with it.

    `may_be_there`: one that is there and is what was asked for is the answer. Nothing is kept for it: the campaign
    itself says what it was created as, so that this holds in every process, and after a restart.
    """
    try:
        return store.create(**vars(wanted), _act=act), True
    except CampaignExists:
        if not may_be_there:
            raise
        there = store.campaign(wanted.name)
        if not _is_same(there, wanted):
            raise
        return there, False


def _is_same(there: Campaign, wanted: Wanted) -> bool:
    found = there.session.read(lambda _, state: state.definition)
    at = wanted.at
    if at is not None and (at.timestamp() if hasattr(at, "timestamp") else at) != found.created_at:
        return False
    # How long it lasts depends on when it was made.
    problem = wanted.problem if wanted.until is None else ending(wanted.problem, wanted.until, found.created_at)
    policy = None if isinstance(wanted.policy, str) else wanted.policy.to_dict()  # None: the service's own code
    return (
        problem.to_dict() == found.problem.to_dict()
        and policy == (found.policy.to_dict() if found.own is None else None)
        and wanted.clock == found.clock
        and wanted.seed in (None, found.seed)
    )
