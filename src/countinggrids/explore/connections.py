"""Connections with time limits, so that slow clients cannot hold them for ever."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 128
HEAD_SECONDS, BODY_SECONDS, RESPONSE_SECONDS = 10.0, 60.0, 120.0
"""Time limits for the head of a request, its body, and reading the response."""
FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class TimedConnection(H11Protocol):
    """A connection with a time limit for each part of a request, even if a few bytes of it arrive now and then."""

    _deadline: asyncio.TimerHandle | None = None
    _part: tuple[Any, int] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.write(FULL)
            transport.close()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._part = None
        self._set_deadline(RESPONSE_SECONDS)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._part = None
        self._watch()

    def _watch(self) -> None:
        """Restart the time limit when another part of a request, or another request, begins."""
        part = (self.conn.their_state, id(self.cycle))
        if part != self._part and not self.flow.write_paused:
            self._part = part
            self._set_deadline({h11.IDLE: HEAD_SECONDS, h11.SEND_BODY: BODY_SECONDS}.get(part[0]))

    def _set_deadline(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)
