"""The labels and annotations that templates may not set, because controllers decide by them."""

from __future__ import annotations

GROUP = "kro.run"
"""The group of definitions, and of generated kinds that state none."""
PIN = f"{GROUP}/rgd-revision"
UPDATE_POLICY = f"{GROUP}/update-policy"
RECONCILE = f"{GROUP}/reconcile"
"""With `suspended` or `disabled`, in any case, nothing is written."""
RESERVED_PREFIXES = (f"{GROUP}/", "internal.kro.run/", "applyset.kubernetes.io/")
STEERING = (UPDATE_POLICY, RECONCILE, PIN)
"""What a template of a generated kind may set all the same, to steer the nested instance."""
