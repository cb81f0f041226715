"""
A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager.

It is a cluster without nodes: TLS, RBAC, service account tokens, default admission, and a
durable store. There are no kubelets, so the node lifecycle controller is off: it would
taint every Node without a kubelet.
"""

import secrets
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bed import machines
from tests.bed.build import APISERVER, CONTROLLER_MANAGER, ETCD_SERVER, built
from tests.bed.certificates import Authority, KeyPair, signing_key
from tests.bed.kubeconfig import write_kubeconfig
from tests.bed.processes import Program, free_ports, start, until
from tests.bed.server import Server, Stopwatch, has_default_account, has_node, is_ready
from tests.bed.trouble import BedError
from tests.bed.wire import Api

ATTEMPTS = 3


def real_server(*, compaction: str = "5m", pods: bool = False) -> Server:
    """
    Start a real control plane with an empty store and return when it is ready.

    `compaction` is the interval of compaction. With `pods`, our nodes, scheduler and
    stages run against it, so that pods run. Ports are chosen before they are bound; if
    another process binds one in between, other ports are tried.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _started(compaction, pods)
        except BedError as trouble:
            if attempt == ATTEMPTS or "address already in use" not in str(trouble):
                raise
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    """The files that a control plane reads at its start."""

    authority: Path
    authority_key: Path
    serving: KeyPair
    admin: KeyPair
    manager: KeyPair
    signing: Path
    tokens: Path
    token: str


def _started(compaction: str, pods: bool) -> Server:
    commands = {one.name: built(one) for one in (ETCD_SERVER, APISERVER, CONTROLLER_MANAGER)}
    folder = Path(tempfile.mkdtemp(prefix="lamina-real-"))
    with ExitStack() as undo:
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        files = _written(folder)
        client_port, peer_port, port = free_ports(3)
        url = f"https://127.0.0.1:{port}"
        kubeconfig, manager_config = folder / "kubeconfig", folder / "manager.kubeconfig"
        write_kubeconfig(kubeconfig, url=url, authority=files.authority, pair=files.admin, token=files.token)
        write_kubeconfig(manager_config, url=url, authority=files.authority, pair=files.manager)
        api = Api(url, str(files.authority), files.token)

        elapsed = Stopwatch()
        running: list[Program] = []

        def run(name: str, arguments: list[str]) -> None:
            program = start(name, [commands[name], *arguments], folder / f"{name}.log")
            running.append(program)
            undo.callback(program.stop)

        run("etcd", _etcd(folder, client_port, peer_port))
        run("kube-apiserver", _apiserver(files, client_port, port, compaction))
        until("the API server was ready", lambda: is_ready(api), programs=running)
        ready_after = elapsed()
        run("kube-controller-manager", _manager(files, manager_config))
        until("there was a default service account", lambda: has_default_account(api), programs=running)
        whole_after = elapsed()
        if pods:
            program = start("machines", machines.command(kubeconfig), folder / "machines.log")
            running.append(program)
            undo.callback(program.stop)
            until("there was a node", lambda: has_node(api), programs=running)

        undo.pop_all()
        return Server(
            name="real",
            url=url,
            kubeconfig=kubeconfig,
            ca_file=files.authority,
            token=files.token,
            programs=tuple(running),
            ready_after=ready_after,
            whole_after=whole_after,
            clean_up=lambda: shutil.rmtree(folder, ignore_errors=True),
        )


def _written(folder: Path) -> _Files:
    authority = Authority(folder)
    token = secrets.token_urlsafe(32)
    tokens = folder / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    return _Files(
        authority=authority.certificate,
        authority_key=authority.key,
        serving=authority.server(
            "kube-apiserver", "kubernetes", "kubernetes.default", "kubernetes.default.svc"
        ),
        admin=authority.client("admin", "system:masters"),
        manager=authority.client("system:kube-controller-manager"),
        signing=signing_key(folder, "service-accounts"),
        tokens=tokens,
        token=token,
    )


def _etcd(folder: Path, client_port: int, peer_port: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]


def _apiserver(files: _Files, etcd_port: int, port: int, compaction: str) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        f"--etcd-compaction-interval={compaction}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        # A loopback address is no valid endpoint, so the default reconciler would log errors.
        "--endpoint-reconciler-type=none",
        f"--secure-port={port}",
        f"--tls-cert-file={files.serving.certificate}",
        f"--tls-private-key-file={files.serving.key}",
        f"--client-ca-file={files.authority}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.signing}",
        f"--service-account-signing-key-file={files.signing}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
    ]


def _manager(files: _Files, kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--root-ca-file={files.authority}",
        f"--service-account-private-key-file={files.signing}",
        f"--cluster-signing-cert-file={files.authority}",
        f"--cluster-signing-key-file={files.authority_key}",
        "--use-service-account-credentials=true",
        "--controllers=*,-node-lifecycle-controller",
        "--leader-elect=false",
        "--secure-port=0",
    ]
