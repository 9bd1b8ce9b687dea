"""What chapter 10's page says of its models, its ways to explain and its probes, held to data."""

import json
import platform
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean, stdev

import pytest
import torch
from torch import nn

from attention_by_hand.blocks import BertEmbeddings
from benchmarks.bert import page_definitions
from benchmarks.fine_tuning import by_counts, counted
from solutions.bert import BertLayer
from solutions.vision_transformer import attention_rollout

ROOT = Path(__file__).resolve().parents[2]

MEASURED = ROOT / "benchmarks" / "bert_models.json"
MADE, RUNS, LONGER = json.loads(MEASURED.read_text(encoding="utf-8")).values()
BY_SEED = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"seed {run['seed']}")


def test_there_are_three_seeds_and_where_they_come_from():
    assert sorted(run["seed"] for run in RUNS) == [0, 1, 2]
    assert {"script", "date", "machine", "torch", "rows", "steps"} <= set(MADE)
    assert MADE["rows"] == 200
    assert "/" not in MADE["machine"]


@pytest.fixture(scope="module")
def page():
    """What the page's cells define."""
    return page_definitions()


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_the_pages_rollout_is_the_reference_and_the_wrong_one_only_with_a_single_layer(
    page, batch, layers
):
    torch.manual_seed(batch)
    weights = [torch.rand(batch, 2, 5, 5).softmax(-1) for _ in range(layers)]
    right = attention_rollout(weights)
    assert torch.allclose(page["rollout"](weights), right, atol=1e-6)
    assert torch.allclose(right.sum(-1), torch.ones(batch, 5), atol=1e-6)
    if layers == 1 or batch == 1:
        same = torch.allclose(page["wrong_rollout"](weights), right, atol=1e-3)
        assert same == (layers == 1)


def test_the_letters_around_are_those_around(page):
    rows = page["framed"](torch.randint(5, 20, (2, 6)))
    seen = page["window"](2)(rows).unflatten(-1, (5, -1)).argmax(-1)
    for row, windows in zip(rows.tolist(), seen.tolist(), strict=True):
        wide = [0, 0, *row, 0, 0]
        assert windows == [wide[i : i + 5] for i in range(len(row))]


@pytest.mark.share(0)
@pytest.mark.parametrize("reach", [1, 2, 3])
def test_a_table_of_neighbours_fills_as_many_gaps_as_the_page_says(page, reach):
    """Counted again: the commonest letter between the same neighbours, else between fewer."""
    stood, never_seen = defaultdict(Counter), Counter([page["id_of"][" "]])

    def around(row, i, size):
        row = [0] * size + row + [0] * size
        return tuple(row[i : i + size]), tuple(row[i + size + 1 : i + 2 * size + 1])

    for row in page["train"].tolist():
        for i in range(1, len(row) - 1):
            for size in range(1, reach + 1):
                stood[around(row, i, size)][row[i]] += 1
    sure = best = total = 0
    for row in page["test"].tolist():
        for i in range(1, len(row) - 1):
            keys = (around(row, i, size) for size in range(reach, 0, -1))
            counts = next((stood[key] for key in keys if key in stood), never_seen)
            most = max(counts.values())
            first = [x for x, n in counts.items() if n == most]
            sure += first == [row[i]]
            best += row[i] in first  # of several that are first, the page takes any
            total += 1
    told = MADE["baselines"][f"table, {reach} on each side"]
    assert sure / total - 1e-4 <= told <= best / total + 1e-4
    assert page["by_table"](page["test"], reach) == pytest.approx(told, abs=0.001)


@BY_SEED
def test_what_is_stored_are_shares_and_correlations(run):
    assert LONGER["steps"] == 4 * MADE["steps"]
    shares = [run["test"], run["train"], run["never trained"], *run["probe"]]
    assert all(0 <= share <= 1 for share in [*shares, *MADE["baselines"].values()])
    assert run["agreement"].keys() == run["signed"].keys()
    for mean, half in [*run["agreement"].values(), *run["signed"].values(), run["with the bug"]]:
        assert -1 <= mean - half < mean + half <= 1


def test_what_the_page_says_of_maps_is_what_is_stored():
    words = " ".join((ROOT / "book" / "10_bert.md").read_text(encoding="utf-8").split())
    moves, falls = ([{n: m for n, (m, _) in run[key].items()} for run in RUNS]
                    for key in ("agreement", "signed"))  # fmt: skip

    def least_and_most(found: list[float]) -> str:
        return f"{min(found):.2f} to {max(found):.2f}"

    relevance = least_and_most([run["relevance"] for run in falls])
    others = max(run[name] for run in falls for name in run if name != "relevance")
    assert f"{relevance} is not much, and no other way gets above {others:.2f}" in words
    rollout, ruler = (least_and_most([r[n] for r in moves]) for n in ("rollout", "nearness"))
    assert f"Rollout is best, with {rollout}" in words
    assert f"minus the distance from the gap: {ruler}" in words
    assert all(max(run, key=run.get) == "relevance" for run in falls)
    assert all(max(run, key=run.get) == "rollout" for run in moves)
    behind = [run["last layer's weights"] < run["nearness"] for run in moves]
    assert "behind the ruler in one model (seed 0) and ahead of it in two" in words
    assert [run["seed"] for run, less in zip(RUNS, behind, strict=True) if less] == [0]
    assert "only maps times slopes do better than the ruler" in words
    assert "Rollout does not beat the ruler here." in words
    assert all(run["rollout"] < run["nearness"] < run["relevance"] for run in falls)
    both = [run[key] for run in RUNS for key in ("agreement", "signed")]
    halves = [half for found in both for _, half in found.values()]
    assert "each give or take 0.03 at most" in words and max(halves) < 0.035


