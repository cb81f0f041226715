"""What runs on a real server alone: kro's own controller needs one."""

from tests.bed.fixtures import chosen_server

collect_ignore = [] if chosen_server() == "real" else ["test_takeover.py"]
