# SPDX-License-Identifier: MIT
"""Names of cells: what there is, what a name means, and which columns of a table a cell has."""

import fnmatch
import re

TRANSPORTS = ("tcp", "ipc", "inproc")
SIZES = (64, 256, 1024, 8192, 65536, 1048576)
ONE_WAY = ("push_pull", "pub_sub", "router_router", "dealer_router", "pair")
FAN_OUTS = (1, 2, 4, 8, 32)
A_A = " A/A"  # a cell with this ending is libzmq against itself

NAME = re.compile(
    r"(?P<pattern>push_pull|pub_sub|router_router|dealer_router|pair|round_trip|one_thread|pipeline|service|broker|burst|connect_storm|idle_memory)"
    r"/(?P<transport>tcp|ipc|inproc)/(?P<size>[1-9][0-9]{1,7})"
    r"(?P<words>(/(hwm0|moved|curve|tls|ws|eco|pinned|one_core|io2|pyzmq|asyncio|x[1-9][0-9]*|load[1-9][0-9]?|rest[1-9][0-9]{0,4}))*)$")
PYTHON = ("pyzmq", "asyncio")  # through pyzmq: its Socket, its asyncio Socket


def cross(*parts):
    """
    >>> cross(["a"], ["b", "c"])
    ['a/b', 'a/c']
    """
    names = [""]
    for choices in parts:
        names = [f"{name}/{choice}" if name else str(choice) for name in names for choice in choices]
    return names


THROUGHPUT = cross(["push_pull"], TRANSPORTS, (64, 1024, 8192, 65536))
ROUND_TRIPS = [f"round_trip/{transport}/64{mode}" for transport in TRANSPORTS for mode in ("", "/eco")]
QUICK = THROUGHPUT + ROUND_TRIPS + cross(["one_thread"], TRANSPORTS, ["64"])
BUSY = ["push_pull/tcp/1024", "round_trip/tcp/64", "one_thread/tcp/64"]  # of the demo, beside busy loops
AT_LOAD = cross(["push_pull", "round_trip", "one_thread"], TRANSPORTS, ["64"]) + ["push_pull/tcp/1024", "router_router/tcp/64",
           "pub_sub/tcp/64/x8"]  # of the report, beside a busy loop for each processor
BARS = QUICK + cross(["push_pull"], TRANSPORTS, ["64/eco"])
BARS += cross(["push_pull/inproc"], (8192, 65536, 1048576), ["moved"])
BARS += cross(["router_router"], TRANSPORTS, (64, 1024))
BARS += cross(["pub_sub"], ("tcp", "inproc"), ["64"], [f"x{times}" for times in FAN_OUTS])
BARS += cross(["push_pull/tcp"], (64, 1024, 65536), ["curve", "tls", "ws"])
BARS += ["connect_storm/tcp/64/x1000", "idle_memory/tcp/64/x1000"]
BARS += cross(["round_trip"], TRANSPORTS, ["64"], ["load10", "load50", "load80"])
BARS += cross(["push_pull"], ("tcp", "inproc"), ["64"], ["x2", "x4", "x8", "pinned"])
BARS += cross(["burst"], TRANSPORTS, ["64"])
BARS += cross(["push_pull"], ("tcp", "ipc"), ["64"], PYTHON)
BARS += ["push_pull/tcp/64" + A_A, "round_trip/tcp/64" + A_A]
TRIPS = ("round_trip", "one_thread", "service", "broker", "burst")  # measured trip by trip
SHAPES = cross(["one_thread", "pipeline"], TRANSPORTS, ["64"])
SHAPES += cross(["service", "broker"], TRANSPORTS, ["64"], ["x1", "x8", "x64"])
RESTS = cross(["round_trip"], TRANSPORTS, ["64"], ["rest1", "rest100", "rest10000"])
ONE_CORE = cross([f"{name}/one_core" for name in QUICK if not name.endswith("/eco")])
MATRIX = cross(ONE_WAY + ("round_trip",), TRANSPORTS, SIZES)
MATRIX += [name + "/hwm0" for name in MATRIX]
MATRIX += cross(["push_pull/ipc/64"], ["x2", "x4", "x8"]) + cross(["round_trip"], TRANSPORTS, ["64"], ["x2", "x4", "x8"])
MATRIX += cross(["pub_sub/ipc/64"], [f"x{times}" for times in FAN_OUTS])
GROUPS = {"quick": QUICK, "bars": BARS, "matrix": MATRIX, "shapes": SHAPES, "rests": RESTS, "one_core": ONE_CORE,
          "all": list(dict.fromkeys(BARS + MATRIX + SHAPES + RESTS + ONE_CORE))}


