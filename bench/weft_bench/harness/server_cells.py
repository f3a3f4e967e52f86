# SPDX-License-Identifier: MIT
"""Names of the server's cells: what there is, what a name means, which columns and which published figure it has."""

import re

from weft_bench.harness import cells
from weft_bench.harness.cells import A_A, cross

SIZES = (64, 512, 4096)
CONNECTIONS = (1, 16, 128, 1000, 10000)
STREAM_SIZES = (64, 256, 1024, 8192)
# Kinds of bad peers, by the pattern of the cells beside them.
BAD_PEERS = {"bad": ("wrong_version", "oversized", "half_open", "slow_loris", "flood", "fd_exhaustion"),
             "bad_http": ("malformed", "slow_head", "slow_body"),
             "bad_websocket": ("bad_upgrade", "slow_frame", "bomb", "idle_upgrade")}

# Of network_system, as published: messages per second on one connection. It counts messages put into a queue, not those
# that arrived.
PUBLISHED = {"one_way/64/x1": 769_230, "one_way/256/x1": 305_255, "one_way/1024/x1": 128_205, "one_way/8192/x1": 20_833}
# Microseconds that another one prints for a round trip; nothing comes back there.
PUBLISHED_US = {"echo/64/x1": 7.3, "echo/512/x1": 7.3, "echo/4096/x1": 7.8}

UDP_PATTERNS = ("udp", "udp_flood")
UDP_SIZE_MAX = 1024  # bytes, so that a datagram is one packet
# Patterns beside bad peers, and the same load without them.
FLOODED = {"bad": "echo", "bad_http": "http", "bad_websocket": "websocket", "udp_flood": "udp"}
BAD_PLAIN = "{plain}/{size}/x{times}/depth{depth}"  # the same load without bad peers

# Patterns of RPC, and those of the same load on servers without it.
RPC_PLAIN = {"rpc": "echo", "rpc_stream": "one_way"}

# The pattern of a special use: each request on a connection of its own; a file; a message to all connections.
STYLES = {"close": "http", "file": "http", "publish": "websocket"}

NAME = re.compile(r"(?P<pattern>echo|http|websocket|rpc_stream|rpc|publish|udp_flood|udp|one_way|storm|idle|bad|bad_http|bad_websocket)"
                  r"/(?P<size>[1-9][0-9]{0,7})/x(?P<times>[1-9][0-9]{0,4})"
                  r"(/depth(?P<depth>[1-9][0-9]{0,2}))?(/load(?P<load>[1-9][0-9]?))?(/(?P<style>close|file|publish))?"
                  r"(/(?P<abuse>" + "|".join(kind for kinds in BAD_PEERS.values() for kind in kinds) + r"))?$")

ECHO = cross(["echo"], SIZES, [f"x{count}" for count in CONNECTIONS])
ECHO += [name + "/depth16" for name in ECHO]
LOADS = cross(["echo/64"], ("x1", "x16", "x128"), ("load50", "load80"))
ONE_WAY = cross(["one_way"], STREAM_SIZES, ("x1", "x50"))
STORMS = ["storm/64/x1000", "storm/64/x10000"]
BAD = cross(["bad/64/x16/depth4"], BAD_PEERS["bad"]) + cross(["bad_http/5/x16/depth4"], BAD_PEERS["bad_http"])
BAD += cross(["bad_websocket/64/x16/depth4"], BAD_PEERS["bad_websocket"])
HTTP = ["http/5/x16", "http/5/x16/depth16", "http/1024/x16", "http/65536/x16", "http/5/x16/close", "http/1024/x16/file",
        "http/1048576/x16/file"]
WEBSOCKET = ["websocket/64/x16", "websocket/16384/x16", "websocket/64/x1000/publish"]
WEB = HTTP + WEBSOCKET
UDP = ["udp/64/x1", "udp/64/x16", "udp/64/x8/depth16", "udp_flood/64/x16/depth4"]
QUICK = ["echo/64/x1", "echo/64/x128", "echo/64/x128/depth16", "echo/4096/x16/depth16", "one_way/64/x1",
         "one_way/8192/x1", "one_way/64/x50", "storm/64/x1000", "idle/64/x1000", "bad/64/x16/depth4/slow_loris"]
AT_LOAD = ["echo/64/x1", "echo/64/x128/depth16", "one_way/64/x1", "one_way/64/x50", "http/5/x16"]  # as in cells.py
RPC = ["rpc/64/x1", "rpc/64/x1/depth64", "rpc/64/x16/depth16", "rpc/1024/x1", "rpc/1024/x1/depth16", "rpc/65536/x1",
       "rpc/65536/x1/depth16", "rpc_stream/64/x1", "rpc_stream/64/x16"]
