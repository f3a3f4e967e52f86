#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang_tidy.py names the source and the line of a seeded mistake, whichever sources it stands beside."""
import doctest
import json
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import clang_tidy  # noqa: E402

CLEAN = 'int twice(int number) { return 2 * number; }\n'
MISTAKE = '#include <utility>\nint* null_of() {\n  return 0;\n}\n'  # modernize-use-nullptr, in line 3
# The sources, and the place of the finding; none: there is no mistake.
CASES = {
    'a mistake after another source': ({'a.cc': CLEAN, 'b.cc': MISTAKE}, 'b.cc:3:'),
    'a mistake before another source': ({'a.cc': MISTAKE, 'b.cc': CLEAN}, 'a.cc:3:'),
    'a source of the same names': ({'a.cc': CLEAN, 'b.cc': CLEAN, 'c.cc': MISTAKE}, 'c.cc:3:'),
    'a source that no command compiles': ({'a.cc': CLEAN, 'b.h': CLEAN}, 'b.h: '),
    'no mistake': ({'a.cc': CLEAN, 'b.cc': 'int f();\n'}, None),
}


def check(folder, sources):
    paths = [folder / name for name in sources]
    for path in paths:
        path.write_text(sources[path.name], encoding='utf-8')
    commands = [{'directory': str(folder), 'file': str(path), 'command': f'c++ -std=c++20 -c {path}'}
                for path in paths if path.suffix == '.cc']
    (folder / 'compile_commands.json').write_text(json.dumps(commands), encoding='utf-8')
    return clang_tidy.check(folder, [str(path) for path in paths], 'seeded')


def main():
    failed = doctest.testmod(clang_tidy).failed
    if shutil.which(clang_tidy.CLANG_TIDY) is None:
        print(f'skipped: there is no {clang_tidy.CLANG_TIDY}')
        return 77
    for name, (sources, place) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            found = check(pathlib.Path(folder), sources)
            if (place is None and found) or (place is not None and f'{folder}/{place}' not in found):
                print(f'{name}: expected {place or "nothing"}, found {found or "nothing"}')
                failed += 1
    print(f'{len(CASES)} cases, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
