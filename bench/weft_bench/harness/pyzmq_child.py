# SPDX-License-Identifier: MIT
"""One cell through pyzmq, unmodified: sends in one process, receives in another. Takes the commands that bench_sockets
takes (harness/child.py) and answers as it does; which libzmq it runs on is the dynamic linker's business (LD_PRELOAD)."""

import argparse
import asyncio
import ctypes
import itertools
import json
import multiprocessing
import resource
import sys
import tempfile
import time

import zmq
import zmq.asyncio

HWM = 1000  # libzmq's default
TIMEOUT_MS = 60_000


class Mismatch(Exception):
    """Something else arrived than was sent."""


def library_path():
    """The file whose zmq_send is called: what was preloaded, or what the wheel brings along."""
    class Info(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                    ("address", ctypes.c_void_p)]
    everything = ctypes.CDLL(None)
    try:
        address = ctypes.cast(everything.zmq_send, ctypes.c_void_p)  # the wheel's own is not visible from here
    except AttributeError:
        with open("/proc/self/maps", encoding="utf-8") as file:
            return next(line.split(maxsplit=5)[5].strip() for line in file if "libzmq" in line)
    info = Info()
    everything.dladdr(address, ctypes.byref(info))
    return info.name.decode()


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_nvcsw + used.ru_nivcsw


def payload_of(number, size):
    return number.to_bytes(8, "little").ljust(size, b"x")


class Sync:
    """zmq.Socket: calls that block."""

    def __init__(self, kind):
        self.socket = zmq.Context.instance().socket(kind)

    def send(self, payloads):
        send = self.socket.send
        for payload in payloads:
            send(payload)

    def receive(self, count):
        recv = self.socket.recv
        return [recv() for _ in itertools.repeat(None, count)]


class Asyncio:
    """zmq.asyncio.Socket: one awaited call for each message."""

    def __init__(self, kind):
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.socket = zmq.asyncio.Context.instance().socket(kind)

    def send(self, payloads):
        async def send_all():
            for payload in payloads:
                await self.socket.send(payload)
        self.loop.run_until_complete(send_all())

    def receive(self, count):
        async def receive_all():
            return [await self.socket.recv() for _ in itertools.repeat(None, count)]
        return self.loop.run_until_complete(receive_all())


def prepare(side):
    side.socket.linger = 0
    side.socket.sndtimeo = side.socket.rcvtimeo = TIMEOUT_MS
    side.socket.sndhwm = side.socket.rcvhwm = HWM


def payloads(count, size, verify_all):
    """All the same but the last one, which ends the repetition; or each with its number."""
    if verify_all:
        return [payload_of(number, size) for number in range(count)]
    return itertools.chain(itertools.repeat(payload_of(0, size), count - 1), [payload_of(count - 1, size)])


def send_on_command(api, size, commands):
    """The sending process: (endpoint), then (count, verify_all) until None; answers with what a repetition used."""
    sender = api(zmq.PUSH)
    prepare(sender)
    sender.socket.connect(commands.recv())
    while (command := commands.recv()) is not None:
        before = usage()
        sender.send(payloads(command[0], size, command[1]))
        commands.send([now - then for now, then in zip(usage(), before)])


def repeat(receiver, commands, size, count, verify_all):
    before = usage()
    commands.send((count, verify_all))
    got = receiver.receive(1)
    start = time.perf_counter()
    got += receiver.receive(count - 1)
    seconds = time.perf_counter() - start
    cpu, switches = [now - then for now, then in zip(usage(), before)]
    if got != list(payloads(count, size, verify_all)):
        raise Mismatch("what arrived is not what was sent, or not in that order")
    cpu_of_sender, switches_of_sender = commands.recv()
    return {"messages": count, "receivers": 1, "seconds": seconds, "cpu_seconds": cpu + cpu_of_sender,
            "switches": switches + switches_of_sender, "before_ns": None, "after_ns": None}


def main():
    parser = argparse.ArgumentParser(prog="pyzmq_child.py", description=__doc__)
    parser.add_argument("--api", choices=("pyzmq", "asyncio"), required=True)
    parser.add_argument("--transport", choices=("tcp", "ipc"), required=True)
    parser.add_argument("--size", type=int, required=True)
    arguments = parser.parse_args()
    api = Sync if arguments.api == "pyzmq" else Asyncio
    commands, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=send_on_command, args=(api, arguments.size, theirs),
                                                          daemon=True)
    process.start()  # before there is a context
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        receiver = api(zmq.PULL)
        prepare(receiver)
        receiver.socket.bind("tcp://127.0.0.1:*" if arguments.transport == "tcp" else f"ipc://{folder}/socket")
        commands.send(receiver.socket.last_endpoint.decode())
        print(json.dumps({"version": zmq.zmq_version(), "path": library_path()}), flush=True)
        for line in sys.stdin:
            _, count, _, verify_all = line.split()
            print(json.dumps(repeat(receiver, commands, arguments.size, int(count), verify_all == "1")), flush=True)
        commands.send(None)
        process.join(TIMEOUT_MS / 1000)
        receiver.socket.close()


if __name__ == "__main__":
    try:
        main()
    except (Mismatch, zmq.ZMQError) as error:
        sys.exit(str(error))
