# SPDX-License-Identifier: MIT
"""One cell of topics in Python: sends in one process, receives in another. Takes the commands that bench_topics takes
(harness/child.py) and answers as it does. A round trip is measured as the mean of a repetition."""

import argparse
import itertools
import json
import multiprocessing
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from weft_bench.harness import python_engines, python_servers
from weft_bench.harness.python_engines import PATIENCE_S, START_S, Mismatch

SERVERS_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"  # Debian's nats-server is in /usr/sbin
ENGINES = {"topics": python_engines.Weft, "topics_aio": python_engines.WeftAio, "topics_request": python_engines.WeftRequest,
           "aio_request": python_engines.WeftAioRequest, "pyzmq_weft": python_engines.Pyzmq,
           "pyzmq_libzmq": python_engines.Pyzmq, "asyncio_weft": python_engines.PyzmqAsyncio,
           "asyncio_libzmq": python_engines.PyzmqAsyncio, "nats_py": python_servers.Nats,
           "nats_request": python_servers.NatsRequest, "redis_py": python_servers.Redis, "redis_aio": python_servers.RedisAio}


def start_server(engine, place):
    """The server of an engine, once it listens; None: it has none."""
    commands = {"nats": ["nats-server", "--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir", place],
                "redis": ["redis-server", "--port", "0", "--save", "", "--unixsocket", f"{place}/redis.sock",
                          "--client-output-buffer-limit", "pubsub 0 0 0"]}
    kind = engine.split("_")[0]
    if kind not in commands:
        return None
    command = [shutil.which(commands[kind][0], path=SERVERS_PATH), *commands[kind][1:]]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=place)
    deadline = time.monotonic() + START_S
    while not ready(engine, pathlib.Path(place)):
        if server.poll() is not None or time.monotonic() > deadline:
            raise Mismatch(f"{command[0]} does not listen")
        time.sleep(0.01)
    return server


def ready(engine, place):
    if engine.startswith("redis"):
        return (place / "redis.sock").exists()
    for file in place.glob("nats-server_*.ports"):
        text = file.read_text(encoding="utf-8")
        if text.rstrip().endswith("}"):
            (place / "nats.url").write_text(json.loads(text)["nats"][0], encoding="utf-8")
            return True
    return False


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_nvcsw + used.ru_nivcsw


def payload_of(number, size):
    return number.to_bytes(8, "little").ljust(size, b"x")


def payloads(count, size, verify_all):
    """All the same except the last one, which ends the repetition; or each with its number."""
    if verify_all:
        return [payload_of(number, size) for number in range(count)]
    return itertools.chain(itertools.repeat(payload_of(0, size), count - 1), [payload_of(count - 1, size)])


def work_there(engine, place, size, trips, commands):
    """The other process: opens at the first command; then (count, verify_all) until None; answers with what it used."""
    commands.recv()
    end = ENGINES[engine](place, trips)
    if trips:
        end.listen("ask")
    end.reach("answer" if trips else "flow")
    commands.send(None)
    while (command := commands.recv()) is not None:
        before = usage()
        if trips:
            end.echo(command[0])
        else:
            end.send(payloads(command[0], size, command[1]))
        commands.send([now - then for now, then in zip(usage(), before)])
    end.end()


def repeat(end, commands, size, trips, count, verify_all):
    before = usage()
    # From the command on: a client may write its first message when it has encoded thousands.
    start = time.perf_counter()
    commands.send((count, verify_all))
    if trips:
        right = end.ask(count, payload_of(count, size)) == payload_of(count, size)
        seconds = time.perf_counter() - start
    else:
        got = end.receive(count)
        seconds = time.perf_counter() - start
        right = got == list(payloads(count, size, verify_all))
    cpu, switches = [now - then for now, then in zip(usage(), before)]
    if not right:
        raise Mismatch("what arrived is not what was sent, or not in that order")
    cpu_there, switches_there = commands.recv()
    return {"messages": count, "receivers": 1, "seconds": seconds, "cpu_seconds": cpu + cpu_there,
            "switches": switches + switches_there, "before_ns": None, "after_ns": None}


def main():
    parser = argparse.ArgumentParser(prog="python_child.py", description=__doc__)
    parser.add_argument("--engine", choices=sorted(ENGINES), required=True)
    parser.add_argument("--size", type=int, required=True)
    parser.add_argument("--trips", action="store_true")
    arguments = parser.parse_args()
    commands, theirs = multiprocessing.Pipe()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as place:
        pathlib.Path(place).chmod(0o700)
        process = multiprocessing.get_context("fork").Process(
            target=work_there, args=(arguments.engine, place, arguments.size, arguments.trips, theirs), daemon=True)
        process.start()  # before there is a handle
        server = start_server(arguments.engine, place)
        try:
            end = ENGINES[arguments.engine](place, arguments.trips)
            end.listen("answer" if arguments.trips else "flow")
            commands.send(None)
            if arguments.trips and arguments.engine.startswith("topics"):
                end.reach("ask")
                commands.recv()
            else:
                commands.recv()
                if arguments.trips:
                    end.reach("ask")
            print(json.dumps({"version": end.name, "path": ""}), flush=True)
            for line in sys.stdin:
                _, count, _, verify_all = line.split()
                print(json.dumps(repeat(end, commands, arguments.size, arguments.trips, int(count), verify_all == "1")),
                      flush=True)
            commands.send(None)
            process.join(PATIENCE_S)
            end.end()
        finally:
            if server is not None:
                server.send_signal(signal.SIGKILL)
                server.wait()


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
