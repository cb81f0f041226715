"""Credentials of a program, and client certificates that change, as client-go uses them."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from ssl import CERT_REQUIRED, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import pytest

from lamina.client.kubeconfig import exec_plugin
from lamina.client.kubeconfig.exec_plugin import ExecPlugin
from lamina.client.kubeconfig.read import Access
from lamina.client.transport.http import HttpTransport
from lamina.errors import Unauthorized, Unreachable
from lamina.server.tls.certificates import Certificates, ensure_certificates
from tests.client.test_http_transport import BOTH, OK, REFUSED, responding, transport

V1 = "client.authentication.k8s.io/v1"
PROGRAM = """
import json, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
runs = folder / "runs"
told = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
with runs.open("a") as file:
    print(json.dumps({"told": told, "mode": os.environ.get("MODE"), "input": sys.stdin.read()}), file=file)
printed = (folder / "printed").read_text()
count = len(runs.read_text().splitlines())
print(printed.replace("COUNT", str(count)))
sys.exit(int((folder / "code").read_text()) if (folder / "code").exists() else 0)
"""


class Program:
    """A program that prints what a test says, and notes how it was run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._script = folder / "program.py"
        self._script.write_text(PROGRAM)
        self.prints({"token": "token-COUNT"})

    def prints(self, status: Any, **fields: Any) -> None:
        printed = {"kind": "ExecCredential", "apiVersion": V1, "status": status, **fields}
        self.prints_text(json.dumps(printed))

    def prints_text(self, text: str) -> None:
        (self._folder / "printed").write_text(text)

    def fails(self, code: int) -> None:
        (self._folder / "code").write_text(str(code))

    @property
    def runs(self) -> list[Any]:
        noted = self._folder / "runs"
        return [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []

    def plugin(self, **fields: Any) -> ExecPlugin:
        arguments = (str(self._script), str(self._folder))
        return ExecPlugin(command=sys.executable, args=arguments, api_version=V1, **fields)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def tokens(heads: Sequence[bytes]) -> list[str]:
    """Return the bearer tokens of requests; empty for none."""
    lines = [line for head in heads for line in head.decode().split("\r\n")]
    return [line.partition("Bearer ")[2] for line in lines if line.lower().startswith("authorization:")]


async def test_a_program_is_run_once_and_its_token_is_sent_with_reads_and_writes(program: Program) -> None:
    async with (
        responding(OK, OK, OK) as (url, heads),
        transport(Access(server=url, exec=program.plugin(env=(("MODE", "x"),)))) as http,
    ):
        await asyncio.gather(*(http.request(method, "/x", headers={}) for method in ("GET", "GET", "POST")))

    assert tokens(heads) == ["token-1"] * 3
    (run,) = program.runs
    assert run == {
        "told": {"kind": "ExecCredential", "apiVersion": V1, "spec": {"interactive": False}},
        "mode": "x",
        "input": "",
    }


async def test_a_program_is_told_of_the_cluster_where_it_asks(program: Program) -> None:
    cluster = {"server": "https://a", "config": {"audience": "b"}}
    async with (
        responding(OK) as (url, _),
        transport(Access(server=url, exec=program.plugin(cluster=cluster))) as http,
    ):
        await http.request("GET", "/x", headers={})

    assert program.runs[0]["told"]["spec"] == {"interactive": False, "cluster": cluster}


@BOTH
async def test_a_token_of_a_program_is_dropped_after_401(program: Program, method: str) -> None:
    async with (
        responding(OK, REFUSED, OK, OK) as (url, heads),
        transport(Access(server=url, exec=program.plugin())) as http,
    ):
        for code in (200, 401, 200, 200):
            with pytest.raises(Unauthorized) if code == 401 else nullcontext():
                await (await http.request(method, "/x", headers={})).read()

    assert tokens(heads) == ["token-1", "token-1", "token-2", "token-2"]


@pytest.mark.parametrize(("minutes", "runs"), [(60, 1), (-1, 2)])
async def test_a_token_of_a_program_is_used_until_it_expires(
    program: Program, minutes: int, runs: int
) -> None:
    expires = datetime.now(UTC) + timedelta(minutes=minutes)
    program.prints({"token": "token-COUNT", "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ")})
    async with (
        responding(OK, OK) as (url, heads),
        transport(Access(server=url, exec=program.plugin())) as http,
    ):
        for _ in range(2):
            await (await http.request("GET", "/x", headers={})).read()

    assert len(program.runs) == runs
    assert tokens(heads)[-1] == f"token-{runs}"


