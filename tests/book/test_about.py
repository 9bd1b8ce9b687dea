"""The picture of the bank on the About page says what the last test run gave, or that none was."""

import json
import re

import about

from autograder.bank import banks
from autograder.student.course import chapters


def run_of(tmp_path, spoil=()):
    """A test run of chapter 4 in which all went well, but for one mistake that was not caught."""
    rows = [
        {
            "chapter": "masking",
            "exercise": name,
            "mistakes": {
                m: dict.fromkeys(("caught", "named"), (name, m) != spoil) for m in bank.mistakes
            },
            "rights": {r: {"full": True} for r in bank.rights},
        }
        for name, bank in banks("masking").items()
    ]
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps({"exercises": rows}), encoding="utf-8")
    return about.last_run(path)


def test_without_a_run_nothing_is_claimed(tmp_path):
    page = about.matrix(about.last_run(tmp_path / "none.json"), {})
    assert "No test run is at hand" in page
    assert 'class="right"' not in page
    known = sum(len(bank.mistakes) for bank in banks("masking").values())
    assert page.count("<rect") >= known


def test_without_a_run_of_ones_own_the_stored_one_is_shown(tmp_path):
    stored = about.last_run(tmp_path / "none.json", about.STORED)
    page = about.matrix(stored, {})
    assert "No test run is at hand" not in page
    filled, hollow = page.count('class="right"'), page.count('class="unknown"')
    assert filled > 1500 and hollow < filled / 10, "out of date: run `make matrix`"


def test_a_run_fills_the_marks_of_its_answers_only(tmp_path):
    page = about.matrix(run_of(tmp_path), {})
    mistakes = sum(len(bank.mistakes) for bank in banks("masking").values())
    rights = sum(len(bank.rights) for bank in banks("masking").values())
    assert page.count('class="right"') == mistakes + rights
    assert f"{mistakes} mistakes lost marks, {mistakes} of them" in page
    assert "were not in that run (hollow)" in page
    assert "crossed" not in page


def test_a_mistake_that_got_through_is_shown(tmp_path):
    spoilt = next(iter(banks("masking")["causal_mask"].mistakes))
    page = about.matrix(run_of(tmp_path, ("causal_mask", spoilt)), {})
    assert page.count('class="wrong"') == 1
    assert "1 did not come out as they should (crossed)" in page


def test_the_score_counts_wrong_mutants_only():
    row = {"made": 10, "caught": 6, "named": 3, "equivalent": 2, "survived": 2}
    page = about.mutants({"causal_mask": row, "padding_mask": row}, {"masking": "4. Masks"})
    assert "20 mutants, of which 4 are still right answers" in page
    assert "12 of 16 lose marks (75.0%), 6 of them" in page
    cells = "<td>20</td><td>12</td><td>6</td><td>4</td><td>4</td>"
    assert f'<th scope="row">4. Masks</th>{cells}' in page


def test_right_answers_on_fresh_inputs_are_counted():
    rows = {
        "softmax": {"answers": 8, "times": 200, "lost": {}},
        "gelu": {"answers": 5, "times": 20, "lost": {}},
        "GPT": {"answers": 6, "times": 0, "lost": {}},  # its inputs have changed since
    }
    told = about.luck(rows)
    assert "13 right answers to 2 exercises" in told and "20 to 200 sets" in told
    assert "In these 1,700 judgements, none of them lost a mark." in told
    rows["gelu"]["lost"] = {"by_erfc: dtype": {"times": 3, "first": "…"}}
    assert "aspects were lost 3 times" in about.luck(rows)


def test_the_fresh_inputs_that_the_page_counts_were_for_every_right_answer():
    rows = json.loads(about.LUCK.read_text("utf-8"))
    known = {name: bank for slug in chapters() for name, bank in banks(slug).items()}
    missing = sorted(known.keys() - rows.keys())
    assert missing == [], f"run `python -m benchmarks.luck --only {' '.join(missing)}`"
    assert rows.keys() == known.keys()
    assert all(row["answers"] == 1 + len(known[name].rights) for name, row in rows.items())
    assert all(row["lost"] == {} for row in rows.values())


def test_the_citation_is_that_of_citation_cff():
    words, bibtex = about.citation()
    version = re.search(r"^version: (.+)$", about.CITATION.read_text("utf-8"), re.MULTILINE)[1]
    assert version in words and f"version = {{{version}}}" in bibtex
    assert bibtex.startswith("@software{")
