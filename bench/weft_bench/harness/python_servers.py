# SPDX-License-Identifier: MIT
"""The engines of the cells in Python that have a server of their own: clients of NATS and of Redis."""

import asyncio
import collections
import importlib.metadata
import itertools
import pathlib

from weft_bench.harness.python_engines import PATIENCE_S, QUEUE, START_S, Loop, Mismatch

PIPELINE = 100  # publishes that redis-py sends at once


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
