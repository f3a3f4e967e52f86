#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages of this repository as a static site.

site.py stage FOLDER   copies the pages and the files that they link to into FOLDER/pages, with links that fit
site.py bundle FOLDER  puts the script by which the search works without a server into FOLDER/html
site.py check FOLDER   each link, picture and script of FOLDER/html is there, and nothing comes from the network
site.py look FOLDER    opens pages in headless Chromium, from a server on a free port and as files; 77: no Chromium or no Playwright
"""
import functools
import html.parser
import http.server
import pathlib
import re
import shutil
import sys
import threading
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r'(^```.*?^```$)', re.MULTILINE | re.DOTALL)
LINK = re.compile(r'\]\(([^)\s]+)\)')
NAMED_PAGE = re.compile(r'\[[\w./-]+\.md\]\(([^)#\s]+\.md)\)')  # a link whose text is the name of its file
ITEM = re.compile(r'([-*]|\d+\.) ')
PICTURES = ('.png', '.svg')
SHIM = 'https://unpkg.com/iframe-worker/shim'  # a Worker for pages that are files


def relative(target, page):
    """The path of `target` as a link of `page`; both are paths below the root."""
    common = 0
    for left, right in zip(target.parts[:-1], page.parts[:-1]):
        if left != right:
            break
        common += 1
    return '/'.join(['..'] * (len(page.parts) - 1 - common) + list(target.parts[common:]))


def page_of_folder(folder):
    """The page that stands for a folder; a folder without one gets a list of its pages."""
    return folder / ('README.md' if (ROOT / folder / 'README.md').exists() else 'index.md')


class Stage:
    """Copies pages, beginning with `first`, and all that their links reach."""

    def __init__(self, into):
        self.into = into
        self.done = set()
        self.waiting = []
        self.wrong = []

    def want(self, path):
        if path not in self.done:
            self.done.add(path)
            self.waiting.append(path)

    def run(self, first):
        for page in first:
            self.want(page)
        while self.waiting:
            path = self.waiting.pop()
            target = self.into / path
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.name == 'index.md':
                target.write_text(self.rewrite(self.list_of(path.parent), path), encoding='utf-8')
            elif path.suffix == '.md':
                target.write_text(self.rewrite((ROOT / path).read_text(encoding='utf-8'), path), encoding='utf-8')
            elif path.suffix in PICTURES:
                shutil.copyfile(ROOT / path, target)
            else:  # as text, so that a browser shows the file
                shutil.copyfile(ROOT / path, target.with_name(target.name + '.txt'))

    @staticmethod
    def title_of(file):
        return file.read_text(encoding='utf-8').split('\n', 1)[0].lstrip('# ')

    def list_of(self, folder):
        lines = [f'# {folder}', '']
        for file in sorted((ROOT / folder).iterdir()):
            if file.suffix == '.md':
                lines.append(f'- [{self.title_of(file)}]({file.name})')
            elif file.is_file():
                lines.append(f'- [{file.name}]({file.name})')
        return '\n'.join(lines) + '\n'

    def rewrite(self, text, page):
        def link(found):
            target, hash_, anchor = found[1].partition('#')
            if not target or re.match(r'[a-z]+:', target):
                return found[0]
            file = (ROOT / page.parent / target).resolve()
            if not file.exists() or not file.is_relative_to(ROOT):
                self.wrong.append(f'{page}: there is no {target}')
                return found[0]
            path = file.relative_to(ROOT)
            path = page_of_folder(path) if file.is_dir() else path
            self.want(path)
            shown = path if path.suffix == '.md' or path.suffix in PICTURES else path.with_name(path.name + '.txt')
            return f']({relative(shown, page)}{hash_}{anchor})'
        def titled(found):
            file = (ROOT / page.parent / found[1]).resolve()
            return f'[{self.title_of(file)}]({found[1]})' if file.is_file() else found[0]
        parts = FENCE.split(text)
        return ''.join(part if part.startswith('```') else LINK.sub(link, NAMED_PAGE.sub(titled, separate_lists(part)))
                       for part in parts)


def separate_lists(text):
    """A blank line in front of each list: hosts of repositories need none there, Markdown does."""
    lines = []
    for line in text.split('\n'):
        last = lines[-1] if lines else ''
        if ITEM.match(line) and last and not ITEM.match(last) and not last.startswith(' '):
            lines.append('')
        lines.append(line)
    return '\n'.join(lines)


def stage(folder):
    pages = folder / 'pages'
    shutil.rmtree(pages, ignore_errors=True)
    staging = Stage(pages)
    first = [path.relative_to(ROOT) for path in [*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')]]
    staging.run([*first, pathlib.PurePosixPath('docs/design/index.md')])
    settings = (ROOT / 'tools/site/mkdocs.yml').read_text(encoding='utf-8')
    (folder / 'mkdocs.yml').write_text(settings, encoding='utf-8')
    missing = [name for name in re.findall(r': (\S+\.md)$', settings, re.MULTILINE) if not (pages / name).exists()]
    staging.wrong += [f'mkdocs.yml: there is no {name}' for name in missing]
    return staging.wrong, f'{len(staging.done)} files'


def bundle(folder):
    shutil.copyfile(folder / 'npm/node_modules/iframe-worker/shim/index.js', folder / 'html/assets/javascripts/iframe-worker.js')
    pages = 0
    for page in (folder / 'html').rglob('*.html'):
        text = page.read_text(encoding='utf-8')
        up = '../' * (len(page.relative_to(folder / 'html').parts) - 1)
        page.write_text(text.replace(SHIM, f'{up}assets/javascripts/iframe-worker.js'), encoding='utf-8')
        pages += SHIM in text
    return ([] if pages else [f'no page loads {SHIM}']), f'{pages} pages search without a server'


class References(html.parser.HTMLParser):
    """The links and the loaded files of a page, and its ids."""

    def __init__(self):
        super().__init__()
        self.links, self.loads, self.ids = [], [], set()

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        if of.get('id'):
            self.ids.add(of['id'])
        if tag == 'a' and of.get('href'):
            self.links.append(of['href'])
        elif tag in ('script', 'img', 'iframe') and of.get('src'):
            self.loads.append(of['src'])
        elif tag == 'link' and of.get('rel') in ('stylesheet', 'icon', 'preload', 'preconnect') and of.get('href'):
            self.loads.append(of['href'])


def read(page):
    found = References()
    found.feed(page.read_text(encoding='utf-8'))
    return found


def check(folder):
    pages = {page: read(page) for page in sorted((folder / 'html').rglob('*.html')) if page.name != '404.html'}
    wrong = []
    for page, found in pages.items():
        for reference in found.loads + found.links:
            parts = urllib.parse.urlsplit(reference)
            if parts.scheme or parts.netloc:
                if reference in found.loads and parts.scheme != 'data':
                    wrong.append(f'{page}: loads {reference} from the network')
                continue
            target = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                wrong.append(f'{page}: there is no {reference}')
            elif anchor and target in pages and anchor not in pages[target].ids:
                wrong.append(f'{page}: no heading for {reference}')
    return wrong + ([] if len(pages) > 50 else [f'{len(pages)} pages are too few']), f'{len(pages)} pages, each link leads somewhere'


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def look(folder):
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit(77)
    browser_path = shutil.which('chromium')
    if browser_path is None:
        sys.exit(77)
    wrong = []
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Quiet, directory=folder / 'html'))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f'http://127.0.0.1:{server.server_port}/'
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path, args=['--no-sandbox'])
        for name, word in (('index', 'Weft'), ('docs/sockets', 'Late joiners'), ('docs/ko/server', '세션')):
            page = browser.new_page(viewport={'width': 1280, 'height': 900})
            page.on('console', lambda said, name=name: wrong.append(f'{name}: {said.text}') if said.type == 'error' else None)
            page.on('request', lambda asked, name=name: None if asked.url.startswith((here, 'data:', 'blob:', 'file:'))
                    else wrong.append(f'{name}: asks for {asked.url}'))
            page.goto(f'{here}{name}.html')
            if word not in page.inner_text('article') or page.evaluate('document.documentElement.scrollWidth') > 1280:
                wrong.append(f'{name}: does not show "{word}", or does not fit')
            page.screenshot(path=folder / f'{name.replace("/", "-")}.png')
        page.goto((folder / 'html/index.html').resolve().as_uri())
        for query in ('linger', 'session') * 10:  # the page may have missed the first one: its script was not ready
            page.fill('[data-md-component=search-query]', query)
            page.wait_for_timeout(500)
            if page.locator('.md-search-result__item').count():
                break
        else:
            wrong.append('the search finds nothing')
        browser.close()
    server.shutdown()
    return wrong, f'three pages in Chromium: {folder}/*.png'


def main():
    command, folder = {'stage': stage, 'bundle': bundle, 'check': check, 'look': look}[sys.argv[1]], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    wrong, done = command(folder)
    print('\n'.join(wrong) or done)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
