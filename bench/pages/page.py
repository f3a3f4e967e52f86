# SPDX-License-Identifier: MIT
"""The page: one file, no script, no network; light and dark, on paper too."""

import html
import math

from pages import charts, published, results, sentences

STYLE = """
:root{--bg:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--panel:#f6f8fa;--good:#116329;--bad:#a40e26;
--c0:#0b6bcb;--c1:#c2410c;--c2:#6b7280;--c3:#7c3aed;--c4:#15803d;--c5:#b45309}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--ink:#e6edf3;--soft:#9da7b3;--line:#30363d;--panel:#161b22;
--good:#56d364;--bad:#ff7b72;--c0:#58a6ff;--c1:#ff9e64;--c2:#9da7b3;--c3:#bc8cff;--c4:#56d364;--c5:#e3b341}}
*{box-sizing:border-box}html{scroll-behavior:smooth}
body{margin:0;background:var(--bg);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main,header,nav,footer{max-width:70rem;margin:0 auto;padding:0 1rem}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1rem;list-style:none;padding:0}
a{color:var(--c0)}a:focus,[tabindex]:focus{outline:2px solid var(--c0);outline-offset:2px}
.skip{position:absolute;left:-99rem}.skip:focus{left:1rem;background:var(--bg)}
h2{margin-top:3rem;border-top:1px solid var(--line);padding-top:1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.875rem;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{background:var(--panel);white-space:nowrap}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
td .soft,.soft{color:var(--soft)}.faster{color:var(--good);font-weight:600}.slower{color:var(--bad);font-weight:600}
figure{margin:1.5rem 0}figcaption{font-weight:600}svg{width:100%;height:auto;min-width:38rem;max-width:60rem;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}.g{stroke:var(--line)}.one{stroke:var(--ink);stroke-dasharray:2 3}
.l{fill:none;stroke-width:2}.partial{border-left:4px solid var(--bad);padding-left:1rem}
@media print{nav,.skip{display:none}body{font-size:10pt}h2{break-after:avoid}figure,tr{break-inside:avoid}.wide{overflow:visible}}
""" + "".join(f".c{n}{{stroke:var(--c{n})}}.m.c{n}{{fill:var(--c{n});stroke:none}}" for n in range(charts.STYLES)) + """
.l.c1{stroke-dasharray:6 3}.l.c2{stroke-dasharray:2 3}.l.c3{stroke-dasharray:8 3 2 3}.l.c4{stroke-dasharray:4 2}"""

SIZES = (("64", "64 B"), ("1024", "1 KB"), ("8192", "8 KB"), ("65536", "64 KB"))
TRANSPORTS = ("tcp", "ipc", "inproc")
CHANGES_SHOWN = 40
ONE_AT_A_TIME = ("/x1", "/x1/load50", "/x1/load80")  # the server's round trips


def escape(value):
    return html.escape(str(value))


def shown(result, column):
    """The figure of a column, in the unit that a reader looks for."""
    value = result["columns"].get(column)
    if value is None:
        return "–"
    if result["unit"] == "ns":
        return published.quantity(value, "ns")
    if result["unit"] == "B":
        return f"{value:.0f} B"
    latency = result["row"].startswith(("round_trip", "burst", "connect_storm")) or (
        result["row"].startswith("echo") and result["row"].endswith(ONE_AT_A_TIME))
    return published.quantity(value * 1e6, "us") if latency else published.quantity(1 / value, "/s")


def table(head, rows, caption):
    body = "".join("<tr>" + "".join(row) + "</tr>" for row in rows)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return (f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table><caption class="soft">'
            f"{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>")


def cell(text, kind=""):
    return f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>"


