"""How far a process is: whether it should be sent requests yet, or still."""

from __future__ import annotations

from fastapi import Request

from doral.wire.problems import ServiceError

STARTING, READY, STOPPING = "starting", "ready", "stopping"


def refuse_unless_ready(request: Request) -> None:
    """A dependency of `/readyz`: a problem of status 503 until decisions are quick, and once it was told to stop."""
    here = getattr(request.app.state, "readiness", STARTING)
    if here != READY:
        raise ServiceError(f"the service is {here}: try again in a moment", here, 503, retry_after_s=1.0)
