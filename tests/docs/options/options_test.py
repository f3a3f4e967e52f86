# SPDX-License-Identifier: MIT
"""options_test.py OPTIONS_SIDE [--write | --write-reference]: docs/options.md beside both libraries.

OPTIONS_SIDE asks the libzmq.so.5 that it loads for each option: reading with several sizes, and setting valid, boundary
and wrong values. Its answers on libzmq 4.3.5 with drafts are kept in reference.txt; a difference that facts.txt does not
name is a failure, and so is a named one that is none. --write makes docs/options.md. --write-reference asks the libzmq
that ./dev compat libzmq builds, and makes reference.txt.
"""
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs/options.md"
FACTS = HERE / "facts.txt"
KEPT = HERE / "reference.txt"
REFERENCE = ROOT / "build/compat/libzmq/reference/lib"
HEAD = """# Socket options

<!-- Made by ./dev options from tests/docs/options/facts.txt, both libraries' answers and weft/msg/message/options.h: edit those. -->

Every option of libzmq 4.3.5 and of its drafts, and Weft's own of the C interface. A test asks both libraries for each: reading
with several sizes, and setting valid, boundary and wrong values. The defaults here are the values that it read. The last column
names each difference; where that is empty, both answer alike. Options that begin with `ZMQ_` and have a number above 92 are drafts in libzmq:
its usual builds lack them, and Weft has them always.

A bind and a connect freeze the options: each connection of the endpoint has them for as long as the endpoint stands. The column
"takes effect" names the exceptions. They are libzmq's.

"sockets" names the types that take the option, of PAIR, PUB, SUB, REQ, REP, DEALER, ROUTER, XPUB, XSUB, STREAM, SERVER, RADIO and
DISH. A default that some types have alone stands behind the other, with their names.

| option | number | type | values | sockets | default | libzmq's | takes effect | beside libzmq |
|---|---|---|---|---|---|---|---|---|
"""
MIDDLE = """
## C++

The members of `weft::Options` ([options.h](../weft/msg/message/options.h)), with their own defaults. Durations are in milliseconds;
-1 means no limit, or the system's value.

| member | type | values | default | C option |
|---|---|---|---|---|
"""
NUMBERS = ("-2", "-1", "0", "1", "2", "3", "100", "65536", "max")


def read_facts():
    facts = {}
    for line in FACTS.read_text().splitlines():
        if line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        name, number = cells[0].split()
        cells += [""] * (4 - len(cells))
        facts[name] = {"number": int(number), "effect": cells[1], "probes": set(cells[2].split()), "note": cells[3]}
    return facts


def declared_options():
    """The options of our zmq.h: the numbers that its option tables in capi/ name."""
    header = (ROOT / "capi/zmq.h").read_text()
    numbers = {name: int(number) for name, number in re.findall(r"^#define ((?:ZMQ|WEFT)_\w+) (\d+)\b", header, re.M)}
    tables = "".join(path.read_text() for path in sorted((ROOT / "capi").glob("*option*.cc")))
    return numbers, {name: numbers[name] for name in re.findall(r"(?:\{|WEFT_\w+\()((?:ZMQ|WEFT)_\w+),", tables) if name in numbers}


def ask(program, facts, library=None):
    environment = dict(os.environ)
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    questions = "".join(f"{name} {fact['number']}\n" for name, fact in facts.items())
    return subprocess.run([program], input=questions, capture_output=True, text=True, check=True, env=environment).stdout


def parse(text):
    """{option: {socket type: {probe: answer}}}"""
    answers = {}
    for line in text.splitlines():
        name, types, *words = line.split()
        if words == ["dies"]:
            found = None
        else:
            found = {}
            for word in words:
                split = re.match(r"(X-a:b|[^=:]+)[=:](.*)", word)
                found[split[1]] = word[len(split[1]):]
        for kind in types.split(","):
            answers.setdefault(name, {})[kind] = found
    return answers


