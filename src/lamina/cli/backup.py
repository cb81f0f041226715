"""`lamina backup`: save the running server's state to a file."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from lamina.cli.reaching import server_options
from lamina.cli.running import choose
from lamina.client.kubeconfig import read_kubeconfig
from lamina.errors import SettingsError, from_status
from lamina.trust import trusting

_CHUNK = 1 << 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@server_options
def backup(file: Path, data: Path | None, port: int) -> None:
    """
    Save the running server's state to FILE, while it goes on.

    The copy is of one moment. Make a data folder of it with `lamina restore`.
    """
    server = choose(data, port)
    access = read_kubeconfig(Path(server.kubeconfig), "lamina")
    context = trusting(access.authority.decode())
    place = urlsplit(access.server)
    connection = http.client.HTTPSConnection(place.hostname or "", place.port, context=context, timeout=60)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        connection.request("POST", "/lamina/backup", headers={"Authorization": f"Bearer {access.token}"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise from_status(json.loads(answer.read() or b"{}"), answer.status)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            while chunk := answer.read(_CHUNK):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        fresh.replace(file)
    except (OSError, http.client.HTTPException) as error:
        raise SettingsError(f"cannot save the state of {server.url} to {file}: {error}") from None
    finally:
        connection.close()
        fresh.unlink(missing_ok=True)
    click.echo(f"saved {server.url} to {file}", err=True)
