"""The commands of this family, as a value for the command line."""

from __future__ import annotations

from lamina.core.model.queries import Answers
from lamina.core.model.revision_commands import AnnotationEdit, Queries, RevisionCommands, Table, Targets
from lamina.families.resourcegraph.commands import differences, generate, requests, rows
from lamina.families.resourcegraph.commands.facts import Facts, gather, is_definition, targets
from lamina.objects.types import Ref


def commands() -> RevisionCommands:
    """Return the commands of kro's command line."""
    return RevisionCommands(
        name="kro",
        targets=targets,
        revisions=_revisions,
        differences=_differences,
        rollback=_rollback,
        pin=_pin,
        is_definition=is_definition,
        generate={"crd": generate.crd, "instance": generate.instance, "diagram": generate.diagram},
    )


def _revisions(found: Targets, ref: Ref, answers: Answers) -> Table | Queries:
    # Pins are annotations.
    facts = gather(found, ref, answers, instances=False)
    return rows.table(facts) if isinstance(facts, Facts) else facts


def _differences(
    found: Targets, ref: Ref, older: int | None, newer: int | None, answers: Answers
) -> str | Queries:
    facts = gather(found, ref, answers)
    return differences.differences(facts, older, newer) if isinstance(facts, Facts) else facts


def _rollback(
    found: Targets, ref: Ref, to: int | None, to_input: int | None, answers: Answers
) -> AnnotationEdit | Queries:
    facts = gather(found, ref, answers, instances=True)
    return requests.rollback(facts, to, to_input) if isinstance(facts, Facts) else facts


def _pin(found: Targets, ref: Ref, revision: int | None, answers: Answers) -> AnnotationEdit | Queries:
    facts = gather(found, ref, answers, revisions=False)
    return requests.pin(facts, revision) if isinstance(facts, Facts) else facts
