import re

from fado import _progress
from fado._progress import tracked


def test_items_pass_in_silence_by_default(capsys):
    assert list(tracked(iter([3, 1, 2]), 3, what="fits", show=False)) == [3, 1, 2]
    assert capsys.readouterr().err == ""


def test_plain_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SECONDS_BETWEEN_LINES", 0.0)
    assert list(tracked(iter("ab"), 2, what="fits", show=True)) == ["a", "b"]
    lines = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"fits: 1 of 2, \d+ s left", lines[0])
    assert lines[1] == "fits: 2 of 2, 0 s left"


def test_a_bar_on_a_terminal_takes_another_total(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(tracked(iter(range(5)), 5, what="fits", show=True)) == list(range(5))
    with _progress.open_bar(2, what="fits") as bar:
        _progress.set_total(bar, 7)
    shown = capsys.readouterr().err
    assert [text for text in ("fits", "0/5", "0/7") if text not in shown] == []
