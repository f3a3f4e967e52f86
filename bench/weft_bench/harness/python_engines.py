# SPDX-License-Identifier: MIT
"""The engines of the cells in Python that have no server: Weft and pyzmq, each in one process of two."""

import asyncio
import itertools
import time

PATIENCE_S = 60
QUEUE = 1 << 24  # messages: a repetition fits
START_S = 20     # for a server to listen


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
