"""`kro`, and the shared commands about pins: what they print, write and wait for, on the embedded server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from lamina.cli.kro import main
from lamina.cli.main import cli
from lamina.core.model.queries import Answers
from lamina.errors import LaminaError
from lamina.families.objectset.crds import definitions as objectset_definitions
from lamina.families.resourcegraph.commands.generate import crd
from lamina.families.resourcegraph.crds import definitions
from lamina.families.resourcegraph.labels import PIN, ROLLBACK, ROLLBACK_INPUT
from lamina.objects import meta
from lamina.objects.kinds import Kinds
from lamina.objects.types import Made
from lamina.testing.cluster import Cluster
from lamina.testing.waiting import eventually

pytestmark = pytest.mark.check("RG-108")

GROUP = "apps.example.com"
RGD = {"apiVersion": "kro.run/v1alpha1", "kind": "ResourceGraphDefinition"}
APPLICATION = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Application"}


def content(replicas: int) -> Made:
    template = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "spec": {"replicas": replicas},
    }
    schema = {
        "kind": "Application",
        "apiVersion": "v1alpha1",
        "group": GROUP,
        "scope": "Namespaced",
        "spec": {"image": "string"},
        "shortNames": ["ap"],
    }
    return {"schema": schema, "resources": [{"id": "config", "template": template}]}


@dataclass
class Kro:
    """Runs `kro` against a cluster of this process."""

    cluster: Cluster
    kubeconfig: Path
    capsys: pytest.CaptureFixture[str]
    uids: dict[str, str] = field(default_factory=dict)

    async def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command, and return what it prints: to standard output, or to the other one if it fails."""
        flags = () if words[0] in ("validate", "generate") else ("--kubeconfig", str(self.kubeconfig))
        self.capsys.readouterr()
        found = await asyncio.to_thread(exit_code, main, [*words, *flags])
        out, err = self.capsys.readouterr()
        assert found == code, out + err
        return err if code else out

    async def given(self, obj: Made, **status: Any) -> Made:
        """Create an object with a status."""
        made = await self.cluster.client.create(obj)
        if status:
            made = await self.report(made, **status)
        self.uids[made["metadata"]["name"]] = meta.uid(made)
        return made

    async def report(self, obj: Made, **status: Any) -> Made:
        return await self.cluster.client.patch(meta.ref(obj), {"status": status}, subresource="status")

    async def definition(self, **status: Any) -> Made:
        return await self.given({**RGD, "metadata": {"name": "application"}, "spec": content(5)}, **status)

    async def revision(self, number: int, replicas: int, created: str = "", instances: int = 0) -> Made:
        metadata = {
            "name": f"application-rev-{number}",
            "labels": {"kro.run/rgd-name": "application"},
            "ownerReferences": [
                {**RGD, "name": "application", "uid": self.uids["application"], "controller": True}
            ],
        }
        obj = {**RGD, "kind": f"{RGD['kind']}Revision", "metadata": metadata}
        return await self.given(
            {**obj, "spec": {"revision": number, **content(replicas)}},
            createdAt=created or None,
            instanceCount=instances,
        )

    async def instance(self, name: str = "my-app", annotations: Made | None = None, **status: Any) -> Made:
        metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
        return await self.given({**APPLICATION, "metadata": metadata, "spec": {"image": "nginx"}}, **status)

    async def input_revision(self, number: int, rgd: int, created: str, *, superseded: bool) -> Made:
        owner = {**APPLICATION, "name": "my-app", "uid": self.uids["my-app"], "controller": True}
        metadata = {
            "name": f"my-app-input-rev-{number}",
            "namespace": "default",
            "labels": {"kro.run/instance-name": "my-app"},
            "ownerReferences": [owner],
        }
        spec = {"inputRevision": number, "rgdRevision": rgd, "instanceSpec": {"image": f"nginx:{number}"}}
        obj = {**RGD, "kind": "ResourceGraphInputRevision", "metadata": metadata, "spec": spec}
        return await self.given(obj, createdAt=created, superseded=superseded, propagationStatus="Completed")

    async def history(self) -> None:
        """Have the definition, the instance and the revisions of the examples."""
        await self.definition(currentRevision=3)
        await self.revision(1, 1, "2025-01-10T08:00:00Z")
        await self.revision(2, 3, "2025-01-14T09:00:00Z", 3)
        await self.revision(3, 5, "2025-01-15T10:30:00Z", 47)
        await self.instance(currentRGDRevision=3)
        await self.input_revision(10, 2, "2025-01-14T10:00:00Z", superseded=True)
        await self.input_revision(11, 3, "2025-01-15T09:00:00Z", superseded=True)
        await self.input_revision(12, 3, "2025-01-15T10:35:00Z", superseded=False)

    async def controller(
        self, obj: Made, annotation: str, *, spec: Made | None = None, **condition: Any
    ) -> None:
        """Answer one rollback as a controller does: remove the annotation, and report."""
        ref = meta.ref(obj)
        await eventually(
            lambda: self.cluster.get(ref), lambda found: annotation in meta.annotations(found), interval=0.05
        )
        changes = {"metadata": {"annotations": {annotation: None}}, **({"spec": spec} if spec else {})}
        changed = await self.cluster.client.patch(ref, changes)
        generation = meta.generation(changed)
        await self.report(
            changed, conditions=[{"type": "RollbackSucceeded", "observedGeneration": generation, **condition}]
        )


