# SPDX-License-Identifier: MIT
"""claims_test.py BUILD: docs/claims.md. Each claim stands in its document, each test and row that backs it exists, and the
list has every statement of README's contents and every sentence of the pages that compares speeds."""
import doctest
import pathlib
import re
import sys

from named_tests import ROOT, cases_of

sys.path.insert(0, str(ROOT / "bench"))
from weft_bench.harness import cells, server_cells, topics_cells  # noqa: E402

PAGE = ROOT / "docs/claims.md"
FOLDERS = ("weft", "tests", "capi")
SPEED, UNTESTED = "Speed", "Without a test"  # sections whose second column is the document
COMPARED = re.compile(r"\b(?:faster|fastest|slower|slowest|quicker|quickest|as fast|as quick|cheaper|outperforms?)\b|"
                      r"\b(?:\w+|[\d.,]+) times (?:as|more|less|the (?:time|speed|processor))\b|\btwice (?:as|the)\b|"
                      r"\bin half (?:of )?the time\b|\b[\d.]+x\b")
# Words of speed in sentences that compare no speed of Weft: (document, words of the sentence).
NO_SPEED = (
    ("HACKING.md", "the verdict is slower, not slower or cannot tell"),
    ("client.md", "Each further wait is twice as long"),
    ("client.md", "to ask for an echo twice is as good as once"),
    ("command-line.md", "--traces shows the slowest recorded operations"),
    ("compatibility.md", "libzmq returns EAGAIN only while its I/O thread is slower than the sender"),
    ("metrics.md", "datagrams come faster than the application takes them"),
    ("observability.md", "the slowest first"),
    ("observability.md", "up to 100 of the slowest recorded operations"),
    ("observability.md", "A tracer keeps the 32 slowest of a minute"),
    ("security.md", "all reads of a turn four times as many"),
    ("security.md", "the fastest is left out"),
    ("server.md", "Market data changes faster than some peers read"),
    ("server.md", "So a handler sends as fast as the peer reads"),
    ("server.md", "so an instrument that changes all the time leaves as soon as the others"),
    ("sockets.md", "the slowest reader then sets the pace of all"),
    ("tuning.md", "A program of yours cannot be faster there"),
    ("tuning.md", "They make no program faster"),
)


def plain(text):
    """A text without links, marks and line breaks. A row of a table has a colon between its cells.

    >>> plain("**Topics** are in\\n[docs](docs/a.md), `x`.")
    'Topics are in docs, x.'
    >>> plain("| a | b | c |")
    'a: b: c'
    """
    text = re.sub(r"(?m)^\|[ ]?|[ ]?\|$", "", text).replace(" | ", ": ")
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return " ".join(text.replace("**", "").replace("`", "").replace("*", "").split())


def without_figures(text):
    """A page without the blocks that a run of the benches writes, which bench.report compares with that run."""
    return re.sub(r"<!-- figures.*?<!-- end of figures -->", "", text, flags=re.DOTALL)


def sentences(text):
    """The sentences of a part of a page and the rows of its tables, without code and headings.

    >>> sentences("## A\\n- **B** is c. D is e.\\n- F:\\n```\\ng\\n```\\n| h | i |\\n|---|---|\\n| j | k |\\n")
    ['B is c.', 'D is e.', 'F:', 'h: i', 'j: k']
    """
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"(?m)^(#|<!--|\|-).*$", "", text)
    rows = re.compile(r"(?m)^\|.*$")
    blocks = re.split(r"\n\s*\n|\n\s*- |^- ", rows.sub("\n", text), flags=re.MULTILINE)
    found = [sentence for block in blocks if block.strip()
             for sentence in re.split(r"(?<=[.:])\s+(?=[A-Zd`])", plain(block).removeprefix("- ").strip()) if sentence]
    return found + [plain(row) for row in rows.findall(text)]


