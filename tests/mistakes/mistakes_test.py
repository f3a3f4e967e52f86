# SPDX-License-Identifier: MIT
"""Compiles each mistake of a file, and compares the compiler's first error with the sentence that the file expects.

usage: mistakes_test.py FILE COMPILER FLAG...

A file is a beginning that compiles, and then cases. Each begins with a line "// MISTAKE name: sentence".
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def compiled(compiler, arguments):
    """The first line of the compiler's errors; None: it compiles."""
    ran = subprocess.run([*compiler, *arguments], capture_output=True, text=True, timeout=120, check=False,
                         env={**os.environ, "LC_ALL": "C"})
    errors = [line for line in ran.stderr.splitlines() if " error: " in line]
    if ran.returncode == 0:
        return None
    return errors[0] if errors else ran.stderr


def first_error(compiler, beginning, code, name):
    """The first error about a case. The beginning is compiled already."""
    path = beginning.with_name(re.sub(r"\W", "_", name) + ".cc")
    path.write_text(code, encoding="utf-8")
    return compiled(compiler, ["-include", str(beginning), "-fsyntax-only", str(path)])


def main():
    path = pathlib.Path(sys.argv[1])
    compiler = sys.argv[2:]
    text, *cases = re.split(r"^// MISTAKE ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    if not cases:
        sys.exit(f"{path.name} has no case")
    wanted = {}
    code = {}
    for case in cases:
        title, body = case.split("\n", 1)
        name, sentence = title.split(": ", 1)
        wanted[name] = sentence
        code[name] = body
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        beginning = pathlib.Path(folder, "beginning.h")
        beginning.write_text(text, encoding="utf-8")
        if error := compiled(compiler, ["-x", "c++-header", "-o", f"{beginning}.gch", str(beginning)]):
            sys.exit(f"the beginning of {path.name} does not compile: {error}")
        said = pool.map(lambda name: first_error(compiler, beginning, code[name], name), code)
        for (name, sentence), error in zip(wanted.items(), said):
            right = error is not None and sentence in error
            print(f"{'ok  ' if right else 'FAIL'} {name}")
            if not right:
                failed += 1
                print(f"     expected: {sentence}\n     said: {error or 'nothing: it compiles'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
