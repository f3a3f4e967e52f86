# SPDX-License-Identifier: MIT
"""From the records of a suite to its results, all of one shape: docs/report.schema.json says which.

A result is one row in one placement of the two cores. Its `columns` hold the cost of each contender: less is better.
`ratios` are rivals over ours: above 1 Weft is better. `measures` are all intervals that a bar may be about."""

import json

from weft_bench import BENCH, printer, stats
from weft_bench.harness import cells, server_cells, topics_cells
from weft_bench.harness.cells import A_A, TRIPS
from weft_bench.stats import Pool, median

SCHEMA = 3
PLACEMENT_ROUNDS_MIN = 5  # fewer rounds than this of one placement make no row of their own
LIMITS = ("floor", "std_function")  # contenders of micro that leave out what the part is for: what it could be at best
ASIOS = ("asio", "asio_tuned", "asio_awaitable")  # forms of one rival, of which the best counts
OTHERS = ("beast", *server_cells.RIVALS, *server_cells.BUILT_RIVALS, *server_cells.CRATES)
AT_LOAD = "_at_load"  # the end of the name of a suite that is measured beside busy loops
# Members of a server's run that are there in some patterns only; each is a measure of its own.
OF_BAD_PEERS = ("exhausted_cpu", "recovery_s", "slowest_limit_s")


def rounds_of(runs, columns=None):
    """The runs of one cell as [(placement, {column: run})], one per round, in order, of all columns or of some."""
    rounds = {}
    for run in runs:
        if columns is None or run["column"] in columns:
            rounds.setdefault(run["round"], {})[run["column"]] = run
    return [(stats.placement_of(each.values()), each) for _, each in sorted(rounds.items())]


def split_by_placement(rounds, all_placements):
    """[(placement, rounds)]: near and far apart; everything as `mixed` when neither was seen often enough."""
    apart = [(name, [each for where, each in rounds if where == name]) for name in ("near", "far")]
    apart = [(name, found) for name, found in apart if len(found) >= PLACEMENT_ROUNDS_MIN]
    if not apart:
        return [("mixed", [each for _, each in rounds])]
    return apart if all_placements else [max(apart, key=lambda entry: len(entry[1]))]


def per_message(run):
    return run["cpu_seconds"] / run["messages"]


def cost_of_sockets(pattern):
    """What a run costs: seconds per message, per median round trip or per connection; bytes of an idle connection."""
    if pattern in TRIPS:
        return lambda run: run["p50_ns"] / 1e9
    if pattern == "idle_memory":
        return lambda run: max(run["memory_bytes"], 1) / run["messages"]
    if pattern == "connect_storm":
        return lambda run: run["seconds"] / run["messages"]
    return lambda run: run["seconds"] / (run["messages"] - run["receivers"])


def cost_of_server(run):
    """Seconds per message, or per connection that is ready; bytes of an idle connection.

    >>> cost_of_server({"seconds": 2.0, "messages": 100})
    0.02
    >>> cost_of_server({"seconds": 2.0, "messages": 100, "memory_bytes": 51200.0})
    512.0
    """
    return run.get("memory_bytes", run["seconds"]) / run["messages"]


def plain_result(suite, name, where, rounds, ours, columns, measure, unit):
    """A result with the costs of its columns and nothing else."""
    samples = {column: [measure(each[column]) for each in rounds] for column in columns}
    return {"suite": suite, "row": name, "placement": where, "rounds": len(rounds), "lives": len(set(stats.lives_of(rounds))),
            "unit": unit, "ours": ours,
            "columns": {column: median(values) for column, values in samples.items()}, "samples": samples,
            "ratios": {}, "measures": {}, "bars": [], "uses": {column: {} for column in columns}}


