"""A campaign out of a request, and whether one that is there is what the request asks for."""

from __future__ import annotations

from typing import Any

from doral.engine.options import PolicyOptions
from doral.live.campaign import Campaign
from doral.live.definition import Definition
from doral.live.ends import ending
from doral.live.errors import CampaignExists
from doral.live.fold import Fold
from doral.live.storage.contract import Log
from doral.live.store import Store
from doral.problem import Problem
from doral.service.bodies import moment
from doral.service.models.campaigns import CampaignGiven
from doral.service.summaries import shown
from doral.simulation.problem_text import plain_problem


def create(store: Store, asked: CampaignGiven, *, may_be_there: bool) -> tuple[dict[str, Any], bool]:
    """What `GET` shows of the campaign, and whether it is new.

    `may_be_there`: one that is there and is what was asked for is the answer. Nothing is kept for it: the campaign
    itself says what it was created as, so that this holds in every process, and after a restart.
    """
    read = plain_problem(asked.problem, clock=asked.clock, until=None if asked.until is None else str(asked.until))
    policy = PolicyOptions.named(asked.policy, asked.options, label=asked.label)
    at = moment("at", asked.at)
    try:
        made = store.create(
            asked.name, read.problem, policy=policy, seed=asked.seed, clock=asked.clock, at=at, until=read.until
        )
    except CampaignExists:
        if not may_be_there:
            raise
        there = store.campaign(asked.name)
        if not _is_same(there, asked, read.problem, read.until, policy, at):
            raise
        return shown(there), False
    return shown(made), True


def _is_same(
    there: Campaign, asked: CampaignGiven, problem: Problem, until: object, policy: PolicyOptions, at: object
) -> bool:
    def definition_of(_: Log, fold: Fold) -> Definition:
        return fold.definition

    found = there.session.read(definition_of)
    if at is not None:
        began = at.timestamp() if hasattr(at, "timestamp") else at
        if began != found.created_at:
            return False
    wanted = problem if until is None else ending(problem, until, found.created_at)
    return (
        wanted.to_dict() == found.problem.to_dict()
        and policy.to_dict() == found.policy.to_dict()
        and asked.clock == found.clock
        and asked.seed in (None, found.seed)
    )