def measured_cells(result):
    """Weft here, the rivals here, the closest ratio, the distance from the limit: four cells."""
    if result is None:
        return [cell("not measured", "soft")] + [cell("")] * 3
    rivals = "<br>".join(f"{escape(name)} {shown(result, name)}" for name in result["columns"]
                         if name != result["ours"] and not name.startswith(("raw", "weft")))
    ratio = ""
    if result["ratios"]:
        closest = sentences.closest(result)
        ratio = f'<span class="{results.verdict(closest)}">{sentences.interval(closest)}</span>'
        ratio += f'<br><span class="soft">beside {escape(results.rival_of(result))}</span>'
    limit = f"{result['limit'][0]:.2f}x" if result.get("limit") else ""
    where = f' <span class="soft">({result["placement"]})</span>' if result["placement"] else ""
    return [cell(shown(result, result["ours"]) + where, "n"), cell(rivals, "n"), cell(ratio, "n"), cell(limit, "n")]


def twin_of(all_results, name):
    return results.best(all_results, "micro", f"{name} (honest)")


def section_rows(rows, reports, all_results):
    lines = []
    for row in rows:
        names = published.measured_rows(row)
        machine = reports[row["report"]]
        note = f'<br><span class="soft">{escape(row["note"])}</span>' if "note" in row else ""
        title = f'<abbr title="{escape(machine["machine"])}">{escape(published.figure(row))}</abbr>'
        for place, name in enumerate(names):
            label = escape(row["row"]) + note if place == 0 else f'<span class="soft">and {escape(name)}</span>'
            result = results.best(all_results, row["suite"], name)
            lines.append([cell(label), cell(title if place == 0 else "", "n"), *measured_cells(result)])
            twin = twin_of(all_results, name) if row["suite"] == "micro" else None
            if twin is not None:
                lines.append([cell('<span class="soft">what it says it measures</span>'), cell(""),
                              *measured_cells(twin)])
    return lines


HEAD = ("row", "published", "Weft here", "rivals here", "ratio", "of the limit")


def section_results(rows, all_results):
    """The results behind a section's rows, each once, honest twins too."""
    chosen = {}
    for row in rows:
        for name in published.measured_rows(row):
            for result in (results.best(all_results, row["suite"], name), twin_of(all_results, name)):
                if result is not None:
                    chosen[result["suite"], result["row"]] = result
    return list(chosen.values())


def over_sizes(all_results, pattern, transport):
    """[(name, [(size, messages per second)])] of ours, libzmq's and the raw limit."""
    series = {}
    for size, label in SIZES:
        result = results.best(all_results, "sockets", f"{pattern}/{transport}/{size}")
        if result is not None:
            for column, name in ((result["ours"], "Weft"), ("libzmq", "libzmq"), ("raw", "raw limit")):
                if column in result["columns"]:
                    series.setdefault(name, []).append((label, 1 / result["columns"][column]))
    return list(series.items())


def throughput_charts(all_results, pattern, title):
    found = [(transport, over_sizes(all_results, pattern, transport)) for transport in TRANSPORTS]
    return [charts.lines(f"{pattern}-{transport}", f"{title} over {transport}", series, "message size", "messages/s")
            for transport, series in found if any(len(points) > 1 for _, points in series)]


def percentile_charts(all_results):
    pictures = []
    for transport in TRANSPORTS:
        result = results.best(all_results, "sockets", f"round_trip/{transport}/64")
        if result is not None and result.get("trips"):
            names = ((result["ours"], "Weft"), ("libzmq", "libzmq"), ("raw", "raw limit"))
            series = [(name, result["trips"][column]) for column, name in names if column in result["trips"]]
            pictures.append(charts.percentiles(f"tail-{transport}", f"Round trip of 64 B over {transport}", series))
    return pictures


