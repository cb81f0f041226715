"""Line-by-line differences for error messages."""

from __future__ import annotations

import difflib
import json
from typing import Any


def difference(old: Any, new: Any) -> str:
    """Return a unified diff of two values as indented JSON."""
    before, after = (
        json.dumps(value, indent=1, ensure_ascii=False).splitlines(keepends=True) for value in (old, new)
    )
    return "".join(list(difflib.unified_diff(before, after, n=3))[2:])
