"""What a person does in the browser, and what the page then tells."""

import base64
import io

import numpy as np
from PIL import Image

WIDE, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 780}


def settle(page):
    """Wait until the address has been written and the map drawn, by the page's own clock: a busy page takes longer."""
    page.evaluate(
        """() => new Promise((done) => {
            const later = (frames) => (frames ? requestAnimationFrame(() => later(frames - 1)) : setTimeout(done, 350));
            later(2);
        })"""
    )


def until(page, condition):
    """Wait until an expression holds; the page's policy lets nobody, not even a test, evaluate text inside it."""
    for _ in range(100):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {condition}")


def params(page):
    """Read the view from the address."""
    return dict(part.split("=", 1) for part in page.evaluate("location.hash").lstrip("#").split("&") if "=" in part)


def view(page):
    now = params(page)
    return tuple(float(now[name]) for name in ("row", "column", "scale"))


def box(page):
    return page.locator("#map").bounding_box()


def on_screen(page, place):
    """Where a place of the map (in cells) is on the screen, in the round nearest to the middle."""
    row, column, scale = view(page)
    frame = box(page)
    grid = page.evaluate("fetch('map.json').then((answer) => answer.json()).then((data) => data.grid)")
    away = [(to + 0.5 - at + n / 2) % n - n / 2 for to, at, n in zip(place, (row, column), grid, strict=True)]
    return frame["x"] + frame["width"] / 2 + away[1] * scale, frame["y"] + frame["height"] / 2 + away[0] * scale


def picture(page):
    """The pixels of the map."""
    return page.evaluate("document.getElementById('map').toDataURL()")


def pixels(page):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(picture(page).partition(",")[2])))).astype(int)


def drag(page, across, down):
    frame = box(page)
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x + across * step / 8, y + down * step / 8)
    page.mouse.up()
    settle(page)