def add_tails(result, rounds):
    """The quantiles of all round trips of each column, and the histograms themselves."""
    result["tails"], result["trips"] = {}, {}
    for column in result["columns"]:
        runs = [each[column] for each in rounds]
        pool = Pool([run["trips"] for run in runs])
        result["tails"][column] = {"p50": median(run["p50_ns"] for run in runs) / 1e9,
                                   "p99": median(run["p99_ns"] for run in runs) / 1e9,
                                   "p999": pool.quantile(0.999) / 1e9, "max": max(run["max_ns"] for run in runs) / 1e9}
        result["trips"][column] = pool.merged()


def add_uses(result, rounds, counts):
    """What a message takes beside time: CPU seconds, context switches and, where they were counted, system calls."""
    for column, uses in result["uses"].items():
        runs = [each[column] for each in rounds]
        uses["cpu"] = median(map(per_message, runs))
        uses["switches"] = sum(run["switches"] for run in runs) / sum(run["messages"] for run in runs)
        for count in counts:
            if count["column"] == column:
                uses |= {key: count.get(key) for key in ("syscalls", "syscalls_by", "allocations")}


def tell_bars(result, file):
    """Adds the bars of a list, or of a file, that are about this row, and whether its measures meet them.

    A bar has one measure or several, which each must meet it. A bar above 1 also needs an interval above 1. `never worse`
    is missed when the whole interval is below 1. By an unknown interval a bar is neither met nor missed.

    >>> result = {"row": "pair/tcp/64", "measures": {"speed": [4.0, 0.9, 5.0], "limit": [1.4, 1.2, 1.6]}}
    >>> def met(*bars): tell_bars(result, bars); return [bar["met"] for bar in result["bars"]]
    >>> met({"cells": ["pair/*/64"], "measure": "speed", "least": 3})
    [False]
    >>> met({"cells": ["*"], "measure": "limit", "most": 1.5}, {"cells": ["*"], "measure": "p99", "least": 1})
    [True]
    >>> met({"cells": ["*"], "measures": ["speed", "limit", "p99"], "never_worse": True})
    [True, True]
    >>> result["measures"] = {"speed": [4.0, None, None], "limit": [1.6, None, None]}
    >>> met({"cells": ["*"], "measure": "speed", "least": 3}, {"cells": ["*"], "measure": "limit", "most": 1.5})
    [None, None]
    >>> met({"cells": ["*"], "measure": "speed", "never_worse": True})
    [None]
    """
    bars = json.loads(file.read_text(encoding="utf-8")) if hasattr(file, "read_text") else file
    result["bars"] = []
    for bar, measure in [(bar, measure) for bar in bars for measure in bar.get("measures") or [bar["measure"]]]:
        value = result["measures"].get(measure)
        if value is None or not any(cells.matches(pattern, result["row"]) for pattern in bar["cells"]):
            continue
        middle, low, high = value
        known = not stats.is_unknown(value)
        if "never_worse" in bar:
            text, met = "never worse", known and high >= 1
        elif "most" in bar:
            text, met = f"<= {bar['most']:g}", middle <= bar["most"]
        else:
            text, met = f">= {bar['least']:g}", known and middle >= bar["least"] and (low > 1 or bar["least"] <= 1)
        result["bars"].append({"measure": measure, "bar": text, "value": value, "met": met if known else None})


