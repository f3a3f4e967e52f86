# SPDX-License-Identifier: MIT
"""dashboard_test.py METRICS_SIDE: docs/grafana/weft.json asks only for metrics and labels that Weft has.

METRICS_SIDE --tables prints every row of the tables of counters.
"""
import json
import pathlib
import re
import subprocess
import sys

from checks import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)(?:\{(\w+)=\"([^\"]*)\"\})?` \| (counter|gauge|histogram) \|(?:[^|]*\|){2} `([\w, ]+)` \|", re.M)
SELECTOR = re.compile(r"\b(weft_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~?|!=|!~)"([^"]*)"')
PARTS = ("_bucket", "_sum", "_count")  # of a histogram
# Labels that name an object, or that Prometheus adds.
NAMING = {"instance", "le", "server", "core", "runtime", "poller", "endpoint", "tls", "service", "handler", "dispatcher",
          "web", "method", "executor", "socket", "client"}


def metrics_of(tables):
    """Each metric with its labels and their values; a histogram is there with its three parts."""
    metrics = {}
    for name, label, value, kind, labels in ROW.findall(tables):
        for part in PARTS if kind == "histogram" else ("",):
            known = metrics.setdefault(name + part, {})
            if label:
                known.setdefault(label, set()).add(value)
            if kind == "histogram":
                known.update({each: set() for each in labels.split(", ")})
    return metrics


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"], ""


def check_expression(title, expr, legend, metrics):
    names = SELECTOR.findall(expr)
    check(f"{title}: names a metric", True, bool(names))
    known = {}
    for name, matchers in names:
        check(f"{title}: {name} exists", True, name in metrics)
        known.update(metrics[name])
        for label, operator, value in MATCHER.findall(matchers):
            values = metrics[name].get(label)
            check(f"{title}: {name} has the label {label}", True, label in NAMING or values is not None)
            for each in value.split("|") if values else []:
                check(f"{title}: {name} has {label}={each}", True, each in values)
    grouped = [label.strip() for group in re.findall(r"by \(([^)]*)\)", expr) for label in group.split(",")]
    for label in grouped + re.findall(r"\{\{(\w+)\}\}", legend):
        check(f"{title}: the label {label}", True, label in NAMING or label in known)


def check_places(panels):
    check("ids", len(panels), len({panel["id"] for panel in panels}))
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        check(f"{panel['title']}: is within 24 columns", True, at["x"] + at["w"] <= 24)
        check(f"{panel['title']}: covers no other panel", set(), taken & cells)
        taken |= cells


def main():
    tables = subprocess.run([sys.argv[1], "--tables"], capture_output=True, text=True, check=True).stdout
    metrics = metrics_of(tables)
    check("rows of the tables", tables.count("](../weft/"), len(ROW.findall(tables)))
    dashboard = json.loads((ROOT / "docs/grafana/weft.json").read_text())
    asked = list(expressions(dashboard))
    check("expressions", True, len(asked) > 20)
    for title, expr, legend in asked:
        check_expression(title, expr, legend, metrics)
    histograms = {name.removesuffix("_bucket") for name in metrics if name.endswith("_bucket")}
    shown = {name for _, expr, _ in asked for name, _ in SELECTOR.findall(expr)}
    check("histograms without a panel", set(), {name for name in histograms if name + "_bucket" not in shown})
    check_places(dashboard["panels"])


if __name__ == "__main__":
    main()
