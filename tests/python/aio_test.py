# SPDX-License-Identifier: MIT
"""weft.aio.Topics: each call, cancelled tasks, floods, closes and wrong loops."""

import asyncio
import contextlib
import gc
import os
import tempfile
import threading
import unittest
import warnings

import weft
from topics_case import MESSAGES, PATIENCE
from weft import aio


class Case(unittest.IsolatedAsyncioTestCase):
    fleets = 0

    async def asyncSetUp(self):
        Case.fleets += 1
        self.fleet = f"inproc:aio{Case.fleets}"
        self.stack = contextlib.AsyncExitStack()
        self.addAsyncCleanup(self.stack.aclose)

    async def open(self, fleet=None, **options):
        return await self.stack.enter_async_context(aio.Topics(fleet or self.fleet, **options))

    async def in_time(self, awaitable):
        return await asyncio.wait_for(awaitable, PATIENCE)


async def waits(task):
    """Lets the task run until it waits for a message."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert not task.done()


class Messages(Case):
    async def test_messages_keep_order_bytes_topic_and_headers(self):
        left, right = await self.open(), await self.open()
        self.assertEqual(await left.sync(PATIENCE), 1)
        prices = right.subscribe("px.*", "\u00fc")
        publisher = left.publisher("px.A")
        self.assertEqual(await publisher.wait_subscribers(1, PATIENCE), 1)
        waiting = asyncio.create_task(prices.next(PATIENCE))
        await waits(waiting)
        await publisher.publish(bytearray(b"one"), headers={"Unit": "dollar"})
        message = await waiting
        self.assertEqual((message.data, message.topic, message.headers), (b"one", "px.A", {"Unit": "dollar"}))
        await left.publish("\u00fc", memoryview(b"two"))
        await publisher.publish("three", wait=True, timeout=PATIENCE)
        self.assertEqual([(await prices.next(PATIENCE)).data for _ in range(2)], [b"two", b"three"])
        prices.remove("px.*")
        prices.add("other")
        await left.publish("other")
        self.assertEqual((await prices.next(PATIENCE)).topic, "other")
        self.assertEqual(prices.missed, 0)

    async def test_a_loop_over_two_handles(self):
        left, right = await self.open(), await self.open()
        ping, pong = right.subscribe("ping"), left.subscribe("pong")
        publisher, back = left.publisher("ping"), right.publisher("pong")
        await publisher.wait_subscribers(1, PATIENCE)
        await back.wait_subscribers(1, PATIENCE)

        async def echo():
            async for message in ping:
                await back.publish(message.data)

        async with asyncio.TaskGroup() as group:
            group.create_task(echo())
            for number in range(300):
                await publisher.publish(b"%d" % number)
                self.assertEqual((await pong.next(PATIENCE)).data, b"%d" % number)
            ping.close()

    async def test_each_of_several_waits_gets_its_message_of_another_handle(self):
        left, right = await self.open(), await self.open()
        sources = [right.subscribe(f"to.{number}") for number in range(3)]
        publishers = [left.publisher(f"to.{number}") for number in range(3)]
        for publisher in publishers:
            await publisher.wait_subscribers(1, PATIENCE)
        for number in range(100):
            waiting = [asyncio.create_task(source.next(PATIENCE)) for source in sources]
            last = asyncio.create_task(sources[0].next(PATIENCE))  # two wait for the first one
            await waits(last)
            for publisher in (*publishers, publishers[0]):
                await publisher.publish(b"%d" % number)
            for message in await asyncio.gather(*waiting, last):
                self.assertEqual(message.data, b"%d" % number)

    async def test_waits_with_several_ends(self):
        subscription = (await self.open()).subscribe("a")
        clock = asyncio.get_running_loop().time
        ends = []

        async def wait(time):
            start = clock()
            with self.assertRaises(weft.TimedOut):
                await subscription.next(time)
            ends.append(time)
            self.assertGreaterEqual(clock() - start, time - 0.001)
        await asyncio.gather(wait(0.06), wait(0.02), wait(0.04), wait(0.02))
        self.assertEqual(ends, [0.02, 0.02, 0.04, 0.06])

    async def test_a_timeout_passes(self):
        topics = await self.open()
        subscription = topics.subscribe("a")
        for timeout, code in ((0, weft.Code.WOULD_BLOCK), (0.001, weft.Code.TIMED_OUT)):
            with self.assertRaises(weft.TimedOut) as raised:
                await subscription.next(timeout)
            self.assertEqual(raised.exception.code, code)
            self.assertIn("wait for message of 'a': ", str(raised.exception))
        with self.assertRaises(weft.TimedOut):
            await topics.publisher("b").wait_subscribers(1, 0.001)
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(0.001):
                await subscription.next()

    async def test_waits_that_end_without_a_message_leave_nothing_behind(self):
        subscription = (await self.open()).subscribe("a")

        def futures():
            gc.collect()
            return sum(isinstance(each, asyncio.Future) for each in gc.get_objects())
        before = futures()
        for number in range(100):
            with self.assertRaises(weft.TimedOut):
                await subscription.next(0.001)
            waiting = asyncio.create_task(subscription.next(PATIENCE))
            await waits(waiting)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        del waiting
        self.assertLess(futures() - before, 10)

    async def test_a_flood_leaves_steps_to_other_tasks(self):
        topics = await self.open()
        subscription = topics.subscribe("a")
        steps = 0
        done = False

        async def other():
            nonlocal steps
            while not done:
                steps += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        for number in range(MESSAGES):
            await topics.publish("a", b"%d" % number)
        self.assertGreaterEqual(steps, MESSAGES // 64 - 1)
        steps = 0
        for number in range(MESSAGES):
            self.assertEqual((await subscription.next()).data, b"%d" % number)
        self.assertGreaterEqual(steps, MESSAGES // 64 - 1)
        done = True
        await task

    async def test_a_cancelled_wait_loses_no_message(self):
        topics = await self.open()
        subscription = topics.subscribe("a")
        got = []

        async def take():
            got.append(int((await subscription.next()).data))

        tasks = []
        for number in range(600):
            tasks.append(asyncio.create_task(take()))
            await topics.publish("a", b"%d" % number)
            if number % 3 == 0:
                await asyncio.sleep(0)
            if number % 2 == 0:
                tasks[-1].cancel()
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE):
            while len(got) < 600:  # a task may take the last one
                with contextlib.suppress(weft.TimedOut):
                    got.append(int((await subscription.next(0.01)).data))
        self.assertEqual(sorted(got), list(range(600)))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def test_a_dropped_subscription_leaves_the_loop(self):
        topics = await self.open()
        publisher = topics.publisher("a")
        for _ in range(3):
            subscription = topics.subscribe("a")
            with self.assertRaises(weft.TimedOut):
                await subscription.next(0.001)
            del subscription
            gc.collect()
            self.assertEqual(await publisher.wait_subscribers(0, PATIENCE), 0)
        read, write = os.pipe()  # a number that the loop must have forgotten
        self.addCleanup(os.close, write)
        self.addCleanup(os.close, read)
        seen = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(read, seen.set)
        os.write(write, b"x")
        await self.in_time(seen.wait())
        loop.remove_reader(read)


class Ends(Case):
    async def test_a_close_ends_the_tasks_that_wait_with_an_error(self):
        for who in ("subscription", "topics"):
            topics = await self.open()
            subscription = topics.subscribe("a")
            with self.assertRaises(ExceptionGroup) as raised:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(subscription.next()) for _ in range(2)]
                    for task in tasks:
                        await waits(task)
                    if who == "subscription":
                        subscription.close()
                    else:
                        await topics.close()
            self.assertTrue(raised.exception.split(weft.Closed)[1] is None, raised.exception)

    async def test_a_loop_gives_what_was_queued_at_the_close_and_ends(self):
        topics = await self.open()
        subscription = topics.subscribe("a")
        for number in range(300):
            await topics.publish("a", b"%d" % number)
        await topics.close()
        self.assertEqual([message.data async for message in subscription], [b"%d" % number for number in range(300)])
        with self.assertRaises(weft.Closed):
            await subscription.next()
        with self.assertRaises(weft.Closed):
            await topics.publish("a")
        with self.assertRaises(weft.Closed):
            await topics.request("a")
        await topics.close()
        self.assertEqual(repr(topics), f"<weft.aio.Topics '{self.fleet}' closed>")

    async def test_a_close_ends_a_request_that_waits(self):
        topics = await self.open()
        service = topics.serve("kept")
        with self.assertRaises(ExceptionGroup) as raised:
            async with asyncio.TaskGroup() as group:
                group.create_task(topics.request("kept", timeout=None))
                await service.next(PATIENCE)
                await topics.close()
        self.assertEqual(len(raised.exception.exceptions), 1)
        self.assertIsInstance(raised.exception.exceptions[0], weft.TopicsError)

    async def test_wrong_loops_threads_and_handles_are_errors(self):
        topics = await self.open()
        subscription = topics.subscribe("a")
        failures = []

        def elsewhere():
            async def use():
                await subscription.next()

            for call in (lambda: asyncio.run(use()), subscription.close):
                try:
                    call()
                except weft.TopicsError as error:
                    failures.append(error.code)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        self.assertEqual(failures, [weft.Code.INVALID_STATE] * 2)
        self.assertFalse(subscription.closed)
        unopened = aio.Topics(self.fleet)
        self.assertIn("not open", repr(unopened))
        with self.assertRaises(weft.TopicsError) as raised:
            await unopened.publish("a")
        self.assertIn("await it", str(raised.exception))
        with self.assertRaises(weft.TopicsError):
            await topics
        with self.assertRaises(weft.TopicsError):
            await aio.Topics("nonsense://")
        with self.assertRaises(weft.TopicsError) as raised:
            await topics.publish("a..b")
        self.assertIn("publish 'a..b': ", str(raised.exception))

    async def test_a_forgotten_handle_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            topics = await aio.Topics(self.fleet)
            del topics
            gc.collect()
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])


class Requests(Case):
    async def test_a_service_answers_several_requests_at_once(self):
        left, right = await self.open(), await self.open()
        service = right.serve("echo")
        await left.sync(PATIENCE)
        together = asyncio.Barrier(4)

        async def handle(request):
            await together.wait()  # none of four ends before all of them run
            return request.data[::-1]

        async with asyncio.TaskGroup() as group:
            group.create_task(service.run(handle, at_a_time=4))
            replies = await self.in_time(asyncio.gather(*(left.request("echo", b"%d-" % n, timeout=PATIENCE) for n in range(4))))
            self.assertEqual([reply.data for reply in replies], [b"-%d" % n for n in range(4)])
            service.close()

    async def test_failures_of_requests(self):
        topics = await self.open()
        with self.assertRaises(weft.Unreachable):
            await topics.request("nobody")
        service = topics.serve("fails")

        async def handle(request):
            raise KeyError("details stay here")

        with self.assertLogs("weft.topics", "ERROR"):
            async with asyncio.TaskGroup() as group:
                group.create_task(service.run(handle))
                with self.assertRaises(weft.TopicsError) as raised:
                    await topics.request("fails", timeout=PATIENCE)
                self.assertIn("the service raised KeyError", str(raised.exception))
                await topics.close()


    async def test_a_thousand_requests_are_under_way_at_once(self):
        left, right = await self.open(), await self.open()
        service = right.serve("slow", queue_max=1000)
        await left.sync(PATIENCE)
        threads = threading.active_count()
        asked = [asyncio.create_task(left.request("slow", b"%d" % n, timeout=None)) for n in range(1000)]
        taken = [await service.next(PATIENCE) for _ in range(1000)]  # before the first answer
        self.assertLessEqual(threading.active_count(), threads)
        self.assertFalse(any(task.done() for task in asked))
        for request in reversed(taken):
            request.reply(request.data)
        replies = await self.in_time(asyncio.gather(*asked))
        self.assertEqual([reply.data for reply in replies], [b"%d" % n for n in range(1000)])

    async def test_a_cancelled_request_drops_its_answer_alone(self):
        topics = await self.open()
        service = topics.serve("slow")
        first, second = (asyncio.create_task(topics.request("slow", each, timeout=None)) for each in (b"1", b"2"))
        taken = [await service.next(PATIENCE) for _ in range(2)]
        first.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await first
        for request in taken:
            request.reply(request.data)
        self.assertEqual((await self.in_time(second)).data, b"2")

    async def test_a_request_ends_at_its_time(self):
        topics = await self.open()
        topics_service = topics.serve("slow")
        with self.assertRaises(weft.TimedOut) as raised:
            await topics.request("slow", timeout=0.02)
        self.assertIn("request 'slow'", str(raised.exception))
        topics_service.close()

    async def test_answers_leave_steps_to_other_tasks(self):
        topics = await self.open()
        service = topics.serve("echo", queue_max=1000)
        asked = [asyncio.create_task(topics.request("echo", timeout=PATIENCE)) for _ in range(1000)]
        for request in [await service.next(PATIENCE) for _ in range(1000)]:
            request.reply()
        seen = set()
        while not all(task.done() for task in asked):
            seen.add(sum(task.done() for task in asked))
            await asyncio.sleep(0)
        self.assertGreater(len(seen), 3)  # this task ran between the answers

    async def test_a_forgotten_handle_leaves_the_loop(self):
        topics = await aio.Topics(self.fleet)
        service = topics.serve("echo")
        asked = asyncio.create_task(topics.request("echo", timeout=PATIENCE))
        (await service.next(PATIENCE)).reply()
        await asked
        fd = topics._home.later._fd
        service.close()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            del topics, service, asked
            gc.collect()
        self.assertFalse(asyncio.get_running_loop().remove_reader(fd))


class Kept(Case):
    async def open_jobs(self):
        """A handle, and the stream of its jobs."""
        directory = self.stack.enter_context(tempfile.TemporaryDirectory())
        topics = await self.open("local:test", runtime_directory=directory, store_directory=directory)
        try:
            return topics, await topics.stream("jobs", "jobs.>", survives=weft.Survives.PROCESS)
        except weft.TopicsError as error:
            if error.code == weft.Code.NOT_SUPPORTED:
                self.skipTest("a build without SQLite")
            raise

    async def test_more_publishes_than_places_wait(self):
        _, stream = await self.open_jobs()
        published = await asyncio.gather(*(stream.publish("jobs.a", b"%d" % n) for n in range(6000)))
        self.assertEqual({each.sequence for each in published}, set(range(1, 6001)))

    @contextlib.contextmanager
    def no_free_thread(self, topics):
        """All threads of the handle wait."""
        end = threading.Event()
        self.addCleanup(end.set)
        for _ in range(8):
            topics._home._pool.submit(end.wait)
        yield
        end.set()

    async def test_a_purge_needs_no_thread(self):
        topics, stream = await self.open_jobs()
        await asyncio.gather(*(stream.publish("jobs.a", b"%d" % n) for n in range(20)))
        with self.no_free_thread(topics):
            await self.in_time(asyncio.gather(*(stream.purge(n) for n in range(1, 11))))
            with self.assertRaises(weft.NotFound):
                await stream.message(9)
            self.assertEqual((await stream.message(10)).data, b"9")

    async def test_acknowledgements_info_keys_and_removals_need_no_thread(self):
        topics, stream = await self.open_jobs()
        bucket = await topics.key_value("conf", survives=weft.Survives.PROCESS)
        consumer = await stream.consume("workers", unacked_max=6000, queue_messages_max=6000)
        asyncio.get_running_loop().set_debug(False)  # which notes a stack for each of 13,000 tasks
        with self.no_free_thread(topics):
            await asyncio.gather(*(stream.publish("jobs.a", b"%d" % n) for n in range(6000)),
                                 *(bucket.put(f"k.{n:03}", b"") for n in range(600)))
            deliveries = [await consumer.next(PATIENCE) for _ in range(6000)]
            await self.in_time(asyncio.gather(*(each.ack_confirmed() for each in deliveries)))  # more than have a place
            with self.assertRaises(weft.TopicsError) as refused:
                await deliveries[0].ack_confirmed()
            self.assertEqual(refused.exception.code, weft.Code.INVALID_STATE)
            info = await self.in_time(stream.info())
            self.assertEqual((info.first, info.next, info.dropped_unread), (1, 6001, 0))
            self.assertEqual(await self.in_time(bucket.keys()), [f"k.{n:03}" for n in range(600)])
            with self.assertRaises(weft.TopicsError):
                await bucket.keys("k.59*")  # not a filter
            self.assertEqual(await self.in_time(bucket.keys("k.599")), ["k.599"])
            cancelled = asyncio.create_task(stream.info())
            await asyncio.sleep(0)
            cancelled.cancel()  # its answer is dropped
            await self.in_time(stream.remove())
            with self.assertRaises(weft.NotFound):
                await stream.info()

    async def test_streams_consumers_and_keys(self):
        topics, stream = await self.open_jobs()
        published = await asyncio.gather(*(stream.publish("jobs.a", b"%d" % n, id=str(n)) for n in range(20)))
        self.assertEqual(sorted(each.sequence for each in published), list(range(1, 21)))
        self.assertTrue((await stream.publish("jobs.a", b"0", id="0")).duplicate)
        self.assertEqual((await stream.info()).next, 21)
        reader = await stream.read()
        self.assertEqual([(await reader.next(PATIENCE)).sequence for _ in range(20)], list(range(1, 21)))
        consumer = await stream.consume("workers", retry_waits=[0.001])
        with await consumer.next(PATIENCE) as delivery:
            self.assertEqual(delivery.sequence, 1)
        delivery = await consumer.next(PATIENCE)
        await delivery.ack_confirmed()
        with self.assertRaises(weft.TopicsError):
            delivery.nak()
        standby = await stream.consume("workers", retry_waits=[0.001], priority=1)
        with self.assertRaises(weft.TopicsError):
            await stream.consume("workers", retry_waits=[0.001], priority=10)
        standby.close()
        self.assertEqual((await stream.message(3)).sequence, 3)
        self.assertEqual((await stream.newest("jobs.a")).sequence, 20)
        await stream.purge(10)
        self.assertEqual((await stream.info()).first, 10)

        bucket = await topics.key_value("conf", survives=weft.Survives.PROCESS)
        self.assertIsNone(await bucket.get("k"))
        watch = await bucket.watch()
        waiting = asyncio.create_task(watch.next(PATIENCE))
        await waits(waiting)
        revision = await bucket.put("k", b"1")
        self.assertEqual((await waiting).value, b"1")
        await bucket.update("k", b"2", revision)
        with self.assertRaises(weft.Conflict):
            await bucket.create("k", b"3")
        self.assertEqual(((await bucket.get("k")).value, await bucket.keys()), (b"2", ["k"]))
        await bucket.delete("k")
        self.assertEqual([(await watch.next(PATIENCE)).erased for _ in range(2)], [False, True])
        first = await bucket.create("k", b"4", ttl=3600)
        second = await bucket.put("k", b"5", ttl=3600)
        with self.assertRaises(weft.Conflict):
            await bucket.update("k", b"6", first, ttl=1)
        await bucket.update("k", b"6", second, ttl=1)
        while not (await watch.next(PATIENCE)).erased:
            pass
        self.assertIsNone(await bucket.get("k"))
        for wrong in (stream.publish("jobs.a", ttl=0.5), stream.publish("jobs.a", ttl=0.5, strict=True)):
            with self.assertRaises(weft.TopicsError) as refused:
                await wrong
            self.assertEqual(refused.exception.code, weft.Code.INVALID_ARGUMENT)
        self.assertEqual((await stream.publish("jobs.a", ttl=3600)).sequence, 21)
        self.assertEqual((await stream.publish("jobs.a", delay=3600)).sequence, 0)
        with self.assertRaises(weft.TopicsError) as refused:
            await stream.publish("jobs.a", delay=1, strict=True)
        self.assertEqual(refused.exception.code, weft.Code.INVALID_ARGUMENT)
        batch = [weft.Draft("jobs.a", b"1", expect_last=21), ("jobs.b", "2")]
        with self.no_free_thread(topics):
            self.assertEqual((await stream.publish_all(batch)).sequence, 22)
        with self.assertRaises(weft.Conflict):
            await stream.publish_all(batch)
        self.assertEqual((await stream.info()).next, 24)
        await stream.remove()
        with self.assertRaises(weft.NotFound):
            await stream.publish("jobs.a")


if __name__ == "__main__":
    unittest.main()
