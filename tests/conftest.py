"""
What all tests share.

Properties try the same examples every time, so that a run says something about
the change and not about the day. `HYPOTHESIS_PROFILE=explore` looks for new ones.
"""

import os
import signal

from hypothesis import settings

from tests.bed.fixtures import shared_server, shared_server_with_pods

__all__ = ["shared_server", "shared_server_with_pods"]

settings.register_profile("steady", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# A shell without job control starts a command in the background with SIGINT ignored, and every
# process inherits that: the interrupts of tests would never reach the commands that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