def of_sockets(cell, where, rounds, of_kind):
    """
    >>> def run(seconds, cpu, life): return {"seconds": seconds, "messages": 1001, "receivers": 1, "cpu_seconds": cpu,
    ...                                      "switches": 10, "life": life}
    >>> rounds = [{"weft": run(0.001, 0.001, life), "libzmq": run(0.004, 0.006, life)} for life in range(5)]
    >>> result = of_sockets({"cell": "push_pull/tcp/64", "pattern": "push_pull"}, "near", rounds, lambda _: [])
    >>> round(1 / result["columns"]["weft"]), result["ratios"], result["measures"]["cpu"][0]
    (1000000, {'libzmq': [4.0, 4.0, 4.0]}, 6.0)
    """
    name, pattern = cell["cell"], cell["pattern"]
    ours = "libzmq again" if name.endswith(A_A) else "weft"
    columns = sorted(rounds[0], key=lambda column: column != ours)
    cost = cost_of_sockets(pattern)
    result = plain_result("sockets", name, where, rounds, ours, columns, cost, "B" if pattern == "idle_memory" else "s")
    add_uses(result, rounds, of_kind("count"))
    speed = stats.ratio(rounds, cost, "libzmq", ours)
    found = {"speed": speed}
    if "interval_ns" in rounds[0][ours]:
        result["rate"] = 1e9 / rounds[0][ours]["interval_ns"]
    else:  # between two requests of a load the requester spins, whatever the library does
        found["cpu"] = stats.ratio(rounds, per_message, "libzmq", ours)
    if pattern in TRIPS:
        add_tails(result, rounds)
        found["p99"] = stats.ratio(rounds, lambda run: run["p99_ns"], "libzmq", ours)
        found["p999"] = ratio_of_tails(rounds, 0.999, "libzmq", ours)
    if "weft push_pull" in rounds[0]:
        found["own"] = stats.ratio(rounds, cost, "weft push_pull", ours)
    limit = "raw_spinning" if "raw_spinning" in rounds[0] and "/eco" not in name else "raw"
    if limit in rounds[0]:
        found["limit"] = stats.ratio(rounds, cost, ours, limit)
    if pattern == "idle_memory":
        found["bytes"] = [result["columns"][ours]] * 3
    result["measures"] = {measure: value for measure, value in found.items() if value}
    others = {name: stats.ratio(rounds, cost, name, ours) for name in (*cells.RIVALS, "nng") if name in rounds[0]}
    result["ratios"] = {name: ratio for name, ratio in {"libzmq": speed, **others}.items() if ratio}
    if found.get("limit"):
        result["limit"] = found["limit"]
    if ours == "weft":
        tell_bars(result, BENCH / "bars.json")
    return result


def ratio_of_tails(rounds, share, above, below):
    """The interval of a quantile over another, of all round trips of the drawn rounds together."""
    pools = [Pool([each[column]["trips"] for each in rounds]) for column in (above, below)]
    return stats.bootstrap(lambda drawn: pools[0].quantile(share, drawn) / pools[1].quantile(share, drawn),
                           range(len(rounds)), lives=stats.lives_of(rounds), draws=1000)


def in_order(columns):
    """Weft first: in a round that goes backwards they stand the other way round.

    >>> in_order(["asio", "raw", "weft"]), in_order(["raw", "raw again"])
    (['weft', 'raw', 'asio'], ['raw again', 'raw'])
    """
    order = [name for name, *_ in server_cells.EVERY_SERVER]
    return sorted(columns, key=lambda name: order.index(name) if name in order else -1)


