"""How requests are read from a connection: a head that never ends, or never comes, is not waited for.

Nor is what may follow a body, which nobody here looks at, a connection that sends something and never a request, or
somebody who takes nothing of an answer.
"""

from __future__ import annotations

import asyncio
import logging

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
HEAD_S = 30.0  # in which the head of a request has to be there
STALLED_S = 120.0  # after which nobody is waited for who has taken nothing of an answer
_PER_BODY_BYTE = 16  # bytes around a body that is sent in pieces: one by one, each comes with five

_logger = logging.getLogger("doral.service")


class BoundedHttp(HttpToolsProtocol):
    """Uvicorn's, with the limits that it lacks. Bodies are bounded where they are read."""

    _waiting: asyncio.TimerHandle | None = None
    _taking: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _in_head = True
    _around_bytes = 0  # of a body in pieces: their lengths, and what follows the last

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._stop_looking()
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
        else:
            self._around_bytes += len(data)
        super().data_received(data)
        if self._around_bytes > HEAD_BYTES and not self.transport.is_closing():
            _logger.warning("more than %d bytes around the body of a request were refused", HEAD_BYTES)
            self.transport.close()

    @staticmethod
    def _ends_in(data: bytes) -> bool:
        end = data.find(b"\r\n\r\n")
        return 0 <= end <= HEAD_BYTES

    def on_message_begin(self) -> None:
        self._in_head = True
        self._stop_waiting()
        self._wait(HEAD_S)
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes after the body is no header: it was not there when the request was let in
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head_bytes, self._around_bytes = False, 0, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._around_bytes = max(0, self._around_bytes - _PER_BODY_BYTE * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_head, self._head_bytes, self._around_bytes = True, 0, 0

    def on_response_complete(self) -> None:
        is_idle = not self.pipeline
        super().on_response_complete()
        # Uvicorn's own timer ends with the next byte, and that need not be one of a request.
        if is_idle and self._waiting is None and not self.transport.is_closing():
            self._wait(self.timeout_keep_alive)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        self._stop_looking()
        super().resume_writing()

    def _look_again(self, untaken: int) -> None:
        self._stop_looking()
        self._taking = self.loop.call_later(STALLED_S, self._see_whether_taken, untaken)

    def _see_whether_taken(self, before: int) -> None:
        """Whatever an answer holds, a place among files or streams, is given back when its connection ends."""
        untaken = self.transport.get_write_buffer_size()
        if untaken < before:
            self._look_again(untaken)
        else:
            self.transport.abort()

    def _stop_looking(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
            self._taking = None

    def _wait(self, seconds: float) -> None:
        self._waiting = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()
