"""Check the links of a built site: python tools/check_links.py docs/_build/html

Every link to a page, an anchor, a picture or a file of the site must lead somewhere, and no page may load anything from
another host.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "iframe": "src", "link": "href", "source": "src", "video": "src"}
"""Attributes whose address is loaded with the page."""


class Page(HTMLParser):
    """The anchors and the addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what a tag names."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found and found.get("rel") != "canonical":
            self.loaded.append(found[LOADED[tag]])


def faults(root: Path) -> list[str]:
    """List the links of a site that lead nowhere, and what its pages load from elsewhere."""
    files = {path for path in root.rglob("*.html") if path.relative_to(root).parts[0] not in ("maps", "_static")}
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(root.resolve())
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.loaded and parts.scheme != "data":
                    found.append(f"{name}: loads {address} from another host")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{name}: {address} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {address} has no such anchor")
    return sorted(set(found))


def main() -> int:
    """Print the faults of a site, and return the exit code."""
    root = Path(sys.argv[1])
    if not (root / "index.html").is_file():
        raise SystemExit(f"{root} has no index.html; build the site with make docs first")
    found = faults(root)
    print("\n".join(found) or f"links of {len(list(root.rglob('*.html')))} pages checked")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
