"""Looks at one page wide and narrow; screenshots go to `build/screenshots/`.

Two test files use this, one for each colour scheme, so that two workers share the time.
"""

from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from .conftest import ROOT

SCREENSHOTS = ROOT / "build" / "screenshots"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
SLICE = 8000  # pixels: Chromium repeats itself on pictures that are much taller
STILL = """
*, ::before, ::after { transition: none !important; animation: none !important }
section { content-visibility: visible !important } /* what is far away is looked at, too */
"""
SHOW_ALL = """async () => {
  const images = [...document.querySelectorAll("article img")];
  images.forEach((image) => (image.loading = "eager"));
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
}"""


def wrong_with(name: str, scheme: str, open_tab: Callable) -> list[str]:
    """Errors, other hosts, scrolling sideways, and what axe finds of WCAG 2.2 AA."""
    tab = open_tab(1280, scheme)
    for width in (1280, 390):
        tab.page.set_viewport_size({"width": width, "height": 900})
        page = tab.open(name)
        page.add_style_tag(content=STILL)  # a colour on its way from light to dark is neither
        page.evaluate(SHOW_ALL)
        if wide := page.evaluate(
            "(w) => Math.max(0, document.documentElement.scrollWidth - w)", width
        ):
            tab.wrong.append(f"{wide} pixels wider than {width}")
        page.evaluate("document.fonts.ready")
        found = Axe().run(page, options={"runOnly": TAGS, "resultTypes": ["violations"]})
        tab.wrong += [
            f"{width}: {v['id']}: {node['html'][:200]}"
            for v in found.response["violations"]
            for node in v["nodes"]
        ]
        take_screenshots(page, f"{name.removesuffix('.html').replace('/', '_')}_{width}_{scheme}")
    if page.evaluate("document.documentElement.dataset.theme") != scheme:
        tab.wrong.append(f"not {scheme}")
    return tab.wrong


def take_screenshots(page: Page, stem: str) -> None:
    """A page from top to bottom, in slices; the header stands on each."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SCREENSHOTS.glob(f"{stem}*.jpg"):
        old.unlink()
    width, height = page.evaluate(
        "[document.documentElement.clientWidth, document.documentElement.scrollHeight]"
    )
    page.set_viewport_size({"width": width, "height": min(SLICE, height)})
    for number, top in enumerate(range(0, height, SLICE)):
        page.evaluate("(top) => scrollTo({ top, behavior: 'instant' })", top)
        page.screenshot(
            path=SCREENSHOTS / f"{stem}{f'_{number}' if number else ''}.jpg",
            type="jpeg",
            quality=60,
            animations="disabled",
        )
