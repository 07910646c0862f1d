"""Mutations of files: of their bytes, of the arrays and the metadata in them."""

import io
import json
import zipfile
from hashlib import sha256

import numpy as np

LENGTHS = [0, 1, -1, 3, 255, 2**20, 2**27, 2**31 - 1, 2**31, 2**32 + 1, 2**40, 2**62, 2**63 - 1, -(2**63)]
NUMBERS = [*LENGTHS, 0.5, -1.5, 1e39, 1e308, 5e-324, float("nan"), float("inf"), -float("inf")]
FACTS = [*NUMBERS, 10**400, None, True, "", "x", "\ud800", [], {}, [[]], [1, 2], ["a"], {"a": 1}, "[" * 500]
DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64"]
SHAPES = [
    "(-2, 4)",
    "(0, 9)",
    "(2, 4",
    "()",
    "(3,)",
    "(2, 4, 5)",
    "(2**9, 1)",
    "[2, 4]",
    "(True, 4)",
    "('a', 2)",
    "(1.5, 2)",
]
DESCRIPTIONS = [
    "|O",
    "<f4",
    ">i8",
    "<c8",
    "|V8",
    "<U9",
    "|S0",
    "<M8[s]",
    "O",
    "<f3",
    "",
    "f8,f8",
    "(2,)f8",
    "<f99999999",
]


def mutated(content, rng):
    """Mutate bytes in one of several ways: flips, cuts, repeats, zeros, random bytes."""
    data = bytearray(content)
    for _ in range(rng.integers(1, 6)):
        kind, at = rng.integers(7), int(rng.integers(max(len(data), 1)))
        span = int(rng.integers(1, 40))
        if kind == 0 and data:
            data[at] = int(rng.integers(256))
        elif kind == 1:
            del data[at : at + span]
        elif kind == 2:
            data[at:at] = data[at : at + span] * int(rng.integers(1, 20))
        elif kind == 3:
            data[at : at + span] = bytes(min(span, len(data) - at))
        elif kind == 4:
            data = data[:at]
        elif kind == 5 and data:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            data[at : at + 4] = bytes(rng.integers(256, size=4, dtype=np.uint8))
    return bytes(data)


def pick(choices, rng):
    """Return one of a list."""
    return choices[int(rng.integers(len(choices)))]


def with_other_header(content, rng):
    """Write another type, shape or order into the header of a .npy array."""
    end = 10 + int.from_bytes(content[8:10], "little")
    header = content[10:end].decode("latin1").strip()
    facts = dict(zip(("descr", "fortran_order", "shape"), _header_parts(header), strict=True))
    name = pick(list(facts), rng)
    facts[name] = {
        "descr": lambda: repr(pick(DESCRIPTIONS, rng)),
        "fortran_order": lambda: pick(["True", "1", "None", "False or True"], rng),
        "shape": lambda: pick([*SHAPES, *(f"({n}, {m})" for n in LENGTHS[:4] for m in LENGTHS)], rng),
    }[name]()
    text = "{" + ", ".join(f"{key!r}: {value}" for key, value in facts.items()) + "}\n"
    return content[:8] + len(text).to_bytes(2, "little") + text.encode("latin1") + content[end:]


def _header_parts(header):
    start, rest = header.split("'fortran_order': ")
    order, shape = rest.split(", 'shape': ")
    return start.split("'descr': ")[1].rstrip(", "), order, shape.rstrip(", }")


def other_array(array, rng):
    """Change one number, the type, the shape or the length of an array."""
    if array.dtype.kind in "SU":
        return np.array(pick(["csr", "csc", "bsr", "coo", "dia", "lil", ""], rng)).astype(pick(["S", "U"], rng))
    kind = rng.integers(6)
    with np.errstate(all="ignore"):
        if kind <= 1 and array.size:
            changed = array.astype(pick([array.dtype, np.dtype("int64"), np.dtype("float64")], rng))
            place = int(rng.integers(array.size))
            changed.flat[place] = np.array(pick(NUMBERS, rng)).astype(changed.dtype)
            return changed
        if kind == 2:
            return array.astype(pick(DTYPES, rng))
        if kind == 3:
            return array.ravel()[: int(rng.integers(array.size + 1))]
        if kind == 4:
            return array.reshape(pick([(1, -1), (-1, 1), (-1,)], rng)) if array.size else array
        return np.concatenate([array.ravel()] * 2)


