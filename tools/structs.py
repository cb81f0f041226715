"""
Generates the table of Go structs for decoding bodies of built-in kinds: `python -m tools.structs`.

kube-apiserver decodes JSON into Go structs and encodes those again, so the struct
declarations decide which fields are kept, dropped, or added with a zero value. Each
line of the table is one type:

    apps/v1.DeploymentStrategy: type? DeploymentStrategyType; rollingUpdate? *RollingUpdateDeployment
    core/v1.PullPolicy = string

Types without a package are of the same package. The suffix of a field's name is `?`
where a zero is omitted (omitempty), `~` where a zero struct is too (omitzero), and
empty where it is always written. A name between `^` and a space is an embedded
struct, whose fields are the parent's. `=JSON` after a type is its `+default` marker.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from lamina.server.kinds.builtin.catalogue import CATALOGUE, PACKAGES
from tools import sources
from tools.golang import constants

TABLE: Final = Path(__file__).parents[1] / "src/lamina/server/kinds/builtin/data/structs.txt"

_PACKAGES: Final = {
    "k8s.io/apimachinery/pkg/apis/meta/v1": ("meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"),
    "k8s.io/apimachinery/pkg/api/resource": ("resource", "io.k8s.apimachinery.pkg.api.resource"),
    "k8s.io/apimachinery/pkg/runtime": ("runtime", "io.k8s.apimachinery.pkg.runtime"),
    "k8s.io/apimachinery/pkg/types": ("types", "io.k8s.apimachinery.pkg.types"),
    "k8s.io/apimachinery/pkg/util/intstr": ("intstr", "io.k8s.apimachinery.pkg.util.intstr"),
}
_PLAIN: Final = {"string", "bool", "int", "int32", "int64", "float64", "byte", "uint8"}
_OWN_FORM: Final = {
    "meta/v1.Time", "meta/v1.MicroTime", "meta/v1.Duration", "meta/v1.FieldsV1", "resource.Quantity",
    "runtime.RawExtension", "intstr.IntOrString", "apiextensions/v1.JSON",
    "apiextensions/v1.JSONSchemaPropsOrArray", "apiextensions/v1.JSONSchemaPropsOrBool",
    "apiextensions/v1.JSONSchemaPropsOrStringArray",
}  # fmt: skip
"""Types with their own JSON encoding; the decoder knows them by name."""

_EXTRA: Final = (
    "apiextensions/v1.JSONSchemaProps", "autoscaling/v1.HorizontalPodAutoscalerCondition",
    "autoscaling/v1.MetricSpec", "autoscaling/v1.MetricStatus",
    *(f"meta/v1.{verb}Options" for verb in ("Create", "Delete", "Patch", "Update")),
    "meta/v1.LabelSelector", "meta/v1.ObjectMeta", "meta/v1.Status",
)  # fmt: skip
"""Types that no kind refers to, or that are decoded on their own."""

_STRUCT = re.compile(r"^type (\w+) struct ?\{(?:\}|\n(.*?)^\})", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"^type (\w+) =? ?((?:\[\]|map\[\w+\])?[\w.]+)$", re.MULTILINE)
_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\*?[\w.\[\]*]+)[ \t]+`([^`]*)`")
_TAG = re.compile(r'json:"([^"]*)"')
_MARKER = re.compile(r"^\t// \+default=(.*)$")
_IMPORT = re.compile(r'^(?:\t|import )(?:(\w+) )?"(k8s\.io/[^"]+)"$', re.MULTILINE)
_WORD = re.compile(r"(?:(\w+)\.)?\b([A-Za-z]\w*)")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="lamina-structs-") as scratch:
        try:
            found = sources.fetch(Path(scratch))
        except sources.SourceMissing as problem:
            print(f"error: {problem}", file=sys.stderr)
            return 1
        lines = table(found)
    TABLE.write_text("".join(f"{line}\n" for line in lines))
    print(f"{len(lines)} types in {TABLE}")
    return 0


def table(found: sources.Sources) -> list[str]:
    """Return the lines of every served kind and of all that it refers to."""
    lines: dict[str, str] = {}
    waiting = [*_kinds(), *_EXTRA]
    while waiting:
        name = waiting.pop()
        if name in lines or name in _OWN_FORM:
            continue
        package, _, short = name.rpartition(".")
        known = _types(_folder(found, package), package)
        if short not in known:
            raise LookupError(f"no Go type {name}")
        lines[name], mentioned = known[short]
        waiting += mentioned
    return [lines[name] for name in sorted(lines)]


def _kinds() -> Iterator[str]:
    for resource in CATALOGUE:
        yield _key(resource.definition)
        for sub in resource.subresources:
            yield _key(f"{PACKAGES[sub.group, sub.version]}.{sub.kind}")


def _key(definition: str) -> str:
    """Return the table's name of a definition: apps/v1.Deployment for io.k8s.api.apps.v1.Deployment."""
    *_, group, version, kind = definition.split(".")
    return f"{group}/{version}.{kind}"