def tables(page):
    """{heading: [cells of a row]}."""
    found = {}
    for part in page.split("\n## ")[1:]:
        heading, _, rest = part.partition("\n")
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rest.splitlines() if line.startswith("| ")]
        found[heading] = [[cell.strip("| ") for cell in row] for row in rows[1:]]
    return found


def left_over(part, claims):
    """The words of a part of a page that no claim has. Words before a colon at a line's end and the bold words that head a
    paragraph state nothing, and neither does a pointer in parentheses.

    >>> left_over("- **A** is b. C is d ([e.md](e.md)).\\n\\n**G.** H is i, and j is k:\\n", ["A is b.", "C is d", "H is i"])
    ['and j is k']
    """
    text = re.sub(r"(?m)^#.*$", "", re.sub(r"```.*?```", "", part, flags=re.DOTALL))
    text = re.sub(r"\*\*[^*]+\.\*\*|\*\*[^*]+\*\*:", "\n\n", text)
    rest = [plain(block) for block in re.split(r"\n\s*\n|(?m:^- )", text)]
    for claim in sorted(claims, key=len, reverse=True):
        rest = [piece for block in rest for piece in block.split(claim)]
    words = [re.sub(r"\([\w/.-]+\.md\)", "", piece).strip(" .,:;") for piece in rest]
    return [piece for piece in words if re.search(r"\w", piece)]


def is_row(name):
    """Whether a bench has the row."""
    if any(of.parse(name) for of in (cells, server_cells, topics_cells)):
        return True
    return any(f'row("{name}")' in file.read_text(encoding="utf-8") for file in (ROOT / "bench/micro").glob("*.cc"))


def ctest_names(folder):
    """The tests of a build, from its CTestTestfile.cmake."""
    file = folder / "CTestTestfile.cmake"
    text = file.read_text(encoding="utf-8") if file.exists() else ""  # a folder without tests has none
    names = set(re.findall(r'^add_test\((?:\[=*\[|"?)([\w.]+)', text, re.MULTILINE))
    return names.union(*(ctest_names(folder / below) for below in re.findall(r'^subdirs\("(.*)"\)', text, re.MULTILINE)))


def wrong_names(text, tests, cases):
    """The names in backticks that nothing has."""
    names = re.findall(r"`([^`]+)`", text)
    if not names:
        return ["the row names no test; name one in backticks, or move the claim to `Without a test`"]
    return [f"there is no test and no row {name}; name the test that proves the claim"
            for name in names if name not in tests and name not in cases and not is_row(name)]


def wrong_numbers(claim, security):
    """The complaint about a claim that docs.security backs: one row of docs/security.md has all of its numbers.

    >>> wrong_numbers("b: 1,200 in 30 s", "| b | 30 s | x = 1200 |"), wrong_numbers("b: 1,200", "| b | 900 |\\n| c |")
    ([], ['b: 1,200: no row of security.md has 1200; write the number of the row whose bound this is'])
    """
    def numbers(text):
        return set(re.findall(r"\d+", re.sub(r"(?<=\d)[,'](?=\d{3})", "", text)))
    wanted = numbers(claim)
    if any(wanted <= numbers(line) for line in security.splitlines() if line.startswith("|")):
        return []
    return [f"{claim[:60]}: no row of security.md has {', '.join(sorted(wanted))}; write the number of the row whose bound this is"]


