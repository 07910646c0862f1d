"""The server of the explorer: read-only, by default for this machine only, and closed to other web pages."""

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from countinggrids.explore.hosts import LOOPBACK, is_address, name_of
from countinggrids.explore.request_pool import BusyError, RequestPool
from countinggrids.explore.routes import LARGEST_IMAGE, Answer, Routes, problem

GROUP_PATHS = ("/selection.json", "/compare.json")
"""POST requests with numbers of items."""
RETRY_SECONDS = 2
"""Sent as Retry-After with status 503."""


class Pools(NamedTuple):
    """The thread pools of the server.

    Attributes
    ----------
    views : RequestPool
        For GET requests.
    uploads : RequestPool
        For POST requests; one at a time, because images may be large.
    """

    views: RequestPool
    uploads: RequestPool

    @staticmethod
    def make() -> "Pools":
        """Return pools that suffice for a few browsers at a time."""
        return Pools(RequestPool(4, 64), RequestPool(1, 3))


def application(
    routes: Routes, hosts: Sequence[str] = LOOPBACK, is_open: bool = False, pools: Pools | None = None
) -> Any:
    """Return the ASGI application.

    Parameters
    ----------
    routes : Routes
        Answers requests.
    hosts : sequence of str, default=LOOPBACK
        Accepted names in Host headers. Others are refused, which prevents DNS rebinding.
    is_open : bool, default=False
        Whether any IP address is accepted in Host headers, for a server that other machines can reach.
    pools : Pools, default=None
        Thread pools; None makes new ones.

    Returns
    -------
    application : Starlette
        The application.
    """
    from starlette.applications import Starlette
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route

    views, uploads = pools or Pools.make()

    async def handle(request: Request) -> Response:
        refused = _refused(request, hosts, is_open)
        if refused is not None:
            return sent(refused)
        try:
            return sent(await (_uploaded if request.method == "POST" else _viewed)(request))
        except BusyError:
            return sent(problem(503, f"the server is busy; try again in {RETRY_SECONDS} seconds."))
        except ClientDisconnect:
            return Response(status_code=400)

    async def _viewed(request: Request) -> Answer:
        return await views.run(routes.get, request.url.path, dict(request.query_params))

    async def _uploaded(request: Request) -> Answer:
        path = request.url.path
        if path not in ("/locate.json", *GROUP_PATHS):
            return problem(
                405, f"{request.method} is only for /locate.json and {', '.join(GROUP_PATHS)}; expected GET."
            )
        try:
            slot = uploads.reserve()
        except BusyError:
            await _body(request, is_kept=False)  # a client that is still sending does not read the response
            raise
        with slot:
            body = await _body(request)
            if body is None:
                return problem(413, f"the content is too large; expected at most {LARGEST_IMAGE} bytes.")
            if path in GROUP_PATHS:
                return await slot.run(routes.post, path, body)
            return await slot.run(routes.locate, request.headers.get("content-type", ""), body)

    def sent(answer: Answer) -> Response:
        headers = {
            "content-security-policy": answer.policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-resource-policy": "same-origin",
            "cache-control": "no-cache",
        }
        if answer.status == 503:
            headers["retry-after"] = str(RETRY_SECONDS)
        return Response(answer.body, answer.status, headers, answer.kind)

    async def not_allowed(request: Request, error: Exception) -> Response:
        return sent(problem(405, f"{request.method} is not supported; expected GET, or POST to /locate.json."))

    async def failed(request: Request, error: Exception) -> Response:
        return sent(problem(500, "internal error; the terminal shows its traceback."))

    everything = Route("/{path:path}", handle, methods=["GET", "HEAD", "POST"])
    return Starlette(routes=[everything], exception_handlers={405: not_allowed, 500: failed})


def read_query(text: str) -> dict[str, str]:
    """Parse the query of an address, after its question mark, as the server does."""
    from starlette.datastructures import QueryParams

    return dict(QueryParams(text))


def serve(routes: Routes, host: str, port: int, hosts: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until interrupted.

    SIGINT and SIGTERM end it within seconds, whatever work is pending; a second one ends it at once.

    Parameters
    ----------
    routes : Routes
        Answers requests.
    host : str
        Address to listen at.
    port : int
        Port to listen at; 0 takes a free one.
    hosts : sequence of str
        Further names accepted in Host headers.
    ready : callable
        Called with the address once requests are answered.

    Raises
    ------
    OSError
        If the port is taken.
    """
    import uvicorn

    from countinggrids.explore.connections import TimedConnection

    is_open, pools = host not in LOOPBACK, Pools.make()
    app = application(routes, [*LOOPBACK, *(name.lower() for name in (host, *hosts))], is_open, pools)
    config = uvicorn.Config(
        app, host=host, port=port, http=TimedConnection, ws="none", log_level="error", timeout_graceful_shutdown=1
    )
    listening = _bound(config)
    shown = f"[{host}]" if ":" in host else host

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready(f"http://{shown}:{listening.getsockname()[1]}/")

        async def shutdown(self, sockets: Any = None) -> None:
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # canceled requests are no errors here
            await super().shutdown(sockets)
            if any(pool.is_busy for pool in pools):
                _end_at_once(self._captured_signals[-1])

        def handle_exit(self, sig: int, frame: Any) -> None:
            if self.should_exit:
                _end_at_once(sig)
            super().handle_exit(sig, frame)

    Server(config).run(sockets=[listening])


def _end_at_once(sig: int) -> None:
    """End the process as the signal does by default: Python itself would wait for every thread."""
    sys.stdout.flush()
    signal.signal(sig, signal.SIG_DFL)
    os.kill(os.getpid(), sig)


def _bound(config: Any) -> Any:
    """Bind the port first: uvicorn itself would end the process where that fails."""
    try:
        return config.bind_socket()
    except SystemExit:
        raise OSError(
            f"host={config.host!r}, port={config.port} cannot be listened at; expected a free port of this machine; "
            "use another port, or port=0."
        ) from None


def _refused(request: Any, hosts: Sequence[str], is_open: bool) -> Answer | None:
    """Refuse requests for other host names, and those of other web pages."""
    given = request.headers.getlist("host")
    host = given[0] if len(given) == 1 else ""
    name = name_of(host)
    if name is None or (name not in hosts and not (is_open and is_address(name))):
        allowed = ", ".join(LOOPBACK)
        return problem(403, f"host={host[:200]!r} is not allowed; expected one of {allowed}; see --allow-host.")
    origin = request.headers.get("origin")
    is_foreign = origin is not None and origin not in (f"http://{host}", f"https://{host}")
    is_cross_site = request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
    is_visit = request.headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
    if is_foreign or (is_cross_site and not is_visit):
        return problem(403, "the request comes from another page; expected that of the explorer.")
    return None


async def _body(request: Any, is_kept: bool = True) -> bytes | None:
    """Read the body of a request; None if it is too large."""
    parts, total = [], 0
    async for part in request.stream():
        total += len(part)
        if total > LARGEST_IMAGE:
            return None
        if is_kept:
            parts.append(part)
    return b"".join(parts)
