#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the locks of C++ files by clang's thread-safety analysis, after the attributes of weft/sync/thread_safety.h.

    thread_safety.py BUILD [FILE...]

BUILD has the compile_commands.json. Without a FILE: every source of the library that sees the attributes. A header is
checked alone. Ends with 77 if there is no clang.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLANG = 'clang++-19'
ATTRIBUTES = 'weft/sync/thread_safety.h'
NOT_LIBRARY = re.compile(r'_(test|fuzz)\.cc$|/test_[a-z_]+\.(h|cc)$')
# Without the warnings of another kind, which are those of `./dev build` and clang-tidy.
OPTIONS = ['-fsyntax-only', '-Wno-everything', '-Wthread-safety', '-Wthread-safety-beta', '-Werror', '-fno-caret-diagnostics']


@functools.cache
def includes_of(path):
    """The files of this tree that a file includes, directly or not, and the file itself.

    >>> 'weft/base/time.h' in includes_of('weft/sync/condition.h')
    True
    """
    found, open_files = set(), [path]
    while open_files:
        each = open_files.pop()
        if each in found or not (ROOT / each).is_file():
            continue
        found.add(each)
        text = (ROOT / each).read_text(encoding='utf-8')
        open_files += re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    return found


def sees_attributes(path):
    return ATTRIBUTES in includes_of(path)


def flags_of(command):
    """The flags of a compiler's command that clang needs, too.

    >>> flags_of('c++ -I/tree -O2 -DNDEBUG -Werror -isystem /deps -std=c++20 -o a.o -c a.cc')
    ['-I/tree', '-DNDEBUG', '-isystem', '/deps', '-std=c++20']
    """
    flags, words = [], iter(shlex.split(command))
    for word in words:
        if word in ('-I', '-D', '-isystem'):
            flags += [word, next(words)]
        elif word.startswith(('-I', '-D', '-std=')):
            flags.append(word)
    return flags


def commands_of(build):
    """The flags by source of the library, as a path in the tree."""
    entries = json.loads((build / 'compile_commands.json').read_text(encoding='utf-8'))
    flags = {}
    for entry in entries:
        path = pathlib.Path(entry['file'])
        if path.is_relative_to(ROOT / 'weft') or path.is_relative_to(ROOT / 'capi'):
            flags.setdefault(path.relative_to(ROOT).as_posix(), flags_of(entry['command']))
    return {path: of for path, of in flags.items() if not NOT_LIBRARY.search(path)}


def flags_for(path, commands):
    """A header is compiled like a source of its folder below weft/."""
    if path in commands:
        return commands[path]
    folder = '/'.join(path.split('/')[:2])
    like = [of for source, of in commands.items() if source.startswith(folder + '/')]
    return like[0] if like else [f'-I{ROOT}', '-std=c++20']


def check(path, flags):
    """Returns clang's findings; none: the empty string."""
    kind = ['-x', 'c++'] if path.endswith('.h') else []
    ran = subprocess.run([CLANG, *flags, *OPTIONS, *kind, path], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr if ran.returncode != 0 else ''


def main():
    if shutil.which(CLANG) is None:
        print(f'skipped: there is no {CLANG}')
        return 77
    commands = commands_of(pathlib.Path(sys.argv[1]).resolve())
    files = sys.argv[2:] or [path for path in commands if path.endswith('.cc')]
    files = [path for path in files if not NOT_LIBRARY.search(path) and sees_attributes(path)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for text in pool.map(lambda path: check(path, flags_for(path, commands)), sorted(files)) if text]
    print(''.join(findings) + f'{len(files)} files, {len(findings)} with findings')
    return 1 if findings else 0


if __name__ == '__main__':
    sys.exit(main())