def check(page, documents, tests, cases):
    """What is wrong with the page, as texts. documents: {name: text}."""
    wrong = []
    texts = {name: plain(text) for name, text in documents.items()}
    claims = {name: [] for name in documents}
    backed = 0
    for heading, rows in tables(page).items():
        for row in rows:
            document = row[1] if heading in (SPEED, UNTESTED) else heading
            claim = plain(row[0])
            if document not in documents or len(row) != (3 if heading in (SPEED, UNTESTED) else 2):
                wrong.append(f"the row `{claim[:60]}` of `{heading}` names no page, or has a cell too many or too few")
                continue
            if claim not in texts[document]:
                wrong.append(f"{document} does not say: {claim}; write the claim as the page does, and read its tests again")
            claims[document].append(claim)
            if heading != UNTESTED:
                backed += 1
                wrong += [f"{claim[:60]}: {what}" for what in wrong_names(row[-1], tests, cases)]
                wrong += wrong_numbers(claim, documents["security.md"]) if "`docs.security`" in row[-1] else []
    wrong += [f"this test could read {backed} claims only"] if backed < 250 else []
    readme = documents["README.md"]
    contents = readme[readme.index("## Contents"):readme.index("## Guides")]
    wrong += [f"README.md has a statement without a claim; add it with its test, or to `{UNTESTED}`: {words}"
              for words in left_over(contents, claims["README.md"])]
    for name, text in documents.items():
        wrong += [f"{name} compares speeds; add the sentence to `{SPEED}` with its row or test, or to `{UNTESTED}`: {sentence}"
                  for sentence in sentences(without_figures(text)) if COMPARED.search(sentence)
                  and not any(words in sentence for page_of, words in NO_SPEED if page_of == name)
                  and not any(claim.rstrip(" .") in sentence for claim in claims[name])]
    wrong += [f"{name} no longer says `{words}`; remove it from NO_SPEED of this test"
              for name, words in NO_SPEED if words not in texts[name]]
    return wrong


def seeded(page, documents):
    """{words of the message: what check() must find it in}."""
    readme = documents["README.md"]

    def with_readme(text):
        return page, {**documents, "README.md": text}

    def with_web(words):
        return page, {**documents, "web.md": documents["web.md"] + words}

    return {
        "README.md does not say": with_readme(readme.replace("on disk", "in memory")),
        "no row server.nothing": (page.replace("`server.web`", "`server.nothing`"), documents),
        "no row Kept.Nothing": (page.replace("`Kept.WhatIsKeptOutlivesEveryHandle`", "`Kept.Nothing`"), documents),
        "no row push_pull/tcp/8/fast": (page.replace("`push_pull/tcp/64`", "`push_pull/tcp/8/fast`"), documents),
        "claim; add it with its test, or to `Without a test`: Pigs":
            with_readme(readme.replace("## Guides", "Pigs can fly high.\n\n## Guides")),
        "WebSocket, and clients, and the moon": with_readme(
            readme.replace("HTTP/1.1 and WebSocket, and clients.", "HTTP/1.1 and WebSocket, and clients, and the moon.")),
        "compares speeds; add the sentence to `Speed` with its row or test, or to `Without a test`: The server":
            with_web("\n\nThe server is much faster than all others.\n"),
        "`Without a test`: It needs 3 times less": with_web("\n\nIt needs 3 times less time.\n"),
        "`Without a test`: a route: twice as": with_web("\n\n| a route | twice as much work |\n"),
        "no row of security.md has 64": (page, {**documents, "security.md": documents["security.md"].replace("64", "63")}),
        "the row names no test": (page.replace("| `capi.exports` |", "| we think so |"), documents),
        "names no page": (page.replace(" | foundations.md | ", " | nowhere.md | "), documents),
    }


def main():
    tests, cases = ctest_names(pathlib.Path(sys.argv[1])), cases_of(*FOLDERS)
    documents = {path.name: path.read_text(encoding="utf-8")
                 for path in (ROOT / "README.md", ROOT / "HACKING.md", *(ROOT / "docs").glob("*.md")) if path != PAGE}
    page = PAGE.read_text(encoding="utf-8")
    wrong = check(page, documents, tests, cases)
    wrong += ["an example in a docstring of the test fails"] if doctest.testmod().failed else []
    if len(tests) < 100 or len(cases) < 1000:
        wrong.append(f"this test could read {len(tests)} tests and {len(cases)} cases only")
    for words, arguments in seeded(page, documents).items():
        if not any(words in line for line in check(*arguments, tests, cases)):
            wrong.append(f"this test did not find the fault that it made: {words}")
    for line in wrong:
        print(f"docs/claims.md: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
