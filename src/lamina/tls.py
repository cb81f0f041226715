"""TLS verification with the same strictness on all Python versions."""

from __future__ import annotations

import ssl


def client_context(authority: str | None = None) -> ssl.SSLContext:
    """
    Return a context that trusts a CA bundle, or the system's CAs.

    It is as strict as client-go: a host is verified against subject alternative names
    only. Newer Python versions require extensions that the CAs of many clusters and
    webhooks lack; older ones require the complete chain up to a root, although the given
    CA is trusted explicitly.
    """
    context = ssl.create_default_context(cadata=authority or None)
    context.hostname_checks_common_name = False
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
