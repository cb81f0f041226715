"""`lamina status`: lists the control planes of this user that run on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from lamina.cli.server_records import running_servers


@click.command()
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def status(output: str) -> None:
    """List your control planes that run on this machine."""
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
