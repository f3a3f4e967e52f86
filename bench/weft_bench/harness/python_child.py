# SPDX-License-Identifier: MIT
"""One cell of topics in Python: sends in one process, receives in another. Takes the commands that bench_topics takes
(harness/child.py) and answers as it does. A round trip is measured as the mean of a repetition."""

import argparse
import asyncio
import collections
import importlib.metadata
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

PATIENCE_S = 60
QUEUE = 1 << 24  # messages: a repetition fits
START_S = 20     # for a server to listen
PIPELINE = 100   # publishes that redis-py sends at once
SERVERS_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"  # Debian's nats-server is in /usr/sbin


class Mismatch(Exception):
    """Something else arrived than was sent."""


class Weft:
    """weft.Topics: one topic there, and for round trips another one back."""

    def __init__(self, place, trips):
        import weft
        self.handle = weft.Topics("local", runtime_directory=place, hosts=False, peer_messages_max=100_000)
        self.name, self.trips = f"weft {weft.__version__}", trips

    def listen(self, topic):
        self.messages = self.handle.subscribe(topic, queue_messages_max=QUEUE, queue_bytes_max=1 << 32)

    def reach(self, topic):
        self.publisher = self.handle.publisher(topic)
        self.publisher.wait_subscribers(1, START_S)

    def send(self, payloads):
        publish = self.publisher.publish
        for payload in payloads:
            publish(payload, wait=True)

    def receive(self, count):
        take = self.messages.next
        return [take(PATIENCE_S).data for _ in itertools.repeat(None, count)]

    def ask(self, count, payload):
        publish, take = self.publisher.publish, self.messages.next
        for _ in itertools.repeat(None, count):
            publish(payload)
            answer = take(PATIENCE_S).data
        return answer

    def echo(self, count):
        publish, take = self.publisher.publish, self.messages.next
        for _ in itertools.repeat(None, count):
            publish(memoryview(take(PATIENCE_S)))

    def end(self):
        self.handle.close()


class WeftRequest(Weft):
    """weft.Topics.request, and a service."""

    def listen(self, topic):
        if topic == "ask":
            self.service = self.handle.serve(topic)

    def reach(self, topic):
        """The first request finds the service."""

    def ask(self, count, payload):
        import weft
        deadline = time.monotonic() + START_S
        for left in range(count, 0, -1):
            while True:
                try:
                    answer = self.handle.request("ask", payload, timeout=PATIENCE_S).data
                    break
                except weft.Unreachable:
                    if left < count or time.monotonic() > deadline:
                        raise
        return answer

    def echo(self, count):
        take = self.service.next
        for _ in itertools.repeat(None, count):
            request = take(PATIENCE_S)
            request.reply(memoryview(request))


class Loop:
    """An engine of coroutines, in a loop of its own."""

    def __init__(self, place, trips):
        self.loop = asyncio.new_event_loop()
        self.run(self.open(place, trips))

    def run(self, made):
        return self.loop.run_until_complete(made)

    def listen(self, topic):
        self.run(self.listen_there(topic))

    def reach(self, topic):
        self.run(self.reach_there(topic))

    def send(self, payloads):
        async def all_of_them():
            for payload in payloads:
                await self.give(payload)
            await self.flush()
        self.run(all_of_them())

    def receive(self, count):
        async def all_of_them():
            return [await self.take() for _ in itertools.repeat(None, count)]
        return self.run(all_of_them())

    def ask(self, count, payload):
        async def all_of_them():
            for _ in itertools.repeat(None, count):
                await self.give(payload)
                answer = await self.take()
            return answer
        return self.run(all_of_them())

    def echo(self, count):
        async def all_of_them():
            for _ in itertools.repeat(None, count):
                await self.give(await self.take())
            await self.flush()
        self.run(all_of_them())

    async def flush(self):
        """Before the loop stops."""


class WeftAio(Loop):
    """weft.aio.Topics, the same."""

    async def open(self, place, trips):
        import weft
        from weft import aio
        self.handle = await aio.Topics("local", runtime_directory=place, hosts=False, peer_messages_max=100_000)
        self.name, self.wait = f"weft.aio {weft.__version__}", not trips

    async def listen_there(self, topic):
        self.messages = self.handle.subscribe(topic, queue_messages_max=QUEUE, queue_bytes_max=1 << 32)

    async def reach_there(self, topic):
        self.publisher = self.handle.publisher(topic)
        await self.publisher.wait_subscribers(1, START_S)

    async def give(self, payload):
        await self.publisher.publish(payload, wait=self.wait)

    async def take(self):
        return (await self.messages.next(PATIENCE_S)).data

    def end(self):
        self.run(self.handle.close())


