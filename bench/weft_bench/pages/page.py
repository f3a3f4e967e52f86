# SPDX-License-Identifier: MIT
"""The page: one file, no script, no network; light and dark, on paper too. page.html is its template."""

import math
import pathlib

import jinja2

from weft_bench import printer, results, stats
from weft_bench.pages import charts, pictures, published, sentences

CHANGES_SHOWN = 40


def twin_of(all_results, name):
    return results.best(all_results, "micro", f"{name} (honest)")


def lines_of(rows, reports, all_results):
    """The lines of a section's table: {"row" and "machine", or "also": a further name; "result"}."""
    lines = []
    for row in rows:
        first = {"row": row, "machine": reports[row["report"]]["machine"]}
        for name in published.measured_rows(row):
            result = results.best(all_results, row["suite"], name)
            lines.append({**(first or {"also": f"and {name}"}), "result": result})
            first = None
            twin = twin_of(all_results, name) if row["suite"] == "micro" else None
            if twin is not None:
                lines.append({"also": "what it says it measures", "result": twin})
    return lines


def section(key, title, data):
    rows = [row for row in data["published"]["rows"] if row["section"] == key]
    lines = lines_of(rows, data["published"]["reports"], data["results"])
    chosen = {(line["result"]["suite"], line["result"]["row"]): line["result"] for line in lines if line["result"]}
    chosen = list(chosen.values())  # each once
    return {"key": key, "title": title, "standing": sentences.standing(chosen), "lines": lines,
            "pictures": pictures.of_section(key, title, data["results"], chosen)}


def versions_picture(data):
    """What moved most since the baseline."""
    moved = [entry for entry in data["versions"] if not entry["change"][1] <= 1 <= entry["change"][2]]
    moved = sorted(moved, key=lambda entry: -abs(math.log(entry["change"][0])))[:CHANGES_SHOWN]
    return charts.intervals("versions", "Version against version: what moved most",
                            [(entry["row"], entry["change"]) for entry in moved],
                            "times faster than before; the line marks no difference") if moved else ""


def rivals(result):
    return [name for name in result["columns"] if name != result["ours"] and not name.startswith(("raw", "weft"))]


def summary(data):
    """The sentences at the top."""
    found = data["results"]
    said = [sentences.coverage(data["published"]["rows"], found), sentences.bars(found),
            sentences.standing(found), sentences.placements(found), sentences.disturbed(found),
            sentences.controls(data["machine"]), sentences.left_out(data)]
    return [text for text in said if text]


def by_reason(data):
    """{why: the rows that were left out}."""
    found = {}
    for entry in data.get("left_out", []):
        found.setdefault(entry["why"], []).append(entry["row"])
    return found


def page(data):
    """The whole page of a data set: {published, results, failures, machine, effort, partial, left_out; baseline and
    versions, or neither}."""
    baseline = data.get("baseline") is not None
    names = {"system": "System information", **published.SECTIONS, **({"versions": "Versions"} if baseline else {}),
             "not-measured": "Not measured"}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), autoescape=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html").render(
        data={"baseline": None, "left_out": [], **data}, names=names, styles=charts.STYLES, summary=summary(data),
        sections=[section(key, title, data) for key, title in published.SECTIONS.items()], left_out=by_reason(data),
        versions_picture=versions_picture(data) if baseline else "", rivals=rivals, printer=printer,
        published=published, results=results, sentences=sentences, stats=stats)
