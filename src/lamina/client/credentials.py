"""
Who we are, as the headers of a request say it.

A token that lives in a file is renewed there by somebody else, who may be in
the middle of it just now: the last one that was read holds until there is
another.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from time import monotonic
from urllib.parse import quote

from lamina.client.kubeconfig import Access
from lamina.errors import Unreachable

_TOKEN_AGE = 60.0
_IN_A_NAME = "!#$&'*+-.^_`|~"
_USER = "impersonate-user"


class Credentials:
    """Adds to requests who sends them."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._token, self._token_read = access.token, float("-inf")
        self._others = tuple(_others(access))

    def on(self, headers: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the headers of a request, and ours; Unreachable where a token is needed and there is none."""
        sent = [*headers.items(), *self._own()]
        # Who is to do this may be said for a single request too.
        return sent if _USER in headers else [*sent, *self._others]

    def doubt(self) -> None:
        """Take note that the server does not know us: there may be another token by now."""
        self._token_read = float("-inf")

    def _own(self) -> Iterator[tuple[str, str]]:
        access = self._access
        # Such tokens are renewed in their file long before they expire.
        if access.token_file is not None and monotonic() - self._token_read > _TOKEN_AGE:
            self._read()
        if self._token:
            yield "authorization", f"Bearer {self._token}"
        elif access.username:
            pair = b64encode(f"{access.username}:{access.password}".encode()).decode()
            yield "authorization", f"Basic {pair}"

    def _read(self) -> None:
        file = self._access.token_file
        assert file is not None
        try:
            token = file.read_text().strip()
        except OSError as error:
            wrong = f"the token cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            wrong = "the token cannot be read: this is no text"
        else:
            if token and token.isascii() and token.isprintable() and " " not in token:
                self._token, self._token_read = token, monotonic()
                return
            wrong = "there is no token in it" if not token else "what is in it is no token"
        if not self._token:
            raise Unreachable(f"{file}: {wrong}")


def _others(access: Access) -> Iterator[tuple[str, str]]:
    """Yield who is to be taken for the sender."""
    if access.as_user:
        yield _USER, access.as_user
    if access.as_uid:
        yield "impersonate-uid", access.as_uid
    for group in access.as_groups:
        yield "impersonate-group", group
    for key, values in access.as_extra.items():
        for value in values:
            yield f"impersonate-extra-{quote(key.lower(), safe=_IN_A_NAME)}", value
