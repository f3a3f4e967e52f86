#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""layers_picture.py [--write]: docs/layers.svg from weft/layers.txt. Without --write: exit status 1 if the file differs."""
import html
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / 'docs/layers.svg'
WIDTH, BOX, HIGH, STEP, GAP = 1000, 480, 46, 74, 20  # pixels: of the picture, of a box, from row to row, between boxes
LETTERS = 84  # of a line that fits into a box


def read_layers(text):
    """Each folder in order: what it may include, and its rooms."""
    folders = {}
    for line in text.splitlines():
        if line.strip() and not line.startswith('#'):
            name, _, rest = line.strip().partition(':')
            if line.startswith(' '):
                folders[list(folders)[-1]][1].append(name)
            else:
                folders[name] = (rest.split(), [])
    return folders


def levels_of(folders):
    levels = {}
    for name, (below, _) in folders.items():
        levels[name] = 1 + max((levels[each] for each in below), default=-1)
    return levels


def direct(folders, name):
    """The folders below that no other folder below leads to."""
    below = folders[name][0]
    return [each for each in below if not any(each in folders[other][0] for other in below)]


def picture(folders):
    levels = levels_of(folders)
    top = max(levels.values())
    rows = [[name for name in folders if levels[name] == level] for level in range(top + 1)]
    boxes = {}
    for level, row in enumerate(rows):
        left = (WIDTH - len(row) * BOX - (len(row) - 1) * GAP) // 2
        for place, name in enumerate(row):
            boxes[name] = (left + place * (BOX + GAP), 10 + (top - level) * STEP)
    height = 20 + top * STEP + HIGH
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
             'font-family="sans-serif" role="img">',
             '<title>The folders of weft/, lowest at the bottom; a line leads down to folders that it may include</title>',
             f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>']
    for name, (x, y) in boxes.items():
        for below in direct(folders, name):
            to_x, to_y = boxes[below]
            way = f'{x + BOX // 2},{y + HIGH} {to_x + BOX // 2},{to_y}'
            if levels[name] - levels[below] > 1:  # around the boxes between
                way = f'{x + BOX},{y + HIGH // 2} {to_x + BOX * 3 // 4},{y + HIGH // 2} {to_x + BOX * 3 // 4},{to_y}'
            lines.append(f'<polyline points="{way}" fill="none" stroke="#667"/>')
    for name, (x, y) in boxes.items():
        rooms = ' · '.join('the folder itself' if room == '.' else html.escape(room) for room in folders[name][1])
        lines += [f'<rect x="{x}" y="{y}" width="{BOX}" height="{HIGH}" rx="6" fill="#eef2fb" stroke="#3f51b5"/>',
                  f'<text x="{x + BOX // 2}" y="{y + (20 if rooms else 29)}" text-anchor="middle" font-weight="bold" '
                  f'font-size="15">{name}</text>']
        if rooms:
            fit = f' textLength="{BOX - 16}" lengthAdjust="spacingAndGlyphs"' if len(rooms) > LETTERS else ''
            lines.append(f'<text x="{x + BOX // 2}" y="{y + 37}" text-anchor="middle" font-size="11"{fit}>{rooms}</text>')
    return '\n'.join([*lines, '</svg>']) + '\n'


def main():
    made = picture(read_layers((ROOT / 'weft/layers.txt').read_text(encoding='utf-8')))
    if sys.argv[1:] == ['--write']:
        PICTURE.write_text(made, encoding='utf-8')
    elif not PICTURE.exists() or PICTURE.read_text(encoding='utf-8') != made:
        print('docs/layers.svg is not of weft/layers.txt: python3 tools/layers_picture.py --write')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
