"""The processes of a service: sockets, workers, and how they end."""

from __future__ import annotations

import uvicorn

from doral.service.app import make_app
from doral.service.settings import ServiceSettings


def serve(settings: ServiceSettings) -> None:
    """Run until told to stop."""
    uvicorn.run(make_app(settings), host=settings.host, port=settings.port, log_config=None, server_header=False)
