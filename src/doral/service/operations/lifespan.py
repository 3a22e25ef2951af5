"""What runs beside the requests of one process, from its beginning to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request

from doral.engine.options import PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.live.store import Store
from doral.live.store import open as open_store
from doral.person import Category
from doral.problem import Arm, Problem
from doral.service.operations.keeper import Keeper
from doral.service.operations.webhook import Webhook
from doral.service.service import Service
from doral.wire.problems import ServiceError

STARTING, READY, STOPPING = "starting", "ready", "stopping"


def refuse_unless_ready(request: Request) -> None:
    """A dependency of `/readyz`: a problem of status 503 until decisions are quick, and once it was told to stop."""
    here = getattr(request.app.state, "readiness", STARTING)
    if here != READY:
        raise ServiceError(f"the service is {here}: try again in a moment", here, 503, retry_after_s=1.0)


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


_SAVE_WITHIN_S = 5.0
_LOOK_S = 0.1  # whether the server is being stopped
_WORTH_SAVING = 2_000  # events, which take a noticeable moment to read


@asynccontextmanager
async def operating(app: FastAPI, service: Service) -> AsyncIterator[None]:
    """From before the first request until after the last one.

    `app.state.readiness` says how far it is; `app.state.when_ready`, where there is one, is called once, and
    `app.state.is_stopping` is asked whether the server waits for its last requests.
    """
    app.state.readiness = STARTING
    settings, keeper = service.settings, Keeper(service)
    tasks = [
        asyncio.create_task(one) for one in (_begin(app, service), _end(app, service), keeper.watch(), keeper.expire())
    ]
    if settings.webhook is not None and settings.webhook_secret is not None:
        tasks.append(asyncio.create_task(Webhook(service, settings.webhook, settings.webhook_secret).run()))
    try:
        yield
    finally:
        app.state.readiness = STOPPING
        keeper.stop()
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await _drain(service)


async def _begin(app: FastAPI, service: Service) -> None:
    """Ready even where something could not be warmed up: it is slow the first time, then."""
    try:
        await service.run(lambda: warm_up(service.store))
    except DoralError as error:
        _logger.warning("the store could not be read beforehand: %s", error)
    app.state.readiness = READY
    when_ready: Callable[[], None] | None = getattr(app.state, "when_ready", None)
    if when_ready is not None:
        await service.run(when_ready)


async def _end(app: FastAPI, service: Service) -> None:
    """Streams never end by themselves: the server, which waits for all requests, is not to wait for them."""
    is_stopping: Callable[[], bool] = getattr(app.state, "is_stopping", lambda: False)
    while not is_stopping():
        await asyncio.sleep(_LOOK_S)
    app.state.readiness = STOPPING
    service.following.end()


async def _drain(service: Service) -> None:
    """What was handed in is stored before the store is closed, and what was stored is quickly read the next time."""
    await service.drain()
    await service.run(lambda: _save_snapshots(service.campaigns))


def _save_snapshots(campaigns: Iterable[Campaign]) -> None:
    """Of those that have a state here and have gone on much since their last one, as far as there is time."""
    until = time.monotonic() + _SAVE_WITHIN_S
    for campaign in campaigns:
        if time.monotonic() > until:
            return
        seen = campaign.session.last_seen
        if seen is None or seen.sequence < _WORTH_SAVING:
            continue
        with suppress(DoralError):
            newest = campaign.session.read(lambda log, state: state.sequence - next(iter(log.snapshots()), 0))
            if newest >= _WORTH_SAVING:
                campaign.save_snapshot()