def of_server(cell, where, rounds, of_kind):
    """
    >>> def run(seconds, cpu): return {"seconds": seconds, "messages": 1000, "cpu_seconds": cpu, "switches": 10}
    >>> def in_lives(columns): return [{name: {**run, "life": life} for name, run in columns.items()} for life in range(5)]
    >>> rounds = in_lives({"weft": run(0.002, 0.002), "raw": run(0.001, 0.001), "asio": run(0.008, 0.006),
    ...                    "asio_tuned": run(0.003, 0.003)})
    >>> result = of_server({"cell": "one_way/64/x1", "pattern": "one_way"}, "near", rounds, lambda _: [])
    >>> [result["measures"][measure][0] for measure in ("raw", "cpu", "asio", "rate")]
    [0.5, 2.0, 1.5, 500000.0]
    >>> [bar["met"] for bar in result["bars"]], result["limit"][0], result["ratios"]["asio"][0], rival_of(result)
    ([False], 2.0, 4.0, 'asio_tuned')
    >>> rounds = in_lives({"weft": run(0.002, 0.002), "beast": run(0.008, 0.008), "hyper": run(0.001, 0.001)})
    >>> result = of_server({"cell": "http/5/x16/depth16", "pattern": "http"}, "near", rounds, lambda _: [])
    >>> [(bar["measure"], bar["bar"], bar["met"]) for bar in result["bars"]]
    [('beast', '>= 3', True), ('beast', 'never worse', True), ('hyper', 'never worse', False)]
    >>> rounds = in_lives({"weft": run(0.004, 0.002), "weft_server": run(0.002, 0.002), "weft_echo": run(0.001, 0.001),
    ...                    "asio_tuned": run(0.003, 0.003), "grpc": run(0.04, 0.03)})
    >>> result = of_server({"cell": "rpc/64/x16/depth16", "pattern": "rpc"}, "near", rounds, lambda _: [])
    >>> [(bar["measure"], bar["bar"], bar["met"]) for bar in result["bars"]]
    [('grpc', '>= 10', True), ('echo', '>= 0.8', False), ('asio', 'never worse', True), ('grpc', 'never worse', True)]
    """
    name, pattern, columns = cell["cell"], cell["pattern"], in_order(rounds[0])
    load = next((run["interval_ns"] for run in rounds[0].values() if "interval_ns" in run), None)
    measure = (lambda run: run["p50_ns"] / 1e9) if load else cost_of_server
    ours = next(column for column in ("weft", "raw again", "raw") if column in columns)
    result = plain_result("server", name, where, rounds, ours, columns, measure, "B" if pattern == "idle" else "s")
    if load:
        result["rate"] = 1e9 / load
    add_uses(result, rounds, of_kind("count"))
    for column, uses in result["uses"].items():
        add_uses_of_server(uses, rounds, column)
        uses["reasons"] = sum_of_reasons(counts["reasons"] for counts in of_kind("counts") if counts["column"] == column)
        if column != "raw" and "raw" in columns:
            uses["beside_raw"] = stats.ratio(rounds, measure, "raw", column)
    if "trips" in rounds[0][ours]:
        add_tails(result, rounds)
    if ours == "weft":
        add_measures_of_server(result, rounds, measure)
        tell_bars(result, BENCH / "server/bars.json")
    return result


def sum_of_reasons(lives):
    """What all processes of a server counted together.

    >>> sum_of_reasons([{"idle": 2, "limit": 1}, {"idle": 3}])
    {'idle': 5, 'limit': 1}
    """
    found = {}
    for reasons in lives:
        found |= {reason: found.get(reason, 0) + count for reason, count in reasons.items()}
    return found


def add_uses_of_server(uses, rounds, column):
    runs = [each[column] for each in rounds]
    uses["cost"] = median(map(cost_of_server, runs))
    uses["busy"] = median(run["cpu_seconds"] / run["seconds"] for run in runs)
    if "alone_seconds" in runs[0]:
        uses["kept"] = stats.of_rounds(rounds, lambda each: each[column]["alone_seconds"] / each[column]["seconds"])
    if "limited" in runs[0]:
        uses["limited"] = sum(run["limited"] for run in runs) / max(sum(run["peers"] for run in runs), 1)
    for name in OF_BAD_PEERS + ("idle_cpu",):
        if name in runs[0]:
            uses[name] = max(run[name] for run in runs)


