# SPDX-License-Identifier: MIT
"""Every sentence with a number, from the results alone."""

from weft_bench import printer, results, stats
from weft_bench.pages import published
from weft_bench.printer import count, share
from weft_bench.results import closest

DISTURBED = 0.05  # the share of the busy time that makes a row a disturbed one


def standing(chosen):
    """How the rows of a section stand against the rival that came closest, in one or two sentences.

    >>> standing([{"row": "a", "ratios": {"x": [2, 1.9, 2.1]}}, {"row": "b", "ratios": {"x": [1, 0.9, 1.1]}}])
    'Of 2 rows with a rival, Weft is faster than its closest one in 1, not distinguishable in 1, slower in 0. The widest lead is 2.00x [1.90, 2.10] (a, beside x), the narrowest 1.00x [0.90, 1.10] (b, beside x).'
    >>> standing([])
    'No row of this section was measured beside a rival.'
    """
    chosen = [result for result in chosen if result["ratios"]]
    if not chosen:
        return "No row of this section was measured beside a rival."
    said = [stats.verdict(closest(result)) for result in chosen]
    text = (f"Of {count(len(chosen), 'row')} with a rival, Weft is faster than its closest one in {said.count('faster')}, "
            f"not distinguishable in {said.count('same')}, slower in {said.count('slower')}.")
    ordered = sorted(chosen, key=lambda result: closest(result)[0])
    if len(ordered) > 1:
        def place(result):
            return f"{printer.interval(closest(result), 'x')} ({result['row']}, beside {results.rival_of(result)})"
        text += f" The widest lead is {place(ordered[-1])}, the narrowest {place(ordered[0])}."
    return text


def bars(all_results):
    """
    >>> bars([{"bars": [{"text": "", "met": True}, {"text": "", "met": False}]}, {"bars": []}])
    '1 of 2 bars were met.'
    """
    met = [bar["met"] for result in all_results for bar in result["bars"]]
    return f"{sum(met)} of {count(len(met), 'bar')} were met." if met else "No row with a bar was measured."


def disturbed(all_results):
    """What others took of the machine while cells were measured."""
    shares = [result["foreign"] for result in all_results if "foreign" in result]
    over = sum(taken > DISTURBED for taken in shares)
    if not shares:
        return ""
    return (f"Other programs took more than {share(DISTURBED)} of the busy time in {over} of {count(len(shares), 'row')} "
            f"where that was counted; the most was {share(max(shares))}.")


def controls(machine):
    """How the control rows moved between the first and the last measurement.

    >>> controls({"controls": [{"getppid_ns": 100.0}, {"getppid_ns": 110.0}]})
    'Between the first and the last measurement the control rows moved by at most 10% (getppid_ns).'
    """
    rows = machine.get("controls", [])
    if len(rows) < 2:
        return "The control rows were not measured twice."
    moved = {key: abs(rows[-1][key] / rows[0][key] - 1) for key in rows[0] if rows[0][key] and rows[-1].get(key)}
    key = max(moved, key=moved.get)
    return f"Between the first and the last measurement the control rows moved by at most {share(moved[key])} ({key})."


def placements(all_results):
    """
    >>> placements([{"placement": "near"}, {"placement": "far"}, {"placement": "mixed"}, {"placement": ""}])
    'Of 3 rows with two sides, 1 ran on near cores, 1 on far ones, and 1 on cores that moved in between.'
    """
    kinds = [result["placement"] for result in all_results if result["placement"]]
    return (f"Of {count(len(kinds), 'row')} with two sides, {kinds.count('near')} ran on near cores, {kinds.count('far')} "
            f"on far ones, and {kinds.count('mixed')} on cores that moved in between.")


def coverage(rows, all_results):
    """How many of the published rows have a result."""
    found = sum(all(results.best(all_results, row["suite"], name) for name in published.measured_rows(row)) for row in rows)
    return f"{found} of {count(len(rows), 'published row')} have a figure of this machine beside them."


def left_out(data):
    """
    >>> left_out({"left_out": [{"row": "x"}], "effort": "quick"}), left_out({"effort": "full"})
    ('This is a quick report: 1 row was left out, see the end.', '')
    """
    rows = data.get("left_out", [])
    were = "was" if len(rows) == 1 else "were"
    return f"This is a {data['effort']} report: {count(len(rows), 'row')} {were} left out, see the end." if rows else ""


def versions(data):
    """What became faster and slower since the baseline.

    >>> versions({"baseline": {"machine": {"commit": "abc"}}, "machine": {"commit": "def"}, "versions": [
    ...     {"row": "x", "verdict": "slower"}, {"row": "y", "verdict": "same"}]})[:86]
    'Of 2 rows of abc and def, 0 are faster now, 1 slower (x), and 1 moved by no more than '
    """
    said = [entry["verdict"] for entry in data["versions"]]
    slower = ", ".join(entry["row"] for entry in data["versions"] if entry["verdict"] == "slower")
    slower = f" ({slower})" if slower else ""
    return (f"Of {count(len(said), 'row')} of {data['baseline']['machine'].get('commit')} and {data['machine'].get('commit')}, "
            f"{said.count('faster')} are faster now, {said.count('slower')} slower{slower}, and {said.count('same')} moved by "
            "no more than is worth a word: the interval holds 1, or it is less than 5% (10% of a latency), or than one of the "
            "row's rivals moved in the meantime. The two reports are of different times; ./dev bench gate compares two "
            "versions in turns.")
