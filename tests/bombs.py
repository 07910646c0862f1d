"""Images that are small on disk and large in memory."""

import struct
import zlib

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def chunk(kind, body):
    """Make a part of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, kind=2, bits=8):
    """Make a PNG of black pixels: grey (0), RGB (2), grey with alpha (4) or RGBA (6)."""
    packer = zlib.compressobj(9)
    row = b"\0" + bytes((width * CHANNELS[kind] * bits + 7) // 8)
    rows = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