def _folder(found: sources.Sources, package: str) -> Path:
    for short, full in (*_PACKAGES.values(), *((_key(f"{full}.x")[:-2], full) for full in PACKAGES.values())):
        if short == package:
            return found.folder(full)
    raise LookupError(f"no package {package}")


@cache
def _types(folder: Path, package: str) -> dict[str, tuple[str, list[str]]]:
    """Return the types of a package: the line of each, and the types it refers to."""
    found: dict[str, tuple[str, list[str]]] = {}
    for path in sorted(folder.glob("*.go")):
        if path.name.startswith(("zz_generated", "generated.pb")) or path.name.endswith("_test.go"):
            continue
        source = path.read_text()
        imports = {alias or whole.rpartition("/")[2]: whole for alias, whole in _IMPORT.findall(source)}
        for name, body in _STRUCT.findall(source):
            mentioned: list[str] = []
            fields = "; ".join(_fields(body, folder, package, imports, mentioned))
            found[name] = f"{package}.{name}: {fields}", mentioned
        for name, underlying in _NAMED.findall(source):
            mentioned = []
            if (shown := _shown(underlying, package, imports, mentioned)) is not None:
                found[name] = f"{package}.{name} = {shown}", mentioned
    return found


def _fields(
    body: str, folder: Path, package: str, imports: dict[str, str], mentioned: list[str]
) -> Iterator[str]:
    default = ""
    for line in body.splitlines():
        if marker := _MARKER.match(line):
            text = marker[1].strip()
            default = f" ={json.dumps(constants(folder)[text[4:-1]]) if text.startswith('ref(') else text}"
        elif not line.startswith("\t//") and (field := _FIELD.match(line)):
            tag = _TAG.search(field[3])
            name, *options = tag[1].split(",") if tag else [""]
            if name == "-" or (shown := _shown(field[2], package, imports, mentioned)) is None:
                continue
            if not name:
                yield f"^{field[1] or field[2].lstrip('*').rpartition('.')[2]} {shown}"
            else:
                flag = "~" if "omitzero" in options else "?" if "omitempty" in options else ""
                yield f"{name}{flag} {shown}{default}"
            default = ""
        elif not line.startswith("\t//"):
            default = ""


def _shown(go_type: str, package: str, imports: dict[str, str], mentioned: list[str]) -> str | None:
    """Return a Go type as the table writes it; None for a type that is not part of the API."""

    def word(match: re.Match[str]) -> str:
        alias, name = match[1], match[2]
        if alias is None and (name in _PLAIN or name == "map"):
            return name
        home = _home(imports.get(alias, "")) if alias else package
        mentioned.append(f"{home}.{name}")
        return name if home == package else f"{home}.{name}"

    try:
        return _WORD.sub(word, go_type)
    except LookupError:
        return None


def _home(path: str) -> str:
    """Return the table's name of a Go package."""
    if path in _PACKAGES:
        return _PACKAGES[path][0]
    if not path.startswith("k8s.io/api/"):
        raise LookupError(path)
    return path.removeprefix("k8s.io/api/")


if __name__ == "__main__":
    sys.exit(main())
