"""A map of words: the docstrings of NumPy, SciPy and scikit-learn.

python examples/docstrings.py
python examples/docstrings.py --picture docs/explorer.png    (needs playwright and Chromium)

Reads the docstrings of the installed packages, fits a counting grid to them, and writes an interactive map,
docstrings.html: statistics in one region, linear algebra in another, and functions that use both between them.
"""

import argparse
import importlib
import inspect
import io
import re
import shutil
from pathlib import Path

from PIL import Image

import countinggrids as cg
from countinggrids.explore import ItemMap, export
from countinggrids.features import Words
from countinggrids.features.text import Document

MODULES = {
    "numpy": "fft linalg ma polynomial random",
    "scipy": "cluster.hierarchy fft integrate interpolate io linalg ndimage optimize signal sparse sparse.csgraph "
    "sparse.linalg spatial spatial.distance special stats",
    "sklearn": "cluster compose covariance decomposition ensemble feature_extraction.text feature_selection "
    "gaussian_process impute inspection isotonic kernel_approximation linear_model manifold metrics "
    "mixture model_selection multiclass naive_bayes neighbors neural_network pipeline preprocessing "
    "random_projection semi_supervised svm tree",
}


def docstrings():
    """Yield the docstrings of public functions and classes, each once."""
    seen = set()
    for package, modules in MODULES.items():
        for name in [package, *(f"{package}.{module}" for module in modules.split())]:
            module = importlib.import_module(name)
            for public, value in vars(module).items():
                text = (inspect.getdoc(value) or "") if callable(value) and not public.startswith("_") else ""
                if len(text) > 500 and text not in seen:
                    seen.add(text)
                    # Without the code of examples.
                    yield Document(re.sub(r"(?m)^(>>>|\.\.\.).*$", "", text), f"{name}.{public}", label=name)


def main():
    words = Words(min_df=6, max_df=0.12, stop_words="english", min_length=3)
    collection = cg.Collection.from_texts(docstrings(), words)
    print(collection)
    model = cg.CountingGrid((32, 32), (5, 5), random_state=0, verbose=1).fit(collection)
    size = export(ItemMap(model, collection, "Docstrings of scientific Python"), "docstrings.html")
    print(f"docstrings.html, {size / 1e6:.1f} MB")


def take_screenshot(page, picture):
    """Save a screenshot of the page after a search."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1200, "height": 720})
        tab.goto(page.absolute().as_uri() + "#q=eigenvalues+of+a+symmetric+matrix")
        tab.wait_for_selector("#detail .items")
        tab.wait_for_timeout(500)
        shot = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        shot.quantize(192, dither=Image.Dither.NONE).save(picture, optimize=True)
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--picture", help="file for a screenshot of the page")
    picture = parser.parse_args().picture
    main()
    if picture:
        take_screenshot(Path("docstrings.html"), picture)