@pytest.mark.parametrize("own", [{"token": "own"}, {"username": "me", "password": "x"}])
async def test_a_program_is_not_run_where_there_is_a_token_or_a_password(
    program: Program, own: dict[str, str]
) -> None:
    async with (
        responding(OK) as (url, _),
        transport(Access(server=url, exec=program.plugin(), **own)) as http,  # type: ignore[arg-type] # texts
    ):
        await http.request("GET", "/x", headers={})

    assert program.runs == []


PRINTED: dict[str, tuple[str, str]] = {
    "no JSON": ("secret", "printed no JSON"),
    "another kind": ('{"kind": "Secret"}', "printed no ExecCredential"),
    "another version": (
        '{"kind": "ExecCredential", "apiVersion": "v2"}',
        f"printed apiVersion v2, where {V1} was expected",
    ),
    "no status": (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "without a status"),
    "nothing": (
        f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{}}}}',
        "printed neither a token nor a client certificate",
    ),
    "half a pair": (
        f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"clientKeyData": "k"}}}}',
        "a key without a certificate",
    ),
    "no time": (
        f'{{"kind": "ExecCredential", "apiVersion": "{V1}", "status": {{"token": "t", "expirationTimestamp": "soon"}}}}',
        "an invalid expirationTimestamp",
    ),
}


@pytest.mark.parametrize(("printed", "problem"), PRINTED.values(), ids=PRINTED)
async def test_what_is_wrong_with_the_credentials_of_a_program_is_named_and_they_are_not(
    program: Program, printed: str, problem: str
) -> None:
    program.prints_text(printed)
    access = Access(server="http://127.0.0.1:1", exec=program.plugin(install_hint="get it at example.com"))
    async with transport(access) as http:
        with pytest.raises(Unreachable) as refused:
            await http.request("GET", "/x", headers={})

    said = str(refused.value)
    assert said.startswith("GET http://127.0.0.1:1/x: getting credentials: ")
    assert problem in said
    assert "secret" not in said
    assert refused.value.hint == "get it at example.com"


async def test_a_program_that_fails_or_is_missing_is_named_and_tried_again(program: Program) -> None:
    program.fails(3)
    missing = ExecPlugin(command="/nowhere/login", api_version=V1)
    async with transport(Access(server="http://127.0.0.1:1", exec=missing)) as http:
        with pytest.raises(Unreachable, match="login cannot be run: No such file"):
            await http.request("GET", "/x", headers={})
    async with responding(OK) as (url, _), transport(Access(server=url, exec=program.plugin())) as http:
        with pytest.raises(Unreachable, match="failed with exit code 3"):
            await http.request("POST", "/x", headers={})
        program.fails(0)
        assert (await http.request("POST", "/x", headers={})).status == 200


async def test_a_program_that_has_started_another_is_ended_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_plugin, "_TIMEOUT", 0.2)
    ended = tmp_path / "ended"
    wrapper = ExecPlugin(command="/bin/sh", args=("-c", f"(sleep 600; touch {ended}) & wait"), api_version=V1)
    async with transport(Access(server="http://127.0.0.1:1", exec=wrapper)) as http, asyncio.timeout(60):
        with pytest.raises(Unreachable, match=r"sh did not end within 0\.2s"):
            await http.request("GET", "/x", headers={})


async def test_requests_that_wait_for_a_program_share_its_failure(program: Program) -> None:
    program.fails(3)
    async with transport(Access(server="http://127.0.0.1:1", exec=program.plugin())) as http:
        requests = (http.request("GET", "/x", headers={}) for _ in range(6))
        failed = await asyncio.gather(*requests, return_exceptions=True)

    assert all(isinstance(one, Unreachable) for one in failed)
    assert len(program.runs) == 1


async def test_a_certificate_that_does_not_fit_its_key_is_not_kept(program: Program) -> None:
    program.prints({"clientCertificateData": "broken", "clientKeyData": "broken"})
    async with responding(OK) as (url, _), transport(Access(server=url, exec=program.plugin())) as http:
        with pytest.raises(Unreachable, match="a client certificate that cannot be used with its key"):
            await http.request("GET", "/x", headers={})
        program.prints({"token": "valid"})
        assert (await http.request("GET", "/x", headers={})).status == 200


