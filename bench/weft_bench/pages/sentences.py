# SPDX-License-Identifier: MIT
"""Every sentence with a number, from the results alone."""

from weft_bench import printer, results, stats
from weft_bench.pages import published
from weft_bench.pages.words import ENGLISH
from weft_bench.printer import share
from weft_bench.results import closest

DISTURBED = 0.05  # the share of the busy time that makes a row a disturbed one


def standing(chosen, t=ENGLISH):
    """How the rows of a section stand against the rival that came closest, in one or two sentences.

    >>> standing([{"row": "a", "ratios": {"x": [2, 1.9, 2.1]}}, {"row": "b", "ratios": {"x": [1, 0.9, 1.1]}}])
    'Of 2 rows with a rival, Weft is faster than its closest one in 1, not distinguishable in 1, slower in 0. The widest lead is 2.00x [1.90, 2.10] (a, beside x), the narrowest 1.00x [0.90, 1.10] (b, beside x).'
    >>> standing([{"row": "a", "ratios": {"x": [2, None, None]}}])
    'Of 1 row with a rival, Weft is faster than its closest one in 0, not distinguishable in 0, slower in 0, unknown in 1, which had too few processes.'
    >>> standing([])
    'No row of this section was measured beside a rival.'
    >>> standing([{"row": "a", "ratios": {"x": [2, 1.9, 2.1]}, "void": "it moved"}])
    'No row of this section was measured beside a rival.'
    """
    chosen = [result for result in chosen if result["ratios"] and "void" not in result]
    if not chosen:
        return t("No row of this section was measured beside a rival.")
    said = [stats.verdict(closest(result)) for result in chosen]
    text = ("Of {rows} with a rival, Weft is faster than its closest one in {faster}, not distinguishable in {same}, slower in "
            "{slower}, unknown in {unknown}, which had too few processes." if "unknown" in said else
            "Of {rows} with a rival, Weft is faster than its closest one in {faster}, not distinguishable in {same}, slower in {slower}.")
    text = t(text, rows=t.count(len(chosen), "row"), **{name: said.count(name) for name in ("faster", "same", "slower", "unknown")})
    ordered = sorted(chosen, key=lambda result: closest(result)[0])
    if len(ordered) > 1:
        def place(result):
            return t("{ratio} ({row}, beside {rival})", ratio=printer.interval(closest(result), "x"), row=result["row"],
                     rival=results.rival_of(result))
        text += " " + t("The widest lead is {widest}, the narrowest {narrowest}.", widest=place(ordered[-1]),
                        narrowest=place(ordered[0]))
    return text


def by_load(all_results, t=ENGLISH):
    """How the rows stand, those of the busy machine apart.

    >>> by_load([{"row": "a", "suite": "sockets", "ratios": {}}, {"row": "b", "suite": "sockets_at_load", "ratios": {"x": [2, 1.9, 2.1]}}])[1]
    'On a busy machine, beside a loop that computes for each processor: Of 1 row with a rival, Weft is faster than its closest one in 1, not distinguishable in 0, slower in 0.'
    """
    busy = [result for result in all_results if result["suite"].endswith(results.AT_LOAD)]
    said = standing([result for result in all_results if result not in busy], t)
    if not busy:
        return [said]
    return [t("On a machine with nothing else to do: {standing}", standing=said),
            t("On a busy machine, beside a loop that computes for each processor: {standing}", standing=standing(busy, t))]


def bars(all_results, t=ENGLISH):
    """
    >>> bars([{"bars": [{"text": "", "met": True}, {"text": "", "met": False}]}, {"bars": []}])
    '1 of 2 bars were met.'
    >>> bars([{"bars": [{"text": "", "met": True}, {"text": "", "met": None}]}])
    '1 of 2 bars were met, 1 is unknown.'
    """
    met = [bar["met"] for result in all_results for bar in result["bars"]]
    if not met:
        return t("No row with a bar was measured.")
    unknown = met.count(None)
    text = ("{met} of {bars} were met." if not unknown else "{met} of {bars} were met, 1 is unknown." if unknown == 1 else
            "{met} of {bars} were met, {unknown} are unknown.")
    return t(text, met=met.count(True), bars=t.count(len(met), "bar"), unknown=unknown)


