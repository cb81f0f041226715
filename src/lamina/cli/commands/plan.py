"""`lamina plan`: previews what an apply of manifests would do to the targets of their owners."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from lamina.cli.commands.clock import now_at
from lamina.cli.dry_run_apply import Applied, ApplyFlags, dry_run_apply
from lamina.cli.manifests import Manifest, check_stdin_once, naming_source, read_manifests, with_namespace
from lamina.cli.options.apply_flags import FILE, manifest_options
from lamina.cli.options.cluster_flags import load_access, object_options, with_client
from lamina.cli.output.print_preview import AppliedPreview, preview_data, previews_text
from lamina.cli.output.rollout_status import planning_snapshot, warn_each
from lamina.cli.preview_edits import Previewer
from lamina.client.client import Client
from lamina.core.model.refused_reads import Refusals
from lamina.errors import LIST_KINDS, HookError, SettingsError, SpecError
from lamina.families.registry import chosen
from lamina.hooks.supervisor import Hooks
from lamina.logs import log
from lamina.objects import meta
from lamina.objects.types import Ref
from lamina.runtime.hooks.client import HookClient

_UNSERVED = f"apply its CustomResourceDefinition first: a dry run stores none; {LIST_KINDS}"


@click.command()
@manifest_options("to preview, as for kubectl apply")
@click.option(
    "--hooks",
    metavar="FILE",
    multiple=True,
    type=FILE,
    help="Python file with the hooks to call; repeatable.",
)
@click.option(
    "-o", "output", type=click.Choice(["text", "json", "yaml"]), default="text", help="Output format."
)
@object_options
def plan(
    files: tuple[Path, ...],
    more: tuple[Path, ...],
    server_side: bool,
    field_manager: str,
    force_conflicts: bool,
    hooks: tuple[Path, ...],
    output: str,
    namespace: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Preview what an apply of manifests would create, update and delete, step by step.

    The manifests in FILE, a folder, or - for standard input, are applied as dry
    runs, and the controllers of the families plan what would follow for each
    owner: its targets, in the order in which they would move if each becomes
    healthy. Nothing is written to the cluster.

    Hooks of CompositeControllers and DecoratorControllers are called with the
    edited objects: a hook must not have side effects.
    """
    check_stdin_once([*hooks, *files, *more])
    if not files and not more:
        raise SettingsError("expected manifests, got none", hint="name a file, a folder or - with -f")
    manifests = read_manifests([*files, *more])
    if not manifests:
        raise SettingsError("expected manifests, got files without objects")
    flags = ApplyFlags(server_side=server_side, manager=field_manager, force=force_conflicts)
    previews = with_client(
        load_access(kubeconfig, context), lambda client: _previews(client, manifests, namespace, flags, hooks)
    )
    if output == "text":
        click.echo(previews_text(previews))
        return
    data = [preview_data(one) for one in previews]
    if output == "json":
        click.echo(json.dumps(data, indent=2))
    else:
        click.echo(yaml.safe_dump(data, sort_keys=False), nl=False)


async def _previews(
    client: Client, manifests: Sequence[Manifest], namespace: str, flags: ApplyFlags, hooks: tuple[Path, ...]
) -> list[AppliedPreview]:
    kinds = await client.discover()
    applied: dict[Ref, tuple[Manifest, Applied]] = {}
    for manifest in manifests:
        with naming_source(manifest):
            obj = with_namespace(kinds, manifest.obj, namespace, hint=_UNSERVED)
            # Of several manifests of one object the last is what the cluster would have.
            applied[meta.ref(obj)] = manifest, await dry_run_apply(client, obj, flags)
    files = Hooks(hooks, log)
    await files.start()
    calls = HookClient(local=files.find if hooks else lambda url: None)
    edits, now = [one.obj for _, one in applied.values()], await now_at(client)
    places = {ref.namespace for ref in applied}
    # Where all namespaces may not be listed, objects of one namespace are planned from that one.
    snapshot = await planning_snapshot(client, places.pop() if len(places) == 1 else "")
    previewer = Previewer(client, snapshot, edits, calls, now)
    try:
        found = [await _preview(previewer, ref, manifest, one) for ref, (manifest, one) in applied.items()]
        warn_each(previewer.limits)
        return found
    finally:
        await files.close()
        await calls.close()


async def _preview(previewer: Previewer, owner: Ref, manifest: Manifest, applied: Applied) -> AppliedPreview:
    """Return an applied object with the preview of the family that rolls it out, if one does."""
    refused = Refusals()
    for family in chosen("all"):
        try:
            found = await previewer.preview(family, owner, refused)
        except (SpecError, HookError) as error:
            about = "" if str(owner) in str(error) else f"{owner}: "
            raise SettingsError(f"{manifest.source}: {about}{error}", hint=error.hint) from None
        if found is not None:
            return AppliedPreview(applied, found)
    return AppliedPreview(applied, unread=tuple(error.message for error in refused.values()))
