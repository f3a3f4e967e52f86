# SPDX-License-Identifier: MIT
"""weft_table_test.py PROGRAM SOURCE METRICS_SIDE KEPT_SIDE, with rpc_side in RPC_SIDE: what every command of the table
does alike. A command without a row here fails."""

import contextlib
import dataclasses
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import zmq
from weft_cli_support import KEPT_SIDE, PATIENCE, PROGRAM, admin_port, all_commands, on_terminal, run, run_all, test

NATS_SERVER = shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")
ENDED = {signal.SIGINT: 130, signal.SIGTERM: 143}
STOPPED = {signal.SIGINT: 0, signal.SIGTERM: 0}  # of a command that serves


@dataclasses.dataclass
class Row:
    """Arguments in words with one blank between two: options first as one word each. "": the command has no such run: proxy, hub
    and fleet up end at a signal only, with the codes of `waits`; keygen, doctor and report wait for nothing."""

    done: str  # ends with 0
    refused: str  # ends with 1
    waits: str  # until a signal
    timeout: str = ""  # ends with 1 by itself; one for each command with --timeout
    prints: bool = True  # `done`
    beside: str = ""  # a command that `done` needs, again and again
    codes: dict = dataclasses.field(default_factory=lambda: ENDED)  # of `waits`
    needs: str | None = "yes"  # nothing: this build or machine has not what the runs need


def link(done: str, *, waits: str = "--bind=ipc://{folder}/socket", words: str = "", prints: bool = True) -> Row:
    """Of a command with a socket."""
    return Row(done, "--bind={pull}" + words, waits + words, "--connect=tcp://127.0.0.1:1 --timeout=0.1" + words, prints)


def kept(done: str, refused: str = "", waits: str = "", *, words: str = "", **more) -> Row:
    """Of a command that speaks with a hub. `words`: of a run without a hub, if not those of `done`."""
    words = words or " ".join(word for word in done.split() if not word.startswith("--"))
    nobody = " ".join(["--directory={empty}", "--timeout=0.1", *words.split()])

    def there(text: str) -> str:
        return " ".join(["--directory={hub}", *text.split()]) if text else ""
    return Row(there(done), there(refused) or nobody, there(waits) or nobody.replace(" --timeout=0.1", ""), nobody, needs=KEPT_SIDE, **more)


