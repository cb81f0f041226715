"""
Asks cel-go and Kubernetes about expressions and writes down what they say.

    python -m tests.unit.cel.golden.record

Builds and runs `oracle`, a small Go program with the versions Kubernetes 1.35 is
made of. What is recorded: the type of an expression or the complaints about it,
its estimated cost, the same for rules of a CRD, and what such rules make of an
object and cost in doing so.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.unit.cel.questions import (
    CHECKS,
    EVALUATED,
    RULES,
    SCHEMA,
    SYNTAX,
    VARIABLES,
    VERDICTS,
    broken,
    lines,
)

_ORACLE = Path(__file__).with_name("oracle")
_SELF = re.compile(r"selfType\d+")


def ask(questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return the oracle's answers, in order."""
    asked = "\n".join(json.dumps(question) for question in questions)
    command = ["go", "run", "-mod=mod", "."]
    answered = subprocess.run(command, cwd=_ORACLE, input=asked, text=True, capture_output=True, check=True)
    return (json.loads(line) for line in answered.stdout.splitlines())


def record(path: Path, questions: list[dict[str, Any]], kept: tuple[str, ...]) -> None:
    """Write down what a question was and how it was answered."""
    with path.open("w") as file:
        for question, answer in zip(questions, ask(questions), strict=True):
            if "error" in answer:
                answer["error"] = _SELF.sub("self", answer["error"])
            told = {name: question[name] for name in kept if question.get(name)} | answer
            file.write(json.dumps(told, ensure_ascii=False) + "\n")


def main() -> None:
    variables = {name: str(type_) for name, type_ in VARIABLES.items()}
    checks = [
        {"environment": environment, "expression": expression, "variables": variables}
        for environment in ("plain", "kubernetes")
        for expression in lines("checks.txt")
    ]
    record(CHECKS, checks, ("environment", "expression"))
    rules = [
        {"expression": expression, "schema": SCHEMA, "resource": "self.metadata" in expression}
        for expression in lines("rules.txt")
    ]
    record(RULES, rules, ("expression", "resource"))
    verdicts = [{"expression": expression, **EVALUATED} for expression in lines("verdicts.txt")]
    record(VERDICTS, verdicts, ("expression",))
    syntax = [
        {"environment": "plain", "expression": expression, "parseOnly": True}
        for expression in (*lines("syntax.txt"), *broken(400))
    ]
    record(SYNTAX, syntax, ("expression",))


if __name__ == "__main__":
    main()
