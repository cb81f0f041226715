"""Writes the stages one gets without asking as JSON, beside the YAML that people read and change."""

from pathlib import Path

import orjson

from lamina.actors import stages
from lamina.stages import documents

FOLDER = Path(stages.__file__).parent


def ready_made() -> bytes:
    """Return what the YAML says, as JSON."""
    source = FOLDER / stages.DEFAULTS
    return orjson.dumps(documents(source.read_text(), source.name)) + b"\n"


if __name__ == "__main__":
    (FOLDER / stages.READY_MADE).write_bytes(ready_made())
