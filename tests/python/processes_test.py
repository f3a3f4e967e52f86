# SPDX-License-Identifier: MIT
"""weft.Topics: forked children and other processes."""

import gc
import os
import subprocess
import sys
import unittest

import weft
from topics_case import MESSAGES, PATIENCE, Case


class Processes(Case):
    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "AddressSanitizer's allocator keeps its locks in a forked child")
    def test_a_forked_child_opens_handles_of_its_own(self):
        topics = self.open()
        subscription = topics.subscribe("a")
        service = topics.serve("s")
        topics.publish("a", b"of the parent")
        message = subscription.next(PATIENCE)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                for call in (lambda: topics.publish("a"), subscription.next, subscription.try_next, lambda: topics.sync(1),
                             topics.close, service.next):
                    try:
                        call()
                    except weft.TopicsError as error:
                        if error.code != weft.Code.INVALID_STATE:
                            raise
                    else:
                        raise AssertionError(call)
                del message, subscription, topics, service
                gc.collect()
                with weft.Topics("inproc:child") as mine, mine.subscribe("b") as own:
                    mine.publish("b", b"of the child")
                    code = 0 if own.next(PATIENCE).data == b"of the child" else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(message.data, b"of the parent")

    def test_two_processes(self):
        topics, directory = self.open_local()
        done = topics.subscribe("done")
        publisher = topics.publisher("count.up")
        with subprocess.Popen([sys.executable, "-B", "-W", "error", __file__, "other", directory]) as other:
            try:
                publisher.wait_subscribers(1, PATIENCE)
                for number in range(MESSAGES):
                    publisher.publish(str(number), wait=True, timeout=PATIENCE)
                self.assertEqual(done.next(PATIENCE).data, b"all")
                self.assertEqual(topics.request("sum", b"1 2 3", timeout=PATIENCE).data, b"6")
                self.assertEqual(other.wait(PATIENCE), 0)
            finally:
                other.kill()

    def test_sockets_alone_do_not_load_the_library(self):
        program = "import sys, weft; assert 'weft._topics' not in sys.modules; weft.Topics; assert 'weft._topics' in sys.modules"
        subprocess.run([sys.executable, "-B", "-c", program], check=True, timeout=PATIENCE)
        with self.assertRaises(AttributeError):
            weft.nonsense


def other_process(directory):
    with weft.Topics("local:test", runtime_directory=directory, store_directory=directory) as topics:
        with topics.subscribe("count.>") as subscription, topics.publisher("done") as done, topics.serve("sum") as service:
            for number in range(MESSAGES):
                message = subscription.next(PATIENCE)
                assert int(message.data) == number, (message, number)
            done.wait_subscribers(1, PATIENCE)
            done.publish(b"all")
            request = service.next(PATIENCE)
            request.reply(str(sum(map(int, request.text.split()))))
            topics.sync(PATIENCE)


if __name__ == "__main__":
    if sys.argv[1:2] == ["other"]:
        other_process(sys.argv[2])
    else:
        unittest.main()
