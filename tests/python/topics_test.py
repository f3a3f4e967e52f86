# SPDX-License-Identifier: MIT
"""weft.Topics: messages, requests, errors, threads, signals and ends."""

import contextlib
import datetime
import gc
import pickle
import select
import signal
import sys
import threading
import unittest
import warnings
from dataclasses import replace

import weft
from topics_case import MESSAGES, PATIENCE, Case


class Publishing(Case):
    def test_messages_keep_order_bytes_topic_and_headers(self):
        left, right = self.open(), self.open()
        self.assertEqual(left.sync(PATIENCE), 1)
        prices = right.subscribe("px.*")
        publisher = left.publisher("px.AAPL")
        self.assertEqual(publisher.wait_subscribers(1, PATIENCE), 1)
        array = bytearray(b"an array")
        for data in (b"bytes", array, memoryview(b"a view")[2:], "t\u00e9xt", b""):
            publisher.publish(data)
        publisher.publish(b"headed", headers={"Unit": "dollar", "Source": "a: b"})
        left.publish("px.AAPL", b"the last", headers={"Unit": "euro"})
        array[:2] = b"AN"
        array.extend(b"...")  # no call holds its buffer
        wanted = [b"bytes", b"an array", b"view", "t\u00e9xt".encode(), b"", b"headed", b"the last"]
        got = [prices.next(PATIENCE) for _ in wanted]
        self.assertEqual([message.data for message in got], wanted)
        self.assertEqual({message.topic for message in got}, {"px.AAPL"})
        self.assertEqual(got[3].text, "t\u00e9xt")
        self.assertEqual(got[0].headers, {})
        self.assertEqual(got[5].headers, {"Unit": "dollar", "Source": "a: b"})
        self.assertEqual(got[6].headers, {"Unit": "euro"})
        self.assertEqual([message.missed for message in got], [0] * 7)

    def test_a_view_of_a_message_outlives_it(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        topics.publish("a", b'{"n": [1]}')
        message = subscription.next(PATIENCE)
        self.assertEqual(message.json(), {"n": [1]})
        self.assertEqual(len(message), 10)
        view = memoryview(message)
        self.assertTrue(view.readonly)
        del message
        topics.close()
        gc.collect()
        self.assertEqual(bytes(view), b'{"n": [1]}')

    def test_topics_are_any_text(self):
        topics = self.open()
        subscription = topics.subscribe("\u00fcn\u00ef.>")
        topics.publish("\u00fcn\u00ef.\u540d\u524d", b"1")
        topics.publish("\u00fcn\u00ef.\udcff", b"2")  # a byte that is no UTF-8
        self.assertEqual(subscription.next(PATIENCE).topic, "\u00fcn\u00ef.\u540d\u524d")
        self.assertEqual(subscription.next(PATIENCE).topic, "\u00fcn\u00ef.\udcff")

    def test_wrong_arguments_are_exceptions(self):
        topics = self.open()
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "publish 'a..b': "):
            topics.publish("a..b")
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "open publisher of 'a.*': "):
            topics.publisher("a.*")
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "subscribe to 'x..y': "):
            topics.subscribe("a", "x..y")
        with self.raises(weft.TopicsError, weft.Code.MESSAGE_TOO_LARGE):
            topics.publish("a", bytes((64 << 20) + 1))
        with self.assertRaises(weft.TopicsError):
            weft.Topics("nonsense://")
        for data in (1, None, ["a"]):
            with self.assertRaises(TypeError):
                topics.publish("a", data)
        with self.assertRaises(BufferError):
            topics.publish("a", memoryview(b"abcd")[::2])
        with self.assertRaises(ValueError):
            topics.publish("a\0b")
        for topic in (None, b"a", 1):
            with self.assertRaises(TypeError):
                topics.publish(topic)
        for headers in ({"A": 1}, {1: "A"}, 5):
            with self.assertRaises(TypeError):
                topics.publish("a", headers=headers)
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT):
            topics.publish("a", headers={"A:B": "c"})
        with self.assertRaises(TypeError):
            topics.subscribe()
        with self.assertRaises(ValueError):
            topics.sync(-1)
        with self.assertRaises(ValueError):
            topics.sync(float("nan"))
        with self.assertRaises(TypeError):
            weft.Message()
        with self.assertRaises(ValueError):
            weft.Topics(self.fleet, separator="::")

    def test_filters_are_added_and_removed(self):
        topics = self.open()
        subscription = topics.subscribe("a", "b.*")
        subscription.add("c.>")
        subscription.remove("a")
        for topic in ("a", "b.1", "c.1.2", "d"):
            topics.publish(topic)
        self.assertEqual([subscription.next(PATIENCE).topic for _ in range(2)], ["b.1", "c.1.2"])
        self.assertIsNone(subscription.try_next())
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "unsubscribe from 'a': "):
            subscription.remove("a")

    def test_a_full_queue_follows_its_policy(self):
        topics = self.open()
        subscription = topics.subscribe("a", full=weft.Full.DROP_NEWEST, queue_messages_max=2)
        for number in range(5):
            topics.publish("a", str(number))
        self.assertEqual(subscription.missed, 3)
        self.assertEqual([subscription.next(0).data, subscription.next(0).data], [b"0", b"1"])
        ends = topics.subscribe("b", full=weft.Full.END, queue_messages_max=1)
        topics.publish("b", b"1")
        topics.publish("b", b"2")
        self.assertEqual(ends.next(0).data, b"1")
        with self.raises(weft.TopicsError, weft.Code.RESOURCE_EXHAUSTED):
            ends.next(0)

    def test_a_timeout_is_seconds_or_a_timedelta(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        publisher = topics.publisher("nobody")
        for timeout in (0, 0.0, 0.001, 1e-9, datetime.timedelta(), datetime.timedelta(milliseconds=1)):
            with self.assertRaises(weft.TimedOut) as raised:
                subscription.next(timeout)
            self.assertIsInstance(raised.exception, TimeoutError)
            self.assertIsInstance(raised.exception, weft.Again)
            self.assertIn("wait for message of 'a': ", str(raised.exception))
        with self.raises(weft.TimedOut, weft.Code.TIMED_OUT, "'nobody'"):
            publisher.wait_subscribers(1, 0.001)

    def test_a_publish_waits_for_room(self):
        left, right = self.open(peer_messages_max=1), self.open()
        left.sync(PATIENCE)
        subscription = right.subscribe("a")
        publisher = left.publisher("a")
        publisher.wait_subscribers(1, PATIENCE)

        def take():
            self.assertEqual([subscription.next(PATIENCE).data for _ in range(MESSAGES)],
                             [b"%d" % number for number in range(MESSAGES)])

        join = self.start(take)
        for number in range(MESSAGES):
            publisher.publish(b"%d" % number, wait=True, timeout=PATIENCE)
        join()


class Ends(Case):
    def test_a_close_by_another_thread_ends_a_wait(self):
        for who in ("subscription", "topics"):
            topics = self.open()
            subscription = topics.subscribe("a")

            def wait(started):
                started.set()
                with self.raises(weft.Closed, weft.Code.CLOSED):
                    subscription.next()

            started = [threading.Event() for _ in range(2)]
            joins = [self.start(wait, event) for event in started]
            for event in started:
                self.assertTrue(event.wait(PATIENCE))
            (subscription if who == "subscription" else topics).close()
            for join in joins:
                join()
            self.assertTrue(subscription.closed)

    def test_a_loop_gives_what_was_queued_at_the_close_and_ends(self):
        for who in ("subscription", "topics"):
            topics = self.open()
            subscription = topics.subscribe("a")
            for number in range(1000):
                topics.publish("a", b"%d" % number)
            (subscription if who == "subscription" else topics).close()
            self.assertEqual([message.data for message in subscription], [b"%d" % number for number in range(1000)])
            with self.raises(weft.Closed, weft.Code.CLOSED):
                subscription.next()
            with self.raises(weft.Closed, weft.Code.CLOSED):
                subscription.try_next()

    def test_each_object_is_closed_once(self):
        topics = self.open()
        objects = [topics, topics.publisher("a"), topics.subscribe("a"), topics.serve("a")]
        for each in objects[1:]:
            self.assertIn(repr(each), (f"<weft.{type(each).__name__} 'a'>"))
        for each in objects:
            each.close()
            each.close()
            self.assertTrue(repr(each).endswith(" closed>"), repr(each))
        with self.raises(weft.Closed, weft.Code.CLOSED, "publish 'a': "):
            topics.publish("a")
        with self.raises(weft.Closed, weft.Code.CLOSED, "publish 'a': "):
            objects[1].publish()
        with self.raises(weft.Closed, weft.Code.CLOSED):
            topics.subscribe("a")

    def test_a_forgotten_handle_warns_and_is_closed(self):
        subscription = self.open().subscribe("a")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            forgotten = weft.Topics(self.fleet)
            of_it = forgotten.subscribe("b")
            del forgotten
            del subscription  # an object of a handle closes silently
            gc.collect()
        self.assertEqual([warning.category for warning in caught], [ResourceWarning])
        self.assertIn(f"<weft.Topics '{self.fleet}'> was not closed", str(caught[0].message))
        with self.raises(weft.Closed, weft.Code.CLOSED):
            of_it.next()

    def test_a_dropped_subscription_takes_no_more_messages(self):
        topics = self.open()
        subscription, publisher = topics.subscribe("a"), topics.publisher("a")
        self.assertEqual(publisher.wait_subscribers(1, PATIENCE), 1)
        del subscription
        self.assertEqual(publisher.wait_subscribers(0, PATIENCE), 0)

    def test_an_exception_of_a_signal_handler_ends_a_wait(self):
        topics = self.open()
        subscription = topics.subscribe("a")

        class Rung(Exception):
            pass

        def ring(number, frame):
            raise Rung

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for wait in (subscription.next, lambda: next(subscription), lambda: topics.publisher("b").wait_subscribers(1)):
            with self.assertRaises(Rung):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                wait()
        topics.publish("a", b"x")
        self.assertEqual(subscription.next(PATIENCE).data, b"x")

    def test_a_handler_that_raises_nothing_ends_no_wait(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        before = signal.signal(signal.SIGALRM, lambda number, frame: topics.publish("a", b"from the handler"))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        self.assertEqual(subscription.next(PATIENCE).data, b"from the handler")


class Threads(Case):
    def test_threads_share_a_subscription(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        got = [[] for _ in range(3)]

        def take(mine):
            mine.extend(int(message.data) for message in subscription)

        joins = [self.start(take, mine) for mine in got]

        def publish(of):
            publisher = topics.publisher("a")
            for number in range(MESSAGES):
                publisher.publish(b"%d" % (of * MESSAGES + number))

        for join in [self.start(publish, of) for of in range(2)]:
            join()
        subscription.close()
        for join in joins:
            join()
        for mine in got:  # in the order of each publisher
            for of in range(2):
                part = [number for number in mine if number // MESSAGES == of]
                self.assertEqual(part, sorted(part))
        self.assertEqual(sorted(sum(got, [])), list(range(2 * MESSAGES)))

    def test_a_close_keeps_the_order_of_each_thread_that_takes(self):
        topics = self.open()
        switch = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, switch)
        sys.setswitchinterval(1e-5)
        for _ in range(10):
            subscription = topics.subscribe("a")
            for number in range(MESSAGES):
                topics.publish("a", b"%d" % number)
            got = [[] for _ in range(3)]

            def take(mine, subscription=subscription):
                mine.extend(int(message.data) for message in subscription)

            joins = [self.start(take, mine) for mine in got]
            subscription.close()
            topics.publish("a", b"-1")
            for join in joins:
                join()
            self.assertEqual([mine == sorted(mine) for mine in got], [True] * 3)
            self.assertEqual(sorted(sum(got, [])), list(range(MESSAGES)))
            with self.raises(weft.Closed, weft.Code.CLOSED):
                subscription.add("b")

    def test_a_descriptor_announces_messages(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        poller = select.poll()
        poller.register(subscription, select.POLLIN)
        self.assertIsNone(subscription.try_next())
        self.assertEqual(poller.poll(0), [])
        for _ in range(3):
            topics.publish("a", b"x")
            self.assertEqual(len(poller.poll(PATIENCE * 1000)), 1)
            self.assertEqual(subscription.try_next().data, b"x")
            self.assertIsNone(subscription.try_next())
            self.assertEqual(poller.poll(0), [])
        other = topics.subscribe("b")
        poller.register(other.fileno(), select.POLLIN)
        self.assertIsNone(other.try_next())
        topics.publish("b")
        self.assertEqual([found for found, _ in poller.poll(PATIENCE * 1000)], [other.fileno()])


class Requests(Case):
    def test_a_service_answers(self):
        left, right = self.open(), self.open()
        service = right.serve("echo")
        left.sync(PATIENCE)
        join = self.start(service.run, lambda request: request.data[::-1])
        self.assertEqual(left.request("echo", b"abc", timeout=PATIENCE).data, b"cba")
        self.assertEqual(left.request("echo", "", timeout=datetime.timedelta(seconds=PATIENCE)).data, b"")
        service.close()
        join()

    def test_requests_are_answered_in_any_order(self):
        topics = self.open()
        service = topics.serve("late")
        replies = {}

        def ask(number):
            replies[number] = topics.request("late", b"%d" % number, timeout=PATIENCE, headers={"N": str(number)})

        joins = [self.start(ask, number) for number in range(4)]
        requests = [service.next(PATIENCE) for _ in range(4)]
        for request in reversed(requests):
            request.reply(b"to " + request.data, headers={"Of": request.headers["N"]})
        for join in joins:
            join()
        for number in range(4):
            self.assertEqual(replies[number].data, b"to %d" % number)
            self.assertEqual(replies[number].headers["Of"], str(number))
        with self.raises(weft.TopicsError, weft.Code.INVALID_STATE, "'late'"):
            requests[0].reply()

    def test_a_refusal_has_its_code_and_text(self):
        topics = self.open()
        service = topics.serve("refuses")

        def serve():
            service.next(PATIENCE).refuse("no such account", weft.Code.NOT_FOUND)
            service.next(PATIENCE).refuse("busy")
            service.next(PATIENCE)  # which ends without an answer

        join = self.start(serve)
        with self.raises(weft.NotFound, weft.Code.NOT_FOUND, "no such account"):
            topics.request("refuses", timeout=PATIENCE)
        with self.raises(weft.TopicsError, weft.Code.OTHER, "request 'refuses': "):
            topics.request("refuses", timeout=PATIENCE)
        with self.raises(weft.TopicsError, weft.Code.JOB_THREW):
            topics.request("refuses", timeout=PATIENCE)
        join()

    def test_an_exception_of_a_handler_is_logged_and_refuses(self):
        topics = self.open()
        service = topics.serve("fails")

        def handle(request):
            if request.data == b"late":
                request.reply(b"answered")
            raise KeyError("details stay here")

        with self.assertLogs("weft.topics", "ERROR") as logs:
            join = self.start(service.run, handle)
            with self.raises(weft.TopicsError, weft.Code.OTHER, "the service raised KeyError"):
                topics.request("fails", timeout=PATIENCE)
            self.assertEqual(topics.request("fails", b"late", timeout=PATIENCE).data, b"answered")
            topics.close()
            join()
        self.assertEqual(len(logs.records), 2)
        self.assertIn("details stay here", logs.output[0])

    def test_a_request_without_a_service_or_an_answer(self):
        topics = self.open()
        with self.raises(weft.Unreachable, weft.Code.UNREACHABLE, "request 'nobody': "):
            topics.request("nobody")
        service = topics.serve("silent", group="g", queue_max=1)
        with self.raises(weft.TimedOut, weft.Code.TIMED_OUT, "request 'silent': "):
            topics.request("silent", timeout=0.01)
        self.assertIsInstance(service.next(PATIENCE), weft.Request)


class Errors(Case):
    def test_an_error_survives_pickle(self):
        for kind in (weft.TopicsError, weft.TimedOut, weft.NotFound, weft.Closed):
            error = kind(weft.Code.NOT_FOUND, "the text", "get value of", "k")
            copy = pickle.loads(pickle.dumps(error))
            self.assertIs(type(copy), kind)
            self.assertEqual((copy.code, copy.text, copy.operation, copy.name, copy.errno, str(copy)),
                             (error.code, "the text", "get value of", "k", error.errno, "get value of 'k': the text"))
        self.assertEqual(weft.TopicsError(-99, "later", "x").code, -99)

    def test_no_secret_is_in_a_repr(self):
        curve = weft.Curve("public one", "secret one", "public two", "secret two")
        self.assertNotIn("secret", repr(curve).replace("server_secret", ""))

    def test_a_hub_with_curve_needs_its_key_and_a_pair(self):
        public, secret = (key.decode() for key in weft.curve_keypair())
        whole = weft.Curve(hub_public=public, public=public, secret=secret)
        for curve in (whole, replace(whole, hub_public=None), replace(whole, secret=None), None):
            with self.subTest(curve=curve), contextlib.ExitStack() as stack:
                if curve is not whole:
                    stack.enter_context(self.assertRaises(weft.TopicsError))
                weft.Topics("inproc:curve", hub="tcp://127.0.0.1:1", curve=curve).close()
        with self.assertRaises(weft.TopicsError):
            weft.Topics("inproc:curve", hub="tcp://127.0.0.1:1", curve=replace(whole, hub_public="short"))


if __name__ == "__main__":
    unittest.main()