PUBLISH = ["publish/64/x1/depth16", "publish/64/x100", "publish/64/x100/depth16", "publish/64/x10000/depth16"]
GROUPS = {"quick": QUICK, "echo": ECHO, "one_way": ONE_WAY, "load": LOADS, "bad": BAD,
          "all": ECHO + ["echo/64/x16/depth16" + A_A] + LOADS + ONE_WAY + STORMS + ["idle/64/x10000"] + BAD + WEB + UDP + RPC + PUBLISH,
          "web": WEB, "udp": UDP, "rpc": RPC, "publish": PUBLISH}


def parse(name):
    """The parts of a name, or None.

    >>> parse("echo/64/x128/depth16")["times"], parse("bad/64/x16/depth4/flood")["abuse"], parse("idle/64/x1000")["depth"]
    (128, 'flood', 1)
    >>> parse("echo/64"), parse("echo/64/x16/flood"), parse("storm/64/x1/load50"), parse("echo/8/x1"), parse("bad/64/x1"), parse("udp/2000/x1")
    (None, None, None, None, None, None)
    >>> parse("http/5/x1/close")["style"], parse("http/5/x1/depth2/close"), parse("http/5/x1/publish"), parse("echo/64/x1/file")
    ('close', None, None, None)
    >>> parse("bad_http/5/x1/slow_body")["abuse"], parse("bad_http/5/x1/flood"), parse("bad_websocket/5/x1/bomb")
    ('slow_body', None, None)
    >>> parse("rpc/64/x1/depth64")["pattern"], parse("rpc_stream/64/x1")["pattern"], parse("rpc_stream/64/x1/depth2"), parse("rpc/8/x1")
    ('rpc', 'rpc_stream', None, None)
    """
    found = NAME.match(name.removesuffix(A_A))
    if found is None or int(found["size"]) < (1 if found["pattern"] in ("http", "bad_http") else 16):
        return None
    if found["pattern"] in UDP_PATTERNS and int(found["size"]) > UDP_SIZE_MAX:
        return None
    if found["abuse"] not in BAD_PEERS.get(found["pattern"], (None,)) or (found["load"] and found["pattern"] != "echo"):
        return None
    if found["pattern"] == "rpc_stream" and found["depth"]:
        return None
    if found["style"] and (found["pattern"] != STYLES[found["style"]] or found["load"] or (
            found["style"] == "close" and found["depth"])):
        return None
    return {"pattern": found["pattern"], "size": int(found["size"]), "times": int(found["times"]), "style": found["style"],
            "depth": int(found["depth"] or 1), "load": int(found["load"] or 0), "abuse": found["abuse"]}


def choose(text):
    """The cells that a comma-separated list of groups, patterns and names means, each once; and what means nothing.

    >>> choose("one_way/64/*,echo/100/x3,nonsense")
    (['one_way/64/x1', 'one_way/64/x50', 'echo/100/x3'], ['nonsense'])
    """
    return cells.choose(text, GROUPS, parse)


# Column, program, variant. Weft comes first, where it is built.
SERVERS = [("weft", "weft", ""), ("weft_io_uring", "weft", "io_uring"), ("weft_latency", "weft", "latency"),
           ("weft_eco", "weft", "eco"), ("raw", "raw", ""), ("asio", "asio", ""),
           ("asio_tuned", "asio", "tuned"), ("asio_awaitable", "asio", "awaitable")]
# Other ways of a core to wait, for a connection that has one request under way.
WAIT_FORMS = {"weft_latency", "weft_eco"}
# The same for HTTP and WebSocket. Those of RIVALS and CRATES are programs of others, which a machine may lack.
WEB_SERVERS = [("weft", "web", ""), ("weft_traced", "web", "traced"), ("weft_logged", "web", "logged"),
               ("weft_log_off", "web", "log_off"), ("raw", "raw", "websocket"), ("beast", "beast", ""),
               ("nginx", "nginx", ""), ("node", "node", ""), ("socketify", "socketify", ""), ("hyper", "hyper", ""),
               ("actix", "actix", ""), ("fastwebsockets", "fastwebsockets", "")]
