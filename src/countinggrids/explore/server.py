"""The explorer's server: this machine only unless told otherwise, reads only, and answers only its own page."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

from countinggrids.explore.routes import LARGEST_IMAGE, Answer, Routes, problem

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def application(routes: Routes, hosts: Sequence[str] = LOOPBACK, is_open: bool = False) -> Any:
    """Make the ASGI application.

    Parameters
    ----------
    routes : what answers
    hosts : names that requests may call this machine by; others are refused, so that no foreign page that leads its own
        name here can read the collection
    is_open : whether addresses in numbers are accepted too, for a server that other machines may reach
    """
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def handle(request: Request) -> Response:
        refused = _refused(request, hosts, is_open)
        if refused is not None:
            return sent(refused)
        if request.method == "POST":
            if request.url.path != "/locate.json":
                return sent(problem(405, f"{request.method} is only for /locate.json; wanted GET"))
            body = await _body(request)
            if body is None:
                return sent(problem(413, f"the content is too large; wanted at most {LARGEST_IMAGE} bytes"))
            return sent(await run_in_threadpool(routes.drop, request.headers.get("content-type", ""), body))
        query = dict(request.query_params)
        return sent(await run_in_threadpool(routes.get, request.url.path, query))

    def sent(answer: Answer) -> Response:
        headers = {
            "content-security-policy": answer.policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-resource-policy": "same-origin",
            "cache-control": "no-cache",
        }
        return Response(answer.body, answer.status, headers, answer.kind)

    async def not_allowed(request: Request, error: Exception) -> Response:
        return sent(problem(405, f"{request.method} is not answered; wanted GET, or POST to /locate.json"))

    async def failed(request: Request, error: Exception) -> Response:
        return sent(problem(500, "something went wrong here; the terminal says what"))

    everything = Route("/{path:path}", handle, methods=["GET", "HEAD", "POST"])
    return Starlette(routes=[everything], exception_handlers={405: not_allowed, 500: failed})


def read_query(text: str) -> dict[str, str]:
    """Read the part of an address after its question mark, as the server does."""
    from starlette.datastructures import QueryParams

    return dict(QueryParams(text))


def serve(routes: Routes, host: str, port: int, hosts: Sequence[str], ready: Callable[[str], None]) -> None:
    """Serve until interrupted; raise if the port is taken.

    Parameters
    ----------
    routes : what answers
    host, port : where to listen; port 0 takes a free one
    hosts : further names that requests may call this machine by
    ready : called with the address once requests are answered
    """
    import uvicorn

    is_open = host not in LOOPBACK
    app = application(routes, [*LOOPBACK, *(name.lower() for name in (host, *hosts))], is_open)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=1)
    listening = _bound(config)
    shown = f"[{host}]" if ":" in host else host

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready(f"http://{shown}:{listening.getsockname()[1]}/")

    Server(config).run(sockets=[listening])


def _bound(config: Any) -> Any:
    """Take the port before anything is said; uvicorn itself would end the program where that fails."""
    try:
        return config.bind_socket()
    except SystemExit:
        wanted = "wanted a free port of this machine"
        raise OSError(f"cannot listen at {config.host}, port {config.port}; {wanted}; give another --port") from None


def _refused(request: Any, hosts: Sequence[str], is_open: bool) -> Answer | None:
    """Refuse requests by another name than ours, and those that another page sends."""
    host = request.headers.get("host", "")
    name = _name(host)
    if name not in hosts and not (is_open and _is_number(name)):
        return problem(
            403, f"this machine is not called {name[:200]!r} here; wanted {', '.join(LOOPBACK)}; see --allow-host"
        )
    origin = request.headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return problem(403, "the request comes from another page; wanted the explorer's own")
    if request.headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
        is_visit = request.headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
        if not is_visit:
            return problem(403, "the request comes from another page; wanted the explorer's own")
    return None


async def _body(request: Any) -> bytes | None:
    """Read what is sent, but no more than may be."""
    parts, total = [], 0
    async for part in request.stream():
        total += len(part)
        if total > LARGEST_IMAGE:
            return None
        parts.append(part)
    return b"".join(parts)


def _name(host: str) -> str:
    """Take the port off a Host header."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
