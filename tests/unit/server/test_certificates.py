"""The server's certificate authority."""

import stat
import subprocess
import sys
from pathlib import Path

from cryptography import x509

from lamina.server.tls.certificates import certificate_identity, ensure_certificates


def test_the_authority_is_made_once_and_kept(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, ["127.0.0.1"], "admin", ["system:masters"])
    authority, server = first.authority.certificate_pem, first.server.certificate_pem

    again = ensure_certificates(tmp_path, ["127.0.0.1"], "admin", ["system:masters"])

    assert again.authority.certificate_pem == authority
    assert again.server.certificate_pem == server


def test_another_address_brings_another_certificate_from_the_same_authority(tmp_path: Path) -> None:
    first = ensure_certificates(tmp_path, ["127.0.0.1"], "admin", [])
    authority, server = first.authority.certificate_pem, first.server.certificate_pem

    again = ensure_certificates(tmp_path, ["127.0.0.1", "example.org", "::1"], "admin", [])

    assert again.authority.certificate_pem == authority
    assert again.server.certificate_pem != server
    named = x509.load_pem_x509_certificate(again.server.certificate_pem).extensions
    assert "example.org" in named.get_extension_for_class(
        x509.SubjectAlternativeName
    ).value.get_values_for_type(x509.DNSName)


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path / "pki", ["127.0.0.1"], "admin", [])

    for pair in (made.authority, made.server, made.admin):
        assert stat.S_IMODE(pair.key.stat().st_mode) == 0o600


def test_a_broken_leaf_is_mended(tmp_path: Path) -> None:
    ensure_certificates(tmp_path, ["127.0.0.1"], "admin", [])
    (tmp_path / "server.crt").write_text("not a certificate")

    mended = ensure_certificates(tmp_path, ["127.0.0.1"], "admin", [])

    assert x509.load_pem_x509_certificate(mended.server.certificate_pem)


def test_a_client_certificate_says_who_it_is(tmp_path: Path) -> None:
    made = ensure_certificates(tmp_path, ["127.0.0.1"], "jane", ["system:masters", "team"])
    loaded = x509.load_pem_x509_certificate(made.admin.certificate_pem)

    from cryptography.hazmat.primitives.serialization import Encoding

    who = certificate_identity(loaded.public_bytes(Encoding.DER))

    assert who is not None
    assert (who.name, who.groups) == ("jane", ("system:masters", "team", "system:authenticated"))


def test_what_was_found_good_is_not_judged_again_until_something_changes(tmp_path: Path) -> None:
    """The verification of certificates needs a large library, which a second start does without."""
    made = ensure_certificates(tmp_path, ["127.0.0.1"], "me", ())
    program = (
        "import sys; from pathlib import Path; from lamina.server.tls.certificates import ensure_certificates; "
        f"ensure_certificates(Path({str(tmp_path)!r}), sys.argv[1:], 'me', ()); "
        "print('cryptography' in sys.modules)"
    )

    def loads_it(*hosts: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program, *hosts], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert loads_it("127.0.0.1") == "False"
    assert loads_it("127.0.0.1", "lamina.example") == "True"
    assert loads_it("127.0.0.1") == "False"
    made.admin.key.write_bytes(b"another")
    assert loads_it("127.0.0.1") == "True"
