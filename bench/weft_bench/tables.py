# SPDX-License-Identifier: MIT
"""From the records of a suite to the text that its command prints."""

from weft_bench import printer, results
from weft_bench.harness import cells
from weft_bench.harness.server_cells import PUBLISHED, PUBLISHED_US

DISTURBED = 0.05  # the share of the busy time of other programs from which a row says so
BAR_HEAD = ["cell", "placement", "measure", "bar", "measured", ""]
VOID = "VOID: {why}. Measure again where nothing else runs."


def pattern_of(result):
    return result["row"].split("/")[0]


def rounds_of(result):
    others = f", others {printer.share(result['foreign'])}" if result.get("foreign", 0) > DISTURBED else ""
    return f"{result['rounds']} {result['placement']}{others}{', VOID' if 'void' in result else ''}"


def verdict_of(result, ratio):
    """The verdict of a ratio; a void row has none.

    >>> verdict_of({}, [2.0, 1.5, 2.5]), verdict_of({"void": "it moved"}, [2.0, 1.5, 2.5])
    ('faster', '')
    """
    return "" if "void" in result else printer.verdict(ratio)


def controls(records):
    """What the machine did around each cell, without a library: the least and the most."""
    found = [record for record in records if record["kind"] == "controls"]
    if not found:
        return ""
    parts = [f"{title} {' to '.join(dict.fromkeys(printer.time(bound(record[key] for record in found) * unit) for bound in (min, max)))}"
             for key, (title, unit) in printer.CONTROLS.items()]
    setup = next((record for record in records if record["kind"] == "setup"), {})
    nice = f" of nice value {setup['busy_loops_nice']}" if setup.get("busy_loops_nice") else ""
    beside = f" (beside {setup['busy_loops']} busy loops{nice})" if "busy_loops" in setup else ""
    beside += f" (on {setup['cpu_share']:g} processors' time)" if "cpu_share" in setup else ""
    return f"controls{beside}: " + ", ".join(parts)


def void(found):
    """Why each void row is void.

    >>> void([{"row": "a", "void": "it moved"}, {"row": "b"}])
    'VOID: a: it moved. Measure again where nothing else runs.'
    """
    reasons = dict.fromkeys(f"{result['row']}: {result['void']}" for result in found if "void" in result)
    return "\n".join(VOID.format(why=why) for why in reasons)


def bars(found):
    """The table of all bars of some results, or nothing."""
    lines = []
    for result in found:
        for bar in result["bars"]:
            lines.append([result["row"], result["placement"], bar["measure"], bar["bar"], printer.bar_value(bar),
                          "void" if "void" in result else printer.met(bar)])
    return titled(f"Bars: {printer.bars_met([bar for result in found for bar in result['bars']])}", BAR_HEAD, lines, (0, 1, 2, 3, 5))


def titled(title, head, lines, left=(0, 1)):
    return [f"\n{title}\n" + printer.text_table([head, *lines], left)] if lines else []


def versions(records, names=None):
    libraries = [record for record in records if record["kind"] == "library" and record["version"]]
    return {each["name"]: each["version"] for each in libraries if names is None or each["name"] in names}


def not_measured(failures):
    return ["\nNot measured", *(f"{failure['row']}: {failure['why']}" for failure in failures)] if failures else []


# Sockets.

SOCKETS = {"push_pull": "Throughput, PUSH to PULL, one way", "pub_sub": "Throughput, PUB to SUB: deliveries",
           "router_router": "Throughput, ROUTER to ROUTER, one way",
           "dealer_router": "Throughput, DEALER to ROUTER, one way", "pair": "Throughput, PAIR to PAIR, one way",
           "round_trip": "Round trip, REQ to REP, median",
           "one_thread": "One thread sends a message on PUSH and then receives it on PULL, median",
           "pipeline": "Throughput through a stage: PUSH, then PULL and PUSH in one thread, then PULL",
           "service": "Round trip of each client of one REP, median",
           "broker": "Round trip through a broker, REQ, ROUTER and DEALER, REP, median",
           "burst": "100 messages after a rest, PUSH to PULL, from the first sent to the last received, median",
           "connect_storm": "Time per peer: all connect at once",
           "idle_memory": "Memory of the server per idle connection"}
SOCKETS_HEAD = ["cell", "Weft", "libzmq", "ratio [95 %]", "Weft is", "CPU ratio", "raw limit, Weft takes", "other rivals",
                "bars met", "rounds"]
