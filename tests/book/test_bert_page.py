"""What chapter 10's page says of its models, its ways to explain and its probes, held to data."""

import json
import lzma
import platform
import re
import statistics
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from attention_by_hand.blocks import BertEmbeddings
from attention_by_hand.models.checkpoints import MEASUREMENTS, file_of
from attention_by_hand.models.safetensors import unpacked
from benchmarks.bert import page_definitions
from benchmarks.second import trained_longer
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
    assert page["window"](2, mixed=1)(rows).shape == (*rows.shape, 64)


def test_slope_times_change_is_how_fast_the_answer_falls_on_the_way_to_a_gap(page):
    torch.manual_seed(0)
    model = page["Bert"](len(page["letters"]), 16, 2, 2).double().eval()
    ids, place, step = torch.randint(5, 20, (page["LENGTH"],)), 9, 1e-5
    ids[place] = page["MASK"]
    told = page["slope_times_change"](model, ids, place)
    tokens = model.embeddings.tokens.weight.detach()
    best = model(ids[None])[0, place].argmax()
    for j in (1, 8, 30):
        found = []
        for part in (0.0, step):
            on_the_way = torch.zeros(len(ids), 16, dtype=torch.double)
            on_the_way[j] = part * (tokens[page["MASK"]] - tokens[ids[j]])
            hook = model.embeddings.norm.register_forward_pre_hook(
                lambda _, inputs, more=on_the_way: (inputs[0] + more,)
            )
            found.append(model(ids[None])[0, place].log_softmax(-1)[best].item())
            hook.remove()
        assert (found[0] - found[1]) / step == pytest.approx(told[j].item(), rel=1e-3, abs=1e-8)


