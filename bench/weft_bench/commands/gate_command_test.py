# SPDX-License-Identifier: MIT
"""gate_command_test.py BUILD: what `./dev bench gate` says and how it ends, without measuring anything."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

from weft_bench import records, stats
from weft_bench.commands import gate
from weft_bench.harness import comparisons, micro_rounds, rounds

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()


def run_gate(*arguments):
    """(exit status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = gate.main(list(arguments))
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


ARGUMENTS = ("--baseline", "x", "--rows", "Result_Value", "--threaded", "", "--cells", "", "--server-cells", "", "--budget", "0")


def counts(before, now):
    """What check_instructions gives for one row."""
    return lambda *_: gate.compare_counts("instructions", {"row": before}, {"row": now}, 0.01, 0.0)


def as_baseline(found, times=(1.0, 1.0, 1.0)):
    """The gate with this build as its own baseline, and `found` instead of the instructions. A repetition takes what
    `times` has, of the old version, the new one, and the old one again, or what it gives for each."""
    stack = contextlib.ExitStack()

    def run_once(_, which, _number):
        return {"ns": times[gate.ORDER.index(which)] if isinstance(times, tuple) else times(which)}
    for of, name, value in ((gate, "commit_of", lambda _: "0" * 40), (gate, "build_both", lambda *_: (BUILD, BUILD)),
                            (gate, "check_instructions", found), (gate.RowRounds, "once", run_once)):
        stack.enter_context(unittest.mock.patch.object(of, name, value))
    return stack


class Command(unittest.TestCase):
    def test_an_unknown_revision_and_rows_of_no_name_are_usage_errors(self):
        for arguments, said in ((["--baseline", "no-such-revision"], "is no revision"), ([], "--baseline"),
                                (["--baseline", "--all"], ""), (["--baseline", "x", "--cells", "nonsense"], "no cell matches"),
                                (["--baseline", "x", "--server-cells", "nonsense"], "no cell matches"),
                                (["--baseline", "x", "--server-cells", "idle/64/x10"], "compares closed loops"),
                                (["--baseline", "x", "--warn-at", "11"], "--warn-at is above"),
                                (["--baseline", "x", "--fail-at", "0"], "is not above 0"),
                                (["--baseline", "x", "--budget", "-1"], "is not 0 to"),
                                (["--baseline", "x", "--json", "/no/such/folder/file"], "no folder")):
            status, _, err = run_gate(*arguments)
            self.assertEqual((status, said in err), (2, True), err)
        with as_baseline(lambda *_: []):
            status, _, err = run_gate("--baseline", "x", "--rows", "Nonsense*", "--threaded", "", "--cells", "", "--server-cells", "")
            self.assertEqual((status, "nothing to compare" in err), (2, True), err)

    def test_the_heap_of_a_program_that_preloads_the_shift_begins_further_up(self):
        look = ("import ctypes; usable = ctypes.CDLL(None).malloc_usable_size; usable.argtypes = [ctypes.c_void_p]; "
                "print(usable(ctypes.c_void_p.in_dll(ctypes.CDLL(None), 'bench_heap_shift')))")
        for environment, least in (({"WEFT_HEAP_SHIFT": "5000"}, 5000), ({}, 0)):
            done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True,
                                  env={"LD_PRELOAD": str(BUILD / gate.HEAP_SHIFT), **environment})
            self.assertTrue(least <= int(done.stdout) < least + 100, done.stdout)

    def test_each_round_runs_another_layout_of_a_program_and_each_is_linked_once(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            program = micro_rounds.program_of(build)
            program.parent.mkdir(parents=True)
            program.write_text("unmoved", encoding="utf-8")
            linked = []

            def build_release(_tree, _build, _flags, targets, more):
                self.assertEqual((targets, pathlib.Path(more.split("=", 1)[1]).exists()), (("bench_micro",), True), more)
                linked.append(more)
                program.write_text(more, encoding="utf-8")
            with unittest.mock.patch.object(gate, "build_release", build_release):
                for _ in range(2):
                    gate.link_layouts(build, build)
            layouts = [path.read_text(encoding="utf-8") for path in micro_rounds.layouts_of(build)]
            self.assertEqual((layouts, len(set(linked))), (["unmoved", *reversed(linked)], gate.LAYOUTS - 1))
            self.assertEqual(program.read_text(encoding="utf-8"), "unmoved")
            taken = []

            def run_once(path, *_):
                taken.append(path)
                return {"ns": 1.0}
            with unittest.mock.patch.object(micro_rounds, "run_once", run_once):
                once = gate.RowRounds(build, build, {"row": "r"})
                for number in range(gate.LAYOUTS + 1):
                    once.once("old again", number)
            self.assertEqual((len(set(taken)), taken[0]), (gate.LAYOUTS, taken[-1]))

    def test_each_verdict_has_its_status_and_is_said_of_the_row_and_at_the_end(self):
        for times, verdict, status in (((1.0, 1.02, 1.0), "not slower", 0), ((1.0, 1.3, 1.0), "slower", 3),
                                       ((1.0, 1.3, 1.5), "cannot tell", 4), ((1.0, 0.5, 1.0), "not slower", 0)):
            with as_baseline(counts(10.0, 10.0), times):
                found, out, err = run_gate(*ARGUMENTS)
            row = next(line for line in out.splitlines() if line.startswith("Result_Value"))
            self.assertEqual((found, row.endswith(f"  {verdict}")), (status, True), out)
            self.assertTrue(out.splitlines()[-1].startswith(f"{verdict}: "), out)
            self.assertIn(f"rounds: {verdict}", err)

    def test_slower_counts_more_than_what_it_cannot_tell(self):
        with as_baseline(counts(10.0, 12.0), (1.0, 1.3, 1.5)):
            found, out, _ = run_gate(*ARGUMENTS)
        self.assertEqual((found, out.splitlines()[-1]), (3, "slower: 1 row is slower, of 1 it cannot tell, 0 are not slower"))

    def test_from_5_per_cent_it_warns_and_from_10_it_fails_unless_told_otherwise(self):
        for slowdown, more, status, warns in ((1.04, (), 0, False), (1.07, (), 0, True), (1.12, (), 3, False),
                                              (1.12, ("--fail-at", "20"), 0, True), (1.04, ("--warn-at", "3"), 0, True),
                                              (1.04, ("--warn-at", "2", "--fail-at", "3"), 3, False)):
            with as_baseline(counts(10.0, 10.0), (1.0, slowdown, 1.0)):
                found, out, _ = run_gate(*ARGUMENTS, *more)
            self.assertEqual((found, "WARNING" in out), (status, warns), (slowdown, more, out))

    def test_counts_alone_are_never_uncertain(self):
        for now, status in ((10.0, 0), (12.0, 3)):
            with as_baseline(counts(10.0, now), (1.0, 1.3, 1.5)):
                self.assertEqual(run_gate(*ARGUMENTS, "--counts-only")[0], status)

    def test_a_row_of_which_it_cannot_tell_is_measured_until_the_budget_is_over(self):
        repetitions = []

        def once(which):
            repetitions.append(which)
            return 1.5 if which == "old again" and len(repetitions) <= 3 * stats.GATE_ROUNDS else 1.0
        with as_baseline(counts(10.0, 10.0), once):
            self.assertEqual(run_gate(*ARGUMENTS)[0], 4)
            few = len(repetitions)
            repetitions.clear()
            self.assertEqual(run_gate(*ARGUMENTS, "--budget", "3600")[0], 0)
        self.assertEqual(few, 3 * stats.GATE_ROUNDS)
        self.assertGreater(len(repetitions), few)

    def test_each_version_rests_equally_long_between_its_repetitions(self):
        ran = []
        with as_baseline(counts(10.0, 10.0), lambda which: ran.append(which) or 1.0):
            run_gate(*ARGUMENTS)
        visits = [ran[place:place + 3 * comparisons.VISIT_ROUNDS] for place in range(0, len(ran), 3 * comparisons.VISIT_ROUNDS)]
        self.assertEqual({visit[0] for visit in visits}, set(gate.ORDER))
        for visit in visits:
            self.assertEqual(visit, visit[:3] * comparisons.VISIT_ROUNDS)

    def test_a_threaded_row_is_measured_beside_those_of_one_thread(self):
        with as_baseline(counts(10.0, 10.0), (1.0, 1.3, 1.0)):
            status, out, _ = run_gate(*ARGUMENTS[:2], "--rows", "Nonsense*", "--threaded", "MpscQueue_2P1C (honest)", *ARGUMENTS[6:])
        rows = [line for line in out.splitlines() if line.startswith("MpscQueue_2P1C (honest)")]
        self.assertEqual((status, len(rows)), (3, 1), out)

    def test_a_cell_of_the_server_has_both_servers_and_one_generator(self):
        if not all((BUILD / "bench/server" / program).is_file() for program in (gate.SERVER_TARGET, gate.LOAD_TARGET)):
            self.skipTest("no server is built")
        with unittest.mock.patch.object(gate, "SERVER_SHORT", gate.server_rounds.TINY):
            cell = gate.ServerRounds(BUILD, BUILD, "echo/64/x1")
        found = cell(0)
        self.assertEqual((len(found), all(each[which] > 0 for each in found for which in gate.ORDER)), (comparisons.VISIT_ROUNDS, True))
        setup = gate.ServerRounds(pathlib.Path("/new"), pathlib.Path("/old"), "echo/64/x1").columns["old"].setup
        self.assertEqual((setup.generator(), setup.program("x")),
                         (pathlib.Path("/new/bench/server/bench_load"), pathlib.Path("/old/bench/server/x")))

    def test_a_cell_has_new_processes_in_each_visit(self):
        library = BUILD / "capi/libzmq.so.5"
        with gate.CopiedLibraries(library, library) as libraries:
            cell = gate.SocketRounds(rounds.Setup(BUILD / "bench/bench_sockets", libraries, rounds.TINY), "push_pull/inproc/64")
            found, processes = [], set()
            for visit in range(2):
                found += cell(visit)
                processes |= {column.child.process.pid for column in cell.columns.values()}
        self.assertEqual([each["life"] for each in found], [0] * comparisons.VISIT_ROUNDS + [1] * comparisons.VISIT_ROUNDS)
        self.assertTrue(all(each[which] > 0 for each in found for which in gate.ORDER))
        self.assertLessEqual({each["place"] for each in found}, {"near", "apart", "shared", "mixed"})
        self.assertEqual(len(processes), 2 * len(gate.ORDER))

    def test_the_records_say_what_was_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "gate.jsonl")
            with as_baseline(counts(10.0, 12.0)):
                self.assertEqual(run_gate(*ARGUMENTS, "--json", str(file))[0], 3)
            found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        said = [(record["kind"], record.get("cell"), record.get("what"), record["verdict"]) for record in found]
        self.assertEqual(said, [("comparison", "row", "instructions", "slower"),
                                ("comparison", "Result_Value", "time", "not slower"), ("gate", None, None, "slower")])
        self.assertEqual((found[1]["rounds"], len(found[1]["taken"])), (stats.GATE_ROUNDS,) * 2)
        self.assertEqual((found[2]["warn_at"], found[2]["fail_at"], found[2]["budget_s"]), (0.05, 0.1, 0.0))
        try:
            self.assertEqual([records.refusal(record, records.RECORD_SCHEMA) for record in found], [None] * 3)
        except ImportError as absent:
            self.skipTest(f"{absent}; ./dev test installs it")

    def test_what_cannot_be_measured_is_status_1(self):
        def fail(*_):
            raise gate.GateError("it broke")
        with as_baseline(fail):
            status, out, err = run_gate(*ARGUMENTS)
        self.assertEqual((status, out, "it broke" in err), (1, "", True))

    def test_an_interrupted_gate_says_nothing_of_what_is_slower(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        with as_baseline(interrupt):
            self.assertEqual(run_gate(*ARGUMENTS)[:2], (130, ""))

    def test_a_program_that_fails_is_told_with_its_last_words(self):
        with self.assertRaisesRegex(gate.GateError, "sh -c .* failed:\nlast words"):
            gate.run("sh", "-c", "echo last words; exit 1")
        with self.assertRaisesRegex(gate.GateError, "cannot be run"):
            gate.run("/no/such/program")

    def test_code_begins_at_lines_of_the_cache_in_both_builds(self):
        commands, linked = [], []
        with unittest.mock.patch.object(gate, "run", lambda *command, **_: commands.append(command)), \
                unittest.mock.patch.object(gate, "link_layouts", lambda _, build: linked.append(build)), \
                unittest.mock.patch.object(gate, "tree_of", lambda commit: pathlib.Path("/tree", commit)):
            new, old = gate.build_both("1" * 40, server=True)
        configured = [command for command in commands if "--preset" in command]
        self.assertEqual([command[command.index("-B") + 1] for command in configured], [new, old])
        self.assertEqual(linked, [new, old])
        for command in configured:
            self.assertIn(f"-DCMAKE_CXX_FLAGS={gate.ALIGNED}", command)
        self.assertNotEqual(new, old)

    def test_a_work_tree_that_was_left_half_made_is_not_used(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertFalse(gate.is_whole(folder, "0" * 40))
            for command in (["init", "-q"], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "x"]):
                subprocess.run(["git", *command], cwd=folder, check=True)
            commit = gate.run("git", "rev-parse", "HEAD", cwd=folder).strip()
            self.assertTrue(gate.is_whole(folder, commit))
            pathlib.Path(folder, "left over").touch()
            self.assertFalse(gate.is_whole(folder, commit))


if __name__ == "__main__":
    unittest.main()
