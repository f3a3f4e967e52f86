#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Each link of a page to a file of this tree, and to a heading, leads there; a guide in Korean has the blocks of code, the
headings and the rows of its English page, and README.ko.md the blocks of README.md. Both have the front door in 60 lines.
ARCHITECTURE.md has ten tasks, each with at most three files."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
KOREAN = {'README.ko.md': 'README.md', 'docs/ko/server.md': 'docs/server.md', 'docs/ko/sockets.md': 'docs/sockets.md'}
FENCE = re.compile(r'^```.*?^```$', re.MULTILINE | re.DOTALL)
FIGURES = re.compile(r'<!-- figures: .*?<!-- end of figures -->', re.DOTALL)  # one program makes them
LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)')
HEADING = re.compile(r'^(#+) (.*)$', re.MULTILINE)


def pages():
    for folder, pattern in (('', '*.md'), ('docs', '**/*.md'), ('examples', '*.md'), ('weft', '**/*.md'), ('tests', '**/*.md'),
                            ('capi', '*.md'), ('bench', '**/*.md'), ('cmake', '*.md'), ('python', '**/*.md'), ('tools', '**/*.md'),
                            ('deps', '*.md'), ('demo', '*.md'), ('packaging', '*.md')):
        yield from sorted((ROOT / folder).glob(pattern))


def anchors(text):
    """As the hosts of repositories make them: small letters, no punctuation, a hyphen for a space; a second one gets -1."""
    seen = {}
    names = set()
    for _, title in HEADING.findall(FENCE.sub('', text)):
        name = re.sub(r'[^\w\- ]', '', title.strip().lower()).replace(' ', '-')
        seen[name] = seen.get(name, -1) + 1
        names.add(f'{name}-{seen[name]}' if seen[name] else name)
    return names


def wrong_links(page):
    for target in LINK.findall(re.sub(r'`[^`\n]*`', '', FENCE.sub('', page.read_text(encoding='utf-8')))):
        if re.match(r'[a-z]+:', target):
            continue  # elsewhere
        path, _, anchor = target.partition('#')
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f'{page.relative_to(ROOT)}: there is no {target}'
        elif anchor and file.suffix == '.md' and anchor not in anchors(file.read_text(encoding='utf-8')):
            yield f'{page.relative_to(ROOT)}: no heading for {target}'


def shape(text):
    """The parts of a page that no translation changes."""
    text = FIGURES.sub('', text)
    prose = FENCE.sub('', text)
    return {
        'blocks of code': FENCE.findall(text) + re.findall(r'(?:^    \S.*\n)+', prose, re.MULTILINE),
        'levels of headings': [level for level, _ in HEADING.findall(prose)],
        'first cells in code': re.findall(r'^\| (`[^|]*`) \|', prose, re.MULTILINE),
        'rows of tables': [len(table.splitlines()) for table in re.findall(r'(?:^\|.*\n)+', prose, re.MULTILINE)],
        'defaults': re.findall(r'<!-- defaults.*?\n\n', prose, re.DOTALL)[:1] and
                    re.findall(r'^\| `\w+` \| `[A-Z_]+` \|.*$', prose, re.MULTILINE),
    }


def untranslated(korean, english):
    ours, theirs = (shape((ROOT / name).read_text(encoding='utf-8')) for name in (korean, english))
    for what, expected in theirs.items():
        if korean == 'README.ko.md' and what != 'blocks of code':
            continue
        if ours[what] != expected:
            at = next((i for i, pair in enumerate(zip(ours[what], expected)) if pair[0] != pair[1]), None)
            detail = f'{len(ours[what])}, not {len(expected)}' if at is None else f'{ours[what][at]!r}, not {expected[at]!r}'
            yield f'{korean}: its {what} are not those of {english}: {detail}'


def wrong_front(name):
    """A reader with a minute finds these parts in the first 60 lines of README.md and of README.ko.md."""
    lines = (ROOT / name).read_text(encoding='utf-8').splitlines()
    front = '\n'.join(lines[:60]) + '\n'
    for part, pattern in (('the libraries to choose instead', r'^\| \[nng\].*\n\| \[NATS\].*\n\| \[gRPC\]'),
                          ('a figure with its interval', r'^\|.*x \[\d+\.\d+, \d+\.\d+\] \|$'),
                          ('the commands that install', r'^sudo cmake --install '),
                          ('the lines that link', r'^find_package\(weft .*\n.*\n^target_link_libraries\('),
                          ('the command that links', r'pkg-config --cflags --libs weft'),
                          ('a whole program', r'^```cpp\n(?:.*\n)*?int main\(\) \{\n(?:.*\n)*?```$')):
        if not re.search(pattern, front, re.MULTILINE):
            yield f'{name}: not in the first 60 lines: {part}'


def wrong_tasks():
    """The tasks of ARCHITECTURE.md with too many files or none; wrong_links() finds files that are not there."""
    text = (ROOT / 'ARCHITECTURE.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| (.*?) \| (.*) \|$', text[text.index('\n## Ten tasks\n'):].split('\n## ')[1], re.MULTILINE)[1:]
    if len(rows) != 10:
        yield f'ARCHITECTURE.md: {len(rows)} tasks, not 10'
    for task, files in rows:
        if not 1 <= len(LINK.findall(files)) <= 3:
            yield f'ARCHITECTURE.md: not one to three files to {task}'


def main():
    wrong = [line for page in pages() for line in wrong_links(page)]
    wrong += [line for korean, english in KOREAN.items() for line in untranslated(korean, english)]
    wrong += wrong_tasks()
    wrong += [line for name in ('README.md', 'README.ko.md') for line in wrong_front(name)]
    print('\n'.join(wrong) or 'every link leads somewhere')
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
