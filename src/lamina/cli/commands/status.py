"""`lamina status`: says the state of an owner in one line, or lists the control planes on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from lamina.cli.options.cluster_flags import load_access, output_options
from lamina.cli.server_records import running_servers
from lamina.errors import SettingsError

EXIT_CODES = """\b
Exit codes with KIND/NAME:
  0    it is Healthy
  1    it is not, and its rollout has ended: aborting, aborted or stalled (its
       progress deadline is exceeded), its spec is invalid, it was deleted, or
       an error occurred
  124  it is not Healthy yet: the time of --timeout was up; without --wait
       there is no time
"""


@click.command(epilog=EXIT_CODES)
@click.argument("target", metavar="[KIND/NAME]", required=False)
@click.option("-n", "--namespace", metavar="NAME", help="Namespace of the owner. Default: default.")
@click.option("--wait", is_flag=True, help="Wait until the owner is Healthy or its rollout has ended.")
@click.option("--timeout", metavar="TIME", help="How long --wait waits (30s, 10m). Default: without end.")
@output_options
def status(
    target: str | None,
    namespace: str | None,
    wait: bool,
    timeout: str | None,
    output: str,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """
    Say the state of KIND/NAME in one line, for scripts.

    Without KIND/NAME, list your control planes that run on this machine.
    """
    if target is None:
        if wait or timeout is not None or namespace is not None:
            raise SettingsError(
                "-n, --wait and --timeout are about an owner", hint="name it: `lamina status KIND/NAME`"
            )
        _list_servers(output)
        return
    if timeout is not None and not wait:
        raise SettingsError(
            "--timeout limits --wait, which is not given", hint="add --wait, or omit --timeout"
        )
    from lamina.cli.owner_state import show_state

    access = load_access(kubeconfig, context)
    show_state(access, target, namespace or "default", wait=wait, timeout=timeout, output=output)


def _list_servers(output: str) -> None:
    running = running_servers()
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in running], indent=2))
        return
    if not running:
        click.echo("no server is running; start one with `lamina up`", err=True)
        return
    for one in running:
        click.echo(one.url)
        click.echo(f"  process     {one.pid}, since {one.started}")
        click.echo(f"  state       {one.storage}")
        click.echo(f"  kubeconfig  {one.kubeconfig}")
        if one.clusters:
            click.echo(f"  clusters    {len(one.clusters)} besides the first: {', '.join(one.clusters)}")