def exit_code(run: Callable[[list[str]], Any], arguments: list[str]) -> int:
    try:
        run(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest_asyncio.fixture
async def kro(capsys: pytest.CaptureFixture[str]) -> AsyncIterator[Kro]:
    async with Cluster(simulate="off") as cluster:
        generated = crd(
            {**RGD, "metadata": {"name": "application"}, "spec": {**content(1), "resources": []}},
            Kinds(),
            Answers(),
        )
        assert isinstance(generated, dict)
        for one in (*definitions(), *objectset_definitions(), generated):
            await cluster.given(one)
        yield Kro(cluster, await cluster.kubeconfig(), capsys)


@pytest.mark.parametrize(
    "words",
    [
        "rgd/application",
        "rgd application",
        "ResourceGraphDefinition/application",
        "resourcegraphdefinitions application",
    ],
)
async def test_the_revisions_of_a_definition_are_listed(kro: Kro, words: str) -> None:
    await kro.history()

    assert await kro("revisions", "list", *words.split()) == (
        "REVISION  CREATED              INSTANCES  STATUS\n"
        "3         2025-01-15 10:30:00  47         Current\n"
        "2         2025-01-14 09:00:00  3          Active\n"
        "1         2025-01-10 08:00:00  0          Prunable\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        "application/my-app",
        "application my-app",
        "applications/my-app",
        "Application/my-app",
        "ap/my-app",
        "instance application/my-app",
        "applications.apps.example.com/my-app",
    ],
)
async def test_the_input_revisions_of_an_instance_are_listed(kro: Kro, words: str) -> None:
    await kro.history()

    assert await kro("revisions", "list", *words.split(), "-n", "default") == (
        "INPUT-REV  RGD-REV  CREATED              STATUS\n"
        "12         3        2025-01-15 10:35:00  Completed\n"
        "11         3        2025-01-15 09:00:00  Superseded\n"
        "10         2        2025-01-14 10:00:00  Superseded\n"
    )


async def test_lists_are_printed_as_json_and_yaml(kro: Kro) -> None:
    await kro.history()
    await kro.instance("pinned", {PIN: "1"})

    rows = json.loads(await kro("revisions", "list", "rgd/application", "-o", "json"))

    assert rows[0] == {
        "revision": 3,
        "name": "application-rev-3",
        "created": "2025-01-15T10:30:00Z",
        "instances": 47,
        "status": "Current",
    }
    assert rows[2]["status"] == "Active"
    assert yaml.safe_load(await kro("revisions", "list", "rgd/application", "-o", "yaml")) == rows
    inputs = json.loads(await kro("revisions", "list", "ap/my-app", "-o", "json"))
    assert inputs[0]["rgdRevision"] == 3


async def test_the_difference_between_two_revisions_is_printed(kro: Kro) -> None:
    await kro.history()

    assert await kro("revisions", "diff", "rgd/application", "--from=2", "--to=3") == (
        "--- revision 2\n+++ revision 3\n@@ spec.resources.0.template.spec @@\n- replicas: 3\n+ replicas: 5\n"
    )
    assert await kro("revisions", "diff", "rgd/application", "--from=3", "--to=3") == (
        "--- revision 3\n+++ revision 3\n"
    )
    assert await kro("revisions", "diff", "application/my-app", "--from=11", "--to=12") == (
        "--- input revision 11 (RGD revision 3)\n"
        "+++ input revision 12 (RGD revision 3)\n"
        "@@ spec @@\n"
        "- image: nginx:11\n"
        "+ image: nginx:12\n"
    )


