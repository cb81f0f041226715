"""
The speed of CEL expressions, compared with three other implementations: `python -m bench.cel`.

Every implementation gets the same expression and the same plain dicts, which it
converts each time. The processor time is compared, the least of several rounds;
rounds of the implementations alternate.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cel as rust
import celpy
import celpy.adapter
from cel_expr_python import cel as cpp

from lamina.cel.declarations import Variable
from lamina.cel.environment import PLAIN
from lamina.cel.program import compile_expression
from lamina.cel.types import DYN

Run = Callable[[], Any]

CONTAINERS = [
    {
        "name": f"c{number}",
        "image": f"registry.example.com/team/app{number}:v1.{number}",
        "ports": [{"containerPort": 8080 + number, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "128Mi"},
        },
        "env": [{"name": f"KEY_{key}", "value": f"value-{key}"} for key in range(8)],
    }
    for number in range(4)
]
CONDITIONS = [
    {
        "type": kind,
        "status": "True",
        "reason": "Fine",
        "message": "as it should be",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for kind in ("Progressing", "ReplicaFailure", "Available")
]
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "labels": {f"label-{n}": f"value-{n}" for n in range(6)},
    },
    "spec": {"replicas": 3, "template": {"spec": {"containers": CONTAINERS}}},
    "status": {"replicas": 3, "readyReplicas": 3, "observedGeneration": 4, "conditions": CONDITIONS},
}
VARIABLES: dict[str, Any] = {
    "schema": {"spec": {"name": "web", "replicas": 5, "ports": [80, 443, 8080], "tier": "gold"}},
    "deployment": DEPLOYMENT,
}

EXPRESSIONS = {
    "E1": "schema.spec.replicas > 3 ? schema.spec.name + '-big' : 'small'",
    "E2": "deployment.status.conditions.exists(c, c.type == 'Available' && c.status == 'True')",
    "field": "deployment.spec.replicas",
    "equality": "deployment.status.readyReplicas == deployment.spec.replicas",
    "has": "has(deployment.status) && has(deployment.status.readyReplicas)",
    "membership": "schema.spec.tier in ['bronze', 'silver', 'gold']",
    "arithmetic": "(schema.spec.replicas * 2 + 1) % 7 < 10 && schema.spec.replicas - 1 >= 0",
    "strings": "schema.spec.name.startsWith('w') && !schema.spec.name.contains('x') && size(schema.spec.name) <= 63",
    "matches": "schema.spec.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "all": "deployment.spec.template.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "nested": "deployment.spec.template.spec.containers.all(c, c.env.exists(e, e.name == 'KEY_7'))",
    "map": "deployment.spec.template.spec.containers.map(c, c.name)",
}


def ours(text: str) -> Run:
    program = compile_expression(text, ENVIRONMENT)
    return lambda: program.evaluate(VARIABLES)


def with_cpp(text: str) -> Run:
    program = CPP.compile(text)
    return lambda: program.eval(data=VARIABLES)


def with_rust(text: str) -> Run:
    program = rust.compile(text)
    return lambda: program.execute(VARIABLES)


def with_celpy(text: str) -> Run:
    environment = celpy.Environment()
    program = environment.program(environment.compile(text))
    convert: Callable[[Any], Any] = celpy.adapter.json_to_cel
    return lambda: program.evaluate(convert(VARIABLES))


ENVIRONMENT = PLAIN.extend(variables=[Variable(name, DYN) for name in VARIABLES])
CPP = cpp.NewEnv(variables=dict.fromkeys(VARIABLES, cpp.Type.DYN))
CANDIDATES: dict[str, Callable[[str], Run]] = {
    "lamina": ours,
    "cel-expr-python": with_cpp,
    "common-expression-language": with_rust,
    "cel-python": with_celpy,
}
OTHERS = [name for name in CANDIDATES if name != "lamina"]
CHECKS_TOO = "cel-expr-python"


def microseconds(work: Run, seconds: float) -> float:
    """Return the time of one call, measured over as many calls as fit into a duration."""
    count = 1
    while True:
        started = time.process_time()
        for _ in range(count):
            work()
        spent = time.process_time() - started
        if spent >= seconds:
            return spent / count * 1e6
        count = max(count * 2, int(count * seconds / max(spent, 1e-6)))


def measured(rounds: int, seconds: float) -> dict[str, dict[str, dict[str, float]]]:
    """Return the microseconds by operation, expression and implementation."""
    found: dict[str, dict[str, dict[str, float]]] = {"evaluate": {}, "compile": {}}
    for name, text in EXPRESSIONS.items():
        runs = {candidate: make(text) for candidate, make in CANDIDATES.items()}
        for what, works in (
            ("evaluate", runs),
            ("compile", {candidate: _compiling(make, text) for candidate, make in CANDIDATES.items()}),
        ):
            least = dict.fromkeys(CANDIDATES, float("inf"))
            for _ in range(rounds):
                for candidate, work in works.items():
                    least[candidate] = min(least[candidate], microseconds(work, seconds))
            found[what][name] = least
    return found


def _compiling(make: Callable[[str], Run], text: str) -> Run:
    return lambda: make(text)


def table(figures: dict[str, dict[str, float]], compare: Callable[[dict[str, float]], str]) -> str:
    """Return the figures of one operation, with a comparison with the best of the others."""
    lines = [f"{'us':12}" + "".join(f"{name:>28}" for name in CANDIDATES) + f"{'':>12}"]
    for expression, row in figures.items():
        lines.append(
            f"{expression:12}" + "".join(f"{row[name]:>28.2f}" for name in CANDIDATES) + f"  {compare(row)}"
        )
    return "\n".join(lines)


def faster(row: dict[str, float]) -> str:
    """Return the factor by which Lamina is faster than the fastest of the others."""
    return f"{min(row[name] for name in OTHERS) / row['lamina']:.1f}x as fast"


def slower(row: dict[str, float]) -> str:
    """Return the factors by which Lamina is slower than the fastest, and than the other one that checks types."""
    fastest = min(row[name] for name in OTHERS)
    return f"{row['lamina'] / fastest:.1f}x the fastest, {row['lamina'] / row[CHECKS_TOO]:.1f}x {CHECKS_TOO}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.cel", description="CEL expressions, compared with other implementations."
    )
    parser.add_argument(
        "--rounds", type=int, default=12, metavar="N", help="rounds for each implementation (default: 12)"
    )
    parser.add_argument(
        "--seconds", type=float, default=0.01, metavar="S", help="duration of each round (default: 0.01)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to this file")
    asked = parser.parse_args(arguments)
    figures = measured(asked.rounds, asked.seconds)
    print("evaluate, with plain dicts (aim: 10 times as fast as the fastest of the others)")
    print(table(figures["evaluate"], faster))
    print("\ncompile (aim: at most twice the fastest of the others)")
    print(table(figures["compile"], slower))
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
