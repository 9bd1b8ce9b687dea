"""How fast models answer in a page, on a processor that is slowed down four times.

`python -m benchmarks.page_models` opens the built pages in Chromium, touches each explorable that
has a model, and prints times in milliseconds: from the touch to the first answer, which includes
loading the model; until a second answer; and, where it writes a text, for the same input read
again, until the first token, and for each further token. Each is the median of some rounds.
"""

import argparse
import functools
import http.server
import shutil
import statistics
import threading
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

HTML = Path(__file__).parents[1] / "build" / "book" / "_build" / "html"
PAGES = {  # and what writes a text, if anything, with a clock for each token
    "two_banks": ("book/intro.html", ""),
    "translator": (
        "book/07_transformer.html",
        "read(data.dates[0][0], new Set(), () => performance.now())",
    ),
    "writer": (
        "book/09_language_model.html",
        "read({ ...data.start, k: 9, p: 1 }, () => performance.now())",
    ),
    "gaps": ("book/10_bert.html", ""),
    "patches": ("book/11_vision_transformer.html", ""),
    "glances": ("book/12_captioning.html", ""),
}
TOUCH = """async (name) => {
  const figure = document.querySelector(`[data-explorable="${name}"]`);
  const control = [...figure.querySelectorAll("input[type=range], select")].at(-1);
  const output = figure.querySelector("output");
  const times = [];
  for (const _ of [1, 2]) {
    const before = output.textContent;
    const began = performance.now();
    control.focus();
    if (control.type === "range") control.value = Number(control.value) ? 0 : 1;
    else control.selectedIndex = control.selectedIndex ? 0 : 1;
    for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind));
    while (output.textContent === before) await new Promise(requestAnimationFrame);
    times.push(performance.now() - began);
  }
  return times;
}"""
WRITE = """async (name) => {
  const figure = document.querySelector(`[data-explorable="${name}"]`);
  const data = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
  const { model } = await import("/_static/explorables/models.js");
  const { reader } = await import(`/_static/explorables/${name}.js`);
  const read = reader(await model({ figure, data })(), data.sheet);
  const began = performance.now();
  const { times } = WRITES;
  return times.map((time) => time - began);
}"""


def measure(browser: Browser, server: str, name: str, slowed: float) -> list[float]:
    """Milliseconds to two answers; to the first token and for each further one, if it writes."""
    page = browser.new_page()
    address, writes = PAGES[name]
    page.goto(f"{server}/{address}")
    page.wait_for_selector(f'[data-explorable="{name}"][data-ready=true]', state="attached")
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": slowed})
    found = page.evaluate(TOUCH, name)
    if writes:
        times = page.evaluate(WRITE.replace("WRITES", writes), name)
        found += times[0], (times[-1] - times[0]) / (len(times) - 1)
    page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slowed", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    if not HTML.is_dir():
        print("the pages are not built: make book")
        return

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(HTML))
    with (
        sync_playwright() as playwright,
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening,
    ):
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        server = f"http://127.0.0.1:{listening.server_port}"
        heads = ("first answer", "second", "first token", "a further one")
        print(f"{'ms':12}" + "".join(f"{head:>14}" for head in heads))
        for name in PAGES:
            rounds = [measure(browser, server, name, options.slowed) for _ in range(options.rounds)]
            times = map(statistics.median, zip(*rounds, strict=True))
            print(f"{name:12}" + "".join(f"{time:14.0f}" for time in times))
        browser.close()
        listening.shutdown()


if __name__ == "__main__":
    main()
