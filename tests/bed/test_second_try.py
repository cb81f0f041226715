"""Which failed tests may have a second try."""

import pytest

from tests.bed.second_try import LIST, ROOT, Entry, entries, refused

LISTED = (
    Entry("tests/cli/test_up.py", "starts a process"),
    Entry("tests/docs/test_pages.py::test_a_page", "starts a process"),
    Entry("tests/client/test_suite.py", "a real server is another process", only_real=True),
)


@pytest.mark.parametrize(
    ("failed", "server", "is_refused"),
    [
        ("tests/cli/test_up.py::test_it_starts", "embedded", False),
        ("tests/cli/test_up.py::test_it_starts[a]", "real", False),
        ("tests/cli/test_upgrade.py::test_it_starts", "embedded", True),
        ("tests/docs/test_pages.py::test_a_page[time]", "embedded", False),
        ("tests/docs/test_pages.py::test_a_page_more", "embedded", True),
        ("tests/client/test_suite.py::test_it_lists", "embedded", True),
        ("tests/client/test_suite.py::test_it_lists", "real", False),
        ("tests/unit/test_clocks.py::test_it_lists", "real", True),
    ],
)
def test_only_listed_tests_have_a_second_try(failed: str, server: str, is_refused: bool) -> None:
    assert refused([failed], LISTED, server) == ([failed] if is_refused else [])


def test_a_line_names_a_test_the_server_and_the_reason() -> None:
    text = "# comment\n\ntests/cli/test_up.py  starts `lamina up`\nreal tests/a.py::test_b  etcd is slow\n"

    assert list(entries(text)) == [
        Entry("tests/cli/test_up.py", "starts `lamina up`"),
        Entry("tests/a.py::test_b", "etcd is slow", only_real=True),
    ]


def test_every_entry_names_a_test_that_exists_and_a_reason() -> None:
    listed = list(entries(LIST.read_text()))

    assert listed
    for entry in listed:
        module, _, name = entry.test.partition("::")
        assert (ROOT / module).is_file(), entry.test
        assert not name or f"def {name}(" in (ROOT / module).read_text(), entry.test
        assert entry.reason, entry.test
    assert len({entry.test for entry in listed}) == len(listed)


def test_no_test_without_processes_is_listed() -> None:
    once = ("tests/unit/", "tests/properties/", "tests/simulation/", "tests/runtime/", "tests/parity/")

    assert [entry.test for entry in entries(LIST.read_text()) if entry.test.startswith(once)] == []


def test_the_list_only_shrinks() -> None:
    """The bound is lowered with each entry that goes."""
    assert len(list(entries(LIST.read_text()))) <= 72
