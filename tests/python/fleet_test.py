# SPDX-License-Identifier: MIT
"""weft.Topics and weft.aio.Topics on a nats-server, which each test starts. Skipped where there is none."""

import asyncio
import contextlib
import datetime
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import weft
from topics_case import PATIENCE
from weft import aio

PROGRAM = shutil.which("nats-server", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")


@contextlib.contextmanager
def server(*arguments):
    """The address of a server, with the port of its choice."""
    with server_process(*arguments) as (address, _):
        yield address


@contextlib.contextmanager
def server_process(*arguments):
    """The address and the process."""
    environment = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}  # a sanitizer's
    command = [PROGRAM, "--addr", "127.0.0.1", "--port", "-1", *arguments]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE,
                                                                   text=True) as process:
        try:
            for line in process.stderr:
                found = re.search(r"Listening for client connections on (127\.0\.0\.1:\d+)", line)
                if found:
                    yield found[1], process
                    return
            raise AssertionError("the server ended")
        finally:
            process.kill()


@unittest.skipIf(PROGRAM is None, "there is no nats-server")
class Fleet(unittest.TestCase):
    def test_a_login_lets_a_program_in_and_no_login_does_not(self):
        login = weft.Login(user="ann", password="secret")
        with server("--user", "ann", "--pass", "secret") as address:
            with weft.Topics(f"nats://{address}", login=login) as left, weft.Topics(f"nats://{address}", login=login) as right:
                with right.subscribe("px.*") as prices, left.publisher("px.A") as publisher:
                    publisher.wait_subscribers(1, PATIENCE)
                    publisher.publish(b"1")
                    self.assertEqual(prices.next(PATIENCE).data, b"1")
            with weft.Topics(f"nats://{address}") as stranger:
                with self.assertRaises(weft.TopicsError) as raised:
                    stranger.sync(PATIENCE)
                self.assertIn("the server refuses the credentials", str(raised.exception))
            self.assertNotIn("secret", repr(login))

    def test_requests_and_messages_of_coroutines(self):
        async def program(fleet):
            async with aio.Topics(fleet) as left, aio.Topics(fleet, outage_bytes_max=1 << 20) as right:
                service = right.serve("sum")
                await right.sync(PATIENCE)
                asked = asyncio.create_task(left.request("sum", b"1 2", timeout=PATIENCE))
                request = await service.next(PATIENCE)
                request.reply(str(sum(map(int, request.text.split()))))
                self.assertEqual((await asked).data, b"3")
                with self.assertRaises(weft.Unreachable):
                    await left.request("nobody", b"", timeout=PATIENCE)

        with server() as address:
            asyncio.run(program(f"nats://{address}"))

    def test_a_service_tells_that_the_server_refuses_it(self):
        async def of_a_task(fleet):
            async with aio.Topics(fleet, ping_every=5) as topics:
                service = topics.serve("closed.svc")
                await topics.sync(PATIENCE)
                with self.assertRaises(weft.TopicsError) as raised:
                    service.status()
                self.assertEqual(raised.exception.code, weft.Code.NOT_PERMITTED)

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "nats.conf")
            with open(path, "w", encoding="utf-8") as out:
                out.write('authorization { users = [{user: u, password: p, permissions: {subscribe: {deny: ["closed.>"]}}}] }\n'
                          "no_auth_user: u\n")
            with server("--config", path) as address:
                with weft.Topics(f"nats://{address}", ping_every=0.25) as topics:
                    open_one = topics.serve("open.svc")
                    refused = topics.serve("closed.svc")
                    topics.sync(PATIENCE)
                    open_one.status()
                    with self.assertRaises(weft.TopicsError) as raised:
                        refused.status()
                    self.assertEqual(raised.exception.code, weft.Code.NOT_PERMITTED)
                with self.assertRaises(weft.Closed):
                    open_one.status()
                asyncio.run(of_a_task(f"nats://{address}"))

    def test_pings_find_a_server_that_stands_still(self):
        with server_process() as (address, process):
            with weft.Topics(f"nats://{address}", ping_every=0.05) as topics, topics.serve("svc"):
                topics.sync(PATIENCE)
                process.send_signal(signal.SIGSTOP)
                with self.assertRaises(weft.TopicsError) as raised:
                    topics.request("svc", b"", timeout=datetime.timedelta(days=1))
                self.assertIn(raised.exception.code, (weft.Code.CONNECTION_CLOSED, weft.Code.UNREACHABLE))
                process.kill()  # the end of the handle does not wait for it

    def test_jetstream_keeps_streams_and_buckets(self):
        with server("--jetstream", "--store_dir", "kept") as address, weft.Topics(f"nats://{address}") as topics:
            jobs = topics.stream("jobs", ["jobs.>"], keep=weft.Keep.WORK, survives=weft.Survives.PROCESS)
            self.assertEqual(jobs.publish("jobs.a", b"1", id="x").sequence, 1)
            self.assertTrue(jobs.publish("jobs.a", b"1", id="x").duplicate)
            with jobs.consume("workers") as workers, workers.next(PATIENCE) as job:
                self.assertEqual((job.data, job.sequence), (b"1", 1))
            bucket = topics.key_value("conf", survives=weft.Survives.PROCESS)
            bucket["color"] = b"red"
            self.assertEqual((bucket["color"], list(bucket)), (b"red", ["color"]))
            for survives, text in ((weft.Survives.POWER, "before the disk has it"), (weft.Survives.MACHINE, "")):
                with self.assertRaises(weft.TopicsError) as raised:
                    topics.stream("more", ["more.>"], survives=survives)
                self.assertEqual(raised.exception.code, weft.Code.NOT_SUPPORTED)
                self.assertIn(text, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
