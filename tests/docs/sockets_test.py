#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each default in docs/sockets.md is the one of docs/options.md, whose values are read from both libraries."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def rows(lines):
    return [[cell.strip().strip('`') for cell in line.strip().strip('|').split(' | ')] for line in lines]


def main():
    options = (ROOT / 'docs/options.md').read_text()
    plain = [line for line in options.splitlines() if line.startswith('| `')]
    in_c = {row[0]: row for row in rows(line for line in plain if line.startswith(('| `ZMQ_', '| `WEFT_')))}
    in_cpp = {row[0]: row for row in rows(line for line in plain if not line.startswith(('| `ZMQ_', '| `WEFT_')))}
    page = (ROOT / 'docs/sockets.md').read_text().split('<!-- defaults: ', 1)[1].split('\n\n', 1)[0]
    table = rows(line for line in page.splitlines() if line.startswith('| `'))
    assert len(table) > 15, 'the table of defaults is gone'
    wrong = []
    for name, of_c, reference, weft_c, weft_cpp in table:
        expected = [in_c[of_c][6], in_c[of_c][5], in_cpp[name][3]]
        if [reference, weft_c, weft_cpp] != expected or in_cpp[name][4].rstrip('|').strip().strip('`') != of_c:
            wrong.append(f'{name}: options.md has {expected}, for {in_cpp[name][4]}')
    print('\n'.join(wrong) or f'{len(table)} defaults')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
