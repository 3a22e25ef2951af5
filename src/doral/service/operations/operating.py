"""What runs beside the requests of one process, from its beginning to its end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from doral.errors import DoralError
from doral.live.campaign import Campaign
from doral.service.operations.keeper import Keeper
from doral.service.operations.readiness import READY, STARTING, STOPPING
from doral.service.operations.warming import warm_up
from doral.service.operations.webhook import Webhook
from doral.service.service import Service

_SAVE_WITHIN_S = 5.0
_WORTH_SAVING = 2_000  # events, which take a noticeable moment to read

_logger = logging.getLogger("doral.service")


@asynccontextmanager
async def operating(app: FastAPI, service: Service) -> AsyncIterator[None]:
    """From before the first request until after the last one.

    `app.state.readiness` says how far it is; `app.state.when_ready`, where there is one, is called once.
    """
    app.state.readiness = STARTING
    settings, keeper = service.settings, Keeper(service)
    tasks = [asyncio.create_task(one) for one in (_begin(app, service), keeper.watch(), keeper.expire())]
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
