# SPDX-License-Identifier: MIT
"""The languages of the page. English stands in the code; korean.json has the Korean of each text and of each counted noun."""

import json
import pathlib

from weft_bench import printer

TABLES = {"ko": pathlib.Path(__file__).resolve().parent / "korean.json"}


class Words:
    """Texts of one language: words(text, name=value) is the text with its values.

    >>> ENGLISH("{rows} in all", rows=ENGLISH.count(2, "row")), Words("ko").count(2, "row")
    ('2 rows in all', '행 2개')
    """

    def __init__(self, language):
        self.language = language
        self.table = json.loads(TABLES[language].read_text(encoding="utf-8")) if language in TABLES else None
        self.missing = set()  # what the table lacks, and the page has in English

    def of(self, text):
        if self.table is None:
            return text
        if text not in self.table:
            self.missing.add(text)
        return self.table.get(text, text)

    def __call__(self, text, **values):
        return self.of(text).format(**values) if values else self.of(text)

    def count(self, amount, noun):
        return printer.count(amount, noun) if self.table is None else self.of(f"{{n}} {noun}").format(n=amount)


ENGLISH = Words("en")