TAIL_HEAD = ["cell", "requests", "p50 Weft / libzmq", "p99", "p99.9", "max", "p99 ratio", "p99.9 ratio"]
USE_HEAD = ["cell", "CPU us Weft / libzmq", "context switches", "system calls", "allocations", "calls counted by"]
SOCKETS_LEGEND = """\
A ratio above 1 means that Weft is better: more messages per second, a shorter median round trip, less CPU time per
message. `faster` and `SLOWER` are said only where the 95 % interval excludes 1. near and far: the two cores are close
or distant at that time; mixed: neither for long enough. others: the share of the busy CPU time that belonged to other
programs; a row that shows it was disturbed. eco: Weft sleeps at once instead of spinning first; libzmq is the same.
raw limit: the same messages without a library, and how many times longer Weft takes."""


def line_of_sockets(result, details):
    measures = result["measures"]
    raw = "raw_spinning" if "raw_spinning" in result["columns"] else "raw"
    return [result["row"], printer.cost(result, result["ours"]), printer.cost(result, "libzmq"),
            printer.interval(measures.get("speed")), verdict_of(result, measures.get("speed")),
            printer.number(measures["cpu"][0] if "cpu" in measures else None),
            f"{printer.cost(result, raw)}, {printer.times(measures['limit'][0])}" if "limit" in measures else "",
            ", ".join(f"{name} {printer.cost(result, name)}" for name in result["ratios"] if name != "libzmq"),
            printer.bars_met(result["bars"], "") if result["bars"] and details else "", rounds_of(result)]


def both(result, show):
    """The values of our column and of libzmq's, with a stroke between them."""
    return " / ".join(show(column) for column in (result["ours"], "libzmq"))


def tail_line_of(result):
    tails, measures = result["tails"], result["measures"]
    shown = [both(result, lambda column, key=key: printer.time(tails[column][key]))
             for key in ("p50", "p99", "p999", "max")]
    return [result["row"], printer.rate(result["rate"]) if "rate" in result else "closed loop", *shown,
            printer.interval(measures.get("p99")), printer.interval(measures.get("p999"))]


def use_line_of(result):
    uses = result["uses"]
    shown = [both(result, lambda column, key=key: printer.number(uses[column].get(key)))
             for key in ("switches", "syscalls", "allocations")]
    return [result["row"], both(result, lambda column: printer.number(uses[column]["cpu"] * 1e6)), *shown,
            uses[result["ours"]].get("syscalls_by") or ""]


def sockets(records, all_placements=False, details=True):
    found, failures = results.of("sockets", records, all_placements)
    texts = [", ".join(f"{name} {version}" for name, version in versions(records, ("weft", "libzmq", "nng")).items()),
             controls(records)]
    for pattern, title in SOCKETS.items():
        lines = [line_of_sockets(result, details) for result in found if pattern_of(result) == pattern]
        texts += titled(title, SOCKETS_HEAD, lines, (0, 4, 9))
    if details:
        texts += titled("Round trips, from when a request was due; one thread; bursts", TAIL_HEAD,
                        [tail_line_of(result) for result in found if pattern_of(result) in cells.TRIPS])
        texts += titled("Beside the time, per message, both sides together", USE_HEAD,
                        [use_line_of(result) for result in found
                         if pattern_of(result) != "idle_memory" and "rate" not in result], (0, 5))
        texts += bars(found)
    return texts + [void(found)] + not_measured(failures) + ["\n" + SOCKETS_LEGEND]


# The server.

SERVER = {"echo": "Echo: the same frame comes back",
          "http": "HTTP: GET on connections that stay; close: one for each request; file: of a file",
          "websocket": "WebSocket: a binary message comes back; publish: it goes to all connections, each of which counts", "one_way": "One way: received, counted and checked by the server",
          "udp": "UDP: a datagram of a session comes back",
          "rpc": "Calls: the body comes back. weft, grpc, capnp and tonic have clients of their own; the others have the load generator",
          "rpc_stream": "Streams of messages to the server, which checks and counts them; clients as for calls",
          "publish": "Publish: a frame of one connection goes to all, each of which counts",
          "storm": "Storm: from connect to the first answer, all at once",
          "idle": "Idle: memory of the server per connection that is held",
          "bad": "Bad peers beside 16 good connections",
          "bad_http": "HTTP: bad peers beside 16 good connections",
          "bad_websocket": "WebSocket: bad peers beside 16 good connections",
          "udp_flood": "Up to 20,000 datagrams a second without a session, beside the sessions"}
SERVER_HEAD = ["cell", "server", "per second", "p50", "p99", "p99.9", "max", "CPU us", "busy", "switches", "calls",
               "speed to raw [95 %]", "", "rounds"]
IDLE_HEAD = ["cell", "server", "bytes", "core when idle", "to raw [95 %]", "ready per second"]
BAD_HEAD = ["cell", "server", "throughput kept [95 %]", "peers limited", "slowest", "core when out of files",
            "served again after", "counted as"]
