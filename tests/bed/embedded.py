"""Starts Lamina's own server as a user starts it."""

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.bed.kubeconfig import read_kubeconfig
from tests.bed.processes import start, until
from tests.bed.server import Server, Stopwatch, has_default_account, has_node
from tests.bed.trouble import BedError
from tests.bed.wire import Api


def lamina_command() -> Path:
    """Return the `lamina` command beside the Python that runs the tests."""
    command = Path(sys.executable).with_name("lamina")
    if not command.is_file():
        raise BedError(f"{command.name} is not installed beside {sys.executable}: `make up` installs it")
    return command


def embedded_server(*, history: str | None = None, data: Path | None = None, pods: bool = False) -> Server:
    """
    Start `lamina up` on a free port and return when it is ready.

    It is ephemeral unless `data` names a folder. `history` is how long old versions are
    kept. Without `pods` it is only an API server, without simulation. The kubeconfig is
    written when the server is ready.
    """
    folder = Path(tempfile.mkdtemp(prefix="lamina-embedded-"))
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        kubeconfig = folder / "kubeconfig"
        command: list[str | Path] = [lamina_command(), "up", "--port", "0", "--kubeconfig", kubeconfig]
        command += ["--data", data] if data else ["--ephemeral"]
        command += ["--history", history] if history else []
        command += [] if pods else ["--simulate", "off"]

        elapsed = Stopwatch()
        program = start("lamina", command, folder / "lamina.log")
        undo.callback(program.stop)
        until("the kubeconfig was written", kubeconfig.is_file, programs=[program], every=0.005)
        ready_after = elapsed()
        access = read_kubeconfig(kubeconfig)
        ca_file = folder / "ca.crt"
        ca_file.write_bytes(access.authority)
        api = Api(access.url, str(ca_file), access.token)
        until("there was a default service account", lambda: has_default_account(api), programs=[program])
        whole_after = elapsed()
        if pods:
            until("there was a node", lambda: has_node(api), programs=[program])

        undo.pop_all()
        return Server(
            name="embedded",
            url=access.url,
            kubeconfig=kubeconfig,
            ca_file=ca_file,
            token=access.token,
            programs=(program,),
            ready_after=ready_after,
            whole_after=whole_after,
            clean_up=lambda: shutil.rmtree(folder, ignore_errors=True),
        )
