"""Whether PostgreSQL has as many connections as the workers of a service may use."""

from __future__ import annotations

import logging

from doral.live.storage.connection import Timeouts
from doral.live.storage.urls import read_postgres
from doral.service.service import kept_open
from doral.service.settings import ServiceSettings

_BESIDE = 3  # of each worker: two for keys and alarms, and one by which others see that it lives
_ALLOWED = (
    "SELECT pg_catalog.current_setting('max_connections')::int"
    " - pg_catalog.current_setting('superuser_reserved_connections')::int"
)

_logger = logging.getLogger("doral.service")


def most_used(settings: ServiceSettings) -> int:
    """Connections that all workers use when all of them are busy."""
    return settings.workers * ((kept_open(settings) or 0) + _BESIDE)


def warn_if_too_few(settings: ServiceSettings) -> None:
    """Before workers are started on PostgreSQL: under load, some of their requests would be refused."""
    allowed, used = _allowed(settings.storage), most_used(settings)
    if used > allowed:
        _logger.warning(
            "workers = %d: use up to %d connections, and PostgreSQL allows %d: "
            "raise its max_connections, or start fewer workers",
            settings.workers, used, allowed,
        )  # fmt: skip


def _allowed(url: str) -> int:
    from doral.live.storage.postgres import connect  # its driver may be absent, where nobody uses it

    with connect(read_postgres(url), Timeouts()) as connection:
        row = connection.execute(_ALLOWED).fetchone()
    assert row is not None
    return int(row[0])
