"""
Writes what the chart has from the source: values.yaml, its schema, the table of its README, rules, alerts, dashboard.

`python -m tools.chart` writes the files; a test compares them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import yaml
from msgspec import Meta, Struct

from lamina import __version__
from lamina.deploy import roles
from lamina.deploy.alerts import groups
from lamina.deploy.monitoring import dashboard_text
from lamina.deploy.values import Values
from lamina.families.registry import EVERY, FamilyOptions, chosen
from lamina.objects.types import Made

CHART = Path(__file__).parents[1] / "charts" / "lamina"
JOB = "@job@"
"""Stands for the value of the label `job` in files of the chart; its templates replace it."""
_BEGIN, _END = "<!-- values -->", "<!-- end of values -->"


def files() -> Mapping[str, str]:
    """Return the content of the written files, by their path in the chart."""
    readme = (CHART / "README.md").read_text()
    before, _, rest = readme.partition(_BEGIN)
    return {
        "Chart.yaml": versioned((CHART / "Chart.yaml").read_text(), __version__),
        "values.yaml": "\n".join(["# Written by `python -m tools.chart`.", *_yaml(Values())]) + "\n",
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "files/rules.yaml": _dumped(_rules()),
        "files/alerts.yaml": _dumped({"groups": groups(JOB)}),
        "files/dashboard.json": dashboard_text(JOB),
        "README.md": f"{before}{_BEGIN}\n\n{_table()}\n{_END}{rest.partition(_END)[2]}",
    }


def versioned(text: str, version: str) -> str:
    """Return a Chart.yaml with another version of the chart and of Lamina."""
    return re.sub(r"(?m)^(version|appVersion): .*$", rf"\1: {version}", text)


def _rules() -> Made:
    """Return the rules of each part of the chart's roles."""
    unscheduled = FamilyOptions(schedules=False, registers=False)
    every = chosen("all")
    parts = {
        "base": roles.base_rights(),
        "install": roles.install_rights(),
        **{family.name: family.rights(()) for family in every},
        "manifestworkWithoutScheduler": EVERY["manifestwork"](unscheduled).rights(()),
        **{f"{family.name}Upstream": roles.upstream_rights(family) for family in every},
        "manifestworkWithoutSchedulerUpstream": roles.upstream_rights(EVERY["manifestwork"](unscheduled)),
        **{f"{family.name}View": roles.view_rights(family) for family in every},
        **{f"{family.name}Edit": roles.edit_rights(family) for family in every},
        "webhook": roles.webhook_rights(every),
        "secret": roles.secret_rights(),
        "uninstall": roles.uninstall_rights(every),
    }
    return {name: rights.rules() for name, rights in parts.items()}


def _dumped(tree: Made) -> str:
    text = yaml.dump(tree, Dumper=_Dumper, sort_keys=False, width=1_000_000)
    return f"# Written by `python -m tools.chart`.\n{text}"


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _schema() -> Made:
    """Return the JSON schema of the values; Helm adds `global` where the chart is a part of another."""
    schema = msgspec.json.schema(Values)
    defined = schema["$defs"]["Values"]
    defined["properties"]["global"] = {"type": "object"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _fields(values: Struct) -> Iterator[tuple[str, Any, str]]:
    """Yield the name, the default and the description of each value, in order."""
    hints = get_type_hints(type(values), include_extras=True)
    for name, encoded in zip(values.__struct_fields__, values.__struct_encode_fields__, strict=True):
        found = (one.description for one in get_args(hints[name]) if isinstance(one, Meta))
        value = getattr(values, name)
        text = next((one for one in found if one), "") or (type(value).__doc__ or "").strip()
        yield encoded, value, text


def _yaml(values: Struct, indent: str = "") -> Iterator[str]:
    for name, value, text in _fields(values):
        yield f"{indent}# {text}"
        if isinstance(value, Struct):
            yield f"{indent}{name}:"
            yield from _yaml(value, f"{indent}  ")
        elif isinstance(value, dict) and value:
            yield f"{indent}{name}:"
            for line in yaml.safe_dump(value, sort_keys=False).splitlines():
                yield f"{indent}  {line}"
        else:
            yield f"{indent}{name}: {json.dumps(value)}"


def _table() -> str:
    rows = [f"| `{name}` | `{json.dumps(value)}` | {text} |" for name, value, text in _flat(Values())]
    return "\n".join(["| value | default | description |", "| --- | --- | --- |", *rows]) + "\n"


def _flat(values: Struct, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    for name, value, text in _fields(values):
        if isinstance(value, Struct):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value, text


if __name__ == "__main__":
    for name, content in files().items():
        (CHART / name).write_text(content)