ROWS = {
    "pub": link("--connect={sub} x", words=" x", prints=False),
    "sub": link("--connect={pub} --count=1"),
    "push": link("--connect={pull} x", words=" x", prints=False),
    "pull": link("--connect={push} --count=1"),
    "req": link("--connect={rep} hello", words=" x"),
    "rep": link("--connect={req} --count=1"),
    "dealer": link("--connect={rep} --count=1  hello", words=" x"),
    "router": link("--connect={dealer} --count=1"),
    "keygen": Row("", "--out=/none/key", ""),
    "proxy": Row("", "forwarder {pull} tcp://127.0.0.1:*", "forwarder ipc://{folder}/front ipc://{folder}/back"),
    "tap": Row("--count=2 ipc://{folder}/tapped {rep}", "{pull} {rep}", "ipc://{folder}/listen {rep}",
               beside="req --connect=ipc://{folder}/tapped --timeout=1 x"),
    "bench": Row("--seconds=0.02", "--bind={pull}", "--bind=ipc://{folder}/socket", "--connect=tcp://127.0.0.1:1 --timeout=0.1"),
    "call": Row("{rpc} bytes.echo weft", "{rpc} no.method", "{rpc} wait", "--timeout=0.1 {mute}"),
    "top": Row("--once {admin}", "--once tcp://127.0.0.1:1", "--interval=600 {admin}", "--once --timeout=0.1 {mute}"),
    "config": Row("show", "check /none.toml", ""),
    "doctor": Row("", "", ""),  # `--strict` is refused on a machine with warnings only
    "report": Row("", "--admin=tcp://127.0.0.1:1", "", "--timeout=0.1 --admin={mute}"),
    "completion": Row("bash", "", ""),
    "manual": Row("kv get", "--out=/none", ""),
    "stream add": kept("added added.>", "added other.>"),
    "stream ls": Row("--directory={hub}", "--directory=/dev/null/x", "--directory={empty}", "--directory={empty} --timeout=0.1",
                     needs=KEPT_SIDE),
    "stream info": kept("orders", "none"),
    "stream publish": kept("orders orders.a x", "none orders.a x"),
    "stream read": kept("--stored orders", "none", "orders"),
    "stream consume": kept("--count=1 --no-ack orders fresh", "none c", "orders idle --count=1000000"),
    "stream ack": kept("", "orders billing 999", words="orders billing 1"),
    "stream purge": kept("--before=1 orders", "none", prints=False),
    "stream rm": kept("", "none", words="none"),
    "stream export": kept("orders", "none", words="orders"),
    "stream import": Row("--directory={hub} --as=moved --resume {moved}", "/none", "--directory={empty} {moved}",
                         "--directory={empty} --timeout=0.1 {moved}", needs=KEPT_SIDE),
    "kv get": kept("config color", "config none"),
    "kv put": kept("config size 1", "--revision=999 config color x"),
    "kv delete": kept("config other", "--revision=999 config color", prints=False),
    "kv watch": kept("--count=1 config", "", "config"),
    "kv ls": kept("config", ""),
    "kv export": kept("config", "none", words="config"),
    "kv import": Row("--directory={hub} --as=moved --resume {moved_bucket}", "/none", "--directory={empty} {moved_bucket}",
                     "--directory={empty} --timeout=0.1 {moved_bucket}", needs=KEPT_SIDE),
    "topic pub": Row("--directory={hub} --wait=0 a x", "--directory={empty} a..b x", "--directory={empty} nobody x",
                     "--directory={empty} --timeout=0.1 nobody x", prints=False, needs=KEPT_SIDE),
    "topic sub": Row("--directory={side} --count=1 asked", "--directory={empty} a..b", "--directory={empty} asked",
                     "--directory={empty} --timeout=0.1 a", beside="topic pub --directory={side} --timeout=1 asked x"),
    "topic tap": Row("--directory={side} --count=1", "--directory=/dev/null/x", "--directory={empty}", "--directory={empty} --timeout=0.1",
                     beside="topic pub --directory={side} --timeout=1 asked x"),
    "topic ls": Row("--directory={hub}", "--directory=/dev/null/x", "", "--fleet=nats://127.0.0.1:1 --timeout=0.1", needs=KEPT_SIDE),
    "request": Row("--directory={hub} svc.echo x", "--directory={empty} a..b x", "",
                   "--directory={empty} --timeout=0.1 svc.none x", needs=KEPT_SIDE),
    "reply": Row("--directory={side} --count=1 svc.asked", "--directory={empty} a..b", "--directory={empty} svc.asked",
                 "--directory={empty} --timeout=0.1 svc.a", beside="request --directory={side} --timeout=1 svc.asked x"),
    "hub": Row("", "--directory={empty} --store=/dev/null/x", "--directory={fresh} --admin=tcp://127.0.0.1:0", codes=STOPPED,
               needs=KEPT_SIDE),
    "bridge": Row("--check {bridge}", "/none.toml", "{bridge}", codes=STOPPED, prints=False),
    "fleet up": Row("", "--program=/none", "--servers=1", codes=STOPPED, needs=NATS_SERVER),
    "fleet doctor": Row("", "--timeout=0.1 nats://127.0.0.1:1", "", "--timeout=0.1 nats://127.0.0.1:{mute_port}"),
    "fleet acl": Row("--publish=px.>", "", ""),
}
BARE = {"keygen", "doctor", "report"}  # are done without an argument


def answer_all(sockets: dict, ended: threading.Event) -> None:
    """The other ends of the commands with a socket: each gives what its command wants."""
    while not ended.is_set():
        for name in ("pub", "push", "dealer", "req"):
            with contextlib.suppress(zmq.Again):
                sockets[name].send(b"x", zmq.DONTWAIT)
        for name in ("pull", "sub", "rep", "req", "dealer"):
            with contextlib.suppress(zmq.Again, zmq.ZMQError):
                got = sockets[name].recv_multipart(zmq.DONTWAIT)
                if name == "rep":
                    sockets[name].send_multipart(got)
        ended.wait(0.002)


@contextlib.contextmanager
def peers():
    """The endpoints of sockets of pyzmq by their names."""
    context = zmq.Context()
    sockets = {name: context.socket(getattr(zmq, name.upper())) for name in ("pub", "sub", "push", "pull", "req", "rep", "dealer")}
    sockets["sub"].subscribe(b"")
    sockets["req"].setsockopt(zmq.REQ_RELAXED, 1)
    for each in sockets.values():
        each.bind("tcp://127.0.0.1:0")
    ended = threading.Event()
    thread = threading.Thread(target=answer_all, args=(sockets, ended))
    thread.start()
    try:
        yield {name: each.getsockopt_string(zmq.LAST_ENDPOINT) for name, each in sockets.items()}
    finally:
        ended.set()
        thread.join()
        context.destroy(linger=0)


def wait_for(process: subprocess.Popen, condition) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, (process.args, process.poll(), process.stderr.read())
        time.sleep(0.005)


def catches_signals(process: subprocess.Popen) -> bool:
    try:
        with open(f"/proc/{process.pid}/status") as status:
            caught = int(re.search(r"^SigCgt:\t(\w+)$", status.read(), re.M).group(1), 16)
    except (OSError, AttributeError):
        return False
    return all(caught >> (number - 1) & 1 for number in ENDED)