SERVER_LEGEND = """\
weft_io_uring: weft with its other poller; `epoll` is its speed beside weft. weft_latency: its core polls before it
parks; weft_eco: it parks at once; `latency` is the speed of the first beside the second. weft_traced: weft with spans of all
requests and 1 % of the traces exported; weft_logged: with a line of each request in a file; weft_log_off: the same
with the component off; `traced`, `logged` and `log_off` are their speeds beside weft. raw: epoll by hand, the
ceiling. asio:
Boost.Asio as people write it; asio_tuned: a read per event and a write for all of its answers; asio_awaitable: asio
as coroutines; beast: Boost.Beast; node: Node.js with its package ws; socketify: uWebSockets with handlers in Python;
hyper, actix and fastwebsockets: crates of Rust. Calls and streams: weft is Weft's rpc at both ends; weft_server is the
same server with the load generator as its client, like weft_echo, raw and asio_tuned, whose frames come back; `echo` is
its speed beside weft_echo. grpc, capnp and tonic have servers and clients of their own. For UDP raw is recvmmsg and sendmmsg by hand, without sessions. A speed
above 1 is faster than raw; `faster` and `SLOWER` are said only where the interval excludes 1.
CPU, context switches and system calls are the server's, per message. busy: the share of its core; far below 100 % the
load generator was the limit, and CPU says more than speed. With a load the speed is that of p50, and times count from
when a request was due. near, far, mixed: how the two cores stood to each other. others: the share of the busy CPU
time that belonged to other programs. published: another project's figure, of what it sent."""


def beside_raw(uses):
    return printer.interval(uses["beside_raw"]) if uses.get("beside_raw") else ""


def server_lines_of(result):
    lines = []
    for name, uses in result["uses"].items():
        tails = result.get("tails", {}).get(name, {})
        lines.append([printer.rate(1 / max(uses["cost"], 1e-12))] +
                     [printer.time(tails[key]) if key in tails else "" for key in ("p50", "p99", "p999", "max")] +
                     [printer.number(uses["cpu"] * 1e6), printer.share(uses["busy"]), printer.number(uses["switches"]),
                      printer.number(uses.get("syscalls")), beside_raw(uses), verdict_of(result, uses.get("beside_raw"))])
    return lines


def published_lines_of(result):
    name = result["row"].removesuffix(cells.A_A)
    if name in PUBLISHED:
        yield ["", "published", printer.rate(PUBLISHED[name])] + [""] * (len(SERVER_HEAD) - 3)
    if name in PUBLISHED_US:
        yield ["", "published", "", printer.time(PUBLISHED_US[name] / 1e6)] + [""] * (len(SERVER_HEAD) - 4)


def idle_lines_of(result):
    return [[printer.whole(uses["cost"]), printer.share(uses["idle_cpu"], 2), beside_raw(uses), ""]
            for uses in result["uses"].values()]


def told(reasons):
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items() if count)


def bad_lines_of(result):
    lines = []
    for uses in result["uses"].values():
        core = printer.share(uses["exhausted_cpu"], 1) if "exhausted_cpu" in uses else ""
        lines.append([printer.interval(uses["kept"]), printer.share(uses["limited"]),
                      printer.time(uses["slowest_limit_s"]), core, printer.time(uses["recovery_s"]), told(uses["reasons"])])
    return lines


FLOOD_HEAD = ["cell", "server", "throughput kept [95 %]", "a new session after", "counted as"]


def flood_lines_of(result):
    return [[printer.interval(uses["kept"]), printer.time(uses["recovery_s"]), told(uses["reasons"])]
            for uses in result["uses"].values()]


SERVER_TABLES = {"udp_flood": (FLOOD_HEAD, flood_lines_of), "idle": (IDLE_HEAD, idle_lines_of), "bad": (BAD_HEAD, bad_lines_of),
                 "bad_http": (BAD_HEAD, bad_lines_of), "bad_websocket": (BAD_HEAD, bad_lines_of)}


def server(records, all_placements=False):
    found, failures = results.of("server", records, all_placements)
    texts = [", ".join(f"{name}: {version}" for name, version in versions(records).items()), controls(records)]
    for pattern, title in SERVER.items():
        head, lines_of = SERVER_TABLES.get(pattern, (SERVER_HEAD, server_lines_of))
        table = []
        for result in [result for result in found if pattern_of(result) == pattern]:
            lines = [["", name, *line] for name, line in zip(result["uses"], lines_of(result))]
            if head is SERVER_HEAD:
                lines = [[*line, ""] for line in lines] + list(published_lines_of(result))
                lines[0][-1] = rounds_of(result)
            lines[0][0] = result["row"]
            table += lines
        texts += titled(title, head, table)
    return texts + bars(found) + [void(found)] + not_measured(failures) + ["\n" + SERVER_LEGEND]


# The parts.

MICRO_LEGEND = ("A ratio above 1 means that Weft is faster; `faster` and `SLOWER` are said only where the 95 % "
                "interval excludes 1.")


