# SPDX-License-Identifier: MIT
"""The page: one file, no script, no network; light and dark, on paper too. page.html is its template."""

import math
import pathlib

import jinja2

from weft_bench import printer, results, stats
from weft_bench.pages import charts, pictures, published, sentences
from weft_bench.pages.words import Words

CHANGES_SHOWN = 40
SUITES = {"sockets": "Sockets", "sockets_at_load": "Sockets on a busy machine", "server": "Server",
          "server_at_load": "Server on a busy machine", "micro": "Parts", "topics": "Topics"}  # in the order of the page


def twin_of(all_results, name):
    return results.best(all_results, "micro", f"{name} (honest)")


def lines_of(rows, reports, all_results):
    """The lines of a section's table: {"row" and "machine", or "also": a text, perhaps with a "name"; "result"}."""
    lines = []
    for row in rows:
        first = {"row": row, "machine": reports[row["report"]]["machine"]}
        for name in published.measured_rows(row):
            result = results.best(all_results, row["suite"], name)
            lines.append({**(first or {"also": "and {name}", "name": name}), "result": result})
            first = None
            twin = twin_of(all_results, name) if row["suite"] == "micro" else None
            if twin is not None:
                lines.append({"also": "what it says it measures", "result": twin})
    return lines


def section(key, title, data, t):
    rows = [row for row in data["published"]["rows"] if row["section"] == key]
    lines = lines_of(rows, data["published"]["reports"], data["results"])
    chosen = {(line["result"]["suite"], line["result"]["row"]): line["result"] for line in lines if line["result"]}
    chosen = list(chosen.values())  # each once
    return {"key": key, "title": title, "standing": sentences.standing(chosen, t), "lines": lines,
            "pictures": pictures.of_section(key, title, data["results"], chosen, t)}


def missed(data):
    """[(result, bar)] of every bar that is missed, those that are furthest off first.

    >>> [bar["bar"] for _, bar in missed({"results": [{"row": "r", "bars": [
    ...     {"bar": ">= 2", "value": [1.8, 1.7, 1.9], "met": False}, {"bar": "<= 1.5", "value": [3.0, 2.9, 3.1], "met": False},
    ...     {"bar": "never worse", "value": [0.7, 0.6, 0.8], "met": False}, {"bar": ">= 3", "value": [4, 3, 5], "met": True}]}]})]
    ['<= 1.5', 'never worse', '>= 2']
    """
    def share(bar):
        kind, _, bound = bar["bar"].partition(" ")
        value = max(bar["value"][0], 1e-12)
        return float(bound) / value if kind == "<=" else value / float(bound) if kind == ">=" else value
    found = [(result, bar) for result in data["results"] for bar in result["bars"] if bar["met"] is False]
    return sorted(found, key=lambda entry: share(entry[1]))


def cells_of(data):
    """[(suite, [result])]: every measured row, by suite, in the order in which they were measured."""
    found = [(suite, [result for result in data["results"] if result["suite"] == suite]) for suite in SUITES]
    return [(suite, rows) for suite, rows in found if rows]


def versions_picture(data, t):
    """What moved most since the baseline."""
    moved = [entry for entry in data["versions"] if stats.verdict(entry["change"]) in ("faster", "slower")]
    moved = sorted(moved, key=lambda entry: -abs(math.log(entry["change"][0])))[:CHANGES_SHOWN]
    return charts.intervals("versions", t("Version against version: what moved most"),
                            [(entry["row"], entry["change"]) for entry in moved],
                            t("times faster than before; the line marks no difference")) if moved else ""


def rivals(result):
    return [name for name in result["columns"] if name != result["ours"] and not name.startswith(("raw", "weft"))]


def summary(data, t):
    """The sentences at the top."""
    found = data["results"]
    said = [sentences.void(found, t), sentences.bars(found, t), *sentences.by_load(found, t),
            sentences.coverage(data["published"]["rows"], found, t), sentences.placements(found, t),
            sentences.disturbed(found, t), sentences.controls(data["machine"], t), sentences.left_out(data, t)]
    return [text for text in said if text]


def by_reason(data):
    """{why: the rows that were left out}."""
    found = {}
    for entry in data.get("left_out", []):
        found.setdefault(entry["why"], []).append(entry["row"])
    return found


def page(data, language="en", other=None):
    """The whole page of a data set in a language: {published, results, failures, machine, effort, partial, left_out; baseline
    and versions, or neither}. `other`: {language: file} of the same page in others."""
    return page_of(data, Words(language), other or {})


def page_of(data, t, other):
    data = {"baseline": None, "left_out": [], **data}
    titles = {key: t(title) for key, title in published.SECTIONS.items()}
    names = {"missed": t("Missed bars"), "overview": t("Overview"), "system": t("System information"), **titles,
             **({"versions": t("Version against version")} if data["baseline"] else {}), "cells": t("Every row"),
             "not-measured": t("Not measured")}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent), autoescape=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True)
    return environment.get_template("page.html").render(
        data=data, t=t, other=other, names=names, styles=charts.STYLES, summary=summary(data, t), missed=missed(data),
        overview=pictures.of_all(SUITES, data["results"], t), cells=cells_of(data), suites=SUITES,
        sections=[section(key, title, data, t) for key, title in titles.items()], left_out=by_reason(data),
        versions_picture=versions_picture(data, t) if data["baseline"] else "", rivals=rivals, printer=printer,
        published=published, results=results, sentences=sentences, stats=stats)
