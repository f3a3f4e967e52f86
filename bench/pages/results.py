# SPDX-License-Identifier: MIT
"""The records of every suite as one list of results of one shape; docs/report.schema.json says which.

A result: suite, row, placement, rounds, unit (of its columns: less is better), ours (the name of our column), columns
{name: value}, samples {name: [value of each round]}, ratios {rival: [middle, low, high]}, limit [..] or absent,
tails {column: {p50, p99, p999, max}} in seconds or absent, trips {column: [[ns, count], ...]} or absent,
bars [{text, met}], foreign (share of the machine's time that others took) or absent."""

import json

from harness import cells, server_summary, summary

SCHEMA = 2
LIMITS = ("floor", "std_function")  # contenders of micro that leave out what the part is for: what it could be at best
MEMBERS = {"suite", "row", "placement", "rounds", "unit", "ours", "columns", "samples", "ratios", "bars"}


class RecordError(Exception):
    """A file that is not what a suite writes, or not whole."""


def refusal(data):
    """Why a value that was read is not what results.json holds in this version, or None.

    >>> refusal([]), refusal({"schema": 0}), refusal({"schema": SCHEMA, "results": []})
    ('it is no object', 'it was made by another version (its schema is 0, here it is 2)', 'it has no machine, failures')
    >>> refusal({"schema": SCHEMA, "results": [{}], "machine": {}, "failures": []})
    'result 0 is not whole'
    """
    if not isinstance(data, dict):
        return "it is no object"
    if data.get("schema") != SCHEMA:
        return f"it was made by another version (its schema is {data.get('schema')!r}, here it is {SCHEMA})"
    wanted = {"machine": dict, "results": list, "failures": list}
    absent = [name for name, kind in wanted.items() if not isinstance(data.get(name), kind)]
    if absent:
        return f"it has no {', '.join(absent)}"
    for number, result in enumerate(data["results"]):
        if not isinstance(result, dict) or not MEMBERS <= set(result):
            return f"result {number} is not whole"
    return None


def read_records(path):
    """The records of a file of one JSON object per line.

    A file that ends inside a line, as that of a killed run does, or that holds anything else, is a RecordError that
    names the line."""
    records = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise RecordError(f"{path}, line {number} is not whole: {error}") from error
        if not isinstance(record, dict):
            raise RecordError(f"{path}, line {number} is no record")
        records.append(record)
    return records


def from_micro(records):
    """
    >>> record = {"row": {"row": "r", "contenders": ["weft", "x"]}, "results": [
    ...     {"row": "r", "threads": 1, "placement": "mixed", "rounds": 5, "ns": {"weft": 2.0, "x": 6.0}, "samples": {}, "rivals":
    ...      {"x": {"ratio": [3.0, 2.9, 3.1], "bar": 2.0, "met": True, "verdict": "faster"}}}]}
    >>> result = from_micro([record])[0][0]
    >>> result["ratios"], result["bars"]
    ({'x': [3.0, 2.9, 3.1]}, [{'text': '>= 2x x', 'met': True}])
    >>> rivals = record["results"][0]["rivals"]
    >>> rivals |= {name: {"ratio": [0.5, 0.4, 0.8], "bar": None} for name in ("floor", "weft_other")}
    >>> result = from_micro([record])[0][0]
    >>> list(result["ratios"]), result["limit"]
    (['x'], [2.0, 1.25, 2.5])
    """
    results, failures = [], []
    for record in records:
        for entry in record["results"]:
            if "failure" in entry:
                failures.append({"suite": "micro", "row": entry["row"], "why": str(entry["failure"])})
                continue
            ours = next(iter(entry["ns"]))
            # Another form of ours is no rival, unless that is what the row is about.
            rivals = {name: rival for name, rival in entry["rivals"].items()
                      if not name.startswith(ours) or rival["bar"] is not None}
            floor = next((rivals.pop(name)["ratio"] for name in LIMITS if name in rivals), None)
            limit = {} if floor is None else {"limit": [1 / floor[0], 1 / floor[2], 1 / floor[1]]}
            results.append({
                "suite": "micro", "row": entry["row"], "placement": entry["placement"] if entry["threads"] > 1 else "",
                "rounds": entry["rounds"], "unit": "ns", "ours": ours, "columns": entry["ns"],
                "samples": entry["samples"],
                "ratios": {name: rival["ratio"] for name, rival in rivals.items()},
                "bars": [{"text": f">= {rival['bar']:g}x {name}", "met": rival["met"]}
                         for name, rival in rivals.items() if rival["bar"] is not None]} | limit)
    return results, failures


