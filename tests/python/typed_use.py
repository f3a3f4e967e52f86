# SPDX-License-Identifier: MIT
"""A program with a type for each value that the package gives. types_test.py checks it, and no test runs it.

A line with `type: ignore` and `pyright: ignore` is a mistake that a checker must find: an unneeded one is an error.
"""

from typing import List, Optional, assert_type

import weft
from weft import aio


def sockets() -> None:
    with weft.Context() as context, context.socket(weft.PULL) as pull:
        assert_type(pull.bind("tcp://127.0.0.1:*"), str)
        assert_type(pull.recv(), List[bytes])
        pull.send([b"a", bytearray(b"b")], wait=False)
        assert_type(pull.get_int(weft.LINGER), int)
        with pull.monitor() as monitor:
            assert_type(monitor.next(1).endpoint, str)
        poller = weft.Poller()
        poller.register(pull, weft.Poll.IN)
        for _, events in poller.poll(0.1):
            assert_type(events, weft.Poll)
        pull.send(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def topics() -> None:
    with weft.Topics("local", hosts=False) as handle:
        publisher = handle.publisher("px.A")
        publisher.publish(memoryview(b"x"), headers={"Unit": "EUR"}, wait=True, timeout=1)
        publisher.publish(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        with handle.subscribe("px.*", full=weft.Full.DROP_NEWEST) as prices:
            assert_type(prices, weft.Subscription)
            assert_type(prices.next(1.5), weft.Message)
            assert_type(prices.try_next(), Optional[weft.Message])
            for price in prices:
                assert_type(price.data, bytes)
            prices.add("other", 1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        assert_type(handle.request("svc", b"x", timeout=None).text, str)
        service = handle.serve("svc")
        service.run(lambda request: request.data)
        assert_type(service.next().reply(), None)
        stream = handle.stream("orders", "order.*", keep=weft.Keep.LOG)
        assert_type(stream.publish("order.tea", b"1").sequence, int)
        assert_type(stream.publish_later("order.tea").try_result(), Optional[weft.Published])
        assert_type(stream.read(start=weft.From.LAST).next(), weft.Stored)
        with stream.consume("kitchen", retry_waits=[1, 2.5]).next() as order:
            assert_type(order, weft.Delivery)
            order.ack_confirmed()
        bucket = handle.key_value("config")
        assert_type(bucket["color"], bytes)
        assert_type(bucket.get("color"), Optional[weft.Entry])
        bucket["color"] = "blue"
        assert_type(bucket.watch().next().value, bytes)


async def tasks() -> None:
    async with aio.Topics("local") as handle:
        await handle.publish("px.A", b"1")
        prices = handle.subscribe("px.*")
        assert_type(await prices.next(timeout=1), weft.Message)
        async for price in prices:
            assert_type(price.missed, int)
        assert_type(await handle.request("svc"), weft.Message)
        handle.request("svc").data  # type: ignore[attr-defined]  # pyright: ignore
        stream = await handle.stream("orders")
        assert_type(await stream.publish("order.tea"), weft.Published)
        assert_type(await stream.newest("order.tea"), weft.Stored)
        order = await (await stream.consume("kitchen")).next()
        await order.ack_confirmed()
        bucket = await handle.key_value("config")
        assert_type(await bucket.put("color", "blue"), int)
        assert_type(await bucket.get("color"), Optional[weft.Entry])
    with weft.Context() as context:
        async with aio.Socket(context, weft.PULL) as pull:
            assert_type(await pull.recv(), List[bytes])
            assert_type(await pull.recv_batch(), List[List[bytes]])


def failures() -> None:
    try:
        topics()
    except weft.TimedOut as error:
        assert_type(error.operation, str)
    except weft.TopicsError as error:
        assert_type(error.name, Optional[str])
