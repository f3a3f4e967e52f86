#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every --help and --list of ./dev is answered without set-up and without a build."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINKS = ['bench', 'demo', 'tests', 'weft', 'cmake']
COMMANDS = ['demo', 'test', 'build', 'lint', 'format', 'api', 'options', 'endpoints', 'bench server', 'bench sockets',
            'bench topics', 'bench report', 'bench gate', 'bench micro', 'libdir', 'compat libzmq', 'package python', 'package deb', 'package conan', 'site', 'clean']
LISTS = ['bench server', 'bench sockets', 'bench topics']


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        shutil.copy(ROOT / 'dev', tree / 'dev')
        for name in LINKS:
            (tree / name).symlink_to(ROOT / name)
        (tree / 'deps').mkdir()
        set_up = tree / 'deps/setup.sh'
        set_up.write_text('#!/bin/sh\necho "the set-up ran"\nexit 3\n', encoding='utf-8')
        set_up.chmod(0o755)
        for command in [f'{name} --help' for name in COMMANDS] + [f'{name} --list' for name in LISTS]:
            ran = subprocess.run([tree / 'dev', *command.split()], capture_output=True, text=True, check=False)
            if ran.returncode != 0 or 'the set-up ran' in ran.stdout or '==>' in ran.stdout or not ran.stdout:
                wrong.append(f'./dev {command}: {ran.returncode}: {ran.stdout[-300:]}{ran.stderr[-300:]}')
        if (tree / 'build').exists():
            wrong.append('a command made build/')
    print('\n'.join(wrong) or 'every command says what it can do')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
