# SPDX-License-Identifier: MIT
"""Instructions per iteration of the one-thread rows of bench_micro, counted by callgrind.

`check` counts those of instructions.json and fails at more than 2 % and 1 instruction above, and where a row of BARS
takes more than its share of a rival's; it is skipped (exit status 77) for another compiler than the one that the file
names. `update` writes the file anew, with every row whose iteration takes less than 2 us: callgrind is some 50 times
slower. `beside` prints the rows that a regular expression matches, beside each of the given rivals.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from weft_bench import BENCH
from weft_bench.harness.micro_rounds import SCALE_NS, rows_of

STORED = BENCH / "micro/instructions.json"
TOLERANCE = 0.02
SLACK = 1.0  # instructions: a count below 50 has no 2 %
COUNTED_NS_MAX = 2_000
SKIPPED = 77
# A row whose name matches in full takes at most so many times a rival's instructions, where the machine has the rival,
# or SLACK more: a count below 20 has no 5 %.
BARS = [
    (r"Result_((Create|OrElse)_.*|Map|MapMap|AndThen) \(honest\)|Result_Value", "tl_expected", 1.05),
    (r"Result_(int|double|bool|void|string|vector).*", "tl_expected", 1.05),
    (r"Result_vs_Exception/.*", "tl_expected", 1.05),
]
# The C library picks its memcpy by the processor; these picks are those of any x86-64.
TUNABLES = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX512F,-AVX512VL,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load"


def counts_of_dumps(texts):
    """{benchmark name: instructions} from the texts of callgrind's dump files.

    >>> counts_of_dumps(["desc: Trigger: Client Request: a:weft/iterations:10\\nsummary: 120\\n", "summary: 7\\n"])
    {'a:weft/iterations:10': 120}
    """
    counts = {}
    for text in texts:
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.M)
        total = re.search(r"^(?:summary|totals): (\d+)", text, re.M)
        if name and total:
            counts[name.group(1)] = int(total.group(1))
    return counts


def per_iteration(counts):
    """{row:contender: instructions per iteration}: those of 2 N iterations without those of N, over N.

    >>> per_iteration({"a:weft/iterations:10": 120, "a:weft/iterations:20": 170, "a:weft/iterations:1": 999})
    {'a:weft': 5.0}
    """
    runs = {}
    for name, total in counts.items():
        row, iterations = re.fullmatch(r"(.*)/iterations:(\d+)", name).groups()
        runs.setdefault(row, []).append((int(iterations), total))
    result = {}
    for row, all_runs in runs.items():
        (few, low), (many, high) = sorted(all_runs)[-2:]  # without the one that only warms up
        result[row] = round((high - low) / (many - few), 2)
    return result


def ours_of(measured):
    """Those of our contender, by row.

    >>> ours_of({"a:weft": 5.0, "a:tl_expected": 4.0})
    {'a': 5.0}
    """
    return {name.removesuffix(":weft"): count for name, count in measured.items() if name.endswith(":weft")}


def rivals_of(rows, contenders):
    """The names ROW:RIVAL of BARS that there are. `contenders`: {row: names}.

    >>> rivals_of(["Result_Value", "x"], {"Result_Value": ["weft", "tl_expected"], "x": ["weft", "tl_expected"]})
    ['Result_Value:tl_expected']
    """
    return [f"{row}:{rival}" for row in rows for pattern, rival, _ in BARS
            if re.fullmatch(pattern, row) and rival in contenders.get(row, [])]


def missed_bars(measured):
    """The complaints, one a line.

    >>> missed_bars({"Result_Value:weft": 10.0, "Result_Value:tl_expected": 8.0})
    ['Result_Value: 10.0 instructions per iteration, 1.25 times those of tl_expected; the bar is 1.05']
    >>> missed_bars({"Result_Value:weft": 9.0, "Result_Value:tl_expected": 8.0})
    []
    """
    complaints = []
    for row, count in ours_of(measured).items():
        for pattern, rival, bar in BARS:
            beside = measured.get(f"{row}:{rival}")
            if beside and re.fullmatch(pattern, row) and count > max(bar * beside, beside + SLACK):
                complaints.append(f"{row}: {count} instructions per iteration, {count / beside:.2f} times those of "
                                  f"{rival}; the bar is {bar}")
    return complaints


def quick_rows(entries):
    """Those of Google Benchmark's entries that are worth counting, by row: our contender, one thread, a short iteration.

    >>> quick_rows([{"name": "a:weft", "real_time": 5.0, "time_unit": "ns"}, {"name": "b:x", "real_time": 5.0},
    ...             {"name": "c:weft", "real_time": 3.0, "time_unit": "us"}, {"name": "d:weft/real_time/threads:2"}])
    ['a']
    """
    return [entry["name"].removesuffix(":weft") for entry in entries if entry["name"].endswith(":weft")
            and entry["real_time"] * SCALE_NS[entry["time_unit"]] < COUNTED_NS_MAX]


def contenders_of(program):
    """{row: names} of the one-thread rows."""
    return {name: row["contenders"] for name, row in rows_of(program).items() if row["threads"] == 1}


def choose_rows(program):
    command = [program, "--benchmark_filter=:weft$", "--benchmark_format=json", "--benchmark_min_time=0.0001"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return quick_rows(json.loads(done.stdout)["benchmarks"])


def measure(program, rows):
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--dump-line=no",
                   program, "--count", *rows]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env=dict(os.environ, GLIBC_TUNABLES=TUNABLES))
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr}{done.stdout}")
        return per_iteration(counts_of_dumps(path.read_text() for path in pathlib.Path(folder).iterdir()))


def compare(stored, now):
    """The complaints, one a line.

    >>> compare({"a": 100.0, "b": 10.0, "gone": 1.0}, {"a": 103.0, "b": 10.9})
    ['a: 103.0 instructions per iteration, 100.0 before (+3.0 %)', 'gone: not measured any more']
    """
    complaints = []
    for row in sorted(stored):
        if row not in now:
            complaints.append(f"{row}: not measured any more")
        elif now[row] > stored[row] * (1 + TOLERANCE) and now[row] > stored[row] + SLACK:
            growth = f"+{now[row] / stored[row] - 1:.1%}".replace("%", " %") if stored[row] > 0 else "from nothing"
            complaints.append(f"{row}: {now[row]} instructions per iteration, {stored[row]} before ({growth})")
    return complaints


def print_beside(program, pattern, rivals):
    contenders = contenders_of(program)
    names = [f"{row}:{name}" for row in contenders if re.search(pattern, row) for name in contenders[row]
             if name == "weft" or name in rivals]
    measured = measure(program, names)
    for row, ours in ours_of(measured).items():
        beside = [f"{rival} {measured[f'{row}:{rival}']} ({ours / measured[f'{row}:{rival}']:.2f})" for rival in rivals
                  if f"{row}:{rival}" in measured]
        print(f"{row:42} {ours:8}  {'  '.join(beside)}")


def main(texts):
    parser = argparse.ArgumentParser(prog="./dev bench instructions", description=__doc__)
    parser.add_argument("action", choices=("check", "update", "beside"))
    parser.add_argument("--program", required=True)
    parser.add_argument("--compiler", help="for check and update")
    parser.add_argument("--build", help="what CMAKE_BUILD_TYPE was; for check and update")
    parser.add_argument("--every", type=int, default=1, help="for check: of the rows each N-th")
    parser.add_argument("--rows", default="", help="for beside: a regular expression")
    parser.add_argument("--rivals", nargs="+", default=[], help="for beside: names of contenders")
    arguments = parser.parse_args(texts)
    if arguments.action == "beside":
        print_beside(arguments.program, arguments.rows, arguments.rivals)
        return 0
    built = f"{arguments.compiler}, {arguments.build}"
    if arguments.action == "update":
        rows = dict(sorted(ours_of(measure(arguments.program, choose_rows(arguments.program))).items()))
        STORED.write_text(json.dumps({"built": built, "rows": rows}, indent=1) + "\n", encoding="utf-8")
        print(f"{len(rows)} rows written to {STORED}")
        return 0
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    if stored["built"] != built:
        print(f"the counts are those of {stored['built']}; this is {built}")
        return SKIPPED
    rows = dict(list(stored["rows"].items())[::arguments.every])
    rivals = rivals_of(rows, contenders_of(arguments.program))
    measured = measure(arguments.program, [*rows, *rivals])
    complaints = compare(rows, ours_of(measured)) + missed_bars(measured)
    print("\n".join(complaints) or f"{len(rows)} rows as before, {len(rivals)} within their bars")
    return 1 if complaints else 0