# Forms of Weft: spans of each request; a line of each request; the same middleware with its component off.
WEB_FORMS = ("weft_traced", "weft_logged", "weft_log_off")
WEB_PATTERNS = ("http", "websocket")
BESIDE_BAD = ("weft", "beast")  # of them, those that are measured beside bad peers
# The same for datagrams. Only a server with cookies can refuse a flood.
UDP_SERVERS = [("weft", "udp", ""), ("raw", "raw_udp", "")]
# The same for RPC. `weft` and the rivals of RPC_CLIENTS have clients of their own libraries; the others have the load
# generator, and their servers know no more than frames.
RPC_SERVERS = [("weft", "rpc", ""), ("weft_server", "rpc", ""), ("weft_echo", "weft", ""), ("raw", "raw", ""),
               ("asio_tuned", "asio", "tuned"), ("grpc", "grpc", ""), ("capnp", "capnp", ""), ("tonic", "tonic", "")]
RPC_CLIENTS = {"weft": "rpc", "grpc": "grpc", "capnp": "capnp", "tonic": "tonic"}
PUBLISH_SERVERS = [("weft", "weft", "publish"), ("raw", "raw_publish", "")]
EVERY_SERVER = SERVERS + WEB_SERVERS + UDP_SERVERS + RPC_SERVERS + PUBLISH_SERVERS
# A program of others: the script that runs it, and the way to install it.
RIVALS = {"nginx": ("server_nginx.py", "Debian's package nginx"),
          "node": ("server_node.js", "Debian's package nodejs; for WebSocket also node-ws"),
          "socketify": ("server_socketify.py", "the Python package socketify, which brings uWebSockets along")}
# A rival that CMake builds where its packages are installed.
BUILT_RIVALS = {"grpc": "Debian's package libgrpc++-dev",
                "capnp": "Debian's packages libcapnp-dev and capnproto"}
# A crate of Rust, which cargo builds: the pattern that it serves.
CRATES = {"hyper": "http", "actix": "http", "fastwebsockets": "websocket", "tonic": "rpc"}
NGINX_SIZES = (5, 1024)  # of the texts in its configuration


def has_web(column, cell):
    """Whether a web server has the load of a cell.

    >>> [has_web(column, parse("http/65536/x16")) for column in ("weft", "raw", "beast", "nginx", "node")]
    [True, False, True, False, True]
    >>> [has_web(column, parse("http/1024/x16/file")) for column in ("weft", "beast", "nginx", "node")]
    [True, False, True, False]
    >>> [has_web("weft_logged", parse(name)) for name in ("http/5/x16", "http/1024/x16", "http/5/x16/close", "websocket/64/x16")]
    [True, False, False, False]
    >>> [has_web(column, parse("websocket/64/x1000/publish")) for column in ("weft", "raw", "beast", "nginx", "node")]
    [True, False, False, False, True]
    >>> [has_web(column, parse(name)) for column in ("hyper", "fastwebsockets") for name in ("http/5/x1/close", "websocket/64/x1")]
    [True, False, False, True]
    """
    if column in WEB_FORMS:
        return cell["pattern"] == "http" and cell["size"] == 5 and not cell["style"]
    if cell["style"] == "file":
        return column in ("weft", "nginx")
    if cell["style"] == "publish":
        return column in ("weft", "node", "socketify")
    if column in CRATES:
        return cell["pattern"] == CRATES[column]
    if column == "nginx":
        return cell["pattern"] == "http" and cell["size"] in NGINX_SIZES
    return column != "raw" or cell["pattern"] == "websocket"


