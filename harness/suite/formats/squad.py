"""Questions about paragraphs, as SQuAD 1.1 and 2.0 have them, and XQuAD, MLQA and their like."""

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.lines import Entry, JsonObject, JsonValue, Place, read_json, read_lines, refuse, shown, text_of
from harness.suite.definition import Source
from harness.suite.formats.example import CaseTask, ExampleFiles, ExampleRow, Examples, unique
from harness.suite.formats.example import locate as locate
from harness.suite.formats.jsonl import case_of

OWN = ("id", "question", "answers", "is_impossible", "plausible_answers")
_ID = re.compile(r'"id"\s*:\s*("(?:[^"\\]|\\.)*")')


def read(files: ExampleFiles, source: Source, task: CaseTask) -> Examples:
    """Every question of the files.

    `title`, where an article has one, and `paragraph`, `FILE:NUMBER` from 1, are attributes beside a question's own
    further keys. Answers stay as often as they are written. A question without answers must say `is_impossible`; one
    without the key says nothing of its gold, null that nobody knows it.

    Raises Misconfigured, with the line of the question's ID where it can be found, for an answer that stands elsewhere
    than it is said to, and whatever else isn't as the format says.
    """
    if task != "answer":
        raise Misconfigured(
            "source", found=f'format = "squad" for a suite of {task}', expected="a suite of answer",
            mend="Name another format, or mend `task`.",
        )  # fmt: skip
    return Examples(tuple(unique(row for path in files.paths for row in _questions(path))))


def _questions(path: Path) -> Iterator[ExampleRow]:
    lines = _lines(path)
    number = 0
    for article, at in _objects(path, read_json(path), "data", ""):
        for paragraph, inner in _objects(path, article, "paragraphs", at):
            number += 1
            context = paragraph.get("context")
            if not isinstance(context, str):
                refuse(path, f"no `context` in {inner}", "a text that the questions are about", "Add it.")
            title = article.get("title")
            around: JsonObject = {} if title is None else {"title": title}
            around["paragraph"] = f"{path.name}:{number}"
            for question, _ in _objects(path, paragraph, "qas", inner):
                identifier = question.get("id")
                seen = lines.get(identifier) if isinstance(identifier, str) else None
                yield _case(Entry(Place(path, seen.popleft() if seen else 1), question), context, around)


def _case(entry: Entry, context: str, around: JsonObject) -> ExampleRow:
    keys: JsonObject = {"id": text_of(entry, "id"), "question": text_of(entry, "question"), "context": context}
    answers = _answers(entry)
    if answers is not None or "answers" in entry.keys:
        keys["answers"] = answers
    further = {name: value for name, value in entry.keys.items() if name not in OWN}
    return replace(case_of(Entry(entry.place, keys), "answer"), further={**around, **further})


def _answers(entry: Entry) -> list[JsonValue] | None:
    """The answers as JSON Lines has them, or None."""
    written, impossible = entry.keys.get("answers"), entry.keys.get("is_impossible")
    if not isinstance(impossible, bool | None):
        refuse(entry.place, f"`is_impossible` is {shown(str(impossible))}", "true or false", "Write it so.")
    if written is None:
        return [] if impossible else None
    if not isinstance(written, list):
        refuse(entry.place, "`answers` is no list", "a list of objects with `text` and `answer_start`", "Correct it.")
    if bool(written) == bool(impossible):
        refuse(
            entry.place, f"{len(written)} answers, and `is_impossible` is {json.dumps(impossible)}",
            "answers, or `is_impossible` true", "Correct one of the two.",
        )  # fmt: skip
    return [_answer(entry, each) for each in written]


def _answer(entry: Entry, value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        refuse(entry.place, f"an answer {shown(str(value))}", "an object with `text` and `answer_start`", "Correct it.")
    return {"text": value.get("text"), "start": value.get("answer_start")}


def _objects(path: Path, holder: JsonValue, key: str, at: str) -> Iterator[tuple[JsonObject, str]]:
    """The objects of a list, each with where it stands in the file."""
    inner = f"{at}.{key}" if at else key
    members = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(members, list):
        refuse(
            path, f"no list `{inner}`", "data, paragraphs and qas, as SQuAD has them",
            "Cases by line are read with format = \"jsonl\".",
        )  # fmt: skip
    for i, member in enumerate(members):
        if not isinstance(member, dict):
            refuse(path, f"{inner}[{i}] is no object", "an object", "Correct it.")
        yield member, f"{inner}[{i}]"


def _lines(path: Path) -> dict[str, deque[int]]:
    """By ID, the lines on which one is written as such, in file order."""
    lines: defaultdict[str, deque[int]] = defaultdict(deque)
    for line in read_lines(path):
        for found in _ID.findall(line.text):
            try:
                lines[json.loads(found)].append(line.place.line)
            except ValueError:
                # The file as a whole is refused by its reader, which says what is wrong.
                continue
    return lines
