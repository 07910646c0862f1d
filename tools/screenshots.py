"""Take pictures of the built site: python tools/screenshots.py [--readme] [--output docs/_build/screenshots] [page ...]

Each page is taken at the width of a desktop and of a phone; a page that is wider than the screen is reported. --readme
writes docs/explorer.png, the picture of the README, from the live map of scikit-learn's docstrings. Needs the site of
`make docs`, playwright and Chromium.
"""

import argparse
import io
import shutil
import sys
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
SCREENS = {"desktop": (1280, 860), "phone": (390, 844)}
PAGES = ("index", "gallery/index", "gallery/plot_scene", "guide/reading", "coming-from/lda", "explanation/model")
PAGES += ("reference/api/countinggrids.CountingGrid", "reference/commands", "maps", "experiments/index")


def take(browser: Any, name: str, output: Path) -> list[str]:
    """Take a page on every screen; return the names of those that are too narrow for it."""
    narrow = []
    for screen, (width, height) in SCREENS.items():
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.goto((SITE / f"{name}.html").as_uri())
        tab.wait_for_timeout(1500)
        tab.screenshot(path=output / f"{name.replace('/', '-')}-{screen}.png")
        if tab.evaluate("document.documentElement.scrollWidth") > width:
            narrow.append(f"{name}: wider than {screen}")
        tab.close()
    return narrow


def take_map(browser: Any, picture: Path) -> None:
    """Take the live map of docstrings after a search."""
    tab = browser.new_page(viewport={"width": 1200, "height": 720})
    tab.goto((SITE / "maps" / "docstrings.html").as_uri() + "#q=covariance+matrix")
    tab.wait_for_timeout(2500)
    shot = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    shot.quantize(192, dither=Image.Dither.NONE).save(picture, optimize=True)


def main() -> int:
    """Take the pictures, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", default=PAGES)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "_build" / "screenshots")
    parser.add_argument("--readme", action="store_true", help="write docs/explorer.png only")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if options.readme:
            take_map(browser, ROOT / "docs" / "explorer.png")
            return 0
        narrow = [fault for name in options.pages for fault in take(browser, name, options.output)]
    print("\n".join(narrow) or f"pictures of {len(options.pages)} pages in {options.output}")
    return int(bool(narrow))


if __name__ == "__main__":
    sys.exit(main())
