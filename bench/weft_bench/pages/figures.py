# SPDX-License-Identifier: MIT
"""The measured figures in README.md, README.ko.md and docs/*.md. Each stands in a block

    <!-- figures: NAME -->
    <!-- end of figures -->

that is made from docs/figures.json, a part of one report, with its machine. docs/figures.records.gz has the records of that
report, as they were measured. `./dev bench report --figures` makes both files and the blocks. A test sees that the blocks say
what the file says, and the file what its records say; that the programs that measured have not changed since; and that no
figure stands elsewhere. Run as a program it makes the blocks anew."""

import gzip
import json
import re
import textwrap

from weft_bench import ROOT, printer, results, stats
from weft_bench.harness import cells
from weft_bench.pages import machine

FILE = ROOT / "docs/figures.json"
RECORDS = ROOT / "docs/figures.records.gz"
BLOCK = re.compile(r"(<!-- figures: (?P<name>\w+) -->\n)(?P<body>.*?)(<!-- end of figures -->)", re.DOTALL)
# A rate, a ratio, a share, or a time in a unit in which no bound is set.
LOOSE = re.compile(r"(?<![\w.])\d[\d.,]*\s?(?:ns|us|µs|[kMG]/s|[kMG]B/s|x|×|times|%|per cent)(?![\w/])")
RIVALS = ("libzmq", *cells.RIVALS, "nng")  # libzmq is that of the pyzmq wheel
# name: (title of the first column, suite, [(title, row)], columns [(column, title)], rivals, their description)
TABLES = {
    "front": ("64 bytes", "sockets", [("PUSH to PULL over tcp", "push_pull/tcp/64")],
              [("weft", "Weft"), ("libzmq", "libzmq 4.3.5")], RIVALS, "its closest rival"),
    "sockets": ("64 bytes", "sockets", [
        ("PUSH to PULL over tcp", "push_pull/tcp/64"), ("over ipc", "push_pull/ipc/64"), ("inproc", "push_pull/inproc/64"),
        ("ROUTER to ROUTER over tcp", "router_router/tcp/64"), ("PUB to 8 SUBs over tcp", "pub_sub/tcp/64/x8"),
        ("PUSH to PULL over tcp, both in Python", "push_pull/tcp/64/pyzmq"), ("with asyncio", "push_pull/tcp/64/asyncio"),
        ("round trip over tcp; Weft spins before it sleeps", "round_trip/tcp/64"), ("over ipc", "round_trip/ipc/64"),
        ("inproc", "round_trip/inproc/64"), ("round trip over tcp; both sleep at once", "round_trip/tcp/64/eco"),
        ("over ipc", "round_trip/ipc/64/eco"), ("inproc", "round_trip/inproc/64/eco")],
        [("weft", "Weft"), ("libzmq", "libzmq 4.3.5")], RIVALS, "its closest rival"),
    "server": ("64 bytes", "server", [
        ("echo, 1 connection", "echo/64/x1"), ("one way, 1 connection", "one_way/64/x1"),
        ("one way, 50 connections", "one_way/64/x50"), ("memory of an idle connection", "idle/64/x1000")],
        [("weft", "Weft"), ("raw", "epoll by hand"), ("asio", "Boost.Asio, as in its examples"),
         ("asio_tuned", "Boost.Asio, tuned")], results.ASIOS, "the better Boost.Asio"),
}
SUITES = tuple(dict.fromkeys(suite for _, suite, *_ in TABLES.values()))
WITH_CPU = {"sockets"}  # also say how much less CPU time a message takes
BARE = {"front"}  # the machine and the statistic of these stand below another table of the same page
DISTURBED = 0.2  # of the busy time was others' in a row: the report makes no figures
KEPT = ("suite", "row", "placement", "rounds", "unit", "ours", "columns", "ratios", "limit", "foreign", "controls")


class FiguresError(Exception):
    """The figures cannot be made; nothing was written."""


def rows_of(suite):
    """The rows of a suite that the documents show."""
    return [row for _, of, rows, *_ in TABLES.values() if of == suite for _, row in rows]