class WeftAioRequest(WeftAio):
    """weft.aio.Topics.request, and a service."""

    async def listen_there(self, topic):
        if topic == "ask":
            self.service = self.handle.serve(topic)

    async def reach_there(self, topic):
        """The first request finds the service."""

    def ask(self, count, payload):
        import weft

        async def all_of_them():
            deadline = time.monotonic() + START_S
            for left in range(count, 0, -1):
                while True:
                    try:
                        answer = (await self.handle.request("ask", payload, timeout=PATIENCE_S)).data
                        break
                    except weft.Unreachable:
                        if left < count or time.monotonic() > deadline:
                            raise
            return answer
        return self.run(all_of_them())

    def echo(self, count):
        async def all_of_them():
            for _ in itertools.repeat(None, count):
                request = await self.service.next(PATIENCE_S)
                request.reply(memoryview(request))
        self.run(all_of_them())


def pyzmq_ends(zmq, context, place, trips):
    """The sockets of pyzmq: PUSH to PULL, which drops nothing, or for round trips PAIR to PAIR."""
    class Ends:
        def listen(self, topic):
            self.reads = context.socket(zmq.PAIR if trips else zmq.PULL)
            self.prepare(self.reads)
            if trips and topic == "ask":
                self.reads.connect(f"ipc://{place}/pair")
            elif trips:
                self.reads.bind(f"ipc://{place}/pair")
            else:
                self.reads.bind(f"ipc://{place}/flow")

        def prepare(self, socket):
            socket.linger = 0
            socket.sndtimeo = socket.rcvtimeo = PATIENCE_S * 1000

        def reach(self, topic):
            if trips:
                self.writes = self.reads
                return
            self.writes = context.socket(zmq.PUSH)
            self.prepare(self.writes)
            self.writes.connect(f"ipc://{place}/flow")

        def close(self):
            for socket in {getattr(self, "reads", None), getattr(self, "writes", None)} - {None}:
                socket.close()
    return Ends()


class Pyzmq:
    """zmq.Socket, with a topic and a body of a message."""

    def __init__(self, place, trips):
        import zmq
        self.ends = pyzmq_ends(zmq, zmq.Context.instance(), place, trips)
        self.name, self.trips = f"pyzmq {zmq.__version__} on {zmq.zmq_version()}", trips

    def listen(self, topic):
        self.ends.listen(topic)

    def reach(self, topic):
        self.ends.reach(topic)

    def send(self, payloads):
        send = self.ends.writes.send_multipart
        for payload in payloads:
            send([b"flow", payload])

    def receive(self, count):
        take = self.ends.reads.recv_multipart
        return [take()[1] for _ in itertools.repeat(None, count)]

    def ask(self, count, payload):
        send, take = self.ends.writes.send_multipart, self.ends.reads.recv_multipart
        for _ in itertools.repeat(None, count):
            send([b"ask", payload])
            answer = take()[1]
        return answer

    def echo(self, count):
        send, take = self.ends.writes.send_multipart, self.ends.reads.recv_multipart
        for _ in itertools.repeat(None, count):
            send([b"answer", take()[1]])

    def end(self):
        self.ends.close()


class PyzmqAsyncio(Loop):
    """zmq.asyncio.Socket, the same."""

    async def open(self, place, trips):
        import zmq
        import zmq.asyncio
        self.ends = pyzmq_ends(zmq, zmq.asyncio.Context.instance(), place, trips)
        self.name = f"zmq.asyncio {zmq.__version__} on {zmq.zmq_version()}"

    async def listen_there(self, topic):
        self.ends.listen(topic)

    async def reach_there(self, topic):
        self.ends.reach(topic)

    async def give(self, payload):
        await self.ends.writes.send_multipart([b"flow", payload])

    async def take(self):
        return (await self.ends.reads.recv_multipart())[1]

    def end(self):
        self.ends.close()


class Nats(Loop):
    """nats-py, on a nats-server of its own. Messages come to a callback: next_msg() makes a task for each."""

    def __init__(self, place, trips):
        self.got, self.wanted, self.enough = collections.deque(), 0, None
        super().__init__(place, trips)

    async def open(self, place, trips):
        import nats
        self.handle = await nats.connect((pathlib.Path(place) / "nats.url").read_text(encoding="utf-8"))
        server = self.handle.connected_server_version
        self.name = (f"nats-py {importlib.metadata.version('nats-py')}, "
                     f"nats-server {server.major}.{server.minor}.{server.patch}")

    async def listen_there(self, topic):
        await self.handle.subscribe(topic, cb=self.arrived, pending_msgs_limit=QUEUE, pending_bytes_limit=1 << 32)
        await self.flush()

    async def reach_there(self, topic):
        self.topic = topic

    async def arrived(self, message):
        self.got.append(message.data)
        if self.enough is not None and len(self.got) >= self.wanted:
            self.enough.set_result(None)
            self.enough = None

    async def until(self, wanted):
        if len(self.got) < wanted:
            self.wanted, self.enough = wanted, self.loop.create_future()
            async with asyncio.timeout(PATIENCE_S):
                await self.enough

    def receive(self, count):
        """The oldest `count` messages, after a wait for the last of them.

        >>> class Alone(Nats):
        ...     async def open(self, place, trips): pass
        >>> class Message:
        ...     def __init__(self, data): self.data = data
        >>> nats = Alone("", False)
        >>> for data in (b"a", b"b"): _ = nats.loop.create_task(nats.arrived(Message(data)))
        >>> nats.receive(1), nats.receive(1)
        ([b'a'], [b'b'])
        """
        self.run(self.until(count))
        return [self.got.popleft() for _ in itertools.repeat(None, count)]

    async def give(self, payload):
        await self.handle.publish(self.topic, payload)

    async def take(self):
        await self.until(1)
        return self.got.popleft()

    async def flush(self):
        """Until the server has taken all. The PING of nats-py overtakes commands that it has not written yet."""
        while self.handle.pending_data_size > 0:
            await self.handle.flush(PATIENCE_S)
        await self.handle.flush(PATIENCE_S)

    def end(self):
        self.run(self.handle.close())