def parse(name):
    """The parts of a name, or None.

    >>> parse("push_pull/tcp/64/x4/curve")["words"], parse("round_trip/inproc/64 A/A")["transport"]
    (['x4', 'curve'], 'inproc')
    >>> parse("push_pull/ipc/64/ws"), parse("push_pull/tcp/64/ws/tls")
    (None, None)
    >>> parse("push_pull/tcp"), parse("push_pull/udp/64"), parse("pair/tcp/64/x2"), parse("push_pull/tcp/64/load50")
    (None, None, None, None)
    """
    found = NAME.match(name.removesuffix(A_A))
    if found is None or int(found["size"]) < 16:
        return None
    words = [word for word in found["words"].split("/") if word]
    times = next((int(word[1:]) for word in words if word[0] == "x"), 1)
    load = next((int(word[4:]) for word in words if word.startswith("load")), 0)
    rest = next((int(word[4:]) for word in words if word.startswith("rest")), 0)
    storms = found["pattern"] in ("connect_storm", "idle_memory")
    impossible = found["transport"] == "inproc" and ("curve" in words or storms)
    impossible |= "tls" in words and (found["transport"] != "tcp" or "curve" in words or storms)
    impossible |= "ws" in words and (found["transport"] != "tcp" or bool({"curve", "tls"} & set(words)) or storms)
    impossible |= found["pattern"] in ("pair", "burst", "one_thread", "pipeline") and times > 1
    impossible |= (load or rest) and found["pattern"] != "round_trip" or rest > 10_000
    impossible |= times > (10_000 if storms else 64)
    if set(PYTHON) & set(words):
        impossible |= len(words) > 1 or found["pattern"] != "push_pull" or found["transport"] == "inproc"
    if impossible:
        return None
    return {"pattern": found["pattern"], "transport": found["transport"], "size": int(found["size"]), "words": words,
            "times": times, "load": load, "rest": rest}


def choose(text, groups=None, parse_name=parse):
    """The cells that a comma-separated list of groups, patterns and names means, each once; and what means nothing.

    >>> choose("round_trip/tcp/*/eco,push_pull/ipc/100,nonsense")
    (['round_trip/tcp/64/eco', 'push_pull/ipc/100'], ['nonsense'])
    """
    groups = groups or GROUPS
    chosen, unknown = [], []
    for item in text.split(","):
        found = groups.get(item) or [name for name in groups["all"] if matches(item, name)]
        if not found and parse_name(item) is not None:
            found = [item]
        chosen += found
        unknown += [] if found else [item]
    return list(dict.fromkeys(chosen)), unknown


def matches(pattern, name):
    """Whether a pattern means the cell: part by part; `*` alone means all of them.

    >>> matches("push_pull/*/64", "push_pull/tcp/64"), matches("push_pull/*", "push_pull/tcp/64"), matches("*", "a/b")
    (True, False, True)
    """
    parts, names = pattern.split("/"), name.split("/")
    return pattern == "*" or (
        len(parts) == len(names) and all(fnmatch.fnmatchcase(part, to) for to, part in zip(parts, names)))


# The system has no limit to show for these.
WITHOUT_LIMIT = ("connect_storm", "idle_memory", "one_thread", "pipeline", "service", "broker")


def runs_in_processes(name):
    cell = parse(name)
    return cell["transport"] != "inproc" and cell["pattern"] != "one_thread"


