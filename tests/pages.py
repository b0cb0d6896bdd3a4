"""``python -m tests.pages FOLDER``: whether the pages of the built documentation can be read in narrow windows.

Looks at each page with Chromium, without a network, and prints the problems: text beyond the edge of the window or
cut off, navigation before the text, pictures that are missing, files of other hosts.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.functional.ui.conftest import CHROMIUM

#: Widths of a window in pixels: a telephone held sideways, half a screen, a screen.
WIDTHS = (500, 800, 1400)
HEIGHT = 900
#: The heading of a page is in the upper part of the window.
HIGHEST = 250
#: Returns what cannot be seen, for a person to find it.
LOOK = """(highest) => {
    const found = [], edge = document.documentElement.clientWidth + 1;
    const named = (node) => `<${node.localName}> ${node.textContent.trim().slice(0, 60)}`;
    if (document.scrollingElement.scrollWidth > edge) found.push("the page is wider than the window");
    const heading = document.querySelector("h1");
    if (heading && heading.getBoundingClientRect().top > highest) found.push("something precedes the heading");
    for (const node of document.querySelectorAll("article pre, article table, article img, article dt.sig")) {
        let around = node;
        while (around !== document.body && !["auto", "scroll"].includes(getComputedStyle(around).overflowX))
            around = around.parentElement;
        if (around === document.body && node.getBoundingClientRect().right > edge)
            found.push(`beyond the edge: ${named(node)}`);
    }
    // Lines that a command prints may scroll.
    for (const node of document.querySelectorAll(".highlight-console pre > span:not(.go)"))
        if (node.textContent.trim() &&
                node.getBoundingClientRect().right > node.parentElement.getBoundingClientRect().right + 1)
            found.push(`a command is cut off: ${named(node)}`);
    for (const node of document.querySelectorAll("article img"))
        if (!node.naturalWidth) found.push(`no picture: ${node.getAttribute("src")}`);
    return found;
}"""


def problems(browser: Any, folder: Path) -> Iterator[str]:
    """Yield the problems of the pages below ``folder``."""
    pages = sorted(path for path in folder.rglob("*.html") if path.name not in ("genindex.html", "search.html"))
    if not pages:
        yield f"{folder}: there are no pages"
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": HEIGHT})
        foreign: list[str] = []
        page.on("request", lambda request, found=foreign: found.append(request.url))
        for path in pages:
            page.goto(path.as_uri())
            yield from (f"{path.relative_to(folder)} at {width} px: {problem}"
                        for problem in page.evaluate(LOOK, HIGHEST))
        yield from sorted({f"a file of another host: {url}" for url in foreign
                           if not url.startswith(("file:", "data:"))})
        page.close()


def main() -> int:
    """Print the problems; return 1 if there are any."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found = list(problems(browser, Path(sys.argv[1]).resolve()))
        browser.close()
    print("\n".join(found) or "all pages can be read")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