@pytest.mark.parametrize("reach", [0, 1])
def test_what_letters_tell_of_topic_and_length_is_what_is_stored(page, reach):
    told = MADE["letters"][f"letters up to {reach} away" if reach else "letters themselves"]
    same = MADE["python"] == platform.python_version()  # another's manual is 1 % longer or so
    assert page["probed"](page["window"](reach)) == pytest.approx(told, abs=0.01 if same else 0.05)


@pytest.mark.share(0)
def test_bert_has_as_many_parameters_as_the_page_says():
    with torch.device("meta"):
        parts = [BertEmbeddings(30_522, 768), nn.Linear(768, 768)]
        parts += [BertLayer(768, 12, 3072) for _ in range(12)]
    assert sum(p.numel() for part in parts for p in part.parameters()) == 109_482_240


NAMES = ("tuned", "from scratch", "frozen", "untuned", "letters", "counts")
TUNED = json.loads((ROOT / "benchmarks" / "fine_tuning.json").read_text(encoding="utf-8"))


def shares(name, rows):
    """The percentages of the five seeds."""
    found = {r["seed"]: 100 * r[name] for r in TUNED["runs"] if r["rows"] == rows}
    assert sorted(found) == [0, 1, 2, 3, 4]
    return list(found.values())


def lead(name, other, rows):
    """The lower end of the 95% interval by which one finds more than the other."""
    leads = [a - b for a, b in zip(shares(name, rows), shares(other, rows), strict=True)]
    return fmean(leads) - 2.776 * stdev(leads) / 5**0.5


def test_what_is_tuned_is_the_encoder_of_the_page():
    made = TUNED["made"]
    assert "/" not in made["machine"] and made["pretraining"] == MADE["steps"]
    assert made["share of gaps"] == RUNS[0]["test"]


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
    log_shares = counted(row.repeat(50, 1), 8)
    assert torch.allclose(log_shares.exp().sum(-1), torch.ones(8, 8))
    for place in range(2, 6):
        wrong = row.clone()
        wrong[0, place] = 7
        assert by_counts(log_shares, wrong).item() == place


def test_frozen_parts_stay_and_the_others_learn(page):
    rows, places = page["mistyped"](page["train"][:20], torch.Generator().manual_seed(1))
    start = page["Bert"](len(page["letters"]), 64, 4, 2)
    tuned = page["fine_tuned"](start, rows, places, ("embeddings", "layers"), steps=2)
    for name, weight in tuned.named_parameters():
        same = torch.equal(weight, start.get_parameter(name))
        assert same == name.startswith(("embeddings", "layers")), name


def test_what_the_page_says_of_fine_tuning_is_what_is_stored():
    words = " ".join((ROOT / "book" / "10_bert.md").read_text(encoding="utf-8").split())
    mean = {(name, rows): fmean(shares(name, rows)) for name in NAMES for rows in (80, 320, 1280)}
    assert "finds 53% of the typing errors, the same model from scratch 24%" in words
    assert "Before the first label, it finds 42%" in words
    assert "counting letters still finds more: 65%" in words
    told = [mean[name, 1280] for name in ("tuned", "from scratch", "untuned", "counts")]
    assert [round(share) for share in told] == [53, 24, 42, 65]
    assert "in each seed, the tuned model finds more than twice as many errors" in words
    for run in TUNED["runs"]:
        assert run["tuned"] > 2 * run["from scratch"]
        assert run["counts"] == max(run[name] for name in NAMES)
    assert "ten times the steps leave that model worse in both seeds tried" in words
    short = {run["seed"]: run["from scratch"] for run in TUNED["runs"] if run["rows"] == 1280}
    long = [run for run in TUNED["longer"] if run["steps"] == 3000]
    assert [run["seed"] for run in long] == [0, 1] and {run["rows"] for run in long} == {1280}
    assert all(run["from scratch"] < short[run["seed"]] for run in long)
    assert "with 80 rows, the tuned model is not ahead of the untuned" in words
    assert mean["tuned", 80] < mean["untuned", 80]
    assert "with 320, it is better to train the output layer alone" in words
    assert lead("frozen", "tuned", 320) > 0 and lead("frozen", "untuned", 320) > 0
    assert "with 1,280, tuning the whole is ahead of both" in words
    assert lead("tuned", "frozen", 1280) > 0 and lead("tuned", "untuned", 1280) > 0
    assert "finds half as many errors as the tuned model; from 1,280, nearly as many" in words
    assert mean["letters", 80] / mean["tuned", 80] == pytest.approx(0.5, abs=0.06)
    assert 0.85 < mean["letters", 1280] / mean["tuned", 1280] < 1
