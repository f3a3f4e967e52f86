# SPDX-License-Identifier: MIT
"""Files of records: one JSON object per line, its `kind` first. bench/records.md describes them, record.schema.json
says what each kind has; report.schema.json in docs/ what results.json holds."""

import functools
import json

from weft_bench import ROOT

RECORD_SCHEMA = ROOT / "bench/weft_bench/record.schema.json"
REPORT_SCHEMA = ROOT / "docs/report.schema.json"


class RecordError(Exception):
    """A file that is not what a suite writes, or not whole."""


@functools.cache
def validator(path):
    import jsonschema  # only where something is read: what measures needs the standard library alone
    return jsonschema.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def refusal(value, path):
    """Why a value does not match the schema in a file, or None.

    >>> refusal({"kind": "failure", "cell": "a", "why": "it broke"}, RECORD_SCHEMA) is None
    True
    >>> refusal({"kind": "failure", "cell": "a"}, RECORD_SCHEMA)
    "'why' is a required property"
    >>> refusal({"kind": "run", "cell": "a", "column": "weft", "ns": 1, "round": "first"}, RECORD_SCHEMA)
    "round: 'first' is not of type 'integer'"
    """
    from jsonschema.exceptions import best_match
    error = best_match(validator(path).iter_errors(value))
    if error is None:
        return None
    place = error.json_path.removeprefix("$").removeprefix(".")
    said = error.message if len(error.message) < 200 else f"it does not match `{error.validator}` of {path.name}"
    return f"{place}: {said}" if place else said


def parse(line):
    """The record in a line, or a RecordError.

    >>> parse('{"kind": "skip", "cell": "a", "why": "no files"}')["cell"]
    'a'
    >>> parse('{"kind": "ski')
    Traceback (most recent call last):
    weft_bench.records.RecordError: is not whole: Unterminated string starting at: line 1 column 10 (char 9)
    """
    try:
        record = json.loads(line)
    except ValueError as error:
        raise RecordError(f"is not whole: {error}") from error
    why = refusal(record, RECORD_SCHEMA)
    if why:
        raise RecordError(f"is no record: {why}")
    return record


def read(path):
    """The records of a file. A RecordError names the first line that is no record, or not whole, as the last line of a
    killed run."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found.append(parse(line))
        except RecordError as error:
            raise RecordError(f"{path}, line {number} {error}") from error
    return found


def lines_of(records):
    return "".join(json.dumps(record) + "\n" for record in records)


def append(path, records):
    with path.open("a", encoding="utf-8") as file:
        file.write(lines_of(records))


def drop_rows(path, names):
    """Takes away what a file holds of these rows."""
    path.write_text(lines_of([record for record in read(path) if record.get("cell") not in names]), encoding="utf-8")


def is_within_a_row(line):
    """Whether a line is not whole, or a record that other records of the same row follow.

    >>> is_within_a_row(b'{"kind": "ru'), is_within_a_row(b'{"kind": "run"}\\n'), is_within_a_row(b'{"kind": "cell"}\\n')
    (True, True, False)
    """
    if not line.endswith(b"\n"):
        return True
    try:
        record = json.loads(line)
    except ValueError:
        return False  # a file of something else, which read() refuses
    kind = record.get("kind") if isinstance(record, dict) else None
    return kind in ("run", "count", "counts", "library") or (kind == "failure" and "column" in record)


def drop_unfinished(path):
    """Takes away what a killed run left of a row: whole records, and a last line that is not whole."""
    lines = path.read_bytes().splitlines(keepends=True)
    whole = list(lines)
    while whole and is_within_a_row(whole[-1]):
        whole.pop()
    if whole != lines:
        path.write_bytes(b"".join(whole))


def failures(records):
    return [record for record in records if record["kind"] == "failure"]