def other_arrays(arrays, rng):
    """Change an array among several, exchange two, or leave one out."""
    arrays, names = dict(arrays), list(arrays)
    one, other = pick(names, rng), pick(names, rng)
    kind = rng.integers(6)
    if kind == 0:
        arrays[one], arrays[other] = arrays[other], arrays[one]
    elif kind == 1:
        del arrays[one]
    else:
        arrays[one] = other_array(arrays[one], rng)
    return arrays


def other_facts(facts, rng):
    """Change one value in nested metadata, at any depth, or leave it out."""
    facts = json.loads(json.dumps(facts))
    places = [(None, None)]
    _collect(facts, places)
    inside, key = pick(places[1:], rng)
    if rng.integers(6) == 0:
        del inside[key]
    else:
        inside[key] = pick(FACTS, rng)
    return facts


def _collect(value, places):
    """List the values in nested metadata: the container of each, and its key there."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        places.append((value, key))
        _collect(value[key], places)


def other_archive(content, rng):
    """Change what is in a .npz file, and write it with correct checksums."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if rng.integers(3):
        arrays = {name: np.load(io.BytesIO(member)) for name, member in members.items()}
        members = {name: _saved(array) for name, array in other_arrays(arrays, rng).items()}
    else:
        name = pick(list(members), rng)
        members[name] = pick([mutated, with_other_header], rng)(members[name], rng)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", pick([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], rng)) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return written.getvalue()


def resigned_bytes(content, rng):
    """Mutate the bytes of arrays in a file of ours, and compute its digests again."""
    end = 8 + int.from_bytes(content[:8], "little")
    data = bytearray(content[end:])
    for _ in range(rng.integers(1, 6)):
        at, kind = int(rng.integers(len(data))), rng.integers(3)
        if kind == 0:
            data[at] = int(rng.integers(256))
        elif kind == 1:
            data[at] ^= 1 << int(rng.integers(8))
        else:
            span = min(int(rng.integers(1, 40)), len(data) - at)
            data[at : at + span] = pick(
                [bytes(span), b"\xff" * span, bytes(rng.integers(256, size=span, dtype="u1"))], rng
            )
    return resigned(content[:end] + bytes(data))


def resigned_header(content, rng):
    """Change a dtype, a shape, an offset or the metadata of a file of ours, and compute its digests again."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    for name in ("digest", "arrays"):
        del header["__metadata__"][name]
    header = json.dumps(other_facts(header, rng)).encode()
    return resigned(len(header).to_bytes(8, "little") + header + content[end:])


def resigned_anywhere(content, rng):
    """Mutate any bytes of a file of ours, and compute its digests again if its header can still be parsed."""
    return resigned(mutated(content, rng))


def resigned(content):
    """Compute the digests of a file of ours again; one whose header cannot be parsed is returned as it is."""
    end = 8 + int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8:end])
        metadata = dict(header.pop("__metadata__"))
        names = {name: _digest(entry, content[end:]) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return content
    blank = "0" * 64
    metadata = {"digest": blank, "arrays": json.dumps(names)} | {
        name: value for name, value in metadata.items() if name not in ("digest", "arrays")
    }
    encoded = json.dumps({"__metadata__": metadata} | header, separators=(",", ":")).encode()
    encoded += b" " * (-len(encoded) % 8)
    encoded = len(encoded).to_bytes(8, "little") + encoded
    return encoded.replace(blank.encode(), sha256(encoded).hexdigest().encode(), 1) + content[end:]


def _digest(entry, data):
    """Return the digest of the bytes that an entry of a header names, or none if it names none."""
    try:
        begin, end = entry["data_offsets"]
        return sha256(data[begin:end]).hexdigest()
    except (TypeError, KeyError, ValueError):
        return ""


def _saved(array):
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()