# ── client certificates ──


@asynccontextmanager
async def verifying(folder: Path) -> AsyncIterator[tuple[str, list[str], Certificates]]:
    """A server that asks for a client certificate on each connection, and notes whose it was."""
    made = ensure_certificates(folder, ["127.0.0.1"], "admin", ())
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made.server.certificate, made.server.key)
    tls.load_verify_locations(made.authority.certificate)
    tls.verify_mode = CERT_REQUIRED
    names: list[str] = []
    others = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.read(65536):
            assert b"HTTP/1.1" in head
            peer = writer.get_extra_info("peercert")
            names.append(str(dict(one[0] for one in peer["subject"])["commonName"]))
            if b" /watch " not in head:
                others.set()
                writer.write(OK.replace(b"Connection: close\r\n", b""))
                continue
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await others.wait()
            writer.write(b"2\r\n{}\r\n0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
        host, port = server.sockets[0].getsockname()
        yield f"https://{host}:{port}", names, made


def pair_of(folder: Path, made: Certificates, name: str) -> tuple[str, str]:
    """Return a client certificate and its key for a name, by the authority of the server."""
    other = folder / name
    other.mkdir()
    for file in (made.authority.certificate, made.authority.key):
        (other / file.name).write_bytes(file.read_bytes())
    leaf = ensure_certificates(other, ["127.0.0.1"], name, ()).admin
    return leaf.certificate.read_text(), leaf.key.read_text()


async def request_both(http: HttpTransport) -> None:
    for method in ("GET", "POST"):
        await (await http.request(method, "/x", headers={})).read()


async def test_a_client_certificate_of_a_program_is_used_for_reads_and_writes_and_replaced_after_401(
    tmp_path: Path, program: Program
) -> None:
    async with verifying(tmp_path / "tls") as (url, names, made):
        authority = made.authority.certificate.read_bytes()
        pairs = [pair_of(tmp_path, made, name) for name in ("first", "second")]
        program.prints({"clientCertificateData": pairs[0][0], "clientKeyData": pairs[0][1]})
        async with transport(Access(server=url, authority=authority, exec=program.plugin())) as http:
            await request_both(http)
            program.prints({"clientCertificateData": pairs[1][0], "clientKeyData": pairs[1][1]})
            await request_both(http)
            http._credentials.invalidate(http._credentials.mark)
            await request_both(http)

    assert names == ["first"] * 4 + ["second"] * 2


async def test_a_watch_goes_on_while_another_client_certificate_comes_into_use(
    tmp_path: Path, program: Program
) -> None:
    async with verifying(tmp_path / "tls") as (url, names, made):
        authority = made.authority.certificate.read_bytes()
        pairs = [pair_of(tmp_path, made, name) for name in ("first", "second")]
        program.prints({"clientCertificateData": pairs[0][0], "clientKeyData": pairs[0][1]})
        async with transport(Access(server=url, authority=authority, exec=program.plugin())) as http:
            watch = await http.request("GET", "/watch", headers={}, streams=True)
            program.prints({"clientCertificateData": pairs[1][0], "clientKeyData": pairs[1][1]})
            http._credentials.invalidate(http._credentials.mark)
            await request_both(http)
            assert b"".join([chunk async for chunk in watch.stream()]) == b"{}"

    assert names == ["first", "second", "second"]


async def test_a_client_certificate_in_files_is_read_again_and_half_a_pair_is_not_used(
    tmp_path: Path,
) -> None:
    async with verifying(tmp_path / "tls") as (url, names, made):
        (first, first_key), (second, second_key) = (
            pair_of(tmp_path, made, name) for name in ("first", "second")
        )
        certificate, key = tmp_path / "client.crt", tmp_path / "client.key"
        certificate.write_text(first)
        key.write_text(first_key)
        access = Access(
            server=url,
            authority=made.authority.certificate.read_bytes(),
            certificate=first.encode(),
            key=first_key.encode(),
            certificate_file=certificate,
            key_file=key,
        )
        async with transport(access) as http:
            await request_both(http)
            certificate.write_text(second)
            http._credentials.invalidate()
            await request_both(http)
            key.write_text(second_key)
            http._credentials.invalidate()
            await request_both(http)

    assert names == ["first"] * 4 + ["second"] * 2
