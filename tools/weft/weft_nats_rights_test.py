# SPDX-License-Identifier: MIT
"""weft_nats_rights_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: fleet acl and fleet doctor for the kept topics of a fleet
on NATS, on Debian's server and on that of deps/go.txt if it was built. 77: there is none."""

import os
import sys

from weft_cli_support import LONG, PATIENCE, end, objects, run, run_all, start, test
from weft_nats_support import CURRENT, SERVERS, configured, keeping, request

KEPT = ["--survives", "process"]


def refused(user: str, address: str, commands: list[list[str]]) -> None:
    """The servers permit none of the commands, which run beside each other: each waits for an answer that does not come."""
    for process in [start(*command, "--fleet", f"nats://{user}:p@{address}", *LONG) for command in commands]:
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1 and "permit" in said, (process.args, said)


@test
def the_printed_permissions_are_enough_for_a_stream_and_a_bucket_and_for_no_other_one() -> None:
    users = {"owner": ["--stream", "orders", "--publish", "orders.>", "--bucket", "config"],
             "member": ["--consume", "orders", "--watch", "config"]}
    rows = [f'{{ user: {user}, password: p, {run("fleet", "acl", *roles)} }}' for user, roles in users.items()]
    for program in SERVERS:
        with configured(program, "authorization { users: [ " + ", ".join(rows) + ", { user: all, password: p } ] }\n") as (address, _):
            def of(user: str, *arguments: str, address: str = address, **more) -> str:
                return run(*arguments, "--fleet", f"nats://{user}:p@{address}", *LONG, **more)
            # The named streams and buckets.
            of("owner", "stream", "add", "orders", "orders.>", *KEPT)
            of("owner", "stream", "add", "orders", "orders.>", *KEPT, "--bytes-max", "64M", "--redeclare")
            assert of("owner", "stream", "publish", "orders", "orders.eu", "1") == "1\n"
            assert of("owner", "stream", "publish", "orders", "orders.eu", "2", "--expect-last", "1") == "2\n"
            assert of("owner", "kv", "put", "config", "color", "blue", *KEPT) == "1\n"
            assert of("owner", "kv", "put", "config", "color", "red", "--revision", "1") == "2\n"
            for user in users:
                assert of(user, "stream", "read", "orders", "--stored") == "1 orders.eu 1\n2 orders.eu 2\n"
                assert of(user, "stream", "consume", "orders", user, "-n", "2").count("\n") == 2
                assert f"{user} has all below 3, 0 to acknowledge" in of(user, "stream", "info", "orders")
                of(user, "stream", "rm", "orders", "--consumer", user)
                assert of(user, "kv", "get", "config", "color") == "red\n"
                assert of(user, "kv", "ls", "config") == "color\n"
                watch = start("kv", "watch", "config", "-n", "1", "--fleet", f"nats://{user}:p@{address}", *LONG)
                assert end(watch) == "put color 2 red\n"
            # A member changes nothing.
            refused("member", address, [
                ["stream", "publish", "orders", "orders.eu", "x"], ["stream", "purge", "orders"], ["stream", "rm", "orders"],
                ["kv", "put", "config", "color", "x"], ["kv", "delete", "config", "color"],
                ["stream", "add", "orders", "orders.>", *KEPT, "--age-max", "60", "--redeclare"]])
            # No user reaches other streams, buckets and topics.
            of("all", "stream", "add", "other", "other.>", *KEPT)
            of("all", "stream", "publish", "other", "other.a", "x")
            of("all", "kv", "put", "secret", "key", "x", *KEPT)
            for user in users:
                refused(user, address, [
                    ["stream", "info", "other"], ["stream", "read", "other"], ["stream", "consume", "other", "c"],
                    ["stream", "publish", "other", "other.a", "x"], ["stream", "add", "third", "third.>", *KEPT],
                    ["kv", "get", "secret", "key"], ["kv", "put", "secret", "key", "y"], ["kv", "ls", "secret"]])
            assert of("all", "stream", "read", "other", "--stored") == "1 other.a x\n"
            of("owner", "stream", "purge", "orders")
            of("owner", "kv", "delete", "config", "color")
            of("owner", "stream", "rm", "orders")


@test
def the_names_of_permissions_have_the_space_and_are_checked() -> None:
    spaced = objects(run("fleet", "acl", "--space", "prod", "--stream", "orders.eu", "--watch", "config", "--json"))[0]["publish"]
    assert "$JS.API.STREAM.INFO.prod=2Eorders=2Eeu" in spaced and "$JS.API.STREAM.INFO.KV_prod=2Econfig" in spaced, spaced
    assert not [each for each in spaced if "KV_prod" in each and ("STREAM.DELETE" in each or "UPDATE" in each)], spaced
    assert "is --bucket" in run("fleet", "acl", "--stream", "kv.config", code=2)
    run("fleet", "acl", "--stream", "a..b", code=1)
    run("fleet", "acl", "--bucket", "a.b", code=2)