def extract(report):
    """The part of a report's results that the documents show."""
    found = []
    for suite in SUITES:
        for row in dict.fromkeys(rows_of(suite)):
            result = results.best(report["results"], suite, row)
            if result is None:
                raise FiguresError(f"{row} was not measured")
            cpu = result["measures"].get("cpu")
            found.append({key: result[key] for key in KEPT if key in result} | ({"measures": {"cpu": cpu}} if cpu else {}))
    return {"effort": report["effort"], "started": report["started"], "machine": report["machine"], "results": found}


def records_of(raw):
    """The records of the rows that the documents show, and of the controls. raw: {suite: [record]}."""
    return {suite: [record for record in raw[suite] if record["kind"] == "controls" or record.get("cell") in rows_of(suite)]
            for suite in SUITES}


def of_records(kept, of):
    """The stored part of a report, made anew from its records. of: what is stored of its machine and time."""
    found = [result for suite, records in kept.items() for result in results.of(suite, records)[0]]
    return json.loads(json.dumps(extract({**of, "results": found})))


def load_records(root=ROOT):
    """The stored records; None for figures that were stored without them."""
    file = root / RECORDS.relative_to(ROOT)
    return json.loads(gzip.decompress(file.read_bytes())) if file.exists() else None


def disturbance(found):
    """The largest share of the busy time that other programs took while one of the rows was measured.

    >>> disturbance([{"foreign": 0.5}, {"foreign": 0.75}, {}]), disturbance([])
    (0.75, 0)
    """
    return max((result.get("foreign", 0) for result in found), default=0)


def of_run(data, suite):
    """What the figures were measured on, in one sentence."""
    card = data["machine"]
    taken = disturbance([result for result in data["results"] if result["suite"] == suite])
    return (f"{card['processor']}, {card['cpus']} processors, Linux {card['kernel']}, {card['compiler']}, {card['flags']}, "
            f"commit {card['commit']}, {data['started'][:10]}; other programs took up to {printer.share(taken)} of the busy time. "
            "The ratio is the median over rounds in turns, with its 95 % interval; above 1x Weft is better.")


def beside_best(result, rivals, shown=()):
    """The ratio to the rival that came closest, and its name if the table does not show it. Its interval is unknown where the
    report has none.

    >>> result = {"ours": "w", "columns": {"w": 2.0, "a": 8.0}, "ratios": {"a": [4.0, 3.0, 5.0]}}
    >>> beside_best(result, ("a", "b")), beside_best(result, ("a", "b"), ("a",))
    ('4.00x [3.00, 5.00] (a)', '4.00x [3.00, 5.00]')
    >>> beside_best({**result, "columns": {"w": 2.0, "a": 8.0, "b": 3.0}}, ("a", "b"))
    '1.50x [unknown] (b)'
    """
    columns = result["columns"]
    best = min((rival for rival in rivals if rival in columns), key=columns.get, default=None)
    if best is None:
        return printer.interval(None, "x")
    ratio = result["ratios"].get(best) or [columns[best] / columns[result["ours"]], None, None]
    return printer.interval(ratio, "x") + ("" if best in shown else f" ({best})")


def block(name, data):
    """The text of one block. A row or a column that the stored figures do not have yet is left out."""
    head, suite, rows, columns, rivals, beside = TABLES[name]
    found = [(what, results.best(data["results"], suite, row)) for what, row in rows]
    found = [(what, result) for what, result in found if result is not None]
    cpu = name in WITH_CPU and all("measures" in result for _, result in found)
    lines = [[head, *(title for _, title in columns), f"beside {beside}", *(["CPU time beside"] if cpu else [])]]
    for what, result in found:
        lines.append([what, *(printer.cost(result, column) for column, _ in columns),
                      beside_best(result, rivals, [column for column, _ in columns]),
                      *([printer.interval(result["measures"]["cpu"], "x")] if cpu else [])])
    if name in BARE:
        return f"{printer.markdown_table(lines)}\n"
    return f"{printer.markdown_table(lines)}\n\n{textwrap.fill(of_run(data, suite), 128)}\n"


def fill(text, data):
    """A document with its blocks made from the data."""
    def make(found):
        if found["name"] not in TABLES:
            raise FiguresError(f"no figures are called {found['name']}")
        return found[1] + block(found["name"], data) + found[4]
    return BLOCK.sub(make, text)


