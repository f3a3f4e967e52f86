# SPDX-License-Identifier: MIT
"""page_test.py FOLDER [--one]: the page in headless Chromium: it fits, says nothing on the console, asks the network for
nothing, every picture has data. Screenshots go to FOLDER, where they stay. With --one: in one way instead of all widths, colors
and languages. Exit status 77: no Chromium or no Playwright."""

import pathlib
import shutil
import sys

SKIP = 77
try:
    from weft_bench.pages import page, pictures, published, versions
except ImportError as absent:
    print(f"skipped: {absent}; ./dev test installs it")
    sys.exit(SKIP)

WAYS = [(width, scheme, language) for width in (2000, 1300, 400) for scheme in ("light", "dark") for language in ("en", "ko")]
# Labels that leave their picture, and pictures without a single mark.
BROKEN = """() => [...document.querySelectorAll('svg')].filter(svg => {
  const box = svg.getBoundingClientRect();
  const out = [...svg.querySelectorAll('text')].some(text => {
    const at = text.getBoundingClientRect();
    return at.left < box.left - 1 || at.right > box.right + 1 || at.top < box.top - 1 || at.bottom > box.bottom + 1;
  });
  return out || svg.querySelectorAll('.m').length === 0 || !svg.querySelector('title') || !svg.querySelector('desc');
}).map(svg => svg.getAttribute('aria-labelledby'))"""

# Tables that are wider than their place.
CUT_OFF = """() => [...document.querySelectorAll('.table')].filter(place => place.scrollWidth > place.clientWidth + 1 ||
  place.getBoundingClientRect().right > innerWidth + 1).map(place => place.getAttribute('aria-label'))"""


def example():
    """A data set with every kind of picture."""
    found = []

    def add(suite, row, columns, **more):
        ratio = columns.get("libzmq", columns.get("boost", columns.get("asio", 1.0))) / columns["weft"]
        rival = {"sockets": "libzmq", "sockets_at_load": "libzmq", "server": "asio"}.get(suite, "boost")
        found.append({"suite": suite, "row": row, "placement": "near", "rounds": 9, "lives": 5, "unit": "s" if suite == "sockets" else "ns",
                      "ours": "weft", "columns": columns, "samples":
                      {name: [value] * 5 for name, value in columns.items()}, "ratios": {rival: [ratio, ratio * 0.9, ratio * 1.1]},
                      "bars": [], "measures": {}, "uses": {}, **more})
    trips = {"weft": [[8000, 9000], [20000, 990], [90000, 10]], "libzmq": [[50000, 9000], [99000, 990], [400000, 10]]}
    tails = {name: {"p99": 2e-5, "p999": 9e-5, "max": 1e-3} for name in ("weft", "libzmq")}
    for row in published.load()["rows"]:
        for name in published.measured_rows(row):
            if row["suite"] == "micro" and not any(result["row"] == name for result in found):
                add("micro", name, {"weft": 3.0 + len(found) % 7, "boost": 9.0})
    for pattern in ("push_pull", "router_router", "pub_sub"):
        for transport in pictures.TRANSPORTS:
            for size, _ in pictures.SIZES:
                add("sockets", f"{pattern}/{transport}/{size}", {"weft": int(size) / 2e9, "libzmq": int(size) / 5e8, "raw": 1e-8})
    for transport in pictures.TRANSPORTS:
        add("sockets", f"round_trip/{transport}/64", {"weft": 1e-5, "libzmq": 5e-5}, trips=trips, tails=tails, limit=[1.2, 1.1, 1.3])
        for load in (10, 50, 80):
            add("sockets", f"round_trip/{transport}/64/load{load}", {"weft": 1e-5, "libzmq": 5e-5}, trips=trips, tails=tails)
    for connections in (1, 16, 128):
        add("server", f"echo/64/x{connections}", {"weft": 1e-6, "raw": 1e-6, "asio": 2e-6}, unit="s")
    for transport in ("tcp", "inproc"):
        for times in (1, 2, 4, 8, 32):
            add("sockets", f"pub_sub/{transport}/64/x{times}", {"weft": 1e-8, "libzmq": 1e-7})
    add("sockets_at_load", "push_pull/tcp/64", {"weft": 3e-7, "libzmq": 2e-7},
        bars=[{"measure": "libzmq", "bar": "never worse", "value": [0.67, 0.6, 0.7], "met": False}])
    add("topics", "round_trip/ipc/64", {"weft": 2e-5, "boost": 1e-5},
        bars=[{"measure": "trip", "bar": "<= 1.3", "value": [2.0, 1.9, 2.1], "met": False},
              {"measure": "rate", "bar": ">= 10000000", "value": [5e6, None, None], "met": None}])
    found[0]["bars"] = [{"measure": "boost", "bar": "never worse", "value": [0.9, 0.8, 0.95], "met": False}]
    card = {"processor": "Example", "cpus": "2 of 2", "kernel": "6", "quota": "none", "compiler": "c++", "flags": "-O3",
            "commit": "abc", "tree": "clean", "controls": [{"getppid_ns": 100.0}, {"getppid_ns": 101.0}]}
    def times(result, factor):
        return {name: [value * factor for value in values] for name, values in result["samples"].items()}
    before = {"machine": card, "results": [{**result, "samples": times(result, 0.5 + place % 3 / 2)}
                                           for place, result in enumerate(found)]}
    data = {"published": published.load(), "results": found, "failures": [{"suite": "micro", "row": "x", "why": "<why> & so"}],
            "machine": card, "effort": "quick", "partial": True, "baseline": before,
            "left_out": [{"suite": "micro", "row": "y", "why": "no time was left for it"}]}
    return {**data, "versions": versions.compare_all(before, data)}


