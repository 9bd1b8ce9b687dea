"""What chapter 10's page says of fine-tuning and of its rivals, held to data; its interval."""

import json
import math
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch
from second_copies import of_page

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.fine_tuning import drawn, guessed, rows_of_topics
from benchmarks.letter_runs import Counts

ROOT = Path(__file__).resolve().parents[2]

MEASURED = json.loads((ROOT / "benchmarks" / "fine_tuning.json").read_text(encoding="utf-8"))
RUNS, IN_TOPIC = MEASURED["runs"], np.array(MEASURED["topics"])
SIZES = (80, 320, 1280)
SEEDS = 5
NO_LABELS = ("three", "five", "untuned")
interval = of_page("10_bert", "over_seeds_and_topics")["over_seeds_and_topics"]


@pytest.fixture(scope="module")
def page():
    """What the page's cells define."""
    return page_definitions()


@pytest.fixture(scope="module")
def words() -> str:
    return " ".join((ROOT / "book" / "10_bert.md").read_text(encoding="utf-8").split())


def found(name, rows):
    """Errors found, (seeds, topics)."""
    return np.array([run[name] for run in RUNS if run["rows"] == rows])


def share(name, rows=1280):
    """The percentages of the seeds."""
    return 100 * found(name, rows).sum(1) / IN_TOPIC.sum()


def lead(name, other, rows):
    """By how many points one finds more than the other: mean, and its interval."""
    return interval(found(name, rows) - found(other, rows), IN_TOPIC)


def test_each_seed_has_all_topics(page):
    assert sorted((run["seed"], run["rows"]) for run in RUNS) == [*product(range(SEEDS), SIZES)]
    assert "/" not in MEASURED["made"]["machine"]
    assert len(IN_TOPIC) == len(page["manual"].documents("test")) == 11
    for run in RUNS:
        names = run.keys() - {"seed", "rows", "best"}
        assert names == {*NO_LABELS, "letters", "frozen", "tuned", "from scratch"}
        assert all((np.array(run[name]) >= 0).all() for name in names)
        assert all((np.array(run[name]) <= IN_TOPIC).all() for name in names)
    for name in NO_LABELS:
        assert all((found(name, rows) == found(name, 80)).all() for rows in SIZES)


def test_rows_of_topics_are_the_rows_of_the_test_in_their_order(page):
    cuts = np.cumsum(rows_of_topics(page))
    assert cuts[-1] == len(page["test"])
    starts = [0, *cuts[:-1]]
    for start, text in zip(starts, page["manual"].documents("test").values(), strict=True):
        begins = page["plain"](text)[: page["LENGTH"] - 2]
        assert (page["test"][start] == page["framed"](page["ids_of"](begins))).all()


def test_an_interval_is_that_of_all_draws_of_seeds_and_topics():
    """All 27 draws of three seeds with all 256 draws of four topics, one by one."""
    right, rows = np.array([[1, 20, 3, 9], [2, 35, 3, 4], [0, 26, 1, 8]]), np.array([2, 40, 3, 10])
    every = [
        100 * sum(right[s, t] for s in seeds for t in topics) / (3 * sum(rows[t] for t in topics))
        for seeds in product(range(3), repeat=3)
        for topics in product(range(4), repeat=4)
    ]
    mean, low, high = interval(right, rows)
    assert mean == pytest.approx(100 * right.sum() / 165)
    assert low == pytest.approx(np.percentile(every, 2.5), abs=1)
    assert high == pytest.approx(np.percentile(every, 97.5), abs=1)
    alike = np.array([[1, 20, 1.5, 5]] * 3)
    assert interval(alike, rows) == pytest.approx((50, 50, 50))


def test_one_letter_of_each_row_has_become_another(page):
    rows = page["framed"](page["ids_of"]("the value, 12").repeat(40, 1))
    wrong, place = page["mistyped"](rows, torch.Generator().manual_seed(0))
    changed = wrong != rows
    assert changed.sum(1).tolist() == [1] * 40 and len(set(place.tolist())) > 4
    assert changed.int().argmax(1).tolist() == place.tolist()
    letters = [page["letters"][i] for i in [*wrong[changed].tolist(), *rows[changed].tolist()]]
    assert all("a" <= letter <= "z" for letter in letters)
    no_word = page["framed"](page["ids_of"]("(1, 2)")[None])
    assert len(page["mistyped"](no_word, torch.Generator())[0]) == 0


def test_counts_find_the_letter_that_was_not_seen_there():
    row = torch.tensor([[2, 5, 6, 5, 6, 5, 6, 3]])
    counts = Counts(row.repeat(50, 1), 8, reach=0)
    for place in range(1, 7):
        wrong = row.clone()
        wrong[0, place] = 7
        assert (1 + counts.scores(wrong)[0].argmax(0) == place).all()


def test_frozen_parts_stay_and_the_others_learn(page):
    rows, places = page["mistyped"](page["train"][:20], torch.Generator().manual_seed(1))
    start = page["Bert"](len(page["letters"]), 64, 4, 2)
    tuned = page["fine_tuned"](start, rows, places, ("embeddings", "layers"), steps=2)
    for name, weight in tuned.named_parameters():
        same = torch.equal(weight, start.get_parameter(name))
        assert same == name.startswith(("embeddings", "layers")), name


def test_seed_0_tunes_the_model_of_the_page(page):
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda model: {})
    _, _, test, true, _ = drawn(page, 0)
    right = (guessed(page, model.eval(), test) == true).split(IN_TOPIC.tolist())
    assert [int(topic.sum()) for topic in right] == pytest.approx(found("untuned", 80)[0], abs=3)