def disturbed(all_results, t=ENGLISH):
    """What others took of the machine while cells were measured."""
    shares = [result["foreign"] for result in all_results if "foreign" in result]
    if not shares:
        return ""
    return t("Other programs took more than {limit} of the busy time in {over} of {rows} where that was counted; the most was "
             "{most}.", limit=share(DISTURBED), over=sum(taken > DISTURBED for taken in shares),
             rows=t.count(len(shares), "row"), most=share(max(shares)))


def controls(machine, t=ENGLISH):
    """How the control rows moved between the first and the last measurement.

    >>> controls({"controls": [{"getppid_ns": 100.0}, {"getppid_ns": 110.0}]})
    'Between the first and the last measurement the control rows moved by at most 10% (getppid_ns).'
    """
    rows = machine.get("controls", [])
    if len(rows) < 2:
        return t("The control rows were not measured twice.")
    moved = {key: abs(rows[-1][key] / rows[0][key] - 1) for key in rows[0] if rows[0][key] and rows[-1].get(key)}
    key = max(moved, key=moved.get)
    return t("Between the first and the last measurement the control rows moved by at most {moved} ({control}).",
             moved=share(moved[key]), control=key)


def void(all_results, t=ENGLISH):
    """How many rows are void, and why the first of them is.

    >>> void([{"row": "a", "void": "it moved"}, {}]), void([{}])
    ('1 row is void, and its bars are neither met nor missed: a: it moved. Measure again where nothing else runs.', '')
    """
    found = [f"{result['row']}: {result['void']}" for result in all_results if "void" in result]
    if not found:
        return ""
    text = ("1 row is void, and its bars are neither met nor missed: {why}. Measure again where nothing else runs." if len(found) == 1
            else "{rows} are void, and their bars are neither met nor missed: {why}. Measure again where nothing else runs.")
    return t(text, rows=t.count(len(found), "row"), why=found[0])


def placements(all_results, t=ENGLISH):
    """
    >>> placements([{"placement": "near"}, {"placement": "far"}, {"placement": "mixed"}, {"placement": ""}])
    'Of 3 rows with two sides, 1 ran on near cores, 1 on far ones, and 1 on cores that moved in between.'
    """
    kinds = [result["placement"] for result in all_results if result["placement"]]
    return t("Of {rows} with two sides, {near} ran on near cores, {far} on far ones, and {mixed} on cores that moved in between.",
             rows=t.count(len(kinds), "row"), **{kind: kinds.count(kind) for kind in ("near", "far", "mixed")})


def coverage(rows, all_results, t=ENGLISH):
    """How many of the published rows have a result."""
    found = sum(all(results.best(all_results, row["suite"], name) for name in published.measured_rows(row)) for row in rows)
    return t("{found} of {rows} have a figure of this machine beside them.", found=found, rows=t.count(len(rows), "published row"))


def left_out(data, t=ENGLISH):
    """
    >>> left_out({"left_out": [{"row": "x"}], "effort": "quick"}), left_out({"effort": "full"})
    ('This is a quick report: 1 row was left out, see the end.', '')
    """
    rows = data.get("left_out", [])
    if not rows:
        return ""
    text = ("This is a {effort} report: 1 row was left out, see the end." if len(rows) == 1 else
            "This is a {effort} report: {rows} were left out, see the end.")
    return t(text, effort=t(data["effort"]), rows=t.count(len(rows), "row"))


def versions(data, t=ENGLISH):
    """What became faster and slower since the baseline.

    >>> versions({"baseline": {"machine": {"commit": "abc"}}, "machine": {"commit": "def"}, "versions": [
    ...     {"row": "x", "verdict": "slower"}, {"row": "y", "verdict": "same"}]})[:86]
    'Of 2 rows of abc and def, 0 are faster now, 1 slower (x), and 1 moved by no more than '
    """
    said = [entry["verdict"] for entry in data["versions"]]
    slower = ", ".join(entry["row"] for entry in data["versions"] if entry["verdict"] == "slower")
    return t("Of {rows} of {before} and {now}, {faster} are faster now, {slower} slower{names}, and {same} moved by no more than "
             "is worth a word: the interval holds 1, or it is less than 5% (10% of a latency), or than one of the row's rivals "
             "moved in the meantime. The two reports are of different times; ./dev bench gate compares two versions in turns.",
             rows=t.count(len(said), "row"), before=data["baseline"]["machine"].get("commit"), now=data["machine"].get("commit"),
             names=f" ({slower})" if slower else "", **{name: said.count(name) for name in ("faster", "slower", "same")})
