"""How requests are read from a connection: a head that never ends, or never comes, is not waited for."""

from __future__ import annotations

import asyncio
import logging

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_S = 30.0  # in which the head of the first request has to be there

_logger = logging.getLogger("doral.service")


class BoundedHttp(HttpToolsProtocol):
    """Uvicorn's, with the two limits that it lacks. Bodies are bounded where they are read."""

    _waiting: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            # Counted before they are parsed: a head that is too large is never kept. The first bytes of a body may be
            # counted with it, which are far fewer than a socket hands over at once.
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES and not self._ends_in(data):
                _logger.warning("a head of more than %d bytes was refused", HEAD_BYTES)
                self._stop_waiting()
                self.send_400_response("The head of the request is too large.")
                return
        super().data_received(data)

    @staticmethod
    def _ends_in(data: bytes) -> bool:
        end = data.find(b"\r\n\r\n")
        return 0 <= end <= HEAD_BYTES

    def on_message_begin(self) -> None:
        self._in_head = True
        if self._waiting is None:
            self._wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes = False, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head_bytes = True, 0

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEAD_S, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()
