"""`lamina backup`: writes a consistent copy of the running server's state to a file."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import click

from lamina.cli.options.cluster_flags import server_options
from lamina.cli.server_records import find_server
from lamina.client.kubeconfig.read import read_kubeconfig
from lamina.errors import SettingsError, from_status
from lamina.tls import client_context

_CHUNK = 1 << 20


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@server_options
def backup(file: Path, data: Path | None, port: int) -> None:
    """
    Back up the running server's state to FILE.

    The backup is a consistent snapshot; the server keeps serving. Restore it with
    `lamina restore`.
    """
    server = find_server(data, port)
    access = read_kubeconfig(Path(server.kubeconfig), "lamina")
    context = client_context(access.authority.decode())
    address = urlsplit(access.server)
    connection = http.client.HTTPSConnection(
        address.hostname or "", address.port, context=context, timeout=60
    )
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        connection.request("POST", "/lamina/backup", headers={"Authorization": f"Bearer {access.token}"})
        response = connection.getresponse()
        if response.status != 200:
            raise from_status(json.loads(response.read() or b"{}"), response.status)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as target:
            while chunk := response.read(_CHUNK):
                target.write(chunk)
            target.flush()
            os.fsync(target.fileno())
        fresh.replace(file)
    except (OSError, http.client.HTTPException) as error:
        raise SettingsError(f"cannot back up {server.url} to {file}: {error}") from None
    finally:
        connection.close()
        fresh.unlink(missing_ok=True)
    click.echo(f"backed up {server.url} to {file}", err=True)