def look(browser, url, width, scheme, language, folder):
    """What is wrong with the page at that width, as texts."""
    wrong, requests = [], []
    view = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    view.set_default_timeout(0)  # ctest has one; a machine may be busy
    view.on("console", lambda message: wrong.append(f"console: {message.text}"))
    view.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(url)
    picture = folder / f"report-{width}-{scheme}-{language}.png"
    view.screenshot(path=picture, full_page=scheme == "light")  # a long page takes long
    print(f"screenshot: {picture.resolve()}")
    over = view.evaluate("document.documentElement.scrollWidth") - width
    if over > 0:
        wrong.append(f"{over} px wider than the window")
    wrong += [f"table {name} is cut off" for name in view.evaluate(CUT_OFF)]
    if requests != [url]:
        wrong.append(f"requests: {requests[1:]}")
    pictures = view.evaluate("document.querySelectorAll('svg').length")
    if pictures < 30:
        wrong.append(f"{pictures} pictures only")
    wrong += [f"picture {name} has no data or does not fit" for name in view.evaluate(BROKEN)]
    for row in published.load()["rows"]:
        if row["row"] not in view.content().replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"):
            wrong.append(f"no row {row['row']}")
    view.close()
    return [f"{width} px, {scheme}, {language}: {what}" for what in wrong]


def main():
    folder = pathlib.Path(sys.argv[1])
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        program = None
    if program is None:
        print("skipped: no Chromium, or no Playwright in .venv: ./dev test installs both")
        return SKIP
    folder.mkdir(parents=True, exist_ok=True)
    files = {language: folder / f"report-example.{language}.html" for language in ("en", "ko")}
    for language, file in files.items():
        others = {other: name.name for other, name in files.items() if other != language}
        file.write_text(page.page(example(), language, others), encoding="utf-8")
    wrong = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        ways = WAYS[-2:-1] if "--one" in sys.argv else WAYS
        for width, scheme, language in ways:
            wrong += look(browser, files[language].resolve().as_uri(), width, scheme, language, folder)
        browser.close()
    print("\n".join(wrong) or f"looked at {', '.join(map(str, files.values()))} in {len(ways)} ways")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
