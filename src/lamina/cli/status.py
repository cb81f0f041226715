"""`lamina status`: what runs where."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from lamina.cli.running import servers


@click.command()
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", help="How to print it.")
def status(output: str) -> None:
    """Say which control planes of yours run on this machine, and where."""
    running = servers()
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in running], indent=2))
        return
    if not running:
        click.echo("no server is running; start one with `lamina up`", err=True)
        return
    for one in running:
        click.echo(one.url)
        click.echo(f"  process     {one.pid}, since {one.started}")
        click.echo(f"  state       {one.place}")
        click.echo(f"  kubeconfig  {one.kubeconfig}")
        if one.clusters:
            click.echo(f"  clusters    {len(one.clusters)} beside the first: {', '.join(one.clusters)}")
