"""
The tables of states, printed from the rules that families decide by.

`python -m tests.docs.states` writes them into the page.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lamina.core.model.state import MEANINGS, State, StateRule
from lamina.core.phases import targets as objects
from lamina.families.manifestwork.hub import states as manifestwork
from lamina.families.metacontroller import owner_status as metacontroller
from lamina.families.objectset import owner_status as objectset
from lamina.families.resourcegraph import owner_status as resourcegraph

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "states.md"
BEGIN, END = "<!-- printed from the code -->", "<!-- end of what is printed -->"
Rules = Sequence[StateRule[Any]]
TABLES: Mapping[str, Rules] = {
    "ManifestWorkReplicaSet": manifestwork.OWNER_STATES,
    "A cluster of a ManifestWorkReplicaSet": manifestwork.TARGET_STATES,
    "A parent of a CompositeController": metacontroller.OWNER_STATES,
    "A child of a CompositeController": metacontroller.TARGET_STATES,
    "ObjectDeployment": objectset.OWNER_STATES,
    "An ObjectSet without an ObjectDeployment": objectset.SET_STATES,
    "An object of an ObjectDeployment or ObjectSet": objects.TARGET_STATES,
    "ResourceGraphDefinition": resourcegraph.DEFINITION_STATES,
    "An instance of a ResourceGraphDefinition": resourcegraph.INSTANCE_STATES,
}
_HEADS = (
    "replica set",
    "cluster",
    "parent",
    "child",
    "deployment",
    "set",
    "object",
    "definition",
    "instance",
)


def printed() -> str:
    """Return all tables, as the page has them."""
    lines = [f"| state | meaning | {' | '.join(_HEADS)} |", "|" + " --- |" * (2 + len(_HEADS))]
    for state in State:
        rows = [_numbers(rules, state) for rules in TABLES.values()]
        lines.append(f"| `{state}` | {MEANINGS[state]} | {' | '.join(rows)} |")
    for title, rules in TABLES.items():
        lines += ["", f"## {title}", "", *_table(rules)]
    return "\n".join(lines)


def _numbers(rules: Rules, state: State) -> str:
    """Return the rows that lead to a state."""
    return ", ".join(str(number) for number, rule in enumerate(rules, 1) if rule.state is state) or "–"


def _table(rules: Rules) -> Iterator[str]:
    yield "|  | conditions and fields | state |"
    yield "| --- | --- | --- |"
    for number, rule in enumerate(rules, 1):
        yield f"| {number} | {rule.upstream} | `{rule.state}`{', ended' if rule.ends else ''} |"


def main() -> None:
    page = PAGE.read_text()
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n{printed()}\n\n{END}{after}")


if __name__ == "__main__":
    main()