def add_measures_of_server(result, rounds, measure):
    """In `raw`, `asio`, `traced` and `kept` more is better; in `cpu` and `ready`, our cost over that of raw, less is.

    `traced` is the rate with tracing beside that without. `asio` is beside the form of Boost.Asio that came closest.
    Calls: `raw`, `cpu`, `asio` and `echo`, which is our server of frames, are beside our server with the same load."""
    pattern = result["row"].split("/")[0]
    column = "weft_server" if "weft_server" in rounds[0] else "weft"  # has the load of raw and asio
    ours = result["uses"][column]
    has_raw = "raw" in rounds[0]
    found = {"raw": ours.get("beside_raw"), "cpu": stats.ratio(rounds, per_message, column, "raw") if has_raw else None,
             "rate": stats.of_rounds(rounds, lambda each: 1 / max(cost_of_server(each["weft"]), 1e-12))}
    beside = {asio: stats.ratio(rounds, measure, asio, column) for asio in ASIOS if asio in rounds[0]}
    result["ratios"] = {asio: value for asio, value in beside.items() if value}
    if result["ratios"]:
        found["asio"] = closest(result)
    beside = {column: stats.ratio(rounds, measure, column, "weft") for column in OTHERS if column in rounds[0]}
    result["ratios"] |= {column: value for column, value in beside.items() if value}
    found |= beside
    if "weft_echo" in rounds[0]:
        found["echo"] = stats.ratio(rounds, measure, "weft_echo", column)
    if "weft_io_uring" in rounds[0]:
        found["epoll"] = stats.ratio(rounds, measure, "weft", "weft_io_uring")
    if "weft_latency" in rounds[0] and "weft_eco" in rounds[0]:
        found["latency"] = stats.ratio(rounds, measure, "weft_latency", "weft_eco")
    for column in server_cells.WEB_FORMS:  # their speed beside that without
        if column in rounds[0]:
            found[column.removeprefix("weft_")] = stats.ratio(rounds, measure, "weft", column)
    if pattern == "storm":
        found["ready"] = stats.ratio(rounds, cost_of_server, "weft", "raw")
    if pattern == "idle":
        found["bytes"] = stats.of_rounds(rounds, lambda each: cost_of_server(each["weft"]))
    if pattern in server_cells.FLOODED:
        found["kept"] = ours["kept"]
        found |= {name: [ours[name]] * 3 for name in ("limited", *OF_BAD_PEERS) if name in ours}
    result["measures"] = {name: value for name, value in found.items() if value}
    if found["raw"] and all(bound is None or bound > 0 for bound in found["raw"]):
        result["limit"] = stats.inverse(found["raw"])


def of_micro(cell, where, rounds, _):
    """Ours beside each rival, and beside what it could be at best. Another form of ours is a rival only with a bar.

    >>> cell = {"cell": "r", "threads": 1, "contenders": ["weft", "x", "floor", "weft_other"],
    ...         "bars": [{"rival": "x", "ratio": 2.0, "placement": ""}]}
    >>> costs = {"weft": 2.0, "x": 6.0, "floor": 1.0, "weft_other": 4.0}
    >>> rounds = [{name: {"ns": ns, "life": life} for name, ns in costs.items()} for life in range(5)]
    >>> result = of_micro(cell, "mixed", rounds, None)
    >>> result["columns"]["weft"], result["ratios"], result["limit"], result["placement"]
    (2.0, {'x': [3.0, 3.0, 3.0]}, [2.0, 2.0, 2.0], '')
    >>> result["bars"]
    [{'measure': 'x', 'bar': '>= 2', 'value': [3.0, 3.0, 3.0], 'met': True}]
    >>> of_micro(cell, "mixed", rounds[:2], None)["bars"]
    [{'measure': 'x', 'bar': '>= 2', 'value': [3.0, None, None], 'met': None}]
    >>> list(of_micro({**cell, "contenders": ["weft", "x"]}, "mixed", [{"weft": {"ns": 2.0}}] * 5, None)["columns"])
    ['weft']
    """
    ours, *rivals = [name for name in cell["contenders"] if name in rounds[0]]
    result = plain_result("micro", cell["cell"], where if cell["threads"] > 1 else "", rounds, ours, [ours, *rivals],
                          lambda run: max(run["ns"], 1e-9), "ns")
    result["measures"] = {name: stats.ratio(rounds, lambda run: max(run["ns"], 1e-9), name, ours) for name in rivals}
    bars = {bar["rival"]: bar["ratio"] for bar in reversed(cell["bars"])
            if bar["rival"] in rivals and bar["placement"] in ("", where)}
    result["bars"] = [{"measure": name, "bar": f">= {bars[name]:g}", "value": result["measures"][name],
                       "met": None if stats.is_unknown(result["measures"][name]) else result["measures"][name][0] >= bars[name]}
                      for name in rivals if name in bars]
    floor = next((name for name in LIMITS if name in rivals), None)
    if floor is not None:
        result["limit"] = stats.inverse(result["measures"][floor])
    result["ratios"] = {name: value for name, value in result["measures"].items()
                        if name != floor and (name in bars or not name.startswith(ours))}
    return result


