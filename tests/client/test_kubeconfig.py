"""Reading and writing kubeconfigs."""

import stat
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis.strategies import binary, builds, characters, dictionaries, lists, text
from msgspec.structs import replace

from lamina.client.kubeconfig.exec_plugin import ExecPlugin
from lamina.client.kubeconfig.read import Access, in_cluster, read_kubeconfig
from lamina.client.kubeconfig.write import kubeconfig_text, write_kubeconfig
from lamina.errors import SettingsError

V1 = "client.authentication.k8s.io/v1"
WORDS = text("abcdefghijklmnopqrstuvwxyz-._0123456789", min_size=1, max_size=20)


def config(
    folder: Path,
    *,
    name: str = "config",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    **top: Any,
) -> Path:
    """Write a valid kubeconfig with the changes of a test."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:6443"} if cluster is None else cluster}
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"} if context is None else context}],
        "current-context": "x",
        **top,
    }
    file = folder / name
    file.write_text(yaml.safe_dump(document))
    return file


@given(
    builds(
        Access,
        server=WORDS.map(lambda host: f"https://{host}:6443"),
        authority=binary(max_size=40),
        certificate=binary(max_size=40),
        key=binary(max_size=40),
        token=WORDS,
        namespace=WORDS,
        tls_name=WORDS,
        proxy=WORDS.map(lambda host: f"http://{host}:3128"),
        as_user=WORDS,
        as_uid=WORDS,
        as_groups=lists(WORDS, max_size=3).map(tuple),
        as_extra=dictionaries(
            text(characters(codec="ascii"), min_size=1, max_size=9),
            lists(WORDS, min_size=1, max_size=2).map(tuple),
            max_size=2,
        ),
    )
)
@settings(max_examples=50)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, access: Access) -> None:
    file = tmp_path_factory.mktemp("k") / "deep" / "kubeconfig"

    write_kubeconfig(file, access)

    assert read_kubeconfig(file) == replace(access, user="lamina")


def test_a_kubeconfig_that_is_printed_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    access = Access(server="https://a", authority=b"CA", token="t", user="bootstrap")

    file.write_text(kubeconfig_text(access, "bootstrap"))

    assert read_kubeconfig(file) == access


def test_a_kubeconfig_is_for_its_owners_eyes_only(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("old")
    file.chmod(0o644)

    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="secret"))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


def test_a_kubeconfig_may_lead_to_several_clusters(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    first = Access(server="https://127.0.0.1:1", token="one", user="lamina")
    east = Access(server="https://127.0.0.1:1/clusters/east", token="two", user="east")

    write_kubeconfig(file, first, others={"east": east})

    assert (read_kubeconfig(file), read_kubeconfig(file, "east")) == (first, east)


@pytest.mark.parametrize(("chosen", "current"), [("east", "east"), ("gone", "lamina"), ("lamina", "lamina")])
def test_a_chosen_context_stays_chosen_while_it_exists(tmp_path: Path, chosen: str, current: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "current-context": chosen}))
    access = Access(server="https://127.0.0.1:1", token="one")

    for _ in range(2):
        write_kubeconfig(file, access, others={"east": access})
        assert yaml.safe_load(file.read_text())["current-context"] == current


def clusters(*names: str) -> dict[str, Access]:
    return {
        name: Access(server=f"https://127.0.0.1:1/clusters/{name}", token=name, user=name) for name in names
    }


@pytest.mark.parametrize(("chosen", "current"), [("dev", "dev"), ("east", "east"), ("real", "lamina")])
def test_foreign_entries_of_a_kubeconfig_stay(tmp_path: Path, chosen: str, current: str) -> None:
    """Except for a current context of another cluster: commands for this server would go there."""
    file, first = tmp_path / "kubeconfig", Access(server="https://127.0.0.1:1", token="one")
    real = {"server": "https://real.example", "certificate-authority": "ca.crt"}
    runs = {"exec": {"command": "login", "args": ["--as", "me"], "env": None}}
    write_kubeconfig(file, first, others=clusters("east", "west"))
    document = yaml.safe_load(file.read_text())
    document["clusters"].append({"name": "real", "cluster": real})
    document["users"].append({"name": "me", "user": runs})
    for name, where in (("real", "real"), ("dev", "east"), ("old", "west")):
        document["contexts"].append({"name": name, "context": {"cluster": where, "user": "me"}})
    document["contexts"][1]["context"]["namespace"] = "kube-system"
    document["current-context"] = chosen
    file.write_text(yaml.safe_dump(document))

    for others in (("east",), ("east", "north"), ("east", "north")):
        write_kubeconfig(file, first, others=clusters(*others))
        kept = yaml.safe_load(file.read_text())

        assert {"name": "real", "cluster": real} in kept["clusters"]
        assert {"name": "me", "user": runs} in kept["users"]
        assert [one["name"] for one in kept["contexts"]] == ["lamina", *others, "real", "dev"]
        assert [one["name"] for one in kept["clusters"]] == ["lamina", *others, "real"]
        assert read_kubeconfig(file, "east").namespace == "kube-system"
        assert kept["current-context"] == current


@pytest.mark.parametrize("odd", ["- a", "a: [", "clusters: 5", "contexts: [{name: 5}, 7, {name: a}]", ""])
def test_what_is_no_kubeconfig_is_replaced_by_one(tmp_path: Path, odd: str) -> None:
    file, first = tmp_path / "kubeconfig", Access(server="https://127.0.0.1:1", token="one", user="lamina")
    file.write_text(odd)

    write_kubeconfig(file, first, others=clusters("east"))

    assert (read_kubeconfig(file), read_kubeconfig(file, "east")) == (first, clusters("east")["east"])


def test_a_kubeconfig_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("old")

    with pytest.raises(TypeError, match="not JSON serializable"):
        write_kubeconfig(file, Access(server=object()))  # type: ignore[arg-type] # what cannot be written down

    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


def test_files_that_are_named_are_read_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"CA")
    (tmp_path / "client.crt").write_bytes(b"CRT")
    (tmp_path / "client.key").write_bytes(b"KEY")
    file = config(
        tmp_path,
        cluster={"server": "https://a", "certificate-authority": "ca.crt"},
        user={"client-certificate": "client.crt", "client-key": "client.key", "tokenFile": "token"},
    )

    access = read_kubeconfig(file)

    assert (access.authority, access.certificate, access.key) == (b"CA", b"CRT", b"KEY")
    assert access.token_file == tmp_path / "token"


def test_data_wins_over_files_and_a_token_over_a_token_file(tmp_path: Path) -> None:
    data = b64encode(b"CA").decode()
    file = config(
        tmp_path,
        cluster={
            "server": "https://a",
            "certificate-authority": "nowhere",
            "certificate-authority-data": data,
        },
        user={"token": "t", "tokenFile": "nowhere"},
    )

    access = read_kubeconfig(file)

    assert (access.authority, access.token, access.token_file) == (b"CA", "t", None)


def test_impersonation_and_tls_server_name_are_read(tmp_path: Path) -> None:
    file = config(
        tmp_path,
        cluster={"server": "https://a", "tls-server-name": "inside"},
        user={"as": "jane", "as-uid": "1", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["x", "y"]}},
    )

    assert read_kubeconfig(file) == Access(
        server="https://a",
        tls_name="inside",
        as_user="jane",
        as_uid="1",
        as_groups=("a", "b"),
        as_extra={"scopes": ("x", "y")},
        user="u",
    )


def test_client_certificates_in_files_are_named_to_be_read_again_and_data_is_not(tmp_path: Path) -> None:
    for name in ("client.crt", "client.key"):
        (tmp_path / name).write_text(name)
    files = {"client-certificate": "client.crt", "client-key": "client.key"}
    data = {f"{field}-data": b64encode(b"x").decode() for field in files}

    named = read_kubeconfig(config(tmp_path, user=files))
    embedded = read_kubeconfig(config(tmp_path, user={**files, **data}))

    assert (named.certificate_file, named.key_file) == (tmp_path / "client.crt", tmp_path / "client.key")
    assert (embedded.certificate, embedded.certificate_file, embedded.key_file) == (b"x", None, None)


def test_a_program_with_credentials_and_a_proxy_are_read(tmp_path: Path) -> None:
    settings = {
        "apiVersion": V1,
        "command": "./bin/login",
        "args": ["get", "token"],
        "env": [{"name": "PROFILE", "value": "work"}, {"name": "EMPTY"}],
        "installHint": "get it",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "b"}}
    cluster = {
        "server": "https://a",
        "proxy-url": "http://proxy:3128",
        "certificate-authority-data": b64encode(b"CA").decode(),
        "extensions": [{"name": "other", "extension": {}}, extension],
    }

    access = read_kubeconfig(config(tmp_path, user={"exec": settings}, cluster=cluster))

    assert access.proxy == "http://proxy:3128"
    assert access.exec == ExecPlugin(
        command=str(tmp_path / "bin/login"),
        api_version=V1,
        args=("get", "token"),
        env=(("PROFILE", "work"), ("EMPTY", "")),
        install_hint="get it",
        cluster={
            "server": "https://a",
            "certificate-authority-data": b64encode(b"CA").decode(),
            "proxy-url": "http://proxy:3128",
            "config": {"audience": "b"},
        },
    )
    plain = {"apiVersion": V1, "command": "login", "interactiveMode": "Never"}
    assert read_kubeconfig(config(tmp_path, user={"exec": plain})).exec == ExecPlugin(
        command="login", api_version=V1
    )


def test_a_context_may_be_named(tmp_path: Path) -> None:
    file = config(
        tmp_path,
        contexts=[
            {"name": "x", "context": {"cluster": "c", "user": "u"}},
            {"name": "y", "context": {"cluster": "c", "namespace": "web"}},
        ],
    )

    assert read_kubeconfig(file).namespace == "default"
    assert read_kubeconfig(file, "y").namespace == "web"


def test_the_first_file_that_mentions_something_is_right_about_it(tmp_path: Path) -> None:
    nothing: dict[str, Any] = {"users": [], "current-context": ""}
    first = config(tmp_path, name="first", **nothing)
    second = config(tmp_path, name="second", cluster={"server": "https://second"}, user={"token": "second"})

    access = read_kubeconfig([tmp_path / "missing", first, second])

    assert (access.server, access.token) == ("https://127.0.0.1:6443", "second")


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"current-context": ""}, "config: current-context: no current context, and none was named"),
        ({"current-context": 5}, "config: current-context: expected text, got int"),
        ({"current-context": "z"}, 'config: contexts: there is none called "z"'),
        ({"context": {"user": "u"}}, "config: contexts[0].context.cluster: this field is missing"),
        ({"context": {"cluster": "d"}}, 'config: clusters: there is none called "d"'),
        ({"contexts": [{"name": "x"}]}, "config: contexts[0].context: expected fields, got NoneType"),
        ({"cluster": {}}, "config: clusters[0].cluster.server: this field is missing"),
        ({"cluster": {"server": 5}}, "config: clusters[0].cluster.server: expected text, got int"),
        (
            {"cluster": {"server": "a", "certificate-authority-data": "?"}},
            "config: clusters[0].cluster.certificate-authority-data: invalid base64",
        ),
        (
            {"cluster": {"server": "a", "insecure-skip-tls-verify": "yes"}},
            "config: clusters[0].cluster.insecure-skip-tls-verify: expected true or false, got 'yes'",
        ),
        (
            {"cluster": {"server": "a", "certificate-authority": "none.crt"}},
            "config: clusters[0].cluster.certificate-authority:",
        ),
        (
            {"user": {"auth-provider": {"name": "gcp"}}},
            "config: users[0].user.auth-provider: auth-provider credentials are not supported",
        ),
        ({"user": {"exec": "x"}}, "config: users[0].user.exec: expected fields, got str"),
        (
            {"user": {"exec": {"command": "x"}}},
            "config: users[0].user.exec.apiVersion: this field is missing",
        ),
        (
            {"user": {"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}},
            "config: users[0].user.exec.apiVersion: 'client.authentication.k8s.io/v1alpha1' is not supported",
        ),
        ({"user": {"exec": {"apiVersion": V1}}}, "config: users[0].user.exec.command: this field is missing"),
        (
            {"user": {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Always"}}},
            "config: users[0].user.exec.interactiveMode: programs get no standard input here",
        ),
        (
            {"user": {"exec": {"apiVersion": V1, "command": "x", "env": [{"value": "y"}]}}},
            "config: users[0].user.exec.env[0]: expected a name and a value",
        ),
        (
            {"cluster": {"server": "a", "proxy-url": "socks5://user:s3cret@proxy:1080"}},
            "config: clusters[0].cluster.proxy-url: 'socks5://proxy:1080' is no URL of an HTTP proxy",
        ),
        ({"user": {"as-groups": ["g"]}}, "config: users[0].user.as-groups: impersonation needs a user"),
        (
            {"user": {"as": "a", "as-groups": "g"}},
            "config: users[0].user.as-groups: expected a list of texts",
        ),
        (
            {"user": {"as": "a", "as-user-extra": {"x": 5}}},
            "config: users[0].user.as-user-extra.x: expected a list of texts, got 5",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field(
    tmp_path: Path, broken: dict[str, Any], complaint: str
) -> None:
    file = config(tmp_path, **broken)

    with pytest.raises(SettingsError) as refused:
        read_kubeconfig(file)

    assert complaint in str(refused.value)
    assert str(tmp_path) in str(refused.value)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [("[1, 2]", "invalid kubeconfig: expected fields, got list"), ("a: [", "invalid YAML")],
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "config").write_text(content)

    with pytest.raises(SettingsError, match=complaint):
        read_kubeconfig(tmp_path / "config")


def test_a_name_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    for broken, hint in (({"current-context": "z"}, "the contexts are "), ({"contexts": [], "current-context": ""}, "there are no contexts")):  # fmt: skip
        with pytest.raises(SettingsError) as refused:
            read_kubeconfig(config(tmp_path, **broken))
        assert str(refused.value.hint).startswith(hint)


def test_where_there_is_no_kubeconfig_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no kubeconfig") as refused:
        read_kubeconfig([tmp_path / "a", tmp_path / "b"])

    assert refused.value.hint


def test_a_pod_finds_its_own_cluster(tmp_path: Path) -> None:
    for name, content in {"token": "t", "ca.crt": "CA", "namespace": "web\n"}.items():
        (tmp_path / name).write_text(content)

    access = in_cluster("10.0.0.1", "443", tmp_path)

    assert access == Access(
        server="https://10.0.0.1:443", authority=b"CA", token_file=tmp_path / "token", namespace="web"
    )
    assert in_cluster("fd00::1", "443", tmp_path).server == "https://[fd00::1]:443"


def test_what_is_no_pod_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not in a pod"):
        in_cluster("", "", tmp_path)
    with pytest.raises(SettingsError, match=r"token: the service account file is missing"):
        in_cluster("10.0.0.1", "443", tmp_path)


ADDED = {
    "clusters": """- name: real
  cluster: {server: "https://real.example/clusters/real"}
