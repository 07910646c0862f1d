"""A server that is pressed: slow work, large images, clients that dawdle or leave, and signals in the middle of it."""

import contextlib
import json
import re
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from maps import ask, item_map_of, running

from bombs import png
from countinggrids.explore.request_pool import BusyError, RequestPool

SLOW = """
import sys, time
from countinggrids import Collection, load
from countinggrids.explore import ItemMap, server
from countinggrids.explore.routes import Routes

class Slow(Routes):
    def get(self, path, query):
        if path == "/slow":
            time.sleep(60)
        if path == "/broken":
            raise RuntimeError("a fault of ours")
        return super().get(path, query)

    def locate(self, kind, body):
        time.sleep(60)

{}
item_map = ItemMap(load(sys.argv[1]), Collection.load(sys.argv[2]))
server.serve(Slow(item_map), "127.0.0.1", 0, [], lambda address: print(address, flush=True))
"""
HASTY = """
from countinggrids.explore import connections
connections.HEAD_SECONDS, connections.BODY_SECONDS, connections.RESPONSE_SECONDS = 0.5, 0.5, 0.5
connections.MAX_CONNECTIONS = 20
"""


@contextlib.contextmanager
def slow_server(files, before=""):
    """Serve a map whose /slow takes a minute, as does everything that is dropped; give the program and its port."""
    with running("-c", SLOW.format(before), *map(str, files)) as (program, port):
        yield program, port


def sending(port, content):
    """Open a connection and send something, without waiting for what comes back."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=20)
    connection.sendall(content)
    return connection


def get(path="/index.json", host="127.0.0.1"):
    return f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()


def post(body, length=None):
    length = length or len(body)
    head = (
        f"POST /locate.json HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\r\n"
    )
    return head.encode() + body


def is_closed(connection, seconds=5):
    """Tell whether the other side ends a connection soon, whatever it says before."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


def test_one_slow_request_does_not_hold_up_the_others(stories):
    with slow_server(stories) as (_, port), contextlib.closing(sending(port, get("/slow"))):
        began = time.monotonic()
        assert ask(port, "/index.json")[0] == 200
        assert time.monotonic() - began < 5


def test_what_finds_no_room_is_asked_to_retry(stories):
    with slow_server(stories) as (_, port), contextlib.ExitStack() as open_ones:
        for _ in range(68):
            open_ones.enter_context(contextlib.closing(sending(port, get("/slow"))))
        time.sleep(0.5)
        status, headers, content = ask(port, "/index.json")
        assert (status, headers["retry-after"]) == (503, "2")
        assert "the server is busy" in json.loads(content)["error"]


def test_few_drops_wait_and_others_are_asked_to_retry(stories):
    with slow_server(stories) as (_, port), contextlib.ExitStack() as open_ones:
        for _ in range(4):
            open_ones.enter_context(contextlib.closing(sending(port, post(b"tea"))))
        time.sleep(0.5)
        status, headers, _ = ask(port, "/locate.json", "POST", bytes(1_000_000), content_type="image/png")
        assert (status, headers["retry-after"]) == (503, "2")
        assert ask(port, "/index.json")[0] == 200


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("request_", [get("/slow"), post(b"tea")], ids=["view", "drop"])
def test_a_signal_ends_it_in_the_middle_of_work(stories, sig, request_):
    with slow_server(stories) as (program, port), contextlib.closing(sending(port, request_)):
        time.sleep(0.5)
        program.send_signal(sig)
        assert program.wait(8) == -sig
        assert program.stderr.read() == ""


def test_a_second_signal_ends_it_at_once(stories):
    with slow_server(stories) as (program, port), contextlib.closing(sending(port, get("/slow"))):
        time.sleep(0.5)
        program.send_signal(signal.SIGINT)
        time.sleep(0.2)
        program.send_signal(signal.SIGTERM)
        assert program.wait(0.7) == -signal.SIGTERM


@pytest.mark.parametrize(
    "content",
    [b"", b"GET / HTTP/1.1\r\nhost: 127", get() + b"GET", post(b"tea", 1000)],
    ids=["silent", "half a head", "half a second head", "half a body"],
)
def test_connections_that_dawdle_are_ended(stories, content):
    with slow_server(stories, HASTY) as (_, port), contextlib.closing(sending(port, content)) as connection:
        assert is_closed(connection)


