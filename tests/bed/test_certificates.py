"""Certificates that a TLS client accepts, and private kubeconfigs."""

import socket
import ssl
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.bed.certificates import Authority
from tests.bed.kubeconfig import read_kubeconfig, write_kubeconfig


def test_server_and_client_know_each_other_by_their_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    serving, user = authority.server("server"), authority.client("admin", "system:masters")
    inside = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    inside.load_cert_chain(serving.certificate, serving.key)
    inside.verify_mode = ssl.CERT_REQUIRED
    outside = ssl.create_default_context(cafile=str(authority.certificate))
    outside.load_cert_chain(user.certificate, user.key)

    def serve(listener: socket.socket) -> object:
        with inside.wrap_socket(listener.accept()[0], server_side=True) as accepted:
            accepted.sendall(b"x")
            return (accepted.getpeercert() or {}).get("subject")

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as thread:
        served = thread.submit(serve, listener)
        with (
            socket.create_connection(listener.getsockname()) as plain,
            outside.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            assert secure.recv(1) == b"x"
        subject = served.result()

    assert subject == ((("organizationName", "system:masters"),), (("commonName", "admin"),))


def test_a_kubeconfig_is_private_and_says_what_was_written(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    path = tmp_path / "kubeconfig"

    write_kubeconfig(
        path,
        url="https://127.0.0.1:1",
        authority=authority.certificate,
        pair=authority.client("admin"),
        token="secret",
    )
    access = read_kubeconfig(path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (access.url, access.token) == ("https://127.0.0.1:1", "secret")
    assert access.authority == authority.certificate.read_bytes()
