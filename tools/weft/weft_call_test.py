# SPDX-License-Identifier: MIT
"""weft_call_test.py PROGRAM SOURCE ..., with the program of tests/server/rpc_side.cc in RPC_SIDE: weft call."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from weft_cli_support import SOURCE, end, run, run_all, start, test

sys.path.append(str(SOURCE / "tests/support"))
from tls_peers import Certificates  # noqa: E402

SCHEMA = """namespace calc;
table Sum { a: long; b: long; note: string; }
table Named { name: string (required); }
root_type Sum;
"""


@contextlib.contextmanager
def server(*certificate: str):
    with subprocess.Popen([os.environ["RPC_SIDE"], *certificate], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as side:
        try:
            yield side.stdout.readline().strip()
        finally:
            side.kill()


@test
def the_methods_of_a_server_are_listed():
    with server() as endpoint:
        assert run("call", endpoint).splitlines()[:3] == ["bytes.echo 7", "text.refuse", "wait"]
        first = json.loads(run("call", endpoint, "--json").splitlines()[0])
        assert first == {"method": "bytes.echo", "number": 7}, first


@test
def a_request_is_an_argument_a_file_or_standard_input():
    with server() as endpoint, tempfile.NamedTemporaryFile() as file:
        assert run("call", endpoint, "bytes.echo", "weft") == "weft\n"
        assert run("call", endpoint, "bytes.echo") == "\n"
        assert run("call", endpoint, "bytes.echo", "-", text="from a pipe\n", ) == "from a pipe\\x0a\n"
        assert run("call", endpoint, "bytes.echo", "00ff10", "--hex") == "00ff10\n"
        everything = bytes(range(28, 256)) * 1000
        file.write(everything)
        file.flush()
        assert run("call", endpoint, "bytes.echo", "--file", file.name, "--raw").encode("latin-1") == everything
        answer = json.loads(run("call", endpoint, "bytes.echo", "weft", "--json"))
        assert answer == {"method": "bytes.echo", "body": "weft"}, answer


@test
def a_refusal_has_its_whole_text():
    with server() as endpoint:
        text = "why " * 100
        assert text.strip() in run("call", endpoint, "text.refuse", text, code=1)
        assert "no.such" in run("call", endpoint, "no.such", code=1)


def sleeps_with_threads(process):
    state = subprocess.run(["ps", "-o", "stat=", str(process.pid)], capture_output=True, text=True).stdout
    return state.startswith("S") and "l" in state


@test
def each_wait_has_an_end():
    with server() as endpoint:
        assert "wait: timed out" in run("call", endpoint, "wait", "--timeout", "0.2", code=1)
        process = start("call", endpoint, "wait", "--timeout", "600")
        while not sleeps_with_threads(process):
            pass
        process.send_signal(signal.SIGINT)
        end(process, 128 + signal.SIGINT)
    assert "refused" in run("call", endpoint, "--timeout", "1", code=1)
    process = start("call", endpoint, "--timeout", "600")
    assert "refused" in process.stderr.readline()  # at once: it waits for a server
    process.send_signal(signal.SIGINT)
    end(process, 128 + signal.SIGINT)


@test
def wrong_arguments_name_what_is_wrong():
    for arguments, expected in [
        (["nowhere"], "nowhere"),
        (["tcp://127.0.0.1:1", "m", "a", "b"], "one BODY"),
        (["tcp://127.0.0.1:1", "m", "a", "--file", "f"], "BODY"),
        (["tcp://127.0.0.1:1", "--schema", "x.fbs"], "METHOD is missing"),
        (["tcp://127.0.0.1:1", "m", "--request", "T"], "--schema"),
        (["tcp://127.0.0.1:1", "m", "--tls-name", "n"], "tls+tcp://"),
    ]:
        assert expected in run("call", *arguments, code=2), arguments


@test
def tables_of_flatbuffers_are_json():
    with server() as endpoint, tempfile.TemporaryDirectory() as folder:
        schema = Path(folder, "calc.fbs")
        schema.write_text(SCHEMA)
        call = ["call", endpoint, "bytes.echo"]
        answer = json.loads(run(*call, '{"a": 1, "b": -2, "note": "x"}', "--schema", str(schema)))
        assert answer == {"a": 1, "b": -2, "note": "x"}, answer
        assert json.loads(run(*call, "--schema", str(schema))) == {"a": 0, "b": 0}
        named = json.loads(run(*call, '{"name": "n"}', "--schema", str(schema), "--request", "calc.Named", "--response",
                               "calc.Named"))
        assert named == {"name": "n"}, named
        assert "JSON" in run(*call, '{"c": 1}', "--schema", str(schema), code=2)
        assert "no table calc.Less" in run(*call, "{}", "--schema", str(schema), "--request", "calc.Less", code=2)
        # The answer is a Sum, which lacks a name.
        assert "is not a table calc.Named" in run(*call, '{"a": 1}', "--schema", str(schema), "--response", "calc.Named",
                                                  code=1)
        schema.write_text("table { }")
        assert "calc.fbs" in run(*call, "--schema", str(schema), code=1)
        assert "cannot read" in run(*call, "--schema", folder + "/none.fbs", code=1)


@test
def a_server_may_have_tls():
    with tempfile.TemporaryDirectory() as folder:
        certificates = Certificates(folder)
        with server(*certificates.pair("good")) as endpoint:
            assert run("call", endpoint, "bytes.echo", "x", "--tls-ca", certificates.path("ca.crt")) == "x\n"
            assert "certificate" in run("call", endpoint, "bytes.echo", "x", "--timeout", "1", code=1)
            assert run("call", endpoint, "bytes.echo", "x", "--tls-insecure") == "x\n"


if __name__ == "__main__":
    run_all()