def cost_of_topics(pattern):
    """Seconds per delivery, of the median round trip, or per message of one thread."""
    if pattern == "fleet_request":
        return lambda run: run["p50_ns"] / 1e9
    if pattern in ("same_handle", "filters", "kept", "python_trip", "fleet", "fleet_kept"):
        return lambda run: max(run["seconds"], 1e-9) / run["messages"]
    return cost_of_sockets(pattern)


def of_topics(cell, where, rounds, of_kind):
    """Ours beside each rival. In a measure with a rival's name more is better; in `trip`, `beside` and `cpu`, our cost
    over the rival's, less is.

    >>> def run(seconds, **more): return {"seconds": seconds, "messages": 1000, "receivers": 1, "cpu_seconds": seconds,
    ...                                   "switches": 10} | more
    >>> rounds = [{"topics": run(0.002), "async": run(0.001)}] * 5
    >>> result = of_topics({"cell": "same_handle/inproc/64", "pattern": "same_handle"}, "mixed", rounds, None)
    >>> [round(result["measures"][measure][0], 3) for measure in ("rate", "ns", "async")]
    [500000.0, 2000.0, 0.5]
    >>> rounds = [{"topics": run(0.002, filter_bytes=90.0, life=life),
    ...            "prefix_table": run(0.004, filter_bytes=80.0, life=life)} for life in range(5)]
    >>> result = of_topics({"cell": "filters/tokens/1000000", "pattern": "filters"}, "mixed", rounds, None)
    >>> result["measures"]["beside"][0], [bar["met"] for bar in result["bars"]]
    (0.5, [True, True])
    """
    name, pattern = cell["cell"], cell["pattern"]
    columns = [column for column in topics_cells.COLUMNS[pattern] if column in rounds[0]]
    cost = cost_of_topics(pattern)
    result = plain_result("topics", name, where, rounds, "topics", columns, cost, "s")
    add_uses(result, rounds, [])
    found = {column: stats.ratio(rounds, cost, column, "topics") for column in columns[1:]}
    result["ratios"] = {column: value for column, value in found.items() if value}
    found["ns"] = stats.of_rounds(rounds, lambda each: cost(each["topics"]) * 1e9)
    found["rate"] = stats.of_rounds(rounds, lambda each: 1 / cost(each["topics"]))
    if pattern in TRIPS:
        add_tails(result, rounds)
        found["trip"] = stats.ratio(rounds, cost, "topics", "sockets")
    if {"topics_aio", "asyncio_libzmq"} <= set(columns):
        found["aio"] = stats.ratio(rounds, cost, "asyncio_libzmq", "topics_aio")
    if "libnats" in columns:
        found["cpu"] = stats.ratio(rounds, per_message, "topics", "libnats")
        found["beside"] = stats.ratio(rounds, cost, "topics", "libnats")
    if "prefix_table" in columns:
        found["beside"] = stats.ratio(rounds, cost, "topics", "prefix_table")
    if "filter_bytes" in rounds[0]["topics"]:
        found["bytes"] = stats.of_rounds(rounds, lambda each: each["topics"]["filter_bytes"])
    result["measures"] = {measure: value for measure, value in found.items() if value}
    tell_bars(result, BENCH / "topics/bars.json")
    return result


def at_load(of):
    """The results of a suite beside busy loops, which are no disturbance there; of a rival Weft is never worse."""
    def result_of(*of_cell):
        result = {name: value for name, value in of(*of_cell).items() if name != "limit"}
        result["suite"] += AT_LOAD
        result["measures"] = {rival: ratio for rival, ratio in result["ratios"].items() if not rival.startswith("raw")}
        tell_bars(result, [{"cells": ["*"], "measures": list(result["measures"]), "never_worse": True}])
        return result
    return result_of


SUITES = {"micro": of_micro, "sockets": of_sockets, "server": of_server, "topics": of_topics,
          f"sockets{AT_LOAD}": at_load(of_sockets), f"server{AT_LOAD}": at_load(of_server)}


