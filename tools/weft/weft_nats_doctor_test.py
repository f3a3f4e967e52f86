# SPDX-License-Identifier: MIT
"""weft_nats_doctor_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE: fleet doctor for the kept topics of a fleet on NATS, on
Debian's server and on that of deps/go.txt if it was built. 77: there is none."""

import json
import os
import subprocess
import sys
import time

from weft_cli_support import LONG, PROGRAM, objects, run, run_all, start, test
from weft_nats_support import CURRENT, SERVERS, cluster, configured, keeping, request

KEPT = ["--survives", "process"]


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
        told = findings(f"nats://blind:p@{address}")
        assert told["more streams"]["state"] == "warning" and "STREAM.LIST: not permitted" in told["more streams"]["value"], told


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


def until(condition, *arguments: str) -> dict:
    """The finding of the stream orders, once the condition holds for it."""
    end = time.monotonic() + 90
    while True:
        told = findings(*arguments, timeout="15").get("stream orders", {})
        if told and condition(told):
            return told
        assert time.monotonic() < end, told


def add_orders(fleet: str) -> None:
    """Servers that have just started may not have all found each other: then there are too few for three copies."""
    command = [PROGRAM, "stream", "add", "orders", "orders.>", "--survives", "machine", "--fleet", fleet, *LONG]
    end = time.monotonic() + 90
    while (done := subprocess.run(command, capture_output=True, text=True, timeout=90)).returncode != 0:
        assert "no suitable peers" in done.stderr and time.monotonic() < end, done


@test
def the_doctor_names_a_server_that_is_stopped_or_runs_without_jetstream() -> None:
    for program in SERVERS:
        with cluster(program) as servers:
            add_orders(servers.fleet())
            run("stream", "publish", "orders", "orders.eu", "x", "--fleet", servers.fleet(), *LONG)
            whole = until(lambda told: "; 3 of 3 copies, led by s" in told["value"], servers.fleet())
            assert whole["state"] == "ok" and not whole["advice"], whole
            leader = int(whole["value"].split("led by s")[1][0])
            lost = (leader + 1) % 3
            servers.kill(lost)
            told = until(lambda told: f"s{lost} " in told["advice"], servers.fleet())
            assert told["state"] == "warning" and told["value"].startswith("survives machine; 2 of 3 copies"), told
            assert "3 copies were asked for, 2 are there and current" in told["advice"], told
            servers.start(lost, jetstream=False)
            # Asked at the server without JetStream, which is the only one on the list.
            told = until(lambda told: f"s{lost} has been silent for " in told["advice"], servers.fleet(lost))
            assert told["state"] == "warning" and "its JetStream is off" in told["advice"], told
            servers.kill(lost)
            servers.start(lost)
            until(lambda told: "; 3 of 3 copies, led by s" in told["value"], servers.fleet())


@test
def the_doctor_names_a_consumer_without_a_leader() -> None:
    for program in SERVERS:
        with cluster(program) as servers:
            add_orders(servers.fleet())
            # A consumer with one copy, of another client.
            made = json.loads(request(f"127.0.0.1:{servers.ports[0]}", "$JS.API.CONSUMER.DURABLE.CREATE.orders.lone", {
                "stream_name": "orders", "config": {"durable_name": "lone", "ack_policy": "explicit", "num_replicas": 1}}))
            servers.kill(int(made["cluster"]["leader"].removeprefix("s")))
            end = time.monotonic() + 90
            while not (lone := findings(servers.fleet(), timeout="15").get("consumer orders lone")):
                assert time.monotonic() < end
            assert (lone["state"], lone["value"]) == ("warning", "its leader does not answer"), lone
            assert "no server leads it: nothing is delivered" in lone["advice"], lone


@test
def the_doctor_waits_for_the_next_leader_of_the_servers() -> None:
    for program in SERVERS:
        with cluster(program) as servers:
            add_orders(servers.fleet())
            whole = until(lambda told: "; 3 of 3 copies, led by s" in told["value"], servers.fleet())
            leader = int(whole["value"].split("led by s")[1][0])
            servers.kill(leader)
            told = findings(servers.fleet(), timeout="15")
            assert told["kept topics"]["value"].startswith("1 streams, "), told
            stream = told["stream orders"]
            assert stream["state"] == "warning" and f"led by s{leader}" not in stream["value"], told
            told = until(lambda told: "2 of 3 copies, led by s" in told["value"], servers.fleet())
            assert f"s{leader} " in told["advice"], told


if __name__ == "__main__":
    if not SERVERS:
        print("there is no nats-server")
        sys.exit(77)
    run_all()
