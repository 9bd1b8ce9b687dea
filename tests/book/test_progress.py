"""The progress bar of long cells says the same in a page and in a terminal."""

from autograder import Progress


def test_a_terminal_gets_one_line_that_is_rewritten(capsys):
    bar = Progress(20)
    bar(5, "loss 1.25")
    bar(6, "loss 1.20")
    lines = capsys.readouterr().out.split("\r")
    assert len(lines) == 3 and "\n" not in "".join(lines)
    assert lines[1].startswith("step 5 of 20, ") and lines[1].endswith("loss 1.25")
    assert lines[2].startswith("step 6 of 20, ")


def test_a_page_gets_a_bar_and_the_same_words(capsys):
    bar = Progress(20)
    bar(5, "loss < 2")
    html = bar._repr_html_()
    assert '<progress max="20" value="5"' in html
    assert "step 5 of 20" in html and "loss &lt; 2" in html
