# SPDX-License-Identifier: MIT
"""weft_move_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE [KILLS]: stream export, stream import, kv export and kv import,
between a hub and servers of NATS: Debian's, and that of deps/go.txt if it was built. 77: there is none.

KILLS: of each command, at random instants.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

from weft_cli_support import KEPT_SIDE, PATIENCE, run_all, run_blocks, test
from weft_move_support import Place, hub, killed_at_random, message, objects_of, scratch, sealed, unsealed
from weft_nats_support import SERVERS, keeping

KILLS = int(sys.argv[5]) if len(sys.argv) > 5 else 6
MANY = 20_000
SMALL = ["--bytes-max", "64M"]


def both_ways(case):
    """The case from a hub to each server, and with the hub as the target."""
    @test
    def run_case() -> None:
        for program in SERVERS:
            with hub() as here, keeping(program) as url:
                case(here, Place(["--fleet", url], True))
    run_case.__name__ = case.__name__
    return case


def fill(place: Place, name: str, count: int, *settings: str) -> None:
    place.run("stream", "add", name, f"{name}.>", *place.kept, *SMALL, *settings)
    if count:
        place.run("stream", "publish", name, f"{name}.a", "--window", "500", text="".join(f"{i}\n" for i in range(count)))


def add_each_kind(place: Place) -> None:
    """Messages that differ in each way in which they can, in the log orders."""
    fill(place, "orders", 0)

    def publish(*arguments: str, text: bytes = b"") -> None:
        place.run("stream", "publish", "orders", *arguments, text=text)
    publish("orders.eu", "a chair", "-H", "Colour: red", "-H", "Size:", "-H", "Colour: \u00e9\u2028")
    publish("orders.eu", "", "--id", 'an "id" \u00fc')
    publish("orders.\u00fc.\u6771", "-", text=bytes(range(256)))
    publish("orders.us", "-", "--id", "x" * 255, text=b"")
    publish("orders.big", "-", text=os.urandom(1_000_000))
    publish("orders.eu", "--window", "100", text="".join(f"line {i}\n" for i in range(1000)))


@both_ways
def a_log_is_the_same_after_a_move_to_nats_and_back(here, there) -> None:
    with scratch() as folder:
        add_each_kind(here)
        first, second = str(folder / "first"), str(folder / "second")
        assert here.run("stream", "export", "orders", first).stdout == b"1005 messages\n"
        moved = json.loads(there.run("stream", "import", first, "--survives", "process", "--json").stdout)
        assert (moved["messages"], moved["stored"], moved["renamed"]) == (1005, 1005, 0), moved
        assert there.messages("orders") == here.messages("orders")
        # The tool's own words agree with those of another command.
        last = json.loads(there.run("stream", "read", "orders", "--from", "last", "--stored", "--json").stdout)
        assert (last["topic"], last["body"], last["sequence"]) == ("orders.eu", "line 999", 1005), last
        told = json.loads(there.run("stream", "export", "orders", second, "--json").stdout)
        assert told == {"name": "orders", "messages": 1005, "new": 1005, "missing": 0, "last_sequence": 1005, "consumers": []}, told
        here.run("stream", "import", second, "--as", "back", "--survives", "power")
        assert here.messages("back") == here.messages("orders")
        # Each again: nothing is stored twice.
        for place, file, name in ((there, first, "orders"), (here, second, "back")):
            again = json.loads(place.run("stream", "import", file, "--as", name, "--survives", "process", "--json").stdout)
            assert (again["messages"], again["stored"]) == (1005, 0), again
            assert place.info(name)["next"] == 1006


@both_ways
def work_latest_and_buckets_are_the_same_after_a_move(here, there) -> None:
    for source, target in ((here, there), (there, here)):
        survives = ["--survives", "process"]
        with scratch() as folder:
            fill(source, "jobs", 20, "--keep", "work")
            source.run("stream", "consume", "jobs", "workers", "-n", "3")
            fill(source, "px", 0, "--keep", "latest")
            source.run("stream", "publish", "px", "px.A", text="1\n2\n3\n")
            source.run("stream", "publish", "px", "px.B", "4")
            for key, value in (("color", "blue"), ("color", "red"), ("gone", "x"), ("a b/\u00fc", "odd"), ("empty", "")):
                source.run("kv", "put", "config", key, value, *(source.kept or []))
            source.run("kv", "delete", "config", "gone")
            for kind, name in (("stream", "jobs"), ("stream", "px"), ("kv", "config")):
                file = str(folder / name)
                source.run(kind, "export", name, file)
                target.run(kind, "import", file, "--as", f"{name}2", *survives)
                moved = target.messages(f"{name}2", kind)
                assert moved == source.messages(name, kind), (name, moved)
                again = json.loads(target.run(kind, "import", file, "--as", f"{name}2", "--json").stdout)
                assert again["stored"] == 0, again
                for file_of in ("stream", "kv"):
                    if file_of != kind:
                        assert f"weft {kind}" in target.said(file_of, "import", file)
            assert len(target.messages("jobs2")) == 17, target.messages("jobs2")
            assert [each[6] for each in target.messages("px2")] == [b"3", b"4"]
            assert target.run("kv", "get", "config2", "a b/\u00fc").stdout == b"odd\n"
            target.run("kv", "get", "config2", "gone", code=1)
            assert target.run("kv", "ls", "config2").stdout.decode() == "a b/\u00fc\ncolor\nempty\n"
            for name in ("jobs2", "px2", "kv.config2"):
                target.run("stream", "rm", name)
            for name in ("jobs", "px", "kv.config"):
                source.run("stream", "rm", name)


@both_ways
def a_pipe_moves_from_one_fleet_to_another(here, there) -> None:
    fill(here, "orders", 3000)
    for stored in (3000, 0):
        export = here.start("stream", "export", "orders", "-")
        moved = there.run("stream", "import", "-", "--survives", "process", "--json", text=export.stdout.read())
        assert json.loads(moved.stdout)["stored"] == stored
        assert export.wait(PATIENCE) == 0 and b"3000 messages" in export.stderr.read()
        export.stdout.close()
        export.stderr.close()
    here.run("stream", "publish", "orders", "orders.a", "new")
    both = subprocess.run(["bash", "-o", "pipefail", "-c", '"$0" stream export orders - %s | "$0" stream import - --json %s' % (
        " ".join(here.options), " ".join(there.options)), sys.argv[1]], capture_output=True, timeout=3 * PATIENCE)
    assert both.returncode == 0 and json.loads(both.stdout)["stored"] == 1, both
    assert there.messages("orders") == here.messages("orders")


@both_ways
def killed_imports_and_exports_lose_and_double_nothing(here, there) -> None:
    with scratch() as folder:
        fill(here, "orders", MANY)
        fill(here, "jobs", 2000, "--keep", "work")
        file, cut = str(folder / "whole"), str(folder / "killed")
        here.run("stream", "export", "orders", file)
        killed = 0
        for _ in range(KILLS):
            killed += killed_at_random(here.start("stream", "export", "orders", cut, "--resume"), 0.15)
        here.run("stream", "export", "orders", cut, "--resume")
        assert (folder / "killed").read_bytes() == (folder / "whole").read_bytes()
        for target, name, survives in ((there, "there", "process"), (here, "back", "power")):
            command = ["stream", "import", file, "--as", name, "--survives", survives]
            for _ in range(KILLS):
                killed += killed_at_random(target.start(*command), 0.3)
            target.run(*command)
            assert target.info(name)["next"] == MANY + 1
            assert target.messages(name) == here.messages("orders")
        # A consumer takes the messages of a work stream meanwhile.
        jobs = str(folder / "jobs")
        here.run("stream", "export", "jobs", jobs)
        import_jobs = ["stream", "import", jobs, "--survives", "process"]
        there.run("stream", "add", "jobs", "jobs.>", "--keep", "work", *there.kept, *SMALL)
        consumer = there.start("stream", "consume", "jobs", "workers", "-n", "2000", "--json")
        for _ in range(KILLS):
            killed += killed_at_random(there.start(*import_jobs, "--resume"), 0.1)
        there.run(*import_jobs, "--resume")
        bodies = [json.loads(line)["body"] for line in consumer.communicate(timeout=3 * PATIENCE)[0].splitlines()]
        assert there.info("jobs")["next"] == 2001
        assert set(bodies) <= {str(i) for i in range(2000)} and len(set(bodies)) >= len(bodies) * 9 // 10, len(set(bodies))
        print("killed", killed, "times")


@both_ways
def a_damaged_file_is_refused_before_anything_changes(here, there) -> None:
    with scratch() as folder:
        fill(here, "orders", 50)
        here.run("stream", "export", "orders", str(folder / "whole"))
        whole = (folder / "whole").read_bytes()
        lines = unsealed(whole)
        size = [len(line) + len(',"sum":"01234567"\n') for line in lines]
        body = lines[10].index('"body":"') + 8

        def changed(at: int, line: str) -> bytes:
            return sealed([*lines[:at], line, *lines[at + 1:]])
        cases = {
            "a flipped byte": (whole[:500] + bytes([whole[500] ^ 1]) + whole[501:], "checksum"),
            "a line less": (b"".join(whole.splitlines(True)[:5] + whole.splitlines(True)[6:]), f"line 6, byte {sum(size[:5])}: the checksum"),
            "two lines the other way": (b"".join([*whole.splitlines(True)[:5], *whole.splitlines(True)[5:7][::-1], *whole.splitlines(True)[7:]]),
                                        "line 6"),
            "no end": (b"".join(whole.splitlines(True)[:-1]), "before its last line, after 50 messages"),
            "a torn end": (whole[:sum(size[:20]) + 10], "before its last line, after 19 messages"),
            "bytes after the end": (whole + b"x\n", "goes on after"),
            "a wrong count": (changed(-1 % len(lines), '{"weft":"end","messages":49,"missing":0}'), "counts 49"),
            "an unknown version": (changed(0, lines[0].replace('"version":1', '"version":2')), "version 2"),
            "a version of another type": (changed(0, lines[0].replace('"version":1', '"version":"1"')), "damaged"),
            "a history beyond its bound": (changed(0, lines[0].replace('"history":1', '"history":65')), "history"),
            "a number beyond 64 bits": (changed(0, lines[0].replace('"bytes_max":', '"bytes_max":99999999999999999999')), "damaged"),
            "a negative age": (changed(0, lines[0].replace('"age_max_ns":0', '"age_max_ns":-1')), "time"),
            "a keep that is none": (changed(0, lines[0].replace('"keep":"log"', '"keep":"all"')), "setting"),
            "no JSON": (changed(10, "{body}"), "another form"),
            "wrong base64": (changed(10, lines[10][:body] + "A" + lines[10][body:]), "line 11"),
            "deep JSON": (changed(10, '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"), "line 11"),
            "a long topic": (changed(10, lines[10].replace("orders.a", "a" * 10_000)), "line 11"),
            "the same sequence": (changed(10, lines[9]), "greater sequence"),
            "headers that are none": (changed(10, lines[10].replace('"body"', '"headers":["a\\r\\n\\r\\nb"],"body"')), "headers"),
            "a line of 2 MiB": (whole[:sum(size[:3])] + b'{"sequence":' + b" " * (2 << 20) + whole[sum(size[:3]):], "longer than 2 MiB"),
            "a size of 2 GiB": (changed(10, lines[10].replace('"sequence":10', '"sequence":2147483648')), "greater sequence"),
            "another file": (b"\x7fELF\0" * 100, "not a file of"),
            "nothing": (b"", "empty"),
        }
        for case, (content, words) in cases.items():
            (folder / "file").write_bytes(content)
            said = there.said("stream", "import", str(folder / "file"), "--survives", "process")
            assert words in said and "file: line " in said and len(said) < 600, (case, said)
        assert not there.has("orders")
        assert "No such file" in there.said("stream", "import", str(folder / "none"))
        assert there.said("stream", "import", str(folder))  # a directory
        # A pipe has no second reading: the error has the number of stored messages, and the whole file continues.
        said = there.said("stream", "import", "-", "--survives", "process", text=cases["a torn end"][0])
        assert "at least 19 messages" in said and "after 19 messages" in said, said
        assert there.info("orders")["next"] == 20
        (folder / "file").write_bytes(cases["no end"][0])
        there.run("stream", "import", str(folder / "file"), "--incomplete")
        assert there.info("orders")["next"] == 51 and there.messages("orders") == here.messages("orders")


@both_ways
def a_target_with_other_contents_is_refused(here, there) -> None:
    with scratch() as folder:
        file = str(folder / "orders")
        fill(here, "orders", 10)
        here.run("stream", "export", "orders", file)
        # Another message at the beginning, in the middle, and after the last one.
        for before in (0, 4, 10):
            fill(there, "orders", 0)
            if before:
                (folder / "part").write_bytes(b"".join((folder / "orders").read_bytes().splitlines(True)[:before + 1]))
                there.run("stream", "import", str(folder / "part"), "--incomplete")
            there.run("stream", "publish", "orders", "orders.a", "another one")
            said = there.said("stream", "import", file)
            assert "other contents" in said and "Nothing was imported" in said, said
            assert there.info("orders")["next"] == before + 2
            moved = json.loads(there.run("stream", "import", file, "--beside-others", "--json").stdout)
            assert moved["stored"] == 10 - before, moved
            assert json.loads(there.run("stream", "import", file, "--beside-others", "--json").stdout)["stored"] == 0
            assert sorted(each[6] for each in there.messages("orders")) == sorted([b"another one", *(b"%d" % i for i in range(10))])
            there.run("stream", "rm", "orders")
        # The target lost all of its messages.
        fill(there, "orders", 3)
        there.run("stream", "purge", "orders")
        said = there.said("stream", "import", file)
        assert "had 3 messages" in said and "--resume" in said, said
        assert json.loads(there.run("stream", "import", file, "--resume", "--json").stdout)["stored"] == 7
        # Its oldest ones are gone: the rest shows the place.
        there.run("stream", "purge", "orders", "--before", "6")
        assert json.loads(there.run("stream", "import", file, "--json").stdout)["stored"] == 0
        there.run("stream", "publish", "orders", "orders.a", "another one")
        there.said("stream", "import", file)
        assert "oldest" in there.said("stream", "import", file, "--beside-others")


@both_ways
def ids_that_come_twice_and_messages_without_one_are_moved(here, there) -> None:
    with scratch() as folder:
        fill(here, "orders", 0, "--id-window", "0")
        for body in ("1", "2", "3"):
            here.run("stream", "publish", "orders", "orders.a", body, "--id", "same")
        here.run("stream", "publish", "orders", "orders.a", "4")
        file = str(folder / "orders")
        here.run("stream", "export", "orders", file)
        lines = unsealed((folder / "orders").read_bytes())
        assert "100 ms" in there.said("stream", "import", file, "--survives", "process")
        how = ["--survives", "process", "--id-window", "120"]
        moved = there.run("stream", "import", file, *how, "--json")
        assert json.loads(moved.stdout)["renamed"] == 2 and b"2 messages got other ids" in moved.stderr
        assert [each[6] for each in there.messages("orders")] == [b"1", b"2", b"3", b"4"]
        ids = [each[2] for each in there.messages("orders")]
        assert ids[0] == "same" and len(set(ids)) == 4 and all(ids), (ids, lines)
        again = json.loads(there.run("stream", "import", file, "--json").stdout)
        assert (again["stored"], again["messages"]) == (0, 4), again
        assert there.info("orders")["next"] == 5


@both_ways
def what_the_target_does_not_keep_is_refused_with_the_option(here, there) -> None:
    with scratch() as folder:
        file = str(folder / "any")
        here.run("stream", "add", "any")
        here.run("stream", "publish", "any", "x", "1")
        here.run("stream", "export", "any", file)
        said = there.said("stream", "import", file)
        assert "process, or machine" in said and "--survives" in said, said
        said = there.said("stream", "import", file, "--survives", "process")
        assert "names its topics" in said and "--topic" in said, said
        there.run("stream", "import", file, "--survives", "process", "--topic", "x", "--topic", "y.>")
        assert there.info("any")["topics"] == ["x", "y.>"]
        there.run("stream", "rm", "any")
        # A topic that the target does not take is named with its message.
        said = there.said("stream", "import", file, "--survives", "process", "--topic", "y.>")
        assert "message 1 of the file" in said and "does not take the topic" in said, said
        # A target without room.
        fill(here, "big", 0)
        for _ in range(3):
            here.run("stream", "publish", "big", "big.a", "-", text=os.urandom(60_000))
        here.run("stream", "export", "big", str(folder / "big"))
        there.run("stream", "add", "big", "big.>", "--when-full", "refuse", "--survives", "process", "--bytes-max", "70000")
        said = there.said("stream", "import", str(folder / "big"))
        assert "--bytes-max" in said and "at least 1 messages" in said, said
        there.run("stream", "add", "big", "big.>", "--when-full", "refuse", "--survives", "process", "--bytes-max", "1M", "--redeclare")
        assert json.loads(there.run("stream", "import", str(folder / "big"), "--json").stdout)["stored"] == 2
        # The largest body of a hub does not fit into a message of NATS beside its headers.
        here.run("stream", "add", "large", "large.>")
        here.run("stream", "publish", "large", "large.a", "-", text=os.urandom(1 << 20))
        here.run("stream", "export", "large", str(folder / "large"))
        here.run("stream", "import", str(folder / "large"), "--as", "large2")
        assert here.messages("large2") == here.messages("large")
        assert "message 1 of the file" in there.said("stream", "import", str(folder / "large"), "--survives", "process")
        # With a space the names have it, and the file does not.
        there.run("stream", "import", str(folder / "big"), "--survives", "process", "--space", "shop")
        assert there.has("shop.big") and there.messages("big") == here.messages("big")


@both_ways
def output_that_takes_no_more_and_other_files_are_refused(here, there) -> None:
    with scratch() as folder:
        for place in (here, there):
            fill(place, "orders", 500)
            said = place.said("stream", "export", "orders", "/dev/full")
            assert "No space left" in said, said
            place.said("stream", "export", "orders", str(folder))
            assert "No such file" in place.said("stream", "export", "orders", str(folder / "none" / "file"))
            (folder / "kept").write_text("notes of a user\n")
            assert "not empty" in place.said("stream", "export", "orders", str(folder / "kept"))
            assert "not a file of" in place.said("stream", "export", "orders", str(folder / "kept"), "--resume")
            assert (folder / "kept").read_text() == "notes of a user\n"
            assert place.said("stream", "export", "none", str(folder / "no")) and not (folder / "no").exists()
            # A limit of its size ends a file in the middle of a line; then there is room.
            file = folder / "cut"
            file.unlink(missing_ok=True)
            done = subprocess.run(["bash", "-c", 'trap "" XFSZ; ulimit -f 32; exec "$@"', "bash", sys.argv[1], "stream", "export", "orders",
                                   str(file), *place.options], capture_output=True, timeout=3 * PATIENCE)
            assert done.returncode == 1 and b"--resume continues" in done.stderr and file.stat().st_size == 32 << 10, done
            said = place.run("stream", "export", "orders", str(file), "--resume")
            assert b"cut off" in said.stderr and b"500 messages, " in said.stdout, said
            assert [message(line) for line in unsealed(file.read_bytes())[1:-1]] == place.messages("orders")
            # New messages, and then another life of the stream.
            place.run("stream", "publish", "orders", "orders.a", "new")
            assert b"501 messages, 1 of them new" in place.run("stream", "export", "orders", str(file), "--resume").stdout
            place.run("stream", "add", "other", "other.>", *place.kept)
            assert "has the stream orders" in place.said("stream", "export", "other", str(file), "--resume")
            place.run("stream", "rm", "orders")
            fill(place, "orders", 1)
            assert "made again" in place.said("stream", "export", "orders", str(file), "--resume")


@both_ways
def what_the_stream_loses_during_an_export_is_said(here, there) -> None:
    for place in (here, there):
        place.run("stream", "add", "big", "big.>", *place.kept, *SMALL)
        count = 16_000  # twice the bytes of a reader's queue

        def publish(place: Place = place) -> None:
            place.run("stream", "publish", "big", "big.a", "--window", "500", text="".join(f"{i:01000}\n" for i in range(count)))

        # The pipe is full long before the end: the stream changes meanwhile.
        def blocked(*arguments: str, place: Place = place) -> tuple:
            export = place.start("stream", "export", "big", "-", *arguments)
            return export, os.read(export.stdout.fileno(), 4096)
        publish()
        export, begin = blocked("--json")
        place.run("stream", "purge", "big", "--before", str(count - 1000))
        for left in (1000, 0):
            out, err = export.communicate(timeout=3 * PATIENCE)
            told = json.loads(err.decode().splitlines()[-1])
            end = json.loads(objects_of(begin + out)[-1])
            assert export.returncode == 0 and told["missing"] > 0 and left < told["messages"] == count - told["missing"], err
            assert (end["messages"], end["missing"]) == (told["messages"], told["missing"]), end
            assert b"are not in the file" in err
            if left:
                place.run("stream", "rm", "big")
                place.run("stream", "add", "big", "big.>", *place.kept, *SMALL)
                publish()
                export, begin = blocked("--json")
                place.run("stream", "purge", "big")
        place.run("stream", "rm", "big")
        place.run("stream", "add", "big", "big.>", *place.kept, *SMALL)
        publish()
        export, _ = blocked()
        place.run("stream", "rm", "big")
        _, err = export.communicate(timeout=3 * PATIENCE)
        assert export.returncode == 1 and b"the stream big" in err, err


@both_ways
def a_signal_ends_both_and_says_how_to_go_on(here, there) -> None:
    with scratch() as folder:
        fill(here, "orders", 20)
        file = folder / "orders"
        here.run("stream", "export", "orders", str(file))
        whole = file.read_bytes()
        for number in (signal.SIGINT, signal.SIGTERM):
            # The writer of the pipe is slow: 10 messages, and no more.
            moves = there.start("stream", "import", "-", "--survives", "process", "--topic", "orders.>", "--as", f"signal-{number}",
                                stdin=subprocess.PIPE)
            moves.stdin.write(b"".join(whole.splitlines(True)[:11]))
            moves.stdin.flush()
            deadline = time.monotonic() + PATIENCE
            while not there.has(f"signal-{number}"):
                assert time.monotonic() < deadline and moves.poll() is None
            moves.send_signal(number)
            assert moves.wait(PATIENCE) == 128 + number
            said = moves.stderr.read().decode()
            assert "the same command continues" in said, said
            moves.communicate()
            there.run("stream", "rm", f"signal-{number}")


@test
def an_import_goes_on_after_a_server_that_died() -> None:
    for program in SERVERS:
        with hub() as here, scratch() as folder:
            fill(here, "orders", MANY)
            file = str(folder / "orders")
            here.run("stream", "export", "orders", file)

            def serve(port: str, program: str = program, folder=folder) -> subprocess.Popen:
                return subprocess.Popen([sys.argv[1], "fleet", "up", "--json", "--servers", "1", "--store", f"{folder}/kept", "--port", port,
                                         "--program", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            server = serve("0")
            url = json.loads(server.stdout.readline())["fleet"]
            there = Place(["--fleet", url], True)
            # Messages on their way while the server dies and comes back: the same command goes on.
            moves = there.start("stream", "import", file, "--survives", "process")
            deadline = time.monotonic() + PATIENCE
            while not there.has("orders"):
                assert time.monotonic() < deadline
            for _ in range(2):
                server.kill()
                server.communicate()
                server = serve(url.rsplit(":", 1)[1])
                assert server.stdout.readline(), server.stderr.read()
            try:
                _, said = moves.communicate(timeout=3 * PATIENCE)
                if moves.returncode != 0:
                    assert b"the same command continues" in said, said
                there.run("stream", "import", file)
                assert there.info("orders")["next"] == MANY + 1
                assert there.messages("orders") == here.messages("orders")
            finally:
                server.send_signal(signal.SIGTERM)
                server.communicate(timeout=PATIENCE)


@both_ways
def consumers_are_named_with_their_places(here, there) -> None:
    with scratch() as folder:
        for place in (here, there):
            fill(place, "orders", 10)
            place.run("stream", "purge", "orders", "--before", "3")
            place.run("stream", "consume", "orders", "billing", "-n", "4")
            file = str(folder / f"orders-{place.nats}")
            done = place.run("stream", "export", "orders", file)
            assert b"not moved: the consumer billing" in done.stdout, done
            told = json.loads(place.run("stream", "export", "orders", file, "--resume", "--json").stdout)
            (billing,) = told["consumers"]
            assert billing["name"] == "billing" and billing["from"] == billing["floor"] - 2, told


@test
def the_commands_of_the_page_do_what_it_says() -> None:
    assert run_blocks("fleet.md", "stream export") == 1


if __name__ == "__main__":
    if not SERVERS or not KEPT_SIDE:
        print("there is no nats-server" if not SERVERS else "skipped: there is no nats: this build has no SQLite")
        sys.exit(77)
    random.seed()
    run_all()