def findings(*arguments: str, timeout: str = "60") -> dict[str, dict]:
    return {each["name"]: each for each in objects(run("fleet", "doctor", "--json", "--timeout", timeout, *arguments))}


@test
def the_doctor_tells_what_each_stream_survives_by_the_settings_of_its_server() -> None:
    for program in SERVERS:
        for setting, survives in (("", "process"), (", sync_interval: always", "power")):
            if setting and program != CURRENT:  # servers before 2.10 have no such setting
                continue
            with configured(program, "", setting) as (address, monitor):
                here = ["--fleet", f"nats://{address}", *LONG]
                run("stream", "add", "orders", "orders.>", *KEPT, *here)
                run("stream", "add", "fast", "fast.>", "--survives", "nothing", *here)
                run("stream", "publish", "orders", "orders.eu", "x", *here)
                told = findings(f"nats://{address}")
                assert told["kept topics"]["value"].startswith("2 streams, 0 consumers, "), told
                assert told["stream orders"]["state"] == "ok" and "survives process; 1 of 1 copy" in told["stream orders"]["value"], told
                assert "orders.>; 1 messages, " in told["stream orders"]["value"], told
                told = findings(f"nats://{address}", "--monitor", monitor)
                disk = next(each for name, each in told.items() if name.startswith("disk of "))
                if program == CURRENT:
                    expected = "always" if setting else "every 120 s"
                    assert told["stream orders"]["value"].startswith(
                        f"survives {survives}{'' if setting else ', not power'}; "), told
                else:
                    expected = "unknown: servers before 2.10"
                    assert told["stream orders"]["value"].startswith("survives process; "), told
                assert disk["value"].startswith(expected) and disk["state"] == ("ok" if setting else "info"), disk
                assert told["stream fast"]["value"].startswith("survives nothing: it is in memory"), told
    with keeping(SERVERS[0]) as url:
        said = run("fleet", "doctor", url, "--monitor", url.replace("nats", "http"), *LONG, code=1)
        assert "is no monitor of a server of NATS" in said, said
        assert "--monitor is http://" in run("fleet", "doctor", url, "--monitor", "127.0.0.1:1", *LONG, code=2)
    with start("fleet", "up", "--json", "--servers", "1", "--program", SERVERS[0]) as command:
        try:
            told = findings(objects(command.stdout.readline())[0]["fleet"])
            assert told["kept topics"]["state"] == "info" and "without JetStream" in told["kept topics"]["value"], told
        finally:
            command.kill()


@test
def the_doctor_warns_of_full_streams_of_standing_consumers_and_of_refused_requests() -> None:
    with configured(SERVERS[-1], 'authorization { users: [ { user: all, password: p }, { user: blind, password: p, permissions: '
                    '{ publish: { deny: "$JS.API.STREAM.LIST" } } } ] }\n') as (address, _):
        fleet = f"nats://all:p@{address}"
        here = ["--fleet", fleet, *LONG]
        run("stream", "add", "small", "small.>", *KEPT, "--bytes-max", "64K", "--when-full", "refuse", *here)
        run("stream", "publish", "small", "small.a", "-", *here, text="x" * 61_000)
        told = findings(fleet)["stream small"]
        assert told["state"] == "warning" and "bytes_max" in told["advice"], told
        run("fleet", "doctor", fleet, "--strict", *LONG, code=1)
        # A consumer of another program, whose only message under way is not acknowledged.
        request(address, "$JS.API.CONSUMER.CREATE.small.slow", {"stream_name": "small", "config": {
            "name": "slow", "durable_name": "slow", "ack_policy": "explicit", "max_ack_pending": 1}})
        request(address, "$JS.API.CONSUMER.MSG.NEXT.small.slow", {"batch": 1})
        told = findings(fleet)["consumer small slow"]
        assert told["state"] == "warning" and told["value"].startswith("1 of 1 messages wait"), told
        assert "stands still" in told["advice"], told
        told = findings(f"nats://blind:p@{address}", timeout="5")
        assert told["more streams"]["state"] == "warning" and "STREAM.LIST" in told["more streams"]["value"], told


@test
def the_doctor_counts_the_copies_that_are_there_and_current() -> None:
    if not os.path.exists(CURRENT):
        print("skipped: no nats-server of deps/go.txt")
        return
    with keeping(CURRENT, "--servers", "3") as url:
        here = ["--fleet", url, *LONG]
        run("stream", "add", "orders", "orders.>", "--survives", "machine", *here)
        run("stream", "publish", "orders", "orders.eu", "x", *here)
        while not (told := findings(url)["stream orders"])["value"].startswith("survives machine; 3 of 3 copies, led by weft"):
            assert told["state"] == "warning", told  # a copy is not current yet
        assert told["state"] == "ok", told


if __name__ == "__main__":
    if not SERVERS:
        print("there is no nats-server")
        sys.exit(77)
    run_all()
