"""What all dispatchers have in common: orders, statuses, and the last line of a pilot's log."""

from wms.dispatch.port import LAST_LINE_LIMIT, last_line


def test_the_last_line_of_a_log_is_for_people() -> None:
    log = '{"event": "pilot drains", "level": "info", "reason": "told to end"}\n\n'
    assert last_line(log) == "pilot drains: told to end"
    assert last_line('{"event": "agent failed", "exception": "Traceback ..."}') == "agent failed"
    long = last_line("word " * 200)
    assert long.endswith("word ...")
    assert len(long) <= LAST_LINE_LIMIT + 4