@pytest.mark.share(0)
@pytest.mark.parametrize("reach", [1, 2, 3, 4])
def test_a_table_of_neighbours_fills_as_many_gaps_as_the_page_says(page, reach):
    """Counted again: the commonest letter between the same neighbours, else with one fewer."""
    stood, never_seen = defaultdict(Counter), Counter([page["id_of"][" "]])
    sides = [{(n // 2, n - n // 2), (n - n // 2, n // 2)} for n in range(2 * reach, 1, -1)]
    each = set().union(*sides)

    def around(row, i, left, right):
        row = [0] * reach + row + [0] * reach
        i += reach
        return tuple(row[i - left : i]), tuple(row[i + 1 : i + 1 + right])

    for row in page["train"].tolist():
        for i in range(1, len(row) - 1):
            for pair in each:
                stood[around(row, i, *pair)][row[i]] += 1
    sure = best = total = 0
    seen = []
    for row in page["test"].tolist():
        for i in range(1, len(row) - 1):
            found = (
                sum((stood.get(around(row, i, *pair), Counter()) for pair in pairs), Counter())
                for pairs in sides
            )
            widest = next(found)
            seen.append(widest.total())
            counts = widest or next(filter(None, found), never_seen)
            most = max(counts.values())
            first = [x for x, n in counts.items() if n == most]
            sure += first == [row[i]]
            best += row[i] in first  # of several that are first, the page takes any
            total += 1
    told = MADE["baselines"][f"table, {reach} on each side"]
    assert sure / total - 1e-4 <= told <= best / total + 1e-4
    assert page["by_tables"](page["test"], reach)[-1].mean() == pytest.approx(told, abs=0.001)
    assert page["times_seen"](page["test"], reach).tolist() == seen


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
    forty = json.loads(MEASUREMENTS.read_text(encoding="utf-8"))["agreement"]["found"]["relevance"]
    told = (
        f"(this page's model, a fourth training, by {statistics.mean(forty[1]):.2f}, over 40 rows"
    )
    assert f"{relevance} {told} as over {MADE['rows']})" in words
    assert {round(run["relevance"], 1) for run in falls} == {0.3}
    assert f"agrees with the fall by {relevance} (" in words
    assert f"at maps or at distances gets above {others:.2f}" in words
    rollout, ruler = (least_and_most([r[n] for r in moves]) for n in ("rollout", "nearness"))
    assert f"rollout agrees by {rollout}, nearness by {ruler}" in words
    assert all(max(run, key=run.get) == "relevance" for run in falls)
    assert all(max(run, key=run.get) == "rollout" for run in moves)
    two, *more = (MADE["baselines"][f"table, {n} on each side"] for n in (2, 3, 4))
    assert f"single seed: {LONGER['test']:.1%}, where the table with two neighbours" in words
    assert f"on each side has {two:.1%}, and the larger ones {more[0]:.0%}; where" in words
    assert f"{more[0]:.0%}" == f"{more[1]:.0%}"
    assert f"where its letters were never seen, {LONGER['two never seen']:.0%})" in words
    assert all(run["train"] > run["test"] + 0.02 for run in RUNS)
    behind = [run["last layer's weights"] < run["nearness"] for run in moves]
    assert "behind nearness in one model (seed 0) and ahead of it in two" in words
    assert [run["seed"] for run, less in zip(RUNS, behind, strict=True) if less] == [0]
    assert "Rollout does not beat nearness here." in words
    assert all(run["rollout"] < run["nearness"] < run["relevance"] for run in falls)
    both = [run[key] for run in RUNS for key in ("agreement", "signed")]
    halves = [half for found in both for _, half in found.values()]
    assert "All are within ± 0.03." in words and max(halves) < 0.035


def test_the_page_tells_what_the_other_code_found_after_more_steps():
    words = " ".join((ROOT / "book" / "10_bert.md").read_text(encoding="utf-8").split())
    found = re.search(
        r"model ([\d.]+)%, tables of two and three ([\d.]+) and ([\d.]+)%; .*? ([\d.]+), ([\d.]+)",
        " ".join(trained_longer.__doc__.split()),
    )
    model, two, three, *never_seen = map(float, found.groups())
    said = f"fills in {model:.0f} letters in a hundred, where tables with two and with three"
    assert f"{said} neighbours fill in {two:.0f} and {three:.0f} (" in words
    assert "level with this table or a little ahead of it, and behind larger ones" in words
    bound = MADE["baselines"]["table, 2 on each side"] - LONGER["test"]
    assert abs(bound) < 0.01 and two < model < three
    assert never_seen[0] > never_seen[1]


def test_what_the_page_says_of_the_probe_is_what_is_stored():
    words = " ".join((ROOT / "book" / "10_bert.md").read_text(encoding="utf-8").split())
    said = (
        "for {:.0f} to {:.0f}% of the rows. But training need not have taught it this: "
        "untrained encoders have it for {:.0f} to {:.0f}%,",
        "{:.0f} to {:.0f}% of the letters, from untrained ones for {:.0f} to {:.0f}%.",
    )
    for k, told in enumerate(said):
        shares = ([100 * run[x][k] for run in RUNS] for x in ("probe", "probe, never trained"))
        assert told.format(*(end for each in shares for end in (min(each), max(each)))) in words
    bag = 100 * MADE["letters"]["letters themselves"][0]
    assert f"how often each letter occurs tells it for {bag:.0f}%." in words
    near = 100 * MADE["letters"]["letters up to 2 away"][1]
    assert f"letters up to two away, without any model, tell it for {near:.0f}%" in words
    mixed = {f"{100 * length:.0f}%" for _, length in MADE["mixed"]}
    assert mixed == {"35%"} and "the letters up to two away tell it for 35%." in words


@pytest.mark.parametrize("reach", [0, 1])
def test_what_letters_tell_of_topic_and_length_is_what_is_stored(page, reach):
    told = MADE["letters"][f"letters up to {reach} away" if reach else "letters themselves"]
    same = MADE["python"] == platform.python_version()  # another's manual is 1 % longer or so
    assert page["probed"](page["window"](reach)) == pytest.approx(told, abs=0.01 if same else 0.05)


def test_random_mixtures_of_letters_fill_in_as_many_gaps_as_the_page_says(page):
    words = (ROOT / "book" / "10_bert.md").read_text(encoding="utf-8")
    assert "under an output layer trained alike, fills in 37 to 40%" in words
    mixed = page["with_output"](SimpleNamespace(encode=page["window"](2, mixed=0)))
    assert mixed == pytest.approx(0.37, abs=0.015)


@pytest.mark.share(0)
def test_bert_has_as_many_parameters_as_the_page_says():
    with torch.device("meta"):
        parts = [BertEmbeddings(30_522, 768), nn.Linear(768, 768)]
        parts += [BertLayer(768, 12, 3072) for _ in range(12)]
    assert sum(p.numel() for part in parts for p in part.parameters()) == 109_482_240


@pytest.mark.nightly
def test_the_pages_model_agrees_as_far_over_as_many_rows_as_the_stored_ones(page):
    model = page["untrained"](0)
    state, _ = unpacked(lzma.decompress(file_of("encoder").read_bytes()))
    model.load_state_dict(state)
    rows = page["test"][:: len(page["test"]) // MADE["rows"]][: MADE["rows"]]
    _, falls = page["agreement"](model.eval(), rows)["relevance"]
    text = (ROOT / "book" / "10_bert.md").read_text(encoding="utf-8")
    assert f"by {falls.mean():.2f}, over 40 rows as over {MADE['rows']}" in text
