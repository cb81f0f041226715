"""
Cases of the suite that do not apply, and intended differences.

Expressions here read JSON, without protobuf messages: whole files and sections about
messages are left out, and single cases that construct or read one (`is_about_messages`).
"""

from tests.conformance.cel.suite import Case

MESSAGE_FILES = {
    "dynamic": "values packed into google.protobuf messages",
    "enums": "enumerations of a message type",
    "proto2": "messages",
    "proto2_ext": "extensions of messages",
    "proto3": "messages",
    "wrappers": "fields of messages that wrap a value",
}

MESSAGE_SECTIONS = {
    ("comparisons", "eq_wrapper"): "messages that wrap a value, written as literals",
    ("type_deductions", "wrappers"): "the types of messages that wrap a value",
}

MESSAGE_CASES = {
    ("comparisons", "eq_literal", "eq_dyn_json_null"): "google.protobuf.Value{}",
    ("timestamps", "duration_converters", "get_milliseconds"): "declares a variable of a message type",
}

DIFFERENCES: dict[tuple[str, str, str], str] = {}
"""Cases that are run and expected to fail, each with its reason."""


def is_about_messages(case: Case) -> bool:
    """Return whether a case needs protobuf messages."""
    written = str(case.test)
    return (
        case.file in MESSAGE_FILES
        or (case.file, case.section) in MESSAGE_SECTIONS
        or (case.file, case.section, case.name) in MESSAGE_CASES
        or "TestAllTypes" in written
        or "cel.expr.conformance.proto" in written
    )