def trips_of(records, cell):
    """The histograms of a cell's round trips, all rounds together: {column: [[ns, count], ...]}."""
    merged = {}
    for record in records:
        if record["kind"] == "run" and record["cell"] == cell and "trips" in record:
            counts = merged.setdefault(record["column"], {})
            for low, count in record["trips"]:
                counts[low] = counts.get(low, 0) + count
    return {column: sorted([low, count] for low, count in counts.items()) for column, counts in merged.items()}


def from_sockets(records):
    results, failures = [], []
    for row in summary.summarise(records, all_placements=True):
        if "failure" in row:
            failures.append({"suite": "sockets", "row": row["cell"], "why": row["failure"]})
            continue
        unit = "B" if row["pattern"] == "idle_memory" else "s"
        result = {"suite": "sockets", "row": row["cell"], "placement": row["placement"], "rounds": row["rounds"],
                  "unit": unit, "ours": row["ours"], "foreign": row["foreign"],
                  "columns": {name: column["cost"] for name, column in row["columns"].items()},
                  "samples": {name: column["costs"] for name, column in row["columns"].items()},
                  "ratios": {"libzmq": list(row["speed"])} if row["speed"] else {},
                  "bars": [{"text": f"{measure} {bar}", "met": met} for measure, bar, _, met in row["bars"]]}
        if row.get("limit"):
            result["limit"] = list(row["limit"])
        if row["pattern"] in cells.TRIPS:
            result["tails"] = {name: {"p50": column["cost"], **{key: column[key] for key in ("p99", "p999", "max")}}
                               for name, column in row["columns"].items()}
            result["trips"] = trips_of(records, row["cell"])
        results.append(result)
    return results, failures


def from_server(records):
    results, failures = [], []
    for row in server_summary.summarise(records, all_placements=True):
        why = row.get("failure") or row.get("skip")
        if why:
            failures.append({"suite": "server", "row": row["cell"], "why": why})
            continue
        columns = row["columns"]
        ours = next(name for name in ("weft", "raw again", "raw") if name in columns)
        key = "p50" if row["load"] else "cost"
        result = {"suite": "server", "row": row["cell"], "placement": row["placement"], "rounds": row["rounds"],
                  "unit": "B" if row["pattern"] == "idle" else "s", "ours": ours, "foreign": row["foreign"],
                  "columns": {name: column[key] for name, column in columns.items()},
                  "samples": {name: column[f"{key}s"] for name, column in columns.items()}, "ratios": {},
                  "bars": [{"text": f"{measure} {bar}", "met": met} for measure, bar, _, met in row["bars"]]}
        if row.get("asio"):
            result["ratios"]["asio"] = list(row["asio"])
        if row.get("raw"):  # more is better there; here it is how many times longer ours takes
            middle, low, high = row["raw"]
            result["limit"] = [1 / middle, 1 / high, 1 / low]
        tails = {name: {key: column[key] for key in ("p50", "p99", "p999", "max")} for name, column in columns.items()
                 if "p99" in column}
        if tails:
            result["tails"] = tails
        results.append(result)
    return results, failures


READERS = {"micro": from_micro, "sockets": from_sockets, "server": from_server}


def collect(files):
    """(results, failures) of {suite: file}. A suite that cannot be read is one failure; the others count."""
    results, failures = [], []
    for suite, path in files.items():
        try:
            got, failed = READERS[suite](read_records(path))
        except (RecordError, KeyError, TypeError, ValueError) as error:
            got, failed = [], [{"suite": suite, "row": "*", "why": f"{path.name}: {error}"}]
        results += got
        failures += failed
    return results, failures


def best(results, suite, name):
    """The result of a row that counts: of several placements, that with the most rounds. None: it was not measured."""
    found = [result for result in results if result["suite"] == suite and result["row"] == name]
    return max(found, key=lambda result: result["rounds"], default=None)


def rival_of(result):
    """The rival that came closest, or None.

    >>> rival_of({"ratios": {"a": [4, 3, 5], "b": [2, 1, 3]}}), rival_of({"ratios": {}})
    ('b', None)
    """
    return min(result["ratios"], key=lambda name: result["ratios"][name][0], default=None)


def verdict(ratio):
    """
    >>> verdict([2, 1.5, 3]), verdict([1, 0.9, 1.1]), verdict([0.5, 0.4, 0.6])
    ('faster', 'same', 'slower')
    """
    return "faster" if ratio[1] > 1 else "slower" if ratio[2] < 1 else "same"
