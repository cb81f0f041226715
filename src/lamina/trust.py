"""Whose certificates are believed, on whichever Python this is."""

from __future__ import annotations

import ssl


def trusting(authority: str | None = None) -> ssl.SSLContext:
    """
    Return what checks certificates against an authority, or against those that everybody trusts.

    It is as strict as Kubernetes' own clients are. A host is named among a
    certificate's alternative names, or not at all. Newer Pythons ask for
    extensions that the authorities of many clusters and webhooks do without;
    older ones want to see a chain to its very end, where whoever names an
    authority has said whom to believe.
    """
    context = ssl.create_default_context(cadata=authority or None)
    context.hostname_checks_common_name = False
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