TYPES = ("PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "XPUB", "XSUB", "STREAM", "SERVER", "RADIO", "DISH")


def by_type(answers, name):
    rows = answers.get(name, {})
    return {kind: rows.get("*", rows.get(kind, {})) for kind in TYPES}


def differing_probes(ours, theirs, name):
    probes = set()
    here, there = by_type(ours, name), by_type(theirs, name)
    for kind in TYPES:
        if there[kind] is None or here[kind] is None:
            continue  # libzmq ends there; ours is checked apart
        every = here[kind].keys() | there[kind].keys()
        probes |= {probe for probe in every if here[kind].get(probe) != there[kind].get(probe)}
    return probes


def known(answers, name):
    return any(answer != {} for answer in by_type(answers, name).values())


def default_of(answers, name):
    seen = {}
    for kind, answer in by_type(answers, name).items():
        value = answer and (answer.get("get4") or answer.get("get8") or answer.get("getN"))
        if not value or not value.startswith("="):
            continue
        empty = answer.get("getN") in ("=L0", "=L1")
        seen.setdefault("empty" if empty else value[1:], []).append(kind)
    if name in ("ZMQ_FD", "ZMQ_EVENTS", "ZMQ_TYPE"):
        return ""
    words = [value if index == 0 else f"{', '.join(kinds)}: {value}" for index, (value, kinds) in enumerate(seen.items())]
    return "; ".join(words)


def type_of(answers, name):
    answer = next((answer for answer in by_type(answers, name).values() if answer), {})
    if not answer:
        return ""
    numbers = [number for number in NUMBERS if number in answer]
    if "get8" in answer and "getN" not in answer:
        return "64 bits"
    if default_of(answers, name) == "empty" and "s3" not in answer:
        return "text"
    if "s3" in answer or "s1" in answer or "X-a:b" in answer:
        return "bytes" if "s3" in answer else "text"
    if "s32" in answer or "s41" in answer:
        return "key"
    if "null" in answer and not numbers:
        return "text"
    return "int"


def values_of(answers, name, kind, row):
    answer = next((answer for answer in by_type(answers, name).values() if answer), {})
    numbers = [number for number in NUMBERS if number in answer]
    if kind == "64 bits":
        return "any" if "w-1" in answer and "w1" in answer else ""
    if kind == "key":
        return "32 bytes, or 40 of Z85"
    if kind in ("bytes", "text"):
        if row and row["type"] == "std::string":
            return f"up to {row['max']} bytes"
        return "" if "s256" not in answer else "any"
    if row and numbers and row["type"] in ("int", "bool", "Duration") and numbers[-1] != "max":
        return f"{row['min']} to {row['max']}"
    if numbers == list(NUMBERS):
        return "any"
    if numbers and numbers[-1] == "max":
        return f"from {numbers[0]}"
    return f"{numbers[0]} to {numbers[-1]}" if numbers else ""


def sockets_of(answers, name):
    kinds = [kind for kind, answer in by_type(answers, name).items() if answer != {}]
    return "all" if len(kinds) == len(TYPES) else ", ".join(kinds)


def cpp_rows():
    """The rows of weft::Options: {member: type, min, max, default}."""
    text = (ROOT / "weft/msg/message/options.h").read_text()
    flat = " ".join(text.split())
    rows = {}
    pattern = r'Option<([\w:]+)> (\w+)\{ ?"(\w+)", &Options::(\w+), ([^,]+), ([^,}]+?)(?:, [^}]*)?\}'
    for kind, _, name, member, low, high in re.findall(pattern, flat):
        value = re.search(rf"^  (?:[\w:]+) {member}(?: = ([^;]+)|\{{([^}}]*)\}})?;", text, re.M)
        default = (value[1] or value[2] or "") if value else ""
        seconds = re.fullmatch(r"std::chrono::(seconds|milliseconds)\((\d+)\)", default)
        if seconds:
            default = str(int(seconds[2]) * (1000 if seconds[1] == "seconds" else 1))
        high = {"kIntMax": "2147483647", "std::numeric_limits<std::int64_t>::max()": "2^63 - 1"}.get(high, high)
        clean = lambda number: re.sub(r" *//.*", "", number).replace("'", "")
        rows[name] = {"type": kind, "min": clean(low), "max": bound(clean(high)), "default": bound(clean(default))}
    return rows


def bound(text):
    shifted = re.fullmatch(r"(\d+) << (\d+)", text)
    return str(int(shifted[1]) << int(shifted[2])) if shifted else text


def members():
    """{C option: C++ member}, from the tables of capi/."""
    text = " ".join("".join(path.read_text() for path in sorted((ROOT / "capi").glob("*option*.cc"))).split())
    found = dict(re.findall(r"WEFT_(?:ROW|FLAG)\((\w+), (\w+)", text))
    for name, member in re.findall(r"\{((?:ZMQ|WEFT)_\w+), (?:[^{}<]*<)?(?:option::\w+, )*option::(\w+)", text):
        found.setdefault(name, member)
    for member in cpp_rows():
        if f"ZMQ_{member.upper()}" in text:
            found.setdefault(f"ZMQ_{member.upper()}", member)
    return found


def page(facts, ours, theirs):
    rows, options = cpp_rows(), members()
    text = HEAD
    for name, fact in facts.items():
        ours_knows, theirs_knows = known(ours, name), known(theirs, name)
        answers = ours if ours_knows else theirs
        kind = type_of(answers, name)
        notes = [fact["note"]] if fact["note"] else []
        if theirs_knows and not ours_knows:
            notes.insert(0, "missing here")
        elif ours_knows and not theirs_knows and name.startswith("ZMQ"):
            notes.insert(0, "this build of libzmq lacks it")
        cells = [f"`{name}`", str(fact["number"]), kind, values_of(answers, name, kind, rows.get(options.get(name)))]
        cells += [sockets_of(answers, name), default_of(ours, name), default_of(theirs, name)]
        cells += [fact["effect"] if ours_knows else "", "; ".join(notes)]
        text += "| " + " | ".join(cells) + " |\n"
    text += MIDDLE
    names = {}
    for name, member in options.items():
        names.setdefault(member, f"`{name}`")
    for name, row in rows.items():
        kind = {"std::string": "text", "std::int64_t": "64 bits", "Duration": "duration"}.get(row["type"], row["type"])
        values = f"up to {row['max']} bytes" if kind == "text" else f"{row['min']} to {row['max']}"
        values = "false, true" if kind == "bool" else values
        text += f"| `{name}` | {kind} | {values} | {row['default'] or 'empty'} | {names.get(name, '')} |\n"
    return "\n".join(line.rstrip() for line in text.split("\n"))


def disagreements(facts, ours, theirs):
    numbers, used = declared_options()
    wrong = []
    for name, number in used.items():
        if name not in facts and known(parse_one(name, number), name):
            wrong.append(f"{name} is in no line: {FACTS.relative_to(ROOT)} needs `{name} {number} | when it takes effect`")
    for name, fact in facts.items():
        if numbers.get(name, fact["number"]) != fact["number"]:
            wrong.append(f"{name} is {numbers[name]} in zmq.h")
        if None in by_type(ours, name).values():
            wrong.append(f"{name}: our library dies")
        if known(ours, name) and known(theirs, name):
            probes = differing_probes(ours, theirs, name)
            if probes - fact["probes"]:
                wrong.append(f"{name}: libzmq answers otherwise: {' '.join(sorted(probes - fact['probes']))}; see {KEPT.relative_to(ROOT)}")
            if fact["probes"] - probes:
                wrong.append(f"{name}: libzmq answers alike, remove: {' '.join(sorted(fact['probes'] - probes))}")
            if probes and not fact["note"]:
                wrong.append(f"{name}: the difference needs a note")
        elif fact["probes"]:
            wrong.append(f"{name}: one library does not know it, so there are no probes to name")
    return wrong


def parse_one(name, number):
    return parse(ask(sys.argv[1], {name: {"number": number}}))


def main():
    program, how = sys.argv[1], sys.argv[2:]
    facts = read_facts()
    if how == ["--write-reference"]:
        if not (REFERENCE / "libzmq.so.5").exists():
            sys.exit("options_test.py: ./dev compat libzmq builds libzmq first")
        theirs = {name: fact for name, fact in facts.items() if name.startswith("ZMQ_")}
        KEPT.write_text(ask(program, theirs, REFERENCE))
        return 0
    ours, theirs = parse(ask(program, facts)), parse(KEPT.read_text())
    text = page(facts, ours, theirs)
    if how == ["--write"]:
        PAGE.write_text(text)
    wrong = disagreements(facts, ours, theirs)
    if PAGE.read_text() != text:
        wrong.append("docs/options.md is not what ./dev options makes; run it")
    if len(theirs) < 80:
        wrong.append(f"{KEPT.relative_to(ROOT)} has only {len(theirs)} options")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
