"""Writes the default stages as JSON, beside the YAML that is edited."""

from pathlib import Path

import orjson

from lamina.actors import stages
from lamina.control_plane.load_stages import documents

FOLDER = Path(stages.__file__).parent


def ready_made() -> bytes:
    """Return the YAML file as JSON."""
    source = FOLDER / stages.DEFAULTS
    return orjson.dumps(documents(source.read_text(), source.name)) + b"\n"


if __name__ == "__main__":
    (FOLDER / stages.READY_MADE).write_bytes(ready_made())