def test_bytes_that_drip_in_do_not_keep_a_connection_open(stories):
    def drip(connection):
        for i in range(50):
            connection.sendall(f"x-{i}: y\r\n".encode())
            time.sleep(0.1)

    with slow_server(stories, HASTY) as (_, port):
        connection = sending(port, b"GET / HTTP/1.1\r\n")
        with contextlib.closing(connection), pytest.raises(ConnectionError):
            drip(connection)


def test_an_answer_that_is_not_taken_ends_the_connection(walks):
    with slow_server(walks, HASTY) as (program, port), contextlib.ExitStack() as open_ones:
        for _ in range(5):
            greedy = open_ones.enter_context(contextlib.closing(socket.socket()))
            greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            greedy.connect(("127.0.0.1", port))
            greedy.sendall(get("/map.json") * 200)
        time.sleep(3)
        own = [path for path in Path(f"/proc/{program.pid}/fd").iterdir() if "socket" in str(path.readlink())]
        assert len(own) <= 3  # where it listens, and what wakes the loop


def test_work_that_takes_long_is_not_cut_off(stories):
    with slow_server(stories, HASTY) as (_, port), contextlib.closing(sending(port, get("/slow"))) as connection:
        assert not is_closed(connection, 2)


def test_connections_are_counted(stories):
    with (
        slow_server(stories, HASTY.replace("0.5, 0.5, 0.5", "9, 9, 9")) as (_, port),
        contextlib.ExitStack() as open_ones,
    ):
        for _ in range(20):
            open_ones.enter_context(contextlib.closing(sending(port, b"GET")))
        with contextlib.closing(sending(port, b"")) as one_more:
            assert one_more.recv(100).startswith(b"HTTP/1.1 503 ")


def test_clients_that_leave_are_not_worth_a_word(stories):
    with slow_server(stories) as (program, port):
        for content in (post(b"tea", 1000), get("/map.json"), get("/slow"), b"GET /", b"\0\n\n", post(b"tea")):
            connection = sending(port, content)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not closed
            connection.close()
            sending(port, content).close()
        time.sleep(0.5)
        assert ask(port, "/index.json")[0] == 200
        program.send_signal(signal.SIGTERM)
        program.wait(8)
        assert program.stderr.read() == ""


def test_a_fault_of_ours_is_still_shown_in_the_terminal(stories):
    with slow_server(stories) as (program, port):
        assert ask(port, "/broken")[0] == 500
        program.send_signal(signal.SIGTERM)
        program.wait(8)
        assert "a fault of ours" in program.stderr.read()


def test_two_hosts_are_refused(stories):
    with slow_server(stories) as (_, port):
        doubled = get().replace(b"host: 127.0.0.1\r\n", b"host: 127.0.0.1\r\nhost: evil.example\r\n")
        for content in (doubled, b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"):
            with contextlib.closing(sending(port, content)) as connection:
                assert re.match(rb"HTTP/1.1 40[03] ", connection.recv(100))


@pytest.mark.parametrize(("side", "kind", "expected"), [(8191, 6, {422, 503}), (5790, 6, {200, 422, 503})])
def test_many_large_images_at_once_stay_in_bounds(walks, side, kind, expected):
    content = png(side, side, kind)
    with running("-m", "countinggrids.cli", "browse", *map(str, walks), "--port", "0") as (program, port):

        def drop(_):
            return ask(port, "/locate.json", "POST", content, content_type="image/png")[0]

        with ThreadPoolExecutor(8) as clients:
            statuses = set(clients.map(drop, range(8)))
        assert statuses <= expected
        assert statuses != {503}
        status = Path(f"/proc/{program.pid}/status")
        if status.exists():
            assert int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) < 2**20  # kB
        assert ask(port, "/index.json")[0] == 200


def test_a_place_is_kept_until_its_work_has_ended():
    import asyncio
    import threading

    async def scenario():
        pool, gate = RequestPool(1, 0), threading.Event()
        task = asyncio.create_task(pool.run(gate.wait, 20))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.1)
        with pytest.raises(BusyError):
            await pool.run(int)
        gate.set()
        while pool.is_busy:
            await asyncio.sleep(0.01)
        assert await pool.run(int) == 0

    asyncio.run(scenario())


def test_a_large_image_is_shrunk_as_the_collections_own_were(walks):
    from countinggrids.explore.routes import Routes

    item_map = item_map_of(walks)
    assert Routes(item_map)._side() == 2048
    item_map.collection.steps[0].set_params(max_side=512)
    assert Routes(item_map)._side() == 512
    item_map.collection.steps[0].set_params(max_side=None, step=1)
    assert Routes(item_map)._side() == 512
