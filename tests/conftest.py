"""
What all tests share.

Properties try the same examples every time, so that a run says something about
the change and not about the day. `HYPOTHESIS_PROFILE=explore` looks for new ones.
"""

import os

from hypothesis import settings

from tests.bed.fixtures import shared_server, shared_server_with_pods

__all__ = ["shared_server", "shared_server_with_pods"]

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