""",
    "users": """- name: real
  user:
    token: theirs
""",
    "contexts": """- name: real
  context:
    cluster: real
    user: real
""",
}


def test_entries_written_by_hand_stay_whatever_they_look_like(tmp_path: Path) -> None:
    """Even if it looks like our own entries, or is for a cluster below another server."""
    file, first = tmp_path / "kubeconfig", Access(server="https://127.0.0.1:1", token="one")
    write_kubeconfig(file, first, others=clusters("east"))
    text = file.read_text()
    for section, entry in ADDED.items():
        text = text.replace(f"{section}:\n", f"{section}:\n{entry}", 1)
    file.write_text(f"extensions: {{a: {{b: 1}}}}\n{text}")

    for others in (("east", "west"), ()):
        write_kubeconfig(file, first, others=clusters(*others))

        assert read_kubeconfig(file, "real").token == "theirs"
        assert yaml.safe_load(file.read_text())["extensions"] == {"a": {"b": 1}}


def test_clusters_of_a_server_that_listens_elsewhere_now_go(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="one"), others=clusters("east"))
    # Another program has written to it since.
    file.write_text(f"{file.read_text()}\n")

    write_kubeconfig(file, Access(server="https://127.0.0.1:2", token="one"), others={})

    assert [one["name"] for one in yaml.safe_load(file.read_text())["clusters"]] == ["lamina"]


@pytest.mark.parametrize("odd", [b"- a", b"a: [", b"\tclusters: []", b"\xff\xfe"])
def test_what_is_no_kubeconfig_is_set_aside(tmp_path: Path, odd: bytes) -> None:
    file = tmp_path / "kubeconfig"
    file.write_bytes(odd)

    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="one"), others={})

    assert (tmp_path / "kubeconfig.old").read_bytes() == odd


def test_a_context_of_no_cluster_that_could_be_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text("contexts: [{name: odd, context: {cluster: [a]}}]")

    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="one"), others={})

    assert [one["name"] for one in yaml.safe_load(file.read_text())["contexts"]] == ["lamina", "odd"]


def test_where_a_kubeconfig_is_a_link_what_it_leads_to_is_written(tmp_path: Path) -> None:
    file = tmp_path / "link"
    file.symlink_to(tmp_path / "kubeconfig")

    write_kubeconfig(file, Access(server="https://127.0.0.1:1", token="one"), others={})

    assert file.is_symlink()
    assert read_kubeconfig(tmp_path / "kubeconfig").token == "one"