@contextlib.contextmanager
def places():
    """What stands for the names in braces in the rows."""
    with contextlib.ExitStack() as stack:
        folders = {name: stack.enter_context(tempfile.TemporaryDirectory()) for name in ("hub", "empty", "side", "fresh", "folder")}
        names = {**folders, **stack.enter_context(peers())}
        mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        names |= {"mute": f"tcp://127.0.0.1:{mute.getsockname()[1]}", "mute_port": str(mute.getsockname()[1])}
        names["admin"], _ = stack.enter_context(admin_port())
        rpc = stack.enter_context(subprocess.Popen([os.environ["RPC_SIDE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(rpc.kill)
        names["rpc"] = rpc.stdout.readline().strip()
        names["bridge"] = f"{folders['folder']}/bridge.toml"
        with open(names["bridge"], "w") as file:
            file.write(f'[bridge]\nname = "b"\n[fleet]\ndirectory = "{folders["empty"]}"\n'
                       f'[[publishers]]\nbind = ["ipc://{folders["folder"]}/bridged"]\n')
        here = f"--directory={folders['hub']}"
        if KEPT_SIDE:
            for arguments in (["hub", here], ["reply", here, "svc.echo"]):
                side = stack.enter_context(subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                stack.callback(side.kill)
            run("stream", "add", here, "orders", "orders.>")
            run("stream", "add", here, "added", "added.>")
            run("stream", "publish", here, "orders", "orders.a", "x")
            run("stream", "consume", here, "orders", "billing", "--count", "1")
            run("kv", "put", here, "config", "color", "blue")
            run("request", here, "svc.echo", "x", "--timeout", "20")
            names |= {"moved": f"{folders['folder']}/moved", "moved_bucket": f"{folders['folder']}/moved-bucket"}
            run("stream", "export", here, "orders", names["moved"])
            run("kv", "export", here, "config", names["moved_bucket"])
        yield names


def words_of(text: str, names: dict) -> list[str]:
    return [re.sub(r"\{(\w+)\}", lambda found: names[found.group(1)], word) for word in text.split(" ")] if text else []


def each_row(of, names: dict) -> None:
    """Calls of(command, row, names) for every row that can run here, four at a time."""
    def one(command):
        try:
            with tempfile.TemporaryDirectory() as empty:  # no fleet of another row
                of(command, ROWS[command], {**names, "empty": empty})
        except (AssertionError, OSError, ValueError, subprocess.TimeoutExpired) as error:
            return f"{command}: {error!r}"
    with ThreadPoolExecutor(4) as pool:
        failed = [each for each in pool.map(one, [command for command, row in ROWS.items() if row.needs]) if each]
    assert not failed, "\n".join(failed)


@contextlib.contextmanager
def beside(row: Row, names: dict):
    """What the row needs beside it, until the end."""
    ended = threading.Event()

    def again():
        while not ended.is_set():
            subprocess.run([PROGRAM, *words_of(row.beside, names)], capture_output=True, timeout=PATIENCE)
    thread = threading.Thread(target=again)
    if row.beside:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if row.beside:
            thread.join()


def with_side(check):
    def checked(command, row, names):
        with beside(row, names):
            check(command, row, names)
    return checked


def outcome(*arguments: str, **more) -> subprocess.CompletedProcess:
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
    return subprocess.run([PROGRAM, *arguments], timeout=PATIENCE, text=True, **more)


def runs_to_its_end(command: str, row: Row) -> bool:
    return bool(row.done) or command in BARE


@test
def every_command_has_a_row():
    assert {" ".join(name) for name in all_commands()} == set(ROWS)
    for command, row in ROWS.items():
        assert bool(row.timeout) == ("--timeout" in run(*command.split(), "--help")), command


@test
def help_fits_into_a_terminal():
    for name in ([], *([group] for group in {command.split()[0] for command in ROWS}), *(command.split() for command in ROWS)):
        wide = [line for line in on_terminal(80, *name, "--help") if len(line) > 80]
        assert not wide, (name, wide)


@test
def help_in_tmux_has_the_lines_that_it_printed():
    tmux = shutil.which("tmux")
    if tmux is None:
        print("skipped: no tmux; the test of a terminal of 80 columns ran")
        return
    with tempfile.TemporaryDirectory() as folder:
        def there(*arguments: str) -> str:
            return subprocess.run([tmux, "-S", f"{folder}/socket", "-f", "/dev/null", *arguments], env={**os.environ, "LC_ALL": "C.UTF-8"},
                                  check=True, capture_output=True, text=True, timeout=PATIENCE).stdout
        pages = "; ".join(f"{shlex.quote(PROGRAM)} {command} --help" for command in ROWS)
        there("new-session", "-d", "-x", "80", "-y", "5000", f"{pages}; {tmux} -S {folder}/socket wait-for -S printed; exec sleep 600")
        try:
            there("wait-for", "printed")
            shown = [line.rstrip() for line in there("capture-pane", "-p").splitlines() if line.strip()]
        finally:
            there("kill-server")
    printed = [line.rstrip() for command in ROWS for line in run(*command.split(), "--help").splitlines() if line.strip()]
    assert shown == printed, [pair for pair in zip(shown, printed) if pair[0] != pair[1]][:3]


@test
def options_stand_anywhere_and_json_is_json():
    def check(command, row, names):
        if not runs_to_its_end(command, row):
            return
        given = words_of(row.done, names)
        options, rest = [word for word in given if word.startswith("--")], [word for word in given if not word.startswith("--")]
        first, second = (command.split() + [""])[:2]
        for arguments in ([*command.split(), *rest, *options, "--json"], ["-j", *options, *command.split(), *rest],
                          [first, *options, *([second] if second else []), "--json", *rest]):
            done = outcome(*arguments)
            assert done.returncode == 0, done
            for line in done.stdout.splitlines():
                assert isinstance(json.loads(line), dict), done
            assert not row.prints or done.stdout, done
    with places() as names:
        each_row(with_side(check), names)


@test
def wrong_usage_is_code_2():
    def check(command, row, names):
        for arguments in (["--no-such-option"], ["--json=perhaps"], ["a", "b", "c", "d", "--no-such-option=1"]):
            done = outcome(*command.split(), *arguments)
            assert (done.returncode, done.stdout) == (2, "") and f"`weft {command} --help`" in done.stderr, done
    each_row(check, {})


@test
def former_names_say_what_to_type():
    for former, now in (("topics streams", "type `weft stream ls`"), ("topics kv get a b", "type `weft kv`"), ("topics", "`weft topic`"),
                        ("topic pub --wait-subscribers 2 a x", "type --wait instead"),
                        ("topic pub --wait-subscribers=2 a x", "type --wait instead")):
        done = outcome(*former.split())
        assert (done.returncode, done.stdout) == (2, "") and now in done.stderr, done


@test
def a_refusal_is_code_1_with_its_reason():
    def check(command, row, names):
        for text in sorted({row.refused, row.timeout} - {""}):
            done = outcome(*command.split(), *words_of(text, names), "--json")
            assert done.returncode == 1 and done.stderr.startswith(f"weft {command}: "), done
            assert len(done.stderr) > len(command) + 10 and "terminate" not in done.stderr, done
            assert all(isinstance(json.loads(line), dict) for line in done.stdout.splitlines()), done
    with places() as names:
        each_row(check, names)


@test
def a_reader_that_has_gone_ends_the_command():
    def check(command, row, names):
        runs = [[*command.split(), "--help"]]
        if runs_to_its_end(command, row) and row.prints:
            runs.append([*command.split(), *words_of(row.done, names)])
        for arguments in runs:
            for ignored in (False, True):  # a parent may ignore the signal
                read, write = os.pipe()
                os.close(read)
                done = outcome(*arguments, stdout=write, restore_signals=not ignored)
                os.close(write)
                assert (done.returncode, done.stderr) in ((141, ""), (-signal.SIGPIPE, "")), done
            with open("/dev/full", "w") as full:
                done = outcome(*arguments, stdout=full)
                assert done.returncode == 1 and "takes no more" in done.stderr, done
    with places() as names:
        each_row(with_side(check), names)


def files_of(names: dict, *which: str) -> set[str]:
    return {os.path.join(at, name) for each in which for at, _, files in os.walk(names[each]) for name in files}


@test
def a_signal_ends_a_wait_and_leaves_nothing():
    def check(command, row, names):
        if not row.waits:
            return
        for number, code in row.codes.items():
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty:
                own = {**names, "folder": folder, "empty": empty}
                own["bridge"] = f"{folder}/bridge.toml"
                with open(own["bridge"], "w") as file:
                    file.write(open(names["bridge"]).read().replace(names["empty"], empty).replace(names["folder"], folder))
                before = files_of(own, "folder", "empty")
                process = subprocess.Popen([PROGRAM, *command.split(), *words_of(row.waits, own)], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
                                           env={**os.environ, "TMPDIR": folder})
                wait_for(process, lambda: catches_signals(process))
                process.send_signal(number)
                _, err = process.communicate(timeout=PATIENCE)
                assert process.returncode == code and "terminate" not in err, (process.args, number, process.returncode, err)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 0)
                    raise AssertionError(("a process is left", process.args))
                left = files_of(own, "folder", "empty") - before
                assert not left, (process.args, left)
    with places() as names:
        each_row(check, names)


if __name__ == "__main__":
    run_all()
