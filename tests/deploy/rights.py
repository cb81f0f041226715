"""The rights in rules of roles, one by one, so that roles that are written differently can be compared."""

from collections.abc import Iterable

from lamina.objects.types import Made

Right = tuple[str, str, str, str]


def rights(rules: Iterable[Made]) -> set[Right]:
    """Return group, resource, verb and name of every right; the name is empty for all objects."""
    return {
        (group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    }


def of_kind(objects: Iterable[Made], *kinds: str) -> list[Made]:
    """Return the rules of the roles of these kinds."""
    return [rule for one in objects if one["kind"] in kinds for rule in one["rules"]]
