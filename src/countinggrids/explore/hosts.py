"""Host headers, parsed strictly."""

import ipaddress
import re

LOOPBACK = ("127.0.0.1", "localhost", "::1")
HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*))(?::(?P<port>[0-9]{1,5}))?")


def name_of(host: str) -> str | None:
    """Return the name in a Host header, in lower case and without its port; None if it is malformed.

    The port is not compared with that of the server, because another port may be forwarded to it.
    """
    found = HOST.fullmatch(host.lower()) if host.isascii() else None
    if found is None or int(found["port"] or 0) > 65535:
        return None
    return found["name"] or _address(found["v6"])


def is_address(name: str) -> bool:
    """Return whether a name is an IP address."""
    return _address(name) is not None


def _address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None