class NatsRequest(Nats):
    """request() of nats-py, and respond() in a callback."""

    async def listen_there(self, topic):
        if topic == "ask":
            await super().listen_there(topic)

    async def arrived(self, message):
        await message.respond(message.data)
        await super().arrived(message)

    def ask(self, count, payload):
        async def all_of_them():
            for _ in itertools.repeat(None, count):
                answer = await self.handle.request("ask", payload, timeout=PATIENCE_S)
            return answer.data
        return self.run(all_of_them())

    def echo(self, count):
        self.receive(count)
        self.run(self.flush())


class Redis:
    """redis-py, on a redis-server of its own: pipelines one way, and two channels for trips, as Redis has no requests."""

    def __init__(self, place, trips):
        import redis
        self.handle = redis.Redis(unix_socket_path=f"{place}/redis.sock")
        self.messages, self.topic = self.handle.pubsub(), ""
        self.name = name_of_redis(redis, self.handle.info("server"))

    def listen(self, topic):
        self.messages.subscribe(topic)
        if self.messages.get_message(timeout=START_S) is None:  # the answer to the subscription
            raise Mismatch("Redis does not subscribe")

    def reach(self, topic):
        self.topic = topic

    def take(self):
        if (message := self.messages.get_message(timeout=PATIENCE_S)) is None:
            raise Mismatch("no message came")
        return message["data"]

    def send(self, payloads):
        payloads = iter(payloads)
        while some := list(itertools.islice(payloads, PIPELINE)):
            pipeline = self.handle.pipeline(transaction=False)
            for payload in some:
                pipeline.publish(self.topic, payload)
            pipeline.execute()

    def receive(self, count):
        return [self.take() for _ in itertools.repeat(None, count)]

    def ask(self, count, payload):
        for _ in itertools.repeat(None, count):
            self.handle.publish(self.topic, payload)
            answer = self.take()
        return answer

    def echo(self, count):
        for _ in itertools.repeat(None, count):
            self.handle.publish(self.topic, self.take())

    def end(self):
        self.messages.close()


class RedisAio(Loop):
    """redis.asyncio, the same."""

    async def open(self, place, trips):
        import redis.asyncio
        self.handle = redis.asyncio.Redis(unix_socket_path=f"{place}/redis.sock")
        self.messages, self.topic = self.handle.pubsub(), ""
        self.name = name_of_redis(redis, await self.handle.info("server"), ".asyncio")

    async def listen_there(self, topic):
        await self.messages.subscribe(topic)
        if await self.messages.get_message(timeout=START_S) is None:
            raise Mismatch("Redis does not subscribe")

    async def reach_there(self, topic):
        self.topic = topic

    def send(self, payloads):
        async def all_of_them():
            rest = iter(payloads)
            while some := list(itertools.islice(rest, PIPELINE)):
                pipeline = self.handle.pipeline(transaction=False)
                for payload in some:
                    pipeline.publish(self.topic, payload)
                await pipeline.execute()
        self.run(all_of_them())

    async def give(self, payload):
        await self.handle.publish(self.topic, payload)

    async def take(self):
        return (await self.messages.get_message(timeout=None))["data"]

    def run(self, made):
        async def in_time():
            async with asyncio.timeout(PATIENCE_S):  # one for all: a timeout of each message makes a timer
                return await made
        return super().run(in_time())

    def end(self):
        async def both():
            await self.messages.aclose()
            await self.handle.aclose()
        self.run(both())


def name_of_redis(redis, server, part=""):
    parser = f"hiredis {importlib.metadata.version('hiredis')}" if redis.utils.HIREDIS_AVAILABLE else "without hiredis"
    return f"redis-py{part} {redis.__version__}, {parser}, redis-server {server['redis_version']}"


ENGINES = {"topics": Weft, "topics_aio": WeftAio, "pyzmq_weft": Pyzmq, "pyzmq_libzmq": Pyzmq, "asyncio_weft": PyzmqAsyncio,
           "asyncio_libzmq": PyzmqAsyncio, "topics_request": WeftRequest, "aio_request": WeftAioRequest,
           "nats_py": Nats, "nats_request": NatsRequest, "redis_py": Redis, "redis_aio": RedisAio}


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