async def test_a_definition_is_rolled_back(kro: Kro) -> None:
    rgd = await kro.definition(currentRevision=3)
    await kro.revision(2, 3)
    await kro.revision(3, 5)
    for number in range(3):
        await kro.instance(f"app-{number}", {PIN: "3"} if number == 0 else {}, currentRGDRevision=3)
    answering = asyncio.create_task(
        kro.controller(
            rgd,
            ROLLBACK,
            spec=content(3),
            status="True",
            reason="RolledBack",
            message="Created revision 4 (content from revision 2)",
        )
    )

    assert await kro("rollback", "rgd/application", "--to-revision=2") == (
        "Rolling back to revision 2...\n"
        "Created revision 4 (content from revision 2)\n"
        "2 instances will reconcile to new revision\n"
    )
    await answering


async def test_a_rollback_to_a_revision_that_does_not_exist_fails_with_the_message_of_the_condition(
    kro: Kro,
) -> None:
    rgd = await kro.definition(currentRevision=3)
    message = "there is no revision 9; the available revisions are 1, 2, 3"
    answer: Made = {"status": "False", "reason": "RevisionNotFound", "message": message}
    for _ in range(2):
        # The second time the condition does not change.
        answering = asyncio.create_task(kro.controller(rgd, ROLLBACK, **answer))
        assert await kro("rollback", "rgd", "application", "--to-revision=9", code=1) == f"Error: {message}\n"
        await answering


async def test_an_instance_is_rolled_back(kro: Kro) -> None:
    await kro.history()
    app = await kro.cluster.get({**APPLICATION, "metadata": {"name": "my-app", "namespace": "default"}})
    answering = asyncio.create_task(
        kro.controller(
            app,
            ROLLBACK_INPUT,
            spec={"image": "nginx:10"},
            status="True",
            reason="RolledBack",
            message="done",
        )
    )

    assert await kro("rollback", "instance", "application/my-app", "--to-input-revision=10") == (
        "Rolling back to input revision 10...\nInstance will reconcile to RGD revision 2\n"
    )
    await answering


async def test_an_instance_is_pinned_and_unpinned(kro: Kro) -> None:
    await kro.definition(currentRevision=3)
    app = await kro.instance(currentRGDRevision=2)

    assert await kro("pin", "application/my-app", "--rgd-revision=2") == (
        "Instance pinned to RGD revision 2\nWill not receive updates from newer RGD revisions\n"
    )
    assert meta.annotations(await kro.cluster.get(app)) == {PIN: "2"}
    assert await kro("unpin", "application/my-app") == "Instance unpinned, will use latest RGD revision\n"
    assert meta.annotations(await kro.cluster.get(app)) == {}


async def test_a_pin_that_cannot_be_resolved_fails_with_the_message_of_the_condition(kro: Kro) -> None:
    await kro.definition(currentRevision=3)
    message = "RGD revision 9, which it is pinned to, does not exist; available: 3"
    wrong = {
        "type": "RevisionResolved",
        "status": "False",
        "reason": "PinnedRevisionNotFound",
        "message": message,
    }
    await kro.instance(annotations={PIN: "9"}, conditions=[wrong])

    failed = await kro("pin", "application/my-app", "--rgd-revision=9", code=1)

    assert failed.startswith(f"Error: {message}\n")
    assert "kro unpin application/my-app" in failed


async def test_what_is_not_reported_in_time_is_an_error(kro: Kro) -> None:
    rgd = await kro.definition(currentRevision=3)

    failed = await kro("rollback", "rgd/application", "--to-revision=2", "--wait=300ms", code=1)

    assert failed.startswith("Error: resourcegraphdefinition application: no result within 300ms\n")
    assert meta.annotations(await kro.cluster.get(rgd)) == {ROLLBACK: "2"}
    assert await kro("rollback", "rgd/application", "--to-revision=2", "--wait=0") == (
        "Rolling back to revision 2...\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("revisions list rgd/nothing", 'resourcegraphdefinitions.kro.run "nothing" not found'),
        ("revisions list application/nothing", 'applications.apps.example.com "nothing" not found'),
        ("revisions list nothing/x", "the server does not serve a kind 'nothing'"),
        ("revisions list configmap/x", "no ResourceGraphDefinition generates the kind ConfigMap"),
        ("revisions list rgd", "expected rgd/NAME or KIND/NAME, got 'rgd'"),
        ("revisions list a b c", "expected rgd/NAME or KIND/NAME, got 'a b c'"),
        ("revisions diff rgd/application --to 9", "rgd/application has no revision 9: the available revisions are none"),
        ("rollback rgd/application --to-input-revision 9", "rgd/application is rolled back with --to-revision N"),
        ("pin rgd/application --rgd-revision 2", "rgd/application has no pins: its instances have them"),
        ("pin rgd/application", "Missing option '--rgd-revision'."),
        ("nonsense", "No such command 'nonsense'."),
    ],
)  # fmt: skip
async def test_a_failure_is_one_line_and_the_exit_code_1(kro: Kro, words: str, message: str) -> None:
    await kro.definition()

    assert (await kro(*words.split(), code=1)).splitlines()[0] == f"Error: {message}"