def load_charts(all_results):
    """p99 over load: where the knee is."""
    series = {}
    for transport in TRANSPORTS:
        for load in (10, 50, 80):
            result = results.best(all_results, "sockets", f"round_trip/{transport}/64/load{load}")
            for column, name in (("weft", "Weft"), ("libzmq", "libzmq")):
                if result is not None and column in result.get("tails", {}):
                    point = (f"{load} %", result["tails"][column]["p99"] * 1e6)
                    series.setdefault(f"{name} {transport}", []).append(point)
    lines = [(name, points) for name, points in series.items() if len(points) > 1]
    return [charts.lines("load", "99th percentile over load", lines, "share of the highest rate", "us")] if lines else []


def fan_out_charts(all_results):
    pictures = []
    for transport in ("tcp", "inproc"):
        series = {}
        for times in (1, 2, 4, 8, 32):
            result = results.best(all_results, "sockets", f"pub_sub/{transport}/64/x{times}")
            for column, name in (("weft", "Weft"), ("libzmq", "libzmq")):
                if result is not None and column in result["columns"]:
                    series.setdefault(name, []).append((str(times), 1 / result["columns"][column]))
        if any(len(points) > 1 for points in series.values()):
            pictures.append(charts.lines(f"fan-{transport}", f"Fan-out over {transport}: deliveries", list(series.items()),
                                         "subscribers", "deliveries/s"))
    return pictures


def thread_charts(all_results):
    series = {}
    for threads in (1, 2, 3, 4, 8, 16):
        result = results.best(all_results, "micro", f"PerCore_Stateful/{threads}/cross_0 (honest)")
        for column in result["columns"] if result else ():
            series.setdefault(column, []).append((str(threads), 1e9 / result["columns"][column]))
    lines = [(name, points) for name, points in series.items() if len(points) > 1]
    return [charts.lines("architectures", "Threads that share nothing, and a shared queue", lines, "threads",
                         "messages/s")] if lines else []


def connection_charts(all_results):
    pictures = []
    for depth in ("", "/depth16"):
        series = {}
        for connections in (1, 16, 128, 1000, 10000):
            result = results.best(all_results, "server", f"echo/64/x{connections}{depth}")
            for column in result["columns"] if result else ():
                series.setdefault(column, []).append((str(connections), 1 / result["columns"][column]))
        lines = [(name, points) for name, points in series.items() if len(points) > 1]
        if lines:
            title = "Echo of 64 B, " + ("16 requests under way" if depth else "one request under way")
            pictures.append(charts.lines(f"echo{depth.replace('/', '-')}", title, lines, "connections", "messages/s"))
    return pictures


PICTURES = {
    "router": lambda found: throughput_charts(found, "router_router", "ROUTER to ROUTER"),
    "pub_sub": lambda found: throughput_charts(found, "pub_sub", "PUB to SUB"),
    "libzmq": lambda found: throughput_charts(found, "push_pull", "PUSH to PULL"),
    "round_trip": lambda found: percentile_charts(found) + load_charts(found),
    "fan_out": fan_out_charts, "pipeline": thread_charts, "tcp_server": connection_charts,
}


def section(key, data):
    rows = [row for row in data["published"]["rows"] if row["section"] == key]
    found = data["results"]
    chosen = section_results(rows, found)
    pictures = PICTURES.get(key, lambda _: [])(found)
    ratios = [(result["row"], sentences.closest(result)) for result in chosen if result["ratios"]]
    if ratios:
        pictures.append(charts.intervals(f"ratios-{key}", f"{published.SECTIONS[key]}: beside the closest rival", ratios))
    return (f'<section id="{key}"><h2>{escape(published.SECTIONS[key])}</h2><p>{escape(sentences.standing(chosen))}</p>'
            + "".join(pictures)
            + table(HEAD, section_rows(rows, data["published"]["reports"], found), published.SECTIONS[key]) + "</section>")