def loose(text):
    """The figures of a document that stand outside its blocks. A cell of a table that is code has a default or a bound.

    >>> loose("takes 4.5 ns, 3.2x, 24 M/s and 15 %; waits 10 s, 250 ms, keeps 16 MiB"), loose("libzmq 4.3.5, 3 times")
    (['4.5 ns', '3.2x', '24 M/s', '15 %'], ['3 times'])
    >>> loose("| `poll_for` | `200 us` | takes `3 us` |")
    ['3 us']
    """
    return LOOSE.findall(re.sub(r"(?<=\| )`[^`\n]*`(?= \|)", "", BLOCK.sub("", text)))


def documents(root=ROOT):
    return [root / "README.md", root / "README.ko.md", *sorted((root / "docs").glob("*.md"))]


def refusal(report):
    """Why a report may make no figures, or None.

    >>> refusal({"effort": "quick"})
    'a quick report is too short to make figures: run ./dev bench report --figures without --quick'
    """
    if report["effort"] != "full":
        return f"a {report['effort']} report is too short to make figures: run ./dev bench report --figures without --quick"
    shown = extract(report)["results"]
    bare = [result["row"] for result in shown if "controls" not in result]
    if bare:
        return f"the controls were not measured before and after {bare[0]}: run ./dev bench report --figures to its end"
    void = [f"{result['row']}: {why}" for result in shown if (why := printer.moved_controls(stats.moved_controls(result["controls"])))]
    if void:
        return f"{'; '.join(void)}: void, so run ./dev bench report --figures again where nothing else runs"
    taken = disturbance(shown)
    if taken > DISTURBED:
        return f"other programs took up to {printer.share(taken)} of the busy time: measure where nothing else runs"
    return None


def write(report, raw, root=ROOT):
    """Makes the two files from a report and its records, {suite: [record]}, and the blocks of all documents; the documents that
    have one."""
    why = refusal(report)
    if why:
        raise FiguresError(why)
    data = {**extract(report), "harness": {suite: machine.harness_of(suite) for suite in raw}}
    texts = {file: fill(file.read_text(encoding="utf-8"), data) for file in documents(root)}
    kept = json.dumps(records_of(raw), separators=(",", ":")).encode()
    (root / RECORDS.relative_to(ROOT)).write_bytes(gzip.compress(kept, mtime=0))
    (root / FILE.relative_to(ROOT)).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    for file, text in texts.items():
        file.write_text(text, encoding="utf-8")
    return [file for file, text in texts.items() if BLOCK.search(text)]


def wrong(root=ROOT):
    """What is wrong with the figures of the documents, as texts."""
    data = json.loads((root / FILE.relative_to(ROOT)).read_text(encoding="utf-8"))
    found = []
    kept = load_records(root)
    made = of_records(kept, data) if kept is not None else data
    if made["results"] != data["results"]:
        rows = [now["row"] for now, then in zip(made["results"], data["results"]) if now != then]
        found.append(f"{FILE.name}: it is not what {RECORDS.name} says of {', '.join(rows)}: nobody edits it by hand")
    found += [f"{FILE.name}: what measures {suite} has changed since: run ./dev bench report --figures where nothing else runs"
              for suite, digest in data.get("harness", {}).items() if digest != machine.harness_of(suite)]
    for file in documents(root):
        text = file.read_text(encoding="utf-8")
        if fill(text, data) != text:
            found.append(f"{file.name}: its figures are not those of {FILE.name}: run `PYTHONPATH=bench python3 -m "
                         "weft_bench.pages.figures`")
        found += [f"{file.name}: {figure} is typed by hand; a measured figure belongs in a block, a bound is said in s, ms "
                  "or bytes" for figure in loose(text)]
    return found


def remake():
    """Makes the blocks of all documents anew from the stored figures."""
    stored = json.loads(FILE.read_text(encoding="utf-8"))
    for document in documents():
        document.write_text(fill(document.read_text(encoding="utf-8"), stored), encoding="utf-8")


if __name__ == "__main__":
    remake()
