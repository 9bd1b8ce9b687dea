"""Looks at one page in light and dark, wide and narrow: what is wrong with it, and screenshots."""

from collections.abc import Callable, Iterator
from contextlib import suppress

from axe_playwright_python.base import AXE_SCRIPT
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, TimeoutError

from .conftest import ROOT, Tab

SCREENSHOTS = ROOT / "build" / "screenshots"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"]
# what may differ in the other colours of the same width: colours, and pictures shown in one alone
OF_COLOUR = ["color-contrast", "link-in-text-block", "image-alt", "svg-img-alt", "role-img-alt"]
SLICE = 8000  # pixels: Chromium repeats itself on pictures that are much taller
LOOKS = [(1280, "light"), (390, "light"), (390, "dark"), (1280, "dark")]
STILL = """
*, ::before, ::after { transition: none !important; animation: none !important }
section { content-visibility: visible !important } /* what is far away is looked at, too */
"""
SHOW_ALL = """async () => {
  const images = [...document.querySelectorAll("article img")];
  images.forEach((image) => (image.loading = "eager"));
  await Promise.all(images.map((image) => image.decode().catch(() => {})));
}"""
# Marks the elements of the article whose contrast has to be measured: all, unless each has the same
# colours as it had in this scheme at another width; then only those that have come into sight, and
# those whose letters have become large or ceased to be, which is all that size and weight decide.
# For axe, letters are large from 18 points on, or from 14 if bold. What stands elsewhere may cover
# others, but for a figure's panels, which are cut to its frame.
MARK = """(scheme) => {
  const before = (window.looks ??= {})[scheme], now = new Map();
  let same = Boolean(before);
  for (const element of document.querySelectorAll("article, article *")) {
    const style = getComputedStyle(element);
    const { color, backgroundColor, backgroundImage, opacity, fontWeight, position } = style;
    const points = Math.ceil(72 * parseFloat(style.fontSize)) / 96;
    const bold = fontWeight === "bold" || parseFloat(fontWeight) >= 700;
    const colours = [
      color, backgroundColor, backgroundImage, opacity, style.textShadow, style.filter,
      element.closest("a.picture") ? "" : position,
    ].join();
    const visible = element.checkVisibility(), was = before?.get(element);
    now.set(element, { colours, visible, large: points >= (bold ? 14 : 18) });
    same &&= was?.colours === colours;
    const paints = backgroundImage !== "none" || backgroundColor !== "rgba(0, 0, 0, 0)";
    same &&= was?.visible === visible || !paints; // it may stand behind others
  }
  for (const [element, { visible, large }] of now) {
    const was = before?.get(element);
    const differs = !same || was.large !== large || (visible && !was.visible);
    element.toggleAttribute("data-anew", differs);
  }
  window.looks[scheme] = now;
}"""
MARKED = """axe.configure({
  rules: [
    { id: "color-contrast", selector: ":not(article, article *), [data-anew]" },
    { id: "link-in-text-block", selector: "a[href]:not(article *), a[href][data-anew]" },
  ],
})"""

# the theme's script looks 0.3 seconds after the last change of size
SETTLED = """() => [...document.querySelectorAll("pre, .pst-scrollable-table-container")].every(
  (element) => element.scrollWidth <= element.clientWidth || element.tabIndex === 0
)"""


def looks(name: str, open_tab: Callable, style: str = "") -> Iterator[tuple[Tab, int, str]]:
    """A page, loaded once, as it looks wide and narrow, in light and dark; with a style added."""
    tab = open_tab(*LOOKS[0])
    page = tab.open(name)
    page.add_style_tag(content=STILL + style)  # a colour on its way from light to dark is neither
    page.evaluate(SHOW_ALL)
    for width, scheme in LOOKS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("(s) => document.documentElement.dataset.theme === s", arg=scheme)
        page.evaluate("document.fonts.ready")
        with suppress(TimeoutError):  # axe will say what is wrong
            page.wait_for_function(SETTLED, timeout=5_000)
        yield tab, width, scheme


def wrong_with(name: str, open_tab: Callable, style: str = "") -> list[str]:
    """Errors, other hosts, scrolling sideways, and what axe finds of WCAG 2.2 AA."""
    for tab, width, scheme in looks(name, open_tab, style):
        wide = tab.page.evaluate(
            "(w) => Math.max(0, document.documentElement.scrollWidth - w)", width
        )
        if wide:
            tab.wrong.append(f"{wide} pixels wider than {width}")
        tab.page.evaluate(MARK, scheme)
        rules = TAGS if scheme == "light" else OF_COLOUR
        tab.wrong += [f"{width} {scheme}: {what}" for what in violations(tab.page, rules)]
    return tab.wrong


def violations(page: Page, rules: list[str] = TAGS) -> list[str]:
    """What axe finds; in the article, it looks at colours, which takes longest, only where
    `MARK` says so."""
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    return told(Axe(f"{AXE_SCRIPT};\n{MARKED}").run(page, options=options))


def told(found) -> list[str]:
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in found.response["violations"]
        for node in violation["nodes"]
    ]


def take_screenshots(name: str, open_tab: Callable) -> int:
    """A page in all its looks from top to bottom, in slices; the header stands on each."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    stem = name.removesuffix(".html").replace("/", "_")
    for old in SCREENSHOTS.glob(f"{stem}_*.jpg"):
        old.unlink()
    count = 0
    for tab, width, scheme in looks(name, open_tab):
        height = tab.page.evaluate("document.documentElement.scrollHeight")
        tab.page.set_viewport_size({"width": width, "height": min(SLICE, height)})
        for number, top in enumerate(range(0, height, SLICE)):
            tab.page.evaluate("(top) => scrollTo({ top, behavior: 'instant' })", top)
            part = f"_{number}" if number else ""
            tab.page.screenshot(
                path=SCREENSHOTS / f"{stem}_{width}_{scheme}{part}.jpg",
                type="jpeg",
                quality=60,
                animations="disabled",
            )
            count += 1
    return count
