# SPDX-License-Identifier: MIT
"""weft_config_test.py PROGRAM SOURCE METRICS_SIDE [--write]: `weft config`, the blocks of docs/configuration.md, and its table of keys."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from weft_cli_support import PATIENCE, PROGRAM, SOURCE, run, run_all, run_blocks, test

PAGE = SOURCE / "docs/configuration.md"
BEGIN, END = "<!-- keys: weft_config_test.py --write -->\n", "<!-- end of keys -->\n"
GOOD = '[server]\ncores = 2\n\n[[listener]]\nendpoint = "tcp://127.0.0.1:0"\n'


def has_toml() -> bool:
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        done = subprocess.run([PROGRAM, "config", "check", file.name], capture_output=True, text=True, timeout=PATIENCE)
    return "no TOML" not in done.stderr


def keys() -> list[dict]:
    return [json.loads(line) for line in run("config", "show", "--json").splitlines()]


def table() -> str:
    """The keys in the form of the page: a table for each table of a file."""
    lines = []
    section = ""
    for key in keys():
        table_of = key["key"].rsplit(".", 1)[0]
        if table_of != section:
            section = table_of
            title = "[[listener]]" if section == "listener[]" else f"[{section.replace('[]', '')}]"
            lines += ["", f"`{title}`", "", "| key | type | default | bounds | changes | meaning |", "|---|---|---|---|---|---|"]
        default = f"`{key['default']}`" if key["default"] else "empty"
        lines.append(f"| `{key['key'].rsplit('.', 1)[1]}` | {key['type']} | {default} | {key['bounds']} | {key['changes']} | {key['doc']} |")
    return "\n".join(lines[1:]) + "\n"


@test
def checks_a_file():
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "server.toml")
        Path(file).write_text(GOOD)
        assert run("config", "check", file) == f"{file}: good: 2 keys, 1 listener\n"
        record = json.loads(run("config", "check", file, "--json"))
        assert record["good"] and record["problems"] == [] and record["listeners"] == 1, record

        Path(file).write_text(GOOD + 'backlgo = 5\nlimits.idle_timeout = "1 parsec"\n[app]\nanything = 1\n')
        done = subprocess.run([PROGRAM, "config", "check", file, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        record = json.loads(done.stdout)
        assert done.returncode == 1 and not record["good"] and record["omitted"] == 0, done
        assert [(each["line"], each["key"]) for each in record["problems"]] == [
            (6, "listener[0].backlgo"), (7, "listener[0].limits.idle_timeout")], record
        assert record["problems"][0]["text"] == 'unknown key; did you mean "backlog"?', record

        Path(file).write_text(GOOD)
        refused = subprocess.run([PROGRAM, "config", "check", file], capture_output=True, text=True, timeout=PATIENCE,
                                 env={**os.environ, "WEFT_SERVER_CORES": "many\033"})
        assert refused.returncode == 1 and "WEFT_SERVER_CORES: server.cores: " in refused.stdout, refused
        assert "\033" not in refused.stdout, refused
        Path(file).write_text(GOOD + 'tls.certificate_file = "none.pem"\ntls.key_file = "none.key"\n')
        assert "refused" in run("config", "check", file, code=1)
        run("config", "check", file, "--no-files")
        assert "there is no such file" in run("config", "check", folder + "/none", code=1)
    for wrong in (["config"], ["config", "check"], ["config", "fix", "x"], ["config", "check", "x", "y"]):
        run(*wrong, code=2)


@test
def shows_every_key():
    every = keys()
    assert len(every) > 50 and len({each["key"] for each in every}) == len(every)
    assert all(each["doc"] and each["value"] == each["default"] and not each["origin"] for each in every)
    by_name = {each["key"]: each for each in every}
    assert by_name["server.cores"]["variable"] == "WEFT_SERVER_CORES"
    assert by_name["server.sessions_max"]["changes"] == "at run time" and by_name["server.cores"]["changes"] == "at a start"
    assert "server.cores = 0\n    integer, 0 to 512, changes at a start: Threads" in run("config", "show")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.toml"
        file.write_text(GOOD + "[app]\nmotto = \"\\u001b[31m\"\n")
        shown = {each["key"]: each for each in map(json.loads, run("config", "show", str(file), "--json").splitlines())}
        assert shown["server.cores"]["value"] == "2" and shown["server.cores"]["origin"] == f"{file}:2:1"
        assert shown["listener[0].endpoint"]["variable"] == "WEFT_LISTENER_0_ENDPOINT"
        assert "\\x1b[31m" in run("config", "show", str(file))


@test
def the_page_has_the_keys_of_the_code():
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    wanted = before + BEGIN + table() + END + after
    if "--write" in sys.argv:
        PAGE.write_text(wanted)
    assert PAGE.read_text() == wanted, f"run {sys.argv[0]} with --write"


@test
def runs_the_blocks_of_the_page():
    text = PAGE.read_text()
    files = [block.split("```")[0] for block in text.split("```toml\n")[1:]]
    assert files
    for each in files:
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(each)
            file.flush()
            run("config", "check", file.name)
    assert run_blocks(PAGE.name) >= 2


if __name__ == "__main__":
    if has_toml():
        run_all()
    else:
        print("skipped: this build has no TOML")
