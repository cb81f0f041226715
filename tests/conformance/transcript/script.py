"""
The format of a transcript file.

    # a comment
    % name text                     before the first story: let $name stand for a text
    == A sentence that describes the story
    > POST $cm                      a request and its body
    > {metadata: {name: a}}
    @uid metadata.uid               remember a part of the response as $uid
    ? metadata.name data            the parts of the response to show, if not all
    < 201                           the response of a real server
    ~ why the embedded server intentionally responds differently
    ~< 400 BadRequest               and its response

An unintended difference is marked `~ not yet`: until it is fixed the embedded server may give
either response, but no third.

A line that starts with `>>` belongs to the body and is sent unchanged; other bodies are
written as YAML and sent as JSON. Lines such as `> Accept: x` before the body are headers.
`play.py` lists the requests.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.conformance.transcript.trouble import TranscriptError

NOT_YET = "not yet"
_HEADER = re.compile(r"([A-Z][A-Za-z-]*): (.*)")


@dataclass(slots=True)
class Step:
    """One request and its response."""

    said: str
    line: int
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    raw: bool = False
    kept: list[tuple[str, str]] = field(default_factory=list)
    view: str = ""
    answer: list[str] = field(default_factory=list)
    because: str = ""
    own_answer: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    """The lines of the step up to its response, as in the file."""

    @property
    def is_open(self) -> bool:
        """Whether the embedded server responds differently without a reason."""
        return self.because == NOT_YET

    def accepts(self, answer: list[str], *, embedded: bool) -> bool:
        """Return whether this is the expected response."""
        given = [line.rstrip() for line in answer]
        if not embedded:
            return given == self.answer
        if not self.because:
            return given in (self.answer, blaming_the_sender(self.answer))
        return given == self.own_answer or (self.is_open and given == self.answer)


def blaming_the_sender(answer: list[str]) -> list[str]:
    """
    Return the response of the embedded server, given that of the real one.

    The real one refuses some invalid input with a 500 without a reason. Here invalid input
    is the client's error: the message is the same, and the code is 400.
    """
    said = [line if line != "500 no reason" else "400 BadRequest" for line in answer]
    return [line.replace("! Error from server: ", "! Error from server (BadRequest): ") for line in said]


@dataclass(slots=True)
class Story:
    """A title and its steps."""

    title: str
    line: int
    remarks: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)


@dataclass(slots=True)
class Script:
    """All stories of one file, and the comments at its head."""

    path: Path
    head: list[str]
    stories: list[Story]

    @property
    def words(self) -> dict[str, str]:
        """The names that the head defines."""
        defined = (line[2:].partition(" ") for line in self.head if line.startswith("% "))
        return {name: text for name, _, text in defined}


def read_script(path: Path) -> Script:
    """Return the stories of a file."""
    script = Script(path, [], [])
    for number, line in enumerate(path.read_text().splitlines(), 1):
        try:
            _take(script, number, line)
        except (ValueError, IndexError) as trouble:
            raise TranscriptError(f"{path.name}:{number}: {trouble}: {line}") from None
    return script


def _take(script: Script, number: int, line: str) -> None:
    if line.startswith("== "):
        script.stories.append(Story(line[3:], number))
        return
    if not script.stories:
        script.head.append(line)
        return
    story = script.stories[-1]
    if not line or line.startswith("#"):
        story_lines = story.steps[-1] if story.steps else None
        if line and story_lines is None:
            story.remarks.append(line)
        elif line:
            raise ValueError("a remark stands before the first step of its story")
        return
    sign, _, rest = line.partition(" ")
    if sign == ">" and (not story.steps or _is_request(rest)):
        story.steps.append(Step(rest, number, written=[line]))
        return
    step = story.steps[-1]
    if sign == ">" and not step.body and (found := _HEADER.match(rest)):
        step.headers.append((found[1], found[2]))
        step.written.append(line)
    elif sign in (">", ">>"):
        step.raw |= sign == ">>"
        step.body.append(rest)
        step.written.append(line)
    elif sign.startswith("@"):
        step.kept.append((sign[1:], rest))
        step.written.append(line)
    elif sign == "?":
        step.view = rest
        step.written.append(line)
    elif sign == "<":
        step.answer.append(rest)
    elif sign == "~":
        step.because = rest
    elif sign == "~<":
        step.own_answer.append(rest)
    else:
        raise ValueError("a line of no known form")


_REQUEST = re.compile(
    r"(?:EVENTUALLY )?"
    r"(?:(?:GET|HEAD|OPTIONS|POST|PUT|PATCH(?:/\w+)?|DELETE|WATCH|OPEN|READ) \S"
    r"|(?:[A-Z]+=(?:'[^']*'|\S+) )*kubectl )"
)


def _is_request(rest: str) -> bool:
    return _REQUEST.match(rest) is not None


def write_script(script: Script) -> None:
    """Write a script back to its file, with its responses."""
    script.path.write_text("\n".join(_lines(script)) + "\n")


def _lines(script: Script) -> Iterator[str]:
    head = list(script.head)
    while head and not head[-1]:
        head.pop()
    yield from head
    for story in script.stories:
        yield ""
        yield f"== {story.title}"
        yield from story.remarks
        for step in story.steps:
            yield from step.written
            yield from (f"< {line}".rstrip() for line in step.answer)
            if step.because:
                yield f"~ {step.because}"
                yield from (f"~< {line}".rstrip() for line in step.own_answer)
