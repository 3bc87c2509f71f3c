"""The texts of a file that a release was trained on, whatever form it has. What cannot be read is refused, for a leak
that nobody looks for is one that nobody finds.
"""

import csv
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.file.lines import JsonValue, Line, Place, read_json, read_lines, refuse

JSON_LINES = (".jsonl", ".ndjson")
SENTENCES = (".conll", ".conllu", ".bio", ".iob", ".iob2")
PLAIN = ("", ".txt", ".text", ".tsv", ".tab", ".md")
FORMS = "JSON, JSON lines, TSV, CSV, a token a line or plain text"
SEPARATORS = ",;\t|"
LABELS = re.compile(r"__label__\S+")
"""Labels before a text, as fastText has them."""


@dataclass(frozen=True, slots=True)
class TrainingLine:
    """The texts of one line, from 1, of one JSON value or of one sentence."""

    line: int
    texts: list[str]


def training_lines(path: Path) -> Iterator[TrainingLine]:
    """Every line's texts: the strings of a JSON value, the cells of a table, the words of a sentence, else the line.

    Raises Misconfigured for a file of another form, for one that cannot be read, and for one without any text.
    """
    held = False
    for each in _lines(path):
        held = held or any(text.strip() for text in each.texts)
        yield each
    if not held:
        refuse(path, "no text in it", "the texts that the release was trained on", "Write it again, or take it out.")


def _lines(path: Path) -> Iterator[TrainingLine]:
    suffix = path.suffix.lower()
    if suffix == ".json":
        whole = read_json(path)
        for position, each in enumerate(whole if isinstance(whole, list) else [whole], 1):
            yield TrainingLine(position, list(_strings(each)))
    elif suffix == ".csv":
        yield from _table(path)
    elif suffix in SENTENCES:
        yield from _sentences(path)
    elif suffix in JSON_LINES or suffix in PLAIN:
        for line in read_lines(path):
            yield TrainingLine(line.place.line, _texts(line, must_be_json=suffix in JSON_LINES))
    else:
        refuse(path, f"a {suffix} file", FORMS, "Write it out as one of these.")


def _texts(line: Line, *, must_be_json: bool) -> list[str]:
    """A line of a file that is plain by its name may be JSON all the same."""
    if must_be_json:
        return list(_strings(_parsed(line.text, line.place)))
    if line.text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            return list(_strings(json.loads(line.text)))
    return LABELS.sub(" ", line.text).split("\t")


def _table(path: Path) -> Iterator[TrainingLine]:
    """Cells, by that separator which the first line has most of."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            first = stream.readline()
            stream.seek(0)
            reader = csv.reader(stream, delimiter=max(SEPARATORS, key=first.count))
            for cells in reader:
                yield TrainingLine(reader.line_num, cells)
    except (UnicodeDecodeError, csv.Error, OSError) as error:
        refuse(path, str(error), "CSV in UTF-8", "Mend the file, or write it as JSON lines.")


def _sentences(path: Path) -> Iterator[TrainingLine]:
    """The first column of the lines up to a blank one; of CoNLL-U, whose first is a number, the second."""
    column = 1 if path.suffix.lower() == ".conllu" else 0
    start, tokens = 0, list[str]()
    for line in read_lines(path, blank=True):
        cells = line.text.split("\t") if "\t" in line.text else line.text.split()
        if len(cells) > column and not (column and cells[0].startswith("#")):
            start = start if tokens else line.place.line
            tokens.append(cells[column])
        elif tokens and not line.text.strip():
            yield TrainingLine(start, [" ".join(tokens)])
            tokens = []
    if tokens:
        yield TrainingLine(start, [" ".join(tokens)])


def _parsed(text: str, where: Place) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError) as error:
        refuse(where, f"no JSON: {error}", "one JSON value a line", "Correct that line.")
    return value


def _strings(value: JsonValue) -> Iterator[str]:
    """Every text in a JSON value; a list of texts is also one text, for it may be tokens."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        if len(value) > 1 and all(isinstance(each, str) for each in value):
            yield " ".join(str(each) for each in value)
        for each in value:
            yield from _strings(each)