def versions_section(data):
    """This report beside an earlier one of the same machine, where there is one."""
    if data.get("baseline") is None:
        return ""
    lines = []
    for entry in data["versions"]:
        before, now = entry["before"], entry["now"]
        lines.append([cell(escape(entry["row"])), cell(shown(before, before["ours"]), "n"), cell(shown(now, now["ours"]), "n"),
                      cell(f'<span class="{entry["verdict"]}">{sentences.interval(entry["change"])}</span>', "n"),
                      cell(f"{entry['noise']:.0%}", "n")])
    moved = [entry for entry in data["versions"] if not entry["change"][1] <= 1 <= entry["change"][2]]
    moved = sorted(moved, key=lambda entry: -abs(math.log(entry["change"][0])))[:CHANGES_SHOWN]
    picture = charts.intervals("versions", "Version against version: what moved most",
                               [(entry["row"], entry["change"]) for entry in moved],
                               "times faster than before; the line marks no difference") if moved else ""
    return (f'<section id="versions"><h2>Version against version</h2><p>{escape(sentences.versions(data))}</p>' + picture
            + table(("row", "before", "now", "times faster", "rivals moved by"), lines, "Version against version")
            + "</section>")


def machine_card(data):
    lines = [[f'<th scope="row">{escape(key)}</th>', cell(escape(value))]
             for key, value in data["machine"].items() if key != "controls"]
    for when, row in zip(("before", "after"), data["machine"].get("controls", [])):
        text = ", ".join(f"{key} {value:.3g}" for key, value in row.items())
        lines.append([f'<th scope="row">controls {when}</th>', cell(escape(text))])
    return table(("", "this machine"), lines, "System information")


def summary(data):
    found = data["results"]
    said = [sentences.coverage(data["published"]["rows"], found), sentences.bars(found),
            sentences.standing(found), sentences.placements(found), sentences.disturbed(found),
            sentences.controls(data["machine"]), sentences.left_out(data)]
    return "".join(f"<li>{escape(text)}</li>" for text in said if text)


def by_reason(data):
    """{why: the rows that were left out}."""
    found = {}
    for entry in data.get("left_out", []):
        found.setdefault(entry["why"], []).append(entry["row"])
    return found


READING = """<p>A ratio above 1 means that Weft is better. It is the median over rounds in which the contenders took turns,
with the 95 % bootstrap interval in brackets; green and red are given only where that interval leaves 1 out. The published
figures were measured on other machines, so no ratio is made of them. Of the limit: how many times longer Weft takes than
the same bytes without a library. Under a row whose published benchmark measures something else than it says stands one
that measures what it says.</p>"""


def page(data):
    """The whole page of a data set: {published, results, failures, machine, effort, partial, left_out; baseline and
    versions, or neither}."""
    names = {"system": "System information", **published.SECTIONS, **({"versions": "Versions"} if data.get("baseline") else {}),
             "not-measured": "Not measured"}
    links = "".join(f'<li><a href="#{key}">{escape(name)}</a></li>' for key, name in names.items())
    partial = '<p class="partial">This report is partial: the run was ended before all rows were measured.</p>' if data["partial"] else ""
    failures = "".join(f"<li>{escape(failure['row'])} ({escape(failure['suite'])}): {escape(failure['why'])}</li>"
                       for failure in data["failures"]) or "<li>Nothing failed.</li>"
    left_out = "".join(f"<li>{escape(why)}: {escape(', '.join(names))}</li>" for why, names in by_reason(data).items())
    left_out = f"<h3>Left out</h3><ul>{left_out}</ul>" if left_out else ""
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>Weft: measured</title><style>{STYLE}</style></head><body>"
            f'<a class="skip" href="#system">Skip to the results</a><header><h1>Weft: measured on this machine</h1>{partial}'
            f"<ul>{summary(data)}</ul>{READING}</header><nav aria-label=\"Sections\"><ul>{links}</ul></nav><main>"
            f'<section id="system"><h2>System information</h2>{machine_card(data)}</section>'
            + "".join(section(key, data) for key in published.SECTIONS) + versions_section(data)
            + f'<section id="not-measured"><h2>Not measured</h2><ul>{failures}</ul>{left_out}</section></main></body></html>')
