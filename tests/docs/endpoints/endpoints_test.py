# SPDX-License-Identifier: MIT
"""endpoints_test.py ENDPOINTS_SIDE [--write | --write-reference [FOLDER]]: docs/endpoints.md beside both libraries.

ENDPOINTS_SIDE asks the libzmq.so.5 that it loads to bind and to connect each text of texts.txt. Its answers on libzmq
4.3.5 are kept in reference.txt. A difference without a reason in texts.txt is a failure, and so is a reason without a
difference. --write makes docs/endpoints.md. --write-reference asks the libzmq in FOLDER, by
default the one that ./dev compat libzmq builds.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs/endpoints.md"
TEXTS = HERE / "texts.txt"
KEPT = HERE / "reference.txt"
REFERENCE = ROOT / "build/compat/libzmq/reference/lib"
HEAD = """# Texts of endpoints

<!-- Made by ./dev endpoints from tests/docs/endpoints/texts.txt and both libraries' answers: edit that. -->

The answers of `zmq_bind` (a PULL) and `zmq_connect` (a PUSH) to these texts, in libzmq 4.3.5 and in Weft: 0, or an errno. A test asks
Weft for each, and compares with the kept answers of libzmq. The last column has the reason of a difference; where it is
empty, both answer alike. `PORT` stands for a free port, `DIR` for a folder, `LONG300` for 300 letters. "taken": another socket of the
process has bound the text. `DIR/file` is a file and no socket.

| text | bind: libzmq | bind: Weft | connect: libzmq | connect: Weft | reason |
|---|---|---|---|---|---|
"""


def read_texts():
    texts = {}
    for line in TEXTS.read_text().splitlines():
        if not line.startswith("#"):
            text, _, reason = line.partition(" | ")
            texts[text] = reason
    return texts


def ask(program, texts, library=None):
    environment = dict(os.environ)
    if library is not None:
        environment["LD_LIBRARY_PATH"] = str(library)
    questions = "".join(f"{text}\n" for text in texts)
    ran = subprocess.run([program], input=questions, capture_output=True, text=True, check=True, env=environment)
    return dict(zip(texts, (tuple(line.split()) for line in ran.stdout.splitlines()), strict=True))


def read_reference():
    return {text: tuple(answers.split()) for text, answers in (line.split(" | ") for line in KEPT.read_text().splitlines())}


def page(texts, ours, theirs):
    rows = ""
    for text, reason in texts.items():
        taken, name = text.startswith("taken "), text.removeprefix("taken ")
        cells = [("taken: " if taken else "") + f"`{name}`", theirs[text][0], ours[text][0], theirs[text][1], ours[text][1], reason]
        rows += "| " + " | ".join(cells).rstrip() + " |\n"
    return HEAD + rows


def main():
    program, how = sys.argv[1], sys.argv[2:]
    texts = read_texts()
    if how[:1] == ["--write-reference"]:
        folder = pathlib.Path(how[1]) if how[1:] else REFERENCE
        if not (folder / "libzmq.so.5").exists():
            sys.exit("endpoints_test.py: ./dev compat libzmq builds libzmq first")
        answers = ask(program, texts, folder)
        KEPT.write_text("".join(f"{text} | {' '.join(answers[text])}\n" for text in texts))
        return 0
    ours, theirs = ask(program, texts), read_reference()
    if list(texts) != list(theirs):
        sys.exit(f"{KEPT.relative_to(ROOT)} has other texts: run ./dev endpoints --write-reference")
    text = page(texts, ours, theirs)
    if how == ["--write"]:
        PAGE.write_text(text)
    wrong = [f"{text}: libzmq answers {theirs[text]}, we {ours[text]}: a difference needs its reason in {TEXTS.relative_to(ROOT)}"
             for text, reason in texts.items() if ours[text] != theirs[text] and not reason]
    wrong += [f"{text}: both answer alike, and there is a reason" for text, reason in texts.items()
              if ours[text] == theirs[text] and reason]
    if PAGE.read_text() != text:
        wrong.append("docs/endpoints.md is not what ./dev endpoints makes; run it")
    if len(texts) < 56:
        wrong.append(f"this test could read {len(texts)} texts only")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
