"""What stands around all routes of an application for the sake of access."""

from __future__ import annotations

from fastapi import FastAPI

from doral.service.access.bodies import Bodies
from doral.service.access.headers import Headers
from doral.service.access.hosts import Hosts
from doral.service.settings import ServiceSettings


def install(app: FastAPI, settings: ServiceSettings) -> None:
    """What is looked at before any route. To be called last."""
    app.add_middleware(Bodies, limits=settings.limits)
    app.add_middleware(Hosts, settings=settings)
    app.add_middleware(Headers, settings=settings)  # the last one stands outermost: refusals have them, too
