# SPDX-License-Identifier: MIT
"""weft.Topics: streams and keys with values."""

import datetime
import pathlib
import unittest

import weft
from topics_case import PATIENCE, Case


class Kept(Case):
    def setUp(self):
        super().setUp()
        self.topics, self.directory = self.open_local()
        try:
            self.stream = self.topics.stream("jobs", ["jobs.>", "other"], survives=weft.Survives.PROCESS)
        except weft.TopicsError as error:
            if error.code == weft.Code.NOT_SUPPORTED:
                self.skipTest("a build without SQLite")
            raise

    def test_a_stream_keeps_messages(self):
        before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=1)
        first = self.stream.publish("jobs.a", b"1", id="one", headers={"A": "b"})
        again = self.stream.publish("jobs.a", b"1", id="one")
        self.assertEqual((first.sequence, first.duplicate, again.sequence, again.duplicate), (1, False, 1, True))
        pending = [self.stream.publish_later("jobs.b", b"%d" % number) for number in range(2, 5)]
        self.assertEqual([each.wait(PATIENCE).sequence for each in pending], [2, 3, 4])
        self.assertEqual(pending[0].try_result().sequence, 2)
        self.assertGreaterEqual(pending[0].fileno(), 0)
        self.assertEqual(self.stream.publish("other", expect_last=0, strict=True).sequence, 5)
        with self.raises(weft.Conflict, weft.Code.CONFLICT, "publish 'other': "):
            self.stream.publish("other", expect_last=1)
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "publish 'foreign': "):
            self.stream.publish("foreign")
        info = self.stream.info()
        self.assertEqual((info.first, info.next, info.instance), (1, 6, first.instance))
        stored = self.stream.message(1)
        self.assertEqual((stored.data, stored.id, stored.headers["A"], stored.sequence), (b"1", "one", "b", 1))
        self.assertGreater(stored.time, before)
        self.assertEqual(self.stream.newest("jobs.b").data, b"4")
        with self.raises(weft.NotFound, weft.Code.NOT_FOUND, "read message of 'jobs': "):
            self.stream.message(99)
        self.stream.purge(3)
        self.assertEqual(self.stream.info().first, 3)
        with self.raises(weft.Conflict, weft.Code.CONFLICT, "open stream 'jobs': "):
            self.topics.stream("jobs", keep=weft.Keep.WORK, survives=weft.Survives.PROCESS)

    def test_a_handle_of_another_fleet_names_the_hub(self):
        (socket,) = pathlib.Path(self.directory).rglob("hub.sock")
        self.stream.publish("jobs.a", b"1")
        with self.open(hub=f"ipc://{socket}").stream("jobs", ["jobs.>", "other"], survives=weft.Survives.PROCESS) as same:
            self.assertEqual(same.message(1).data, b"1")
            same.publish("jobs.b", b"2")
        self.assertEqual(self.stream.message(2).data, b"2")
        with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT):
            self.open(hub="tcp://127.0.0.1:1").stream("jobs")

    def test_a_reader_starts_where_it_is_told(self):
        for number in range(1, 5):
            self.stream.publish("jobs.a" if number % 2 else "jobs.b", b"%d" % number)
        hour = datetime.timedelta(hours=1)
        now = datetime.datetime.now(datetime.timezone.utc)
        for start, wanted in ((weft.From.FIRST, [1, 2, 3, 4]), (weft.From.LAST, [4]), (3, [3, 4]), (now - hour, [1, 2, 3, 4]),
                              (weft.From.LAST_PER_TOPIC, [3, 4])):
            with self.stream.read(start=start) as reader:
                self.assertEqual([reader.next(PATIENCE).sequence for _ in wanted], wanted)
                with self.raises(weft.TimedOut, weft.Code.WOULD_BLOCK):
                    reader.next(0)
        with self.stream.read("jobs.b", start=weft.From.NEXT) as reader:
            self.stream.publish("jobs.a")
            self.stream.publish("jobs.b", b"new")
            self.assertEqual(reader.next(PATIENCE).data, b"new")
            self.assertTrue(reader.is_live)

    def test_a_consumer_gets_each_message_until_its_outcome(self):
        for number in range(1, 6):
            self.stream.publish("jobs.a", b"%d" % number)
        consumer = self.stream.consume("workers", retry_waits=[0.001], unacked_max=10, tries_max=5, dead_letters="dead")
        with consumer.next(PATIENCE) as delivery:
            self.assertEqual((delivery.data, delivery.tries), (b"1", 0))
        consumer.next(PATIENCE).ack_confirmed()
        third = consumer.next(PATIENCE)
        third.working()
        third.reject("broken")
        with self.raises(weft.TopicsError, weft.Code.INVALID_STATE, "'jobs.a'"):
            third.ack()
        with self.assertRaises(ZeroDivisionError), consumer.next(PATIENCE) as delivery:
            self.assertEqual(delivery.data, b"4")
            raise ZeroDivisionError
        with consumer.next(PATIENCE) as delivery:
            delivery.nak(0.001)
        again = {message.data: message.tries for message in (consumer.next(PATIENCE), consumer.next(PATIENCE))}
        self.assertEqual(again, {b"4": 1, b"5": 1})
        consumer.close()
        with self.raises(weft.Closed, weft.Code.CLOSED, "'workers'"):
            consumer.next()

    def test_a_member_of_a_lower_number_gets_messages_while_it_has_room(self):
        later = self.stream.consume("workers", priority=9)
        first = self.stream.consume("workers", priority=0, queue_messages_max=2)
        for number in range(3):
            self.stream.publish("jobs.a", b"%d" % number)
        with later.next(PATIENCE) as delivery:
            self.assertEqual(delivery.data, b"2")
        for data in (b"0", b"1"):
            with first.next(PATIENCE) as delivery:
                self.assertEqual(delivery.data, data)
        for wrong in (10, 2**32 - 1):
            with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT, "'workers'"):
                self.stream.consume("workers", priority=wrong)
        with self.assertRaises(OverflowError):
            self.stream.consume("workers", priority=-1)
        with self.assertRaises(TypeError):
            self.stream.consume("workers", priority="1")

    def test_keys_have_values(self):
        bucket = self.topics.key_value("conf", history=3, survives=weft.Survives.PROCESS)
        self.assertIsNone(bucket.get("a"))
        self.assertEqual(bucket.get("a", 7), 7)
        bucket["a"] = bytearray(b"1")
        self.assertEqual(bucket["a"], b"1")
        entry = bucket.get("a")
        self.assertEqual((entry.key, entry.value), ("a", b"1"))
        self.assertEqual(bucket.update("a", "2", entry.revision), bucket.get("a").revision)
        with self.raises(weft.Conflict, weft.Code.CONFLICT, "put value of 'a': "):
            bucket.update("a", b"3", entry.revision)
        with self.raises(weft.Conflict, weft.Code.CONFLICT):
            bucket.create("a", b"3")
        bucket.create("b.c", b"4")
        self.assertEqual(list(bucket), ["a", "b.c"])
        self.assertEqual(bucket.keys("b.*"), ["b.c"])
        self.assertTrue("a" in bucket and "z" not in bucket)
        with bucket.watch("a") as watch:
            self.assertEqual(watch.next(PATIENCE).value, b"2")
            del bucket["a"]
            erased = watch.next(PATIENCE)
            self.assertTrue(watch.is_live)
            self.assertEqual((erased.key, erased.value, erased.erased), ("a", b"", True))
        with self.assertRaises(KeyError) as raised:
            bucket["a"]
        self.assertIsInstance(raised.exception, weft.NotFound)
        self.assertIn("get value of 'a': not found", str(raised.exception))
        self.assertIn("'conf'", repr(bucket))
        self.stream.remove()
        with self.raises(weft.NotFound, weft.Code.NOT_FOUND):
            self.stream.publish("jobs.a")

    def test_a_message_and_a_key_end_with_their_time(self):
        for wrong in (0.5, datetime.timedelta(days=40000)):
            with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT):
                self.stream.publish("jobs.a", ttl=wrong)
        with self.assertRaises(ValueError):
            self.stream.publish("jobs.a", ttl=-1)
        self.assertEqual(self.stream.publish("jobs.a", b"1", ttl=1).sequence, 1)
        self.assertEqual(self.stream.publish_later("jobs.a", b"2", ttl=3600).wait(PATIENCE).sequence, 2)
        bucket = self.topics.key_value("conf", survives=weft.Survives.PROCESS)
        watch = bucket.watch()
        revision = bucket.create("a", b"1", ttl=3600)
        bucket.put("a", b"2", ttl=datetime.timedelta(hours=1))
        with self.raises(weft.Conflict, weft.Code.CONFLICT):
            bucket.update("a", b"3", revision, ttl=1)
        bucket.update("a", b"3", revision + 1, ttl=1)
        while not watch.next(PATIENCE).erased:
            pass
        self.assertIsNone(bucket.get("a"))
        self.assertEqual(self.stream.read().next(PATIENCE).data, b"2")  # the first one, published earlier, is over

    def test_a_message_is_readable_after_its_delay(self):
        for wrong in ({"delay": datetime.timedelta(days=40000)}, {"delay": 1, "expect_last": 0},
                      {"delay": 1, "strict": True}):
            with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT):
                self.stream.publish("jobs.a", **wrong)
        with self.assertRaises(ValueError):
            self.stream.publish("jobs.a", delay=-1)
        reader = self.stream.read()
        later = self.stream.publish("jobs.a", b"later", id="x", delay=0.05)
        self.assertEqual((later.sequence, later.duplicate), (0, False))
        message = reader.next(PATIENCE)
        self.assertEqual((message.data, message.sequence), (b"later", 1))
        self.assertTrue(self.stream.publish("jobs.a", id="x").duplicate)
        self.assertEqual(self.stream.publish_later("jobs.a", b"1", delay=datetime.timedelta(hours=1)).wait().sequence, 0)
        self.assertEqual(self.stream.publish("jobs.a", b"2", delay=0).sequence, 2)

    def test_a_batch_is_stored_in_whole_or_not_at_all(self):
        first = self.stream.publish_all([weft.Draft("jobs.a", "1", headers={"A": "b"}, ttl=3600), ("jobs.b", b"2")])
        self.assertEqual((first.sequence, first.duplicate), (1, False))
        stored = self.stream.message(1)
        self.assertEqual((stored.data, stored.headers["A"]), (b"1", "b"))
        with self.raises(weft.Conflict, weft.Code.CONFLICT):
            self.stream.publish_all([("jobs.a", b"3"), weft.Draft("jobs.b", b"4", expect_last=1)])
        for wrong in ([], [("jobs.a",)] * 1001, [("jobs.a", b"x"), ("else", b"y")]):
            with self.raises(weft.TopicsError, weft.Code.INVALID_ARGUMENT):
                self.stream.publish_all(wrong)
        with self.assertRaises(TypeError):
            self.stream.publish_all([("jobs.a", b"x", 7)])
        self.assertEqual(self.stream.info().next, 3)
        self.assertEqual(self.stream.publish_all(("jobs.a", b"x") for _ in range(1000)).sequence, 3)

    def test_a_volatile_fleet_keeps_nothing(self):
        with self.raises(weft.TopicsError, weft.Code.NOT_SUPPORTED, "open stream 'x': "):
            self.open(self.fleet).stream("x")


if __name__ == "__main__":
    unittest.main()
