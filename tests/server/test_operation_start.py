"""Modules that are not loaded at the start."""

import subprocess
import sys

_START = """
import asyncio, sys
from lamina.app import App
from lamina.settings import Settings

async def main():
    async with App(Settings(ephemeral=True, port=0, families="none")) as app:
        assert (await app.request("GET", "/readyz")).status == 200

asyncio.run(main())
print(*sorted(name for name in sys.modules if name.startswith(("lamina.cel", "aiohttp", "yaml", "prometheus"))))
"""


def test_a_server_starts_without_what_only_few_requests_need() -> None:
    """CEL above all: it is loaded with the first rule or policy."""
    done = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
