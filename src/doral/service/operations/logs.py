"""Lines about what happens: JSON where a program reads them, plain words at a terminal. All go to standard error.

A line about a request holds no body, no query and no secret: of a key only the part that names it.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from typing import TextIO

_SOON_S = 0.2
_MOST_LINES = 500
_MOST_CHARS = 2_000  # of one message: an error may quote what somebody has sent
_QUIET = ("uvicorn", "httpx2", "httpcore2", "asyncio", "alembic")  # what these say of normal things helps nobody


class Lines:
    """Writes to one stream. Lines about requests are collected for a moment: one system call for many."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._lock = threading.Lock()
        self._soon: list[str] = []
        self._timer: threading.Timer | None = None

    def now(self, line: str) -> None:
        """Written before this returns, after those that wait."""
        with self._lock:
            self._soon.append(line)
            self._flush()

    def soon(self, line: str) -> None:
        """Written within a moment."""
        with self._lock:
            self._soon.append(line)
            if len(self._soon) >= _MOST_LINES:
                self._flush()
            elif self._timer is None:
                self._timer = threading.Timer(_SOON_S, self.flush)
                self._timer.daemon = True
                self._timer.start()

    def flush(self) -> None:
        """All that wait."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        lines, self._soon = self._soon, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not lines:
            return
        try:
            self.stream.write("\n".join(lines) + "\n")
            self.stream.flush()
        except (OSError, ValueError):  # nobody reads them any more: the service goes on
            pass


class RequestLog:
    """One line for each request."""

    def __init__(self, lines: Lines, *, is_json: bool) -> None:
        self._lines, self._is_json = lines, is_json
        self._second, self._shown = 0, ""

    def tell(
        self,
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
        """A request was answered."""
        now = time.time()
        moment = self._moment(now)
        if not self._is_json:
            where = f" {_plain(campaign)}" if campaign else ""
            whom = f" key {_plain(key_id)}" if key_id else ""
            self._lines.soon(
                f"{moment[11:19]} {method} {route} {status} {seconds * 1e3:.1f} ms{where}{whom} [{request_id}]"
            )
            return
        found: dict[str, object] = {
            "time": f"{moment[:19]}.{int(now % 1.0 * 1e3):03d}Z",
            "level": "error" if status >= 500 else "info",
            "event": "request",
            "request_id": request_id,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1e3, 3),
            "bytes": response_bytes,
        }
        if key_id is not None:
            found["key_id"] = key_id
        if campaign is not None:
            found["campaign"] = campaign
        self._lines.soon(_dump(found))

    def _moment(self, now: float) -> str:
        second = int(now)
        if second != self._second:
            self._second, self._shown = second, datetime.fromtimestamp(second, UTC).isoformat()
        return self._shown


_dump = json.JSONEncoder(ensure_ascii=True, check_circular=False).encode


def _plain(text: str) -> str:
    """What somebody else has chosen, on one line and without what moves a cursor."""
    return text if text.isprintable() else ascii(text)[1:-1]


class _Handler(logging.Handler):
    def __init__(self, lines: Lines, *, is_json: bool) -> None:
        super().__init__()
        self._lines, self._is_json = lines, is_json

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.now(self._json(record) if self._is_json else self._text(record))
        except Exception:  # noqa: BLE001  (a line that cannot be written must not end what it tells of)
            self.handleError(record)

    def _json(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        found: dict[str, object] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": "log",
            "logger": record.name,
            "message": record.getMessage()[:_MOST_CHARS],
            "process": record.process,
        }
        if record.exc_info:
            found["trace"] = logging.Formatter().formatException(record.exc_info)
        return _dump(found)

    def _text(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat()[11:19]
        line = f"{moment} {record.levelname.lower()}: {_plain(record.getMessage()[:_MOST_CHARS])}"
        return line + "\n" + logging.Formatter().formatException(record.exc_info) if record.exc_info else line


_request_log: RequestLog | None = None


def request_log() -> RequestLog | None:
    """Of this process; None where nobody has asked for lines."""
    return _request_log


def set_up_logs(stream: TextIO | None = None, *, log_format: str = "auto") -> Lines:
    """For the whole process, which is the service's own.

    Args:
        stream: Where lines go; None: standard error.
        log_format: "json", "text", "auto": text at a terminal, JSON elsewhere; or "quiet": text, and only what
            somebody should look after.
    """
    global _request_log
    stream = sys.stderr if stream is None else stream
    is_json = not stream.isatty() if log_format == "auto" else log_format == "json"
    lines = Lines(stream)
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one, _Handler)]:
        root.removeHandler(old)
    root.addHandler(_Handler(lines, is_json=is_json))
    logging.captureWarnings(capture=True)
    is_quiet = log_format == "quiet"
    logging.getLogger("doral").setLevel(logging.WARNING if is_quiet else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    _request_log = None if is_quiet else RequestLog(lines, is_json=is_json)
    return lines