# Libraries that ./dev bench sockets --rivals builds, and the words that their columns add to a cell's name.
RIVALS = {"libzmq_lto": ("libzmq_lto", ""), "libzmq_lto_io2": ("libzmq_lto", "/io2"), "omq": ("omq", "")}
NOT_OF_RIVALS = {"curve", "tls", "ws", "eco", *PYTHON}  # words of cells that only the two libraries have


def columns_of(name, nng=False, rivals=()):
    """[(column, engine, library, name of the cell that it runs)]: what is measured in turns for a cell.

    >>> [column for column, *_ in columns_of("round_trip/tcp/64")]
    ['weft', 'libzmq', 'raw', 'raw_spinning']
    >>> columns_of("router_router/ipc/64")[2]
    ('weft push_pull', 'zmq', 'weft', 'push_pull/ipc/64')
    >>> [column for column, *_ in columns_of("push_pull/tcp/64/curve")]
    ['weft', 'libzmq', 'raw']
    >>> columns_of("push_pull/tcp/64/tls")[1]
    ('libzmq', 'zmq', 'libzmq', 'push_pull/tcp/64/curve')
    >>> columns_of("push_pull/tcp/64/ws")[1]
    ('libzmq', 'zmq', 'libzmq_ws', 'push_pull/tcp/64/ws')
    >>> columns_of("push_pull/ipc/64/asyncio")[1]
    ('libzmq', 'asyncio', 'libzmq', 'push_pull/ipc/64/asyncio')
    >>> [column for column, *_ in columns_of("one_thread/tcp/64")]
    ['weft', 'libzmq']
    >>> [column for column, *_ in columns_of("push_pull/tcp/64 A/A")]
    ['libzmq again', 'libzmq']
    >>> columns_of("push_pull/ipc/64", rivals=("libzmq_lto",))[3]
    ('libzmq_lto_io2', 'zmq', 'libzmq_lto', 'push_pull/ipc/64/io2')
    >>> columns_of("round_trip/tcp/64/eco", rivals=("omq",)) == columns_of("round_trip/tcp/64/eco")
    True
    """
    if name.endswith(A_A):
        plain = name.removesuffix(A_A)
        return [("libzmq again", "zmq", "libzmq", plain), ("libzmq", "zmq", "libzmq", plain)]
    cell = parse(name)
    pattern, words = cell["pattern"], cell["words"]
    if words and words[0] in PYTHON:
        return [("weft", words[0], "weft", name), ("libzmq", words[0], "libzmq", name)]
    columns = [("weft", "zmq", "weft", name), ("libzmq", "zmq", "libzmq", name)]
    if "tls" in words:  # libzmq has none: CURVE is its way to encrypt
        columns[1] = ("libzmq", "zmq", "libzmq", name.replace("/tls", "/curve"))
    if "ws" in words:  # its usual builds lack it
        columns[1] = ("libzmq", "zmq", "libzmq_ws", name)
    if pattern == "router_router":
        columns.append(("weft push_pull", "zmq", "weft", name.replace("router_router", "push_pull")))
    if pattern not in WITHOUT_LIMIT and not {"one_core"} & set(words) and not cell["rest"] and cell["times"] == 1 and "moved" not in words and not (
            {"curve", "tls"} & set(words) and pattern in TRIPS):
        if pattern == "round_trip" and not cell["load"]:
            columns += [("raw", "raw", "weft", name), ("raw_spinning", "raw_spinning", "weft", name)]
        elif pattern != "round_trip":
            columns.append(("raw", "raw", "weft", name))
    exists = pattern in ("push_pull", "pair", "round_trip", "burst")  # its PUB loses what a subscriber has no room for
    if nng and exists and not {"curve", "tls", "ws", "moved", "hwm0"} & set(words) and not cell["load"]:
        columns.append(("nng", "nng", "weft", name))
    if pattern not in ("connect_storm", "idle_memory") and not NOT_OF_RIVALS & set(words) and not cell["load"]:
        columns[2:2] = [(column, "zmq", library, name + more) for column, (library, more) in RIVALS.items() if library in rivals]
    return columns
