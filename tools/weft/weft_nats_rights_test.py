# SPDX-License-Identifier: MIT
"""weft_nats_rights_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: fleet acl for the kept topics of a fleet on NATS, on
Debian's server and on that of deps/go.txt if it was built. 77: there is none."""

import sys

from weft_cli_support import LONG, PATIENCE, end, objects, run, run_all, start, test
from weft_nats_support import SERVERS, configured

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


if __name__ == "__main__":
    if not SERVERS:
        print("there is no nats-server")
        sys.exit(77)
    run_all()