async def test_an_object_without_revisions_has_an_empty_list(kro: Kro) -> None:
    await kro.definition()

    assert await kro("revisions", "list", "rgd/application") == ""
    assert json.loads(await kro("revisions", "list", "rgd/application", "-o", "json")) == []


# Files


def write(folder: Path, name: str, *objects: Made) -> str:
    file = folder / name
    file.write_text(yaml.safe_dump_all(objects))
    return str(file)


FILE: Made = {
    **RGD,
    "metadata": {"name": "application"},
    "spec": {
        **content(1),
        "resources": [
            {"id": "config", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}}
        ],
    },
}
PARENT: Made = {
    **RGD,
    "metadata": {"name": "parent"},
    "spec": {
        "schema": {"kind": "Parent", "apiVersion": "v1", "spec": {"image": "string"}},
        "resources": [
            {
                "id": "app",
                "template": {
                    **APPLICATION,
                    "metadata": {"name": "x"},
                    "spec": {"image": "${schema.spec.image}"},
                },
            }
        ],
    },
}


async def test_a_definition_in_a_file_is_validated_without_a_cluster(kro: Kro, tmp_path: Path) -> None:
    file = write(tmp_path, "rgd.yaml", FILE)

    assert await kro("validate", "rgd", "-f", file) == (
        "Validation successful! The ResourceGraphDefinition is valid.\n"
    )


async def test_a_definition_that_does_not_compile_is_refused(kro: Kro, tmp_path: Path) -> None:
    wrong = {
        **PARENT,
        "spec": {**PARENT["spec"], "schema": {"kind": "Parent", "apiVersion": "v1", "spec": {}}},
    }

    failed = await kro("validate", "rgd", "-f", write(tmp_path, "rgd.yaml", wrong), code=1)

    assert failed.startswith("Error: validation failed: ")


async def test_crds_of_resources_come_from_files_or_from_the_cluster(kro: Kro, tmp_path: Path) -> None:
    file, printed = write(tmp_path, "parent.yaml", PARENT), tmp_path / "crd.yaml"
    printed.write_text(await kro("generate", "crd", "-f", write(tmp_path, "rgd.yaml", FILE)))
    assert "&id" not in printed.read_text()

    await kro("validate", "rgd", "-f", file, code=1)
    await kro("validate", "rgd", "-f", file, "--crds", str(printed))
    await kro("validate", "rgd", "-f", file, "--from-cluster", "--kubeconfig", str(kro.kubeconfig))


async def test_an_instance_and_a_diagram_are_generated(kro: Kro, tmp_path: Path) -> None:
    file = write(tmp_path, "rgd.yaml", FILE)

    made = json.loads(await kro("generate", "instance", "-f", file, "-o", "json"))

    assert made["spec"] == {"image": "image"}
    assert await kro("generate", "diagram", "-f", file) == (
        '---\ntitle: "Resource Graph: application"\n---\nflowchart TD\n  n1["config (1)<br/>ConfigMap"]\n'
    )


async def test_a_file_without_a_definition_is_refused(kro: Kro, tmp_path: Path) -> None:
    file = write(tmp_path, "other.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})

    assert await kro("generate", "crd", "-f", file, code=1) == (
        f"Error: {file}: the file has no ResourceGraphDefinition\n"
    )


# The shared words


@pytest.mark.parametrize("words", [("pin", "--to-revision", "2"), ("unpin",)])
async def test_an_owner_of_another_family_has_no_pins(kro: Kro, words: tuple[str, ...]) -> None:
    deployment = {
        "apiVersion": "package-operator.run/v1alpha1",
        "kind": "ObjectDeployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"phases": [], "availabilityProbes": []},
            },
        },
    }
    await kro.cluster.given(deployment)
    command = [words[0], "objectdeployment/web", *words[1:], "--kubeconfig", str(kro.kubeconfig)]

    with pytest.raises(
        LaminaError, match="^objectdeployment default/web has no pins: in the family objectset"
    ):
        await asyncio.to_thread(cli.main, command, standalone_mode=False)