def columns_of(name, built):
    """[(column, program, variant)] of those whose program is built; "io_uring" is among them where the system permits it.

    >>> [column for column, *_ in columns_of("one_way/64/x1", {"raw", "asio"})]
    ['raw', 'asio', 'asio_tuned']
    >>> [column for column, *_ in columns_of("echo/64/x1 A/A", {"raw", "asio"})]
    ['raw again', 'raw']
    >>> [[column for column, *_ in columns_of("echo/64/x1", built)] for built in ({"weft"}, {"weft", "io_uring"})]
    [['weft', 'weft_latency', 'weft_eco'], ['weft', 'weft_io_uring', 'weft_latency', 'weft_eco']]
    >>> [[column for column, *_ in columns_of(name, {"weft"})] for name in ("echo/64/x2", "echo/64/x1/depth4", "storm/64/x1")]
    [['weft'], ['weft'], ['weft']]
    >>> columns_of("http/5/x16", {"weft", "web", "raw"})
    [('weft', 'web', ''), ('weft_traced', 'web', 'traced'), ('weft_logged', 'web', 'logged'), ('weft_log_off', 'web', 'log_off')]
    >>> [column for column, *_ in columns_of("http/5/x16/close", {"web", "beast", "nginx", "node"})]
    ['weft', 'beast', 'nginx', 'node']
    >>> [column for column, *_ in columns_of("websocket/64/x16", {"web", "node"})]
    ['weft']
    >>> [column for column, *_ in columns_of("websocket/64/x16", {"weft", "web", "raw", "beast"})]
    ['weft', 'raw', 'beast']
    >>> [column for column, *_ in columns_of("bad_http/5/x16/slow_body", {"weft", "web", "raw", "beast", "nginx"})]
    ['weft', 'beast']
    >>> [columns_of(name, {"weft", "udp", "raw", "raw_udp"}) for name in ("udp/64/x1", "udp_flood/64/x1")]
    [[('weft', 'udp', ''), ('raw', 'raw_udp', '')], [('weft', 'udp', '')]]
    >>> [column for column, *_ in columns_of("rpc/64/x1", {"rpc", "raw", "asio", "tonic", "grpc"})]
    ['weft', 'weft_server', 'raw', 'asio_tuned', 'grpc', 'tonic']
    >>> [column for column, *_ in columns_of("rpc_stream/64/x1", {"rpc", "weft", "capnp"})]
    ['weft', 'weft_echo', 'capnp']
    """
    if name.endswith(A_A) and parse(name)["pattern"] not in UDP_PATTERNS:
        return [("raw again", "raw", ""), ("raw", "raw", "")]
    cell = parse(name)
    pattern = cell["pattern"]
    if pattern in WEB_PATTERNS:
        return [server for server in WEB_SERVERS if server[1] in built and has_web(server[0], cell) and
                (server[0] != "node" or pattern == "http" or "ws" in built)]
    if pattern in ("bad_http", "bad_websocket"):
        return [server for server in WEB_SERVERS if server[1] in built and server[0] in BESIDE_BAD]
    if pattern in UDP_PATTERNS:
        return [server for server in UDP_SERVERS if server[1] in built and (pattern == "udp" or server[0] != "raw")]
    if pattern in RPC_PLAIN:
        return [server for server in RPC_SERVERS if server[1] in built and (pattern == "rpc" or server[0] != "weft_server")]
    if pattern == "publish":
        return [server for server in PUBLISH_SERVERS if server[1] in built]
    left_out = {"bad": {"weft_io_uring", "asio_tuned", "asio_awaitable"}, "storm": {"asio_tuned", "asio_awaitable"},
                "idle": {"asio_awaitable"}, "one_way": {"asio_awaitable"}, "echo": set()}[pattern]
    if pattern != "echo" or cell["times"] != 1 or cell["depth"] != 1 or cell["load"]:
        left_out = left_out | WAIT_FORMS
    return [server for server in SERVERS if server[1] in built and server[0] not in left_out and
            (server[2] != "io_uring" or "io_uring" in built)]


def load_of(name, column):
    """The cell that bench_load gets for a column, and the program of the column's own client, or None.

    >>> load_of("rpc/64/x1/depth4", "weft"), load_of("rpc/64/x1/depth4", "weft_server"), load_of("rpc/64/x1/depth4", "raw")
    (('rpc/64/x1/depth4', 'rpc'), ('rpc/64/x1/depth4', None), ('echo/64/x1/depth4', None))
    >>> load_of("rpc_stream/64/x1", "grpc"), load_of("rpc_stream/64/x1", "weft_echo"), load_of("echo/64/x1 A/A", "raw")
    (('rpc_stream/64/x1', 'grpc'), ('one_way/64/x1', None), ('echo/64/x1', None))
    """
    name = name.removesuffix(A_A)
    pattern, rest = name.split("/", 1)
    if pattern not in RPC_PLAIN or column == "weft_server":
        return name, None
    client = RPC_CLIENTS.get(column)
    return (name if client else f"{RPC_PLAIN[pattern]}/{rest}"), client


def crates_of(names):
    """The crates that have a column in one of these cells.

    >>> crates_of(["http/5/x16", "http/5/x1/file", "echo/64/x1"]), crates_of(["websocket/64/x9/publish"])
    (['hyper', 'actix'], [])
    """
    found = {column for name in names for column, *_ in columns_of(name, set(CRATES))}
    return [name for name in CRATES if name in found]


def server_options(cell):
    """What a server is told beside its variant: limits that only a server with limits knows.

    >>> server_options(parse("bad/64/x16/depth4/flood")), server_options(parse("echo/64/x1"))
    (['--per-address', '64'], [])
    >>> server_options(parse("bad_websocket/64/x16/bomb"))
    ['--patience-ms', '500']
    """
    if cell["pattern"] in ("bad_http", "bad_websocket"):
        return ["--patience-ms", "500"]
    return {"flood": ["--per-address", "64"], "fd_exhaustion": ["--files", "128"], "half_open": ["--patience-ms", "500"],
            "slow_loris": ["--patience-ms", "500"]}.get(cell["abuse"], [])