def test_the_scores_of_runs_are_those_counted_one_by_one():
    torch.manual_seed(0)
    size, longest, reach = 6, 3, 2
    learnt, asked = (torch.randint(1, size, (n, 9)) for n in (20, 3))
    seen = Counter()  # runs, and pasts of runs; what stood around a letter, and with it
    nearest = [(-1, 1), (-1, 1, -2, 2)]
    for row in learnt.tolist():
        wide = [0, 0, *row, 0, 0]
        for i in range(3, 11):  # from the letter behind the first to the last, the row's end
            for n in range(1, longest + 1):
                run = tuple(wide[i - n + 1 : i + 1])
                seen.update([run, ("past", *run[:-1])])
        for i in range(3, 10):
            for steps in nearest:
                around = tuple(wide[i + step] for step in steps)
                seen.update([("around", *around), ("around", *around, "holds", wide[i])])

    def after(run):
        shorter = after(run[1:]) if len(run) > 1 else 1 / size
        return (seen[run] + 3 * shorter) / (seen["past", *run[:-1]] + 3)

    scores = Counts(learnt, size, longest, reach).scores(asked)
    for row, told in zip(asked.tolist(), scores, strict=True):
        for i in range(1, 8):
            wide = [0, 0, 0, *row, 0, 0, 0]
            log_p = []
            for letter in range(size):
                wide[i + 3] = letter
                ends = range(i + 3, i + 3 + longest)
                found_here = [
                    sum(math.log(after(tuple(wide[e - n + 1 : e + 1]))) for e in [*ends][:n])
                    for n in range(2, longest + 1)
                ]
                p = after((letter,))
                for steps in nearest:
                    key = ("around", *(wide[i + 3 + step] for step in steps))
                    p = (seen[*key, "holds", letter] + 3 * p) / (seen[key] + 3)
                    found_here.append(math.log(p))
                log_p.append(found_here)
            odds = torch.tensor(log_p)
            leads = odds.logsumexp(0) - odds[row[i]]
            assert torch.allclose(torch.from_numpy(told[i - 1]), leads, atol=1e-4)


def test_what_the_page_says_of_fine_tuning_is_what_is_stored(words):
    frozen, letters = ([share(x, n).mean() for n in SIZES] for x in ("frozen", "letters"))
    assert (
        f"From 80 labelled rows, an output layer on the frozen vectors finds {frozen[0]:.0f}% of "
        f"the errors, and *letters* {letters[0]:.0f}%; with 1,280, the two are level."
    ) in words
    assert (
        f"From 320 rows, the output layer on the frozen vectors finds {frozen[1]:.0f}%; from "
        f"1,280, the same model from scratch {share('from scratch').mean():.0f}%."
    ) in words
    assert f"Before the first label, the model finds {share('untuned').mean():.0f}%" in words
    three, five = (share(name).mean() for name in ("three", "five"))
    rivals = (
        f"*letters*, from 320 rows, {letters[1]:.0f}%; counts of runs of up to three, {three:.0f}%."
    )
    assert rivals in words
    assert f"of the text of the pre-training find {five:.0f}%, without any label." in words


@pytest.mark.parametrize("rows", SIZES)
def test_over_seeds_and_topics_the_tuned_model_is_ahead_and_behind_as_the_page_says(rows):
    assert lead("tuned", "from scratch", rows)[1] > 0
    assert (lead("tuned", "letters", rows)[1] > 0) == (rows < 1280)
    assert (lead("frozen", "letters", rows)[1] > 0) == (rows < 1280)
    assert lead("frozen", "letters", rows)[2] > 0
    for counts in ("three", "five"):
        assert lead("tuned", counts, rows)[2] < 0 and lead("frozen", counts, rows)[2] < 0
    _, low, high = lead("tuned", "frozen", rows)
    assert low < 0 < high


def test_what_the_page_says_of_its_topics_is_so(words):
    two = sorted(IN_TOPIC)[-2:]
    assert f"Two topics have {sum(two) / IN_TOPIC.sum():.0%} of the rows" in words


def test_more_steps_do_not_help_the_model_from_scratch(words):
    assert "ten times the steps leave that model worse in both seeds tried" in words
    of_steps = {(run["steps"], run["seed"]): run["from scratch"] for run in MEASURED["longer"]}
    assert {run["rows"] for run in MEASURED["longer"]} == {1280}
    for seed in (0, 1):
        assert of_steps[3000, seed] < of_steps[1000, seed] < of_steps[300, seed]


def test_what_the_page_says_of_counts_with_labels_is_what_is_stored(words):
    runs = json.loads((ROOT / "benchmarks" / "longer_counts.json").read_text("utf-8"))["runs"]
    most = [run["labels"][-1] for run in runs]
    counts = fmean(run["counts"] for run in most)
    assert {run["rows"] for run in most} == {1280}
    assert f"With 1,280 labels on top, counts find {counts:.0%} (" in words
    more = [f"{100 * (run['counts and BERT'] - run['counts']):.1f}" for run in most]
    assert f"changes little: by {' and '.join(more)} points".replace("-", "−") in words
    for run in runs:
        told = [100 * run["no labels"][f"runs of {n}"] for n in (3, 5)]
        assert told == pytest.approx([share(x)[run["seed"]] for x in ("three", "five")], abs=0.01)
