# SPDX-License-Identifier: MIT
"""Names of the cells of topics: what there is, and which columns each has."""

import re

from weft_bench.harness import cells

NAME = re.compile(r"(?P<pattern>cores|pub_sub|round_trip|same_handle|kept|filters|fleet|fleet_request|fleet_kept|python|"
                  r"python_trip)/"
                  r"(?P<transport>[a-z]+)/(?P<size>[a-z]+|[1-9][0-9]{1,6})(/x(?P<times>[1-9][0-9]?))?$")
SETS = ("exact/1000000", "tokens/1000000", "globs/100000", "hostile/run", "hostile/classes", "hostile/heads")
FILTERS = cells.cross(["filters"], SETS)
TRANSPORTS = {"cores": "inproc", "same_handle": "inproc", "pub_sub": "ipc", "round_trip": "ipc", "kept": "ipc", "fleet": "nats",
              "fleet_request": "nats", "fleet_kept": "nats", "python": "ipc", "python_trip": "ipc"}

VOLATILE = ["cores/inproc/64", "cores/inproc/64/x8", "pub_sub/ipc/64", "round_trip/ipc/64", "same_handle/inproc/16",
            "same_handle/inproc/64"]
KEPT = ["kept/ipc/100"]
FLEET = ["fleet/nats/64", "fleet_request/nats/64", "fleet_kept/nats/100"]
PYTHON = ["python/ipc/64", "python_trip/ipc/64"]
GROUPS = {"quick": VOLATILE + KEPT + FLEET + [name for name in FILTERS if "1000000" not in name], "volatile": VOLATILE,
          "filters": FILTERS, "fleet": FLEET, "python": PYTHON, "all": VOLATILE + KEPT + FLEET + FILTERS + PYTHON}

PYZMQ = ("pyzmq_weft", "pyzmq_libzmq", "asyncio_weft", "asyncio_libzmq")
# Column and engine. Ours comes first.
COLUMNS = {"cores": ("topics", "sockets", "one_part"), "pub_sub": ("topics", "sockets", "one_part", "redis"),
           "round_trip": ("topics", "sockets", "one_part"), "same_handle": ("topics", "async"),
           "kept": ("topics", "redis", "redis_x5"), "filters": ("topics", "prefix_table"),
           **dict.fromkeys(("fleet", "fleet_request"), ("topics", "libnats", "libnats_asap")),
           "fleet_kept": ("topics", "libnats", "libnats_id"),
           "python": ("topics", "topics_aio", *PYZMQ, "nats_py", "redis_py", "redis_aio"),
           "python_trip": ("topics", "topics_aio", "topics_request", "aio_request", *PYZMQ, "nats_py", "nats_request", "redis_py",
                           "redis_aio")}


def parse(name):
    """The parts of a name, or None.

    >>> parse("cores/inproc/64/x8")["times"], parse("pub_sub/ipc/1024")["size"], parse("filters/hostile/run")["size"]
    (8, 1024, 0)
    >>> parse("python_trip/ipc/64")["pattern"], parse("python/inproc/64")
    ('python_trip', None)
    >>> parse("cores/ipc/64"), parse("same_handle/inproc/64/x2"), parse("filters/exact/7"), parse("kept/ipc/8")
    (None, None, None, None)
    """
    found = NAME.match(name)
    if found is None:
        return None
    pattern, times = found["pattern"], int(found["times"] or 1)
    if pattern == "filters":
        return {"pattern": pattern, "size": 0, "times": 1} if name in FILTERS else None
    if not found["size"].isdigit() or int(found["size"]) < 16 or found["transport"] != TRANSPORTS[pattern] or (
            times > 1 and pattern not in ("cores", "pub_sub")):
        return None
    return {"pattern": pattern, "size": int(found["size"]), "times": times}


def choose(text):
    """The cells that a comma-separated list of groups, patterns and names means, each once; and what means nothing.

    >>> choose("kept/*/*,cores/inproc/128,nonsense")
    (['kept/ipc/100', 'cores/inproc/128'], ['nonsense'])
    """
    return cells.choose(text, GROUPS, parse)


def columns_of(name):
    """The columns of a cell.

    >>> columns_of("filters/exact/1000000"), columns_of("filters/globs/100000")
    (('topics', 'prefix_table'), ('topics',))
    """
    columns = COLUMNS[parse(name)["pattern"]]
    return columns if "filters" not in name or "1000000" in name else columns[:1]
