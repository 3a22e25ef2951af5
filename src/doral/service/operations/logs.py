"""Lines about what happens, by standard logging: JSON where a program reads them, plain words at a terminal.

A line about a request holds no body, no query and no secret: of a key only the part that names it.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

requests = logging.getLogger("doral.service.requests")

_MOST_CHARS = 2_000  # of one message: an error may quote what a request has sent
_QUIET = ("uvicorn", "httpx2", "httpcore2", "asyncio", "alembic")  # what these say of normal things helps nobody
_dump = json.JSONEncoder(ensure_ascii=True, check_circular=False, default=str).encode


def tell_request(
    *,
    request_id: str,
    method: str,
    route: str,
    status: int,
    seconds: float,
    response_bytes: int,
    key_id: str | None,
    campaign: str | None,
) -> None:
    """Log one line for a request that was answered."""
    level = logging.ERROR if status >= 500 else logging.INFO
    if not requests.isEnabledFor(level):
        return
    found = {
        "request_id": request_id,
        "method": method,
        "route": route,
        "status": status,
        "ms": round(seconds * 1e3, 3),
        "bytes": response_bytes,
        "key_id": key_id,
        "campaign": campaign,
    }
    requests.log(level, "%s %s %d", method, route, status, extra={"request": found})


class JsonFormatter(logging.Formatter):
    """One object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {"time": moment.replace("+00:00", "Z"), "level": record.levelname.lower()}
        request: dict[str, Any] | None = getattr(record, "request", None)
        if request is not None:
            found |= {"event": "request"} | {name: one for name, one in request.items() if one is not None}
            return _dump(found)
        message = record.getMessage()[:_MOST_CHARS]
        found |= {"event": "log", "logger": record.name, "message": message, "process": record.process}
        if record.exc_info:
            found["trace"] = self.formatException(record.exc_info)
        return _dump(found)


class TextFormatter(logging.Formatter):
    """Plain words on one line."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat()[11:19]
        request: dict[str, Any] | None = getattr(record, "request", None)
        if request is not None:
            where = f" {_plain(request['campaign'])}" if request["campaign"] else ""
            whom = f" key {_plain(request['key_id'])}" if request["key_id"] else ""
            said = f"{request['method']} {request['route']} {request['status']} {request['ms']:.1f} ms"
            return f"{moment} {said}{where}{whom} [{request['request_id']}]"
        line = f"{moment} {record.levelname.lower()}: {_plain(record.getMessage()[:_MOST_CHARS])}"
        return line + "\n" + self.formatException(record.exc_info) if record.exc_info else line


def _plain(text: str) -> str:
    """What others have chosen, on one line and without what moves a cursor."""
    return text if text.isprintable() else ascii(text)[1:-1]


def set_up_logs(stream: TextIO | None = None, *, log_format: str = "auto") -> None:
    """For the whole process, which is the service's own.

    Args:
        stream: Where lines go; None: standard error.
        log_format: "json", "text", "auto": text at a terminal, JSON elsewhere; or "quiet": text, and only what needs
            attention.
    """
    stream = sys.stderr if stream is None else stream
    is_json = not stream.isatty() if log_format == "auto" else log_format == "json"
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if is_json else TextFormatter())
    handler.set_name("doral.service")
    root = logging.getLogger()
    for old in [one for one in root.handlers if one.get_name() == handler.get_name()]:
        root.removeHandler(old)
    root.addHandler(handler)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a line that cannot be written must not end what it tells of
    is_quiet = log_format == "quiet"
    logging.getLogger("doral").setLevel(logging.WARNING if is_quiet else logging.INFO)
    requests.setLevel(logging.CRITICAL if is_quiet else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
