# SPDX-License-Identifier: MIT
"""Which pictures a section of the page has, from the results alone."""

from weft_bench.pages import charts
from weft_bench.pages.words import ENGLISH
from weft_bench.results import best, closest
from weft_bench.stats import verdict

SIZES = (("64", "64 B"), ("1024", "1 KB"), ("8192", "8 KB"), ("65536", "64 KB"))
TRANSPORTS = ("tcp", "ipc", "inproc")


# A line of a chart: its name, and the column that it shows.
BESIDE_LIBZMQ = (("Weft", "weft"), ("libzmq", "libzmq"))


def per_second(result, column):
    cost = result["columns"].get(column)
    return cost and (1e9 if result["unit"] == "ns" else 1) / cost


def p99_us(result, column):
    return result["tails"][column]["p99"] * 1e6 if column in result.get("tails", {}) else None


def over(all_results, suite, rows, names=None, value=per_second, ending=""):
    """[(name, [(label, value)])] of the rows [(label, row)], where a line has two points. Without `names` the lines are
    all columns, by their own names."""
    series = {}
    for label, row in rows:
        result = best(all_results, suite, row)
        for name, column in (names or [(column, column) for column in result["columns"]]) if result else ():
            if value(result, column) is not None:
                series.setdefault(name + ending, []).append((label, value(result, column)))
    return [(name, points) for name, points in series.items() if len(points) > 1]


def chart(identity, title, series, x_title, unit):
    return [charts.lines(identity, title, series, x_title, unit)] if series else []


def beside_raw(t):
    return BESIDE_LIBZMQ + ((t("raw limit"), "raw"),)


def throughput(pattern, title):
    def pictures(found, t):
        return [picture for transport in TRANSPORTS for picture in chart(
            f"{pattern}-{transport}", t("{pattern} over {transport}", pattern=title, transport=transport),
            over(found, "sockets", [(label, f"{pattern}/{transport}/{size}") for size, label in SIZES], beside_raw(t)),
            t("message size"), t("messages/s"))]
    return pictures


def round_trips(found, t):
    """The percentiles, and p99 over load: where the knee is."""
    pictures, loads = [], []
    for transport in TRANSPORTS:
        result = best(found, "sockets", f"round_trip/{transport}/64")
        trips = result.get("trips", {}) if result else {}
        if trips:
            series = [(name, trips[column]) for name, column in beside_raw(t) if column in trips]
            pictures.append(charts.percentiles(f"tail-{transport}", t("Round trip of 64 B over {transport}", transport=transport),
                                               series, t("share of round trips that took no longer")))
        rows = [(f"{load} %", f"round_trip/{transport}/64/load{load}") for load in (10, 50, 80)]
        loads += over(found, "sockets", rows, BESIDE_LIBZMQ, p99_us, f" {transport}")
    return pictures + chart("load", t("99th percentile over load"), loads, t("share of the highest rate"), "us")


def fan_out(found, t):
    return [picture for transport in ("tcp", "inproc") for picture in chart(
        f"fan-{transport}", t("Fan-out over {transport}: deliveries", transport=transport),
        over(found, "sockets", [(str(n), f"pub_sub/{transport}/64/x{n}") for n in (1, 2, 4, 8, 32)], BESIDE_LIBZMQ),
        t("subscribers"), t("deliveries/s"))]


def threads(found, t):
    rows = [(str(n), f"PerCore_Stateful/{n}/cross_0 (honest)") for n in (1, 2, 3, 4, 8, 16)]
    return chart("architectures", t("Threads that share nothing, and a shared queue"), over(found, "micro", rows),
                 t("threads"), t("messages/s"))


def connections(found, t):
    pictures = []
    for depth, title in (("", "Echo of 64 B, one request under way"), ("/depth16", "Echo of 64 B, 16 requests under way")):
        rows = [(str(n), f"echo/64/x{n}{depth}") for n in (1, 16, 128, 1000, 10000)]
        pictures += chart(f"echo{depth.replace('/', '-')}", t(title), over(found, "server", rows), t("connections"),
                          t("messages/s"))
    return pictures


SECTIONS = {"router": throughput("router_router", "ROUTER to ROUTER"), "pub_sub": throughput("pub_sub", "PUB to SUB"),
            "libzmq": throughput("push_pull", "PUSH to PULL"), "round_trip": round_trips, "fan_out": fan_out,
            "pipeline": threads, "tcp_server": connections}


MEANING = "times better than the rival; the line marks no difference"


def of_section(key, title, all_results, chosen, t=ENGLISH):
    """The pictures of a section, and how its rows stand beside the closest rival of each."""
    pictures = SECTIONS.get(key, lambda *_: [])(all_results, t)
    ratios = [(result["row"], closest(result)) for result in chosen if result["ratios"]]
    if ratios:
        pictures.append(charts.intervals(f"ratios-{key}", t("{section}: beside the closest rival", section=title), ratios, t(MEANING)))
    return pictures


def of_all(suites, all_results, t=ENGLISH):
    """Every row that has a rival and is not void, in one picture; "" where there is none. suites: {name: title}."""
    groups = []
    for suite, title in suites.items():
        rows = [(result["row"], closest(result)) for result in all_results
                if result["suite"] == suite and result["ratios"] and "void" not in result]
        said = [verdict(ratio) for _, ratio in rows]
        note = t("faster {faster}, the same {same}, slower {slower}, unknown {unknown}",
                 **{name: said.count(name) for name in ("faster", "same", "slower", "unknown")})
        groups.append((t(title), note, rows))
    if not any(rows for *_, rows in groups):
        return ""
    return charts.overview("all", t("Every row beside its closest rival"), groups, t(MEANING))