def lines_of_part(result):
    """A line for ours, and one for each rival."""
    ours, bars_of = result["ours"], {bar["measure"]: bar for bar in result["bars"]}
    where = f"  ({result['placement']}, {result['rounds']} rounds)" if result["placement"] else ""
    lines = [f"{result['row']}{where}", f"    {ours:28} {printer.cost(result, ours):>10}"]
    for name, value in result["measures"].items():
        bar = bars_of.get(name)
        bar = f"  bar {bar['bar']}: {printer.met(bar)}" if bar else ""
        lines.append(f"    {name:28} {printer.cost(result, name):>10}  {printer.interval(value, 'x'):>24}  "
                     f"{verdict_of(result, value)}{bar}")
    return lines


def parts(records):
    """The rows of some records of bench_micro."""
    found, failures = results.of("micro", records)
    return [line for result in found for line in lines_of_part(result)] + [
        f"{failure['row']}: FAILED: {failure['why']}" for failure in failures]


def sum_of_parts(records):
    found = [bar for result in results.of("micro", records)[0] for bar in result["bars"]]
    return [f"\nBars: {printer.bars_met(found)}. {MICRO_LEGEND}"]


def micro(records, all_placements=True):
    return parts(records) + sum_of_parts(records)


# Topics.

TOPICS = {"cores": "Between cores of one process: deliveries", "pub_sub": "Between processes: deliveries",
          "round_trip": "Round trips between processes, median",
          "same_handle": "One handle: publish, then next, in one thread",
          "kept": "Kept: acknowledged publishes that survive a loss of power, 500 in flight",
          "fleet": "A fleet on NATS: messages by a server", "fleet_request": "A fleet on NATS: requests, median",
          "fleet_kept": "A fleet on NATS: acknowledged publishes that one server keeps in a file, 1,000 in flight",
          "filters": "Filters: a topic in an index of them",
          "python": "Python, between processes: deliveries", "python_trip": "Python, round trips between processes, mean"}
TOPICS_HEAD = ["cell", "column", "per second", "time", "topics beside it [95 %]", "", "CPU us", "switches", "bytes a filter",
               "rounds"]
TOPICS_LEGEND = """\
A ratio above 1 means that topics are faster; `faster` and `SLOWER` are said only where the 95 % interval excludes 1.
sockets: Weft's PUB and SUB with the same messages, [topic][body]; one_part: with the body alone. async: AsyncTopics.
redis: PUBLISH with one subscriber, or XADD with appendfsync always, over a unix socket, pipelined; redis_x5: over five
connections. topics_aio: weft.aio. pyzmq and asyncio (zmq.asyncio) on Weft and on the libzmq of its wheel: PUSH to PULL, and
PAIR for trips, [topic][body]. topics_request, aio_request, nats_request: requests in the place of two topics. nats_py,
redis_py, redis_aio (redis.asyncio): clients on a server of their own; Redis has no requests, so its trips are two channels.
libnats: the C client of NATS, both clients in one process as the topics are; libnats_asap: with SendAsap. Kept, js_PublishAsync: as
cheap as it can be, and with an id of each message (libnats_id), as topics have. prefix_table: the
same names as prefixes in the table of sockets. CPU time and context switches are per message, of all processes but servers.
near, far, mixed: how the two cores stood to each other. others: the share of the busy CPU time that belonged to other
programs."""


def topics_lines_of(result):
    lines = []
    for column, cost in result["columns"].items():
        ratio, uses = result["ratios"].get(column), result["uses"][column]
        size = result["measures"].get("bytes") if column == result["ours"] else None
        lines.append(["", column, printer.rate(1 / max(cost, 1e-12)), printer.time(cost),
                      printer.interval(ratio) if ratio else "", verdict_of(result, ratio), printer.number(uses["cpu"] * 1e6),
                      printer.number(uses["switches"]), printer.whole(size[0]) if size else "", ""])
    lines[0][0], lines[0][-1] = result["row"], rounds_of(result)
    return lines


def topics(records, all_placements=False):
    found, failures = results.of("topics", records, all_placements)
    texts = [", ".join(f"{name}: {version}" for name, version in versions(records).items()), controls(records)]
    for pattern, title in TOPICS.items():
        table = [line for result in found if pattern_of(result) == pattern for line in topics_lines_of(result)]
        texts += titled(title, TOPICS_HEAD, table)
    return texts + bars(found) + [void(found)] + not_measured(failures) + ["\n" + TOPICS_LEGEND]


SUITES = {"sockets": sockets, "server": server, "micro": micro, "topics": topics}


def report(suite, records, **how):
    """The tables of a suite's records as one text."""
    return "\n".join(text for text in SUITES[suite](records, **how) if text)
