"""Small collections to make maps of, and how to reach a map that is served."""

import contextlib
import http.client
import subprocess
import sys

import numpy as np
from PIL import Image, ImageDraw

import countinggrids as cg
from countinggrids.data import collection_file, container
from countinggrids.explore import ItemMap
from countinggrids.features.text import Document

TOPICS = {
    "kitchen": "tea cup milk spoon kettle sugar bread butter oven plate",
    "station": "train track ticket platform signal whistle guard wagon tunnel bridge",
    "garden": "rose tulip spade hedge bee soil seed rain lawn frog",
    "harbor": "boat sail anchor gull tide rope crane dock salt wave",
}
HOSTILE = (
    "<script>window.harmed = 1</script>",
    "\"><img src=x onerror='window.harmed = 2'>",
    "../../../etc/passwd",
    "\u202egnp.exe\u202c and \u0007 bells \u001b[31m",
    "</script><script>window.harmed = 3</script>",
    "{{script}} {{data}} ]]> <!-- &amp; &#60;",
    "\u05e9\u05dc\u05d5\u05dd \u2067\u0639\u0627\u0644\u0645\u2069 lone \ud800 half",
)


def texts(n=80):
    """Make texts that mix two topics each, with labels, dates and links."""
    rng = np.random.default_rng(0)
    names = list(TOPICS)
    for i in range(n):
        first, second = i % 4, (i + 1) % 4
        words = (
            rng.choice(TOPICS[names[first]].split(), 25).tolist()
            + rng.choice(TOPICS[names[second]].split(), 6).tolist()
        )
        rng.shuffle(words)
        yield Document(
            " ".join(words), f"story {i}", f"https://example.org/{i}", names[first], time=1.6e9 + 86400.0 * i
        )


def draw(kind, shift, rng):
    """Draw a little landscape: hills, a sea or houses, moved sideways by some pixels."""
    image = Image.new("RGB", (96, 64), (150, 200, 240))
    pen = ImageDraw.Draw(image)
    if kind == "hills":
        for k in range(-1, 4):
            left = k * 40 - shift % 40
            pen.polygon([(left, 64), (left + 25, 18 + 4 * (k % 2)), (left + 50, 64)], fill=(60, 120 + 20 * (k % 3), 60))
    elif kind == "sea":
        pen.rectangle([0, 30, 96, 64], fill=(30, 80, 160))
        for k in range(12):
            x, y = (k * 17 - shift) % 96, 34 + (k * 7) % 28
            pen.line([(x, y), (x + 9, y)], fill=(200, 220, 255), width=2)
    else:
        pen.rectangle([0, 52, 96, 64], fill=(90, 90, 90))
        for k in range(-1, 5):
            left = k * 24 - shift % 24
            pen.rectangle([left, 24, left + 18, 52], fill=(170, 90, 70))
            pen.rectangle([left + 5, 30, left + 12, 38], fill=(250, 240, 160))
    pixels = np.asarray(image).astype(int) + rng.integers(-12, 12, (64, 96, 1))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def saved(stem, collection, model):
    """Fit a model and save both; return where they are."""
    model.fit(collection.counts)
    model.fingerprint_ = collection.fingerprint
    files = stem.with_suffix(".model"), stem.with_suffix(".cg")
    model.save(files[0])
    collection.save(files[1])
    return files


def claiming(made, path, root):
    """Write a collection of images again, with absolute paths and a folder that it claims to be theirs."""
    collection = cg.Collection.load(made[1])
    paths = [str(collection.items.path(i)) for i in range(len(collection))]
    items = collection.items.with_columns(path=paths)
    cg.Collection(collection.counts, collection.vocabulary, items, (2, 2), collection.steps).save(path)
    facts, arrays = container.read(path, collection_file.FORMAT, collection_file.VERSION)
    container.write(path, facts | {"root": root}, {name: np.array(array) for name, array in arrays.items()})


def item_map_of(files):
    return ItemMap(cg.load(files[0]), cg.Collection.load(files[1]), files[1].stem)


@contextlib.contextmanager
def browsing(files, *options):
    """Run `countinggrids browse` as a program of its own; give its port."""
    with running("-m", "countinggrids.cli", "browse", *map(str, files), "--port", "0", *options) as (_, port):
        yield port


@contextlib.contextmanager
def running(*arguments):
    """Run a Python program that serves; give it and its port."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        try:
            line = program.stdout.readline()
            assert line.startswith("http://"), program.stderr.read()
            yield program, int(line.split()[0].rstrip("/").rpartition(":")[2])
        finally:
            program.send_signal(2)
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()
                raise


def ask(port, path, method="GET", body=None, **headers):
    """Make a request; give status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, answer.headers, content