def of(suite, records, all_placements=True):
    """(results, failures). A failure is {"suite", "row", "why"}; so is a cell that this machine does not allow."""
    results, failures, kinds = [], [], {}
    for record in records:
        kinds.setdefault((record["kind"], record.get("cell")), []).append(record)
    around = controls_around(records)
    for record in records:
        name = record.get("cell")
        if record["kind"] in ("failure", "skip"):
            column = f" ({record['column']})" if "column" in record else ""
            failures.append({"suite": suite, "row": name + column, "why": record["why"]})
        elif record["kind"] == "cell":
            found = results_of_cell(suite, record, lambda kind: kinds.get((kind, name), []), all_placements)
            results += [between(result, around.get(name, [])) for result in found]
    return results, failures


def controls_around(records):
    """{cell: [the controls before it, and those after it]}, of the cells that stand between two measurements.

    >>> controls_around([{"kind": "cell", "cell": "a"}, {"kind": "controls", "futex_us": 2.0, "busy_seconds": 1.0},
    ...                  {"kind": "cell", "cell": "b"}, {"kind": "controls", "futex_us": 3.0}, {"kind": "cell", "cell": "c"}])
    {'b': [{'futex_us': 2.0}, {'futex_us': 3.0}]}
    """
    found, before, waiting = {}, None, []
    for record in records:
        if record["kind"] == "cell" and before is not None:
            waiting.append(record["cell"])
        elif record["kind"] == "controls":
            after = {name: value for name, value in record.items() if name.endswith(stats.CONTROL_UNITS)}
            found |= {cell: [before, after] for cell in waiting}
            before, waiting = after, []
    return found


def void_rows(records):
    """The rows around which the controls moved.

    >>> moved = [{"kind": "controls", "futex_us": 2.0}, {"kind": "cell", "cell": "a"}, {"kind": "controls", "futex_us": 3.0}]
    >>> void_rows(moved + [{"kind": "cell", "cell": "b"}, {"kind": "controls", "futex_us": 3.1}])
    {'a'}
    """
    return {cell for cell, controls in controls_around(records).items() if stats.moved_controls(controls)}


def between(result, controls):
    """The result with the controls around it. It is void where they moved: no bar of it is met or missed.

    >>> between({"bars": [{"met": True}]}, []), between({"bars": []}, [{"futex_us": 2.0}, {"futex_us": 2.1}])
    ({'bars': [{'met': True}]}, {'bars': [], 'controls': [{'futex_us': 2.0}, {'futex_us': 2.1}]})
    >>> between({"bars": [{"met": True}]}, [{"futex_us": 2.0}, {"futex_us": 3.0}])["void"]
    'the control futex round trip moved 1.50x, between 2 us and 3 us'
    """
    if not controls:
        return result
    why = printer.moved_controls(stats.moved_controls(controls))
    void = {"bars": [{**bar, "met": None} for bar in result["bars"]], "void": why} if why else {}
    return {**result, "controls": controls, **void}


def results_of_cell(suite, cell, of_kind, all_placements):
    """One result per placement that was seen often, or of the one that was seen most often."""
    failed = {failure["column"] for failure in of_kind("failure") if "column" in failure}
    names = {run["column"] for run in of_kind("run")} - failed  # the others are compared without it
    rounds = rounds_of(of_kind("run"), names)
    if not rounds or cell.get("contenders", [None])[0] in failed:
        return []
    found = [SUITES[suite](cell, where, group, of_kind) for where, group in split_by_placement(rounds, all_placements)]
    if "busy_seconds" in cell:
        others = 0 if suite.endswith(AT_LOAD) else max(cell["busy_seconds"] - cell["own_seconds"], 0) / max(cell["busy_seconds"], 1e-9)
        found = [{**result, "foreign": others} for result in found]
    return found


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


def closest(result):
    """The ratio to the rival that came closest."""
    return result["ratios"][rival_of(result)]
