"""The head of a response, whatever it contains."""

from hypothesis import given
from hypothesis import strategies as st

from lamina.server.http.request import Response
from lamina.server.http.response_head import encode_head


@given(
    warnings=st.lists(st.text(max_size=300), max_size=40),
    headers=st.lists(st.tuples(st.sampled_from(["etag", "location"]), st.text(max_size=50)), max_size=3),
)
def test_whatever_is_said_in_a_head_stays_in_its_line(
    warnings: list[str], headers: list[tuple[str, str]]
) -> None:
    head = encode_head(Response(200, b"", headers=headers), warnings, 0, True)

    *lines, end, nothing = head.split(b"\r\n")
    assert (end, nothing) == (b"", b"")
    assert not any(byte < 32 or byte == 127 for line in lines for byte in line)
    names = [line.partition(b": ")[0].lower().decode() for line in lines[1:]]
    told = [name for name in names if name == "warning"]
    assert len(told) <= len(warnings)
    assert sorted(name for name in names if name != "warning") == sorted(
        [
            "audit-id",
            "date",
            "content-type",
            "cache-control",
            "content-length",
            *(name for name, _ in headers),
        ]
    )


def test_more_warnings_than_a_client_can_take_are_cut() -> None:
    """Clients accept a hundred headers, or eight kilobytes of them, and refuse the response otherwise."""
    many = [f'unknown field "spec.field{number}"' for number in range(5000)]
    long = ["x" * 5000, "y" * 100]

    for warnings, count, longest in ((many, 200, 60), (long, 2, 300)):
        lines = [
            line
            for line in encode_head(Response(200, b""), warnings, 0, True).split(b"\r\n")
            if b"299" in line
        ]
        assert 1 < len(lines) <= count
        assert max(map(len, lines)) < longest
        assert sum(map(len, lines)) < 8192


def test_an_answer_that_says_nothing_changed_has_no_length() -> None:
    head = encode_head(Response(304, b"", headers=[("etag", '"x"')]), (), 0, True)

    assert b"Content-Length" not in head
    assert head.startswith(b"HTTP/1.1 304 Not Modified\r\n")
