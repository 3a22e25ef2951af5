"""What is slow the first time is done before the service says that it is ready: a decision of every kind there is."""

from __future__ import annotations

import logging

from doral.engine.options import PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.errors import DoralError
from doral.live.store import Store
from doral.live.store import open as open_store
from doral.person import Category
from doral.problem import Arm, Problem

_MOST_CAMPAIGNS = 100  # those beyond are read when they are asked for

_logger = logging.getLogger("doral.service")
_SMALL = Problem(
    arms=[Arm("one", cost=1.0), Arm("other", cost=2.0)], contexts={"all": 1.0}, budget=100, horizon=100, deadline=60.0
)
_DEFAULT = "doral-otf"


def warm_up(store: Store) -> int:
    """Read campaigns of the store, and try each of their policies in memory; how many policies were tried.

    A campaign that cannot be read is told of by its health, and holds nobody up here.

    Args:
        store: That holds them.
    """
    kinds: dict[str, tuple[Problem, PolicyOptions]] = {"": (_SMALL, policy_by_name(_DEFAULT))}
    for name in store.list()[:_MOST_CAMPAIGNS]:
        try:
            definition = store.campaign(name).session.read(lambda _, state: state.definition)
        except DoralError as error:
            _logger.warning("campaign %r cannot be read yet: %s", name, error)
            continue
        kinds.setdefault(repr(definition.policy), (definition.problem, definition.policy))
    for problem, policy in kinds.values():
        try:
            _try(problem, policy)
        except DoralError as error:
            _logger.info("a policy could not be tried beforehand: %s", error)
    return len(kinds)


def _try(problem: Problem, policy: PolicyOptions) -> None:
    arrival = {
        "context": problem.context_names[0],
        "features": {one.name: "any" if isinstance(one, Category) else 0.0 for one in problem.person} or None,
    }
    with open_store("memory://") as store:
        campaign = store.create("warm-up", problem, policy)
        for one in campaign.decide_many([arrival]):
            if one.state == "pending":
                campaign.feedback(one.id, 0.0)
        campaign.expire()
        campaign.ledger()
