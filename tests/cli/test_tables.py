"""Tables keep a row on one line."""

from lamina.cli.output.tables import StreamingTable, table

HEADER = ("NAME", "MESSAGE")
ROW = ("rgd/app", "undefined field 'x'\n | schema.spec.x\n | ...........^")


def test_a_row_has_the_first_line_of_a_message() -> None:
    assert table(HEADER, [ROW]).splitlines() == ["NAME      MESSAGE", "rgd/app   undefined field 'x'"]


def test_a_streamed_row_has_the_first_line_of_a_message() -> None:
    assert StreamingTable(HEADER, (4, 0)).add(ROW).splitlines() == [
        "NAME      MESSAGE",
        "rgd/app   undefined field 'x'",
    ]
