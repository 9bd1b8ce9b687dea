"""Chapter 9's GPT trained beforehand: its weights, what is stored of it, and what the page says."""

import json
import platform
import re
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from test_language_model_page import page_functions

from attention_by_hand import blocks
from attention_by_hand.data import python_manual
from attention_by_hand.models import gpt
from benchmarks import english, pretrained_gpt
from benchmarks.second import sentences_drawn, trained_writer
from solutions.language_model import GPT, byte_pair_encode, generate

ROOT = Path(__file__).resolve().parents[2]
STORED = json.loads((ROOT / "benchmarks" / "pretrained_gpt.json").read_text("utf-8"))
PAGE = (ROOT / "book" / "09_language_model.md").read_text("utf-8")


def trained() -> GPT:
    model = GPT(len(gpt.merges()) + 257, **gpt.SIZES)
    model.load_state_dict(gpt.weights())
    return model.eval()


def test_the_weights_take_less_than_a_mebibyte_and_are_half_a_million_at_most():
    assert gpt.WEIGHTS.stat().st_size < 2**20
    assert sum(p.numel() for p in trained().parameters()) < 500_000


def test_merges_and_weights_come_back_as_they_were_saved(tmp_path):
    merges = [("a", " "), ("é", "\x85"), ("Ã", "ab")]
    gpt.save({"x": torch.tensor([0.5, -2.0])}, merges, tmp_path / "some.bin")
    assert gpt.merges(tmp_path / "some.bin") == merges
    assert gpt.weights(tmp_path / "some.bin")["x"].tolist() == [0.5, -2.0]


def test_tokens_join_to_the_text_and_begin_with_the_end_of_another():
    tokens = pretrained_gpt.Tokens(gpt.merges())
    texts = ["Return the sum of the two.\nIt is new.\n", "Größe: 5 €.\n"]
    ids = tokens.encode([text.encode().decode("latin-1") for text in texts]).tolist()
    assert ids.count(0) == 2 and tokens.decode(ids) == "".join(texts)
    assert tokens.lengths[ids].sum() == len("".join(texts).encode())
    pieces = byte_pair_encode(" function", gpt.merges())
    assert [tokens.tokens[i] for i in tokens.encode(["is function"]).tolist()[1:]][1:] == pieces


def test_what_is_stored_is_of_all_the_text():
    text = STORED["text"]
    for runs in (STORED["seeds"], STORED["page"]):
        assert [run["seed"] for run in runs] == [0, 1, 2]
    assert sum(row[-1] for row in text["sources"]) == sum(text["bytes"].values())
    for part, least in english.HELD_OUT.items():
        assert sum(row[-1] for row in text["held out"][part]) == text["bytes"][part] >= least
    assert text["of these in training"] == 0 < text["runs of words held out"]


def test_the_page_links_all_packages_each_with_its_licence():
    rows = STORED["text"]["sources"]
    assert pretrained_gpt.SOURCES.read_text("utf-8") == pretrained_gpt.listed(rows)
    assert f'href="../_static/{pretrained_gpt.SOURCES.name}"' in PAGE
    pinned = {d.metadata["Name"]: d.version for d in distributions()}
    here = [row for row in rows if pinned.get(row[0]) == row[1]]
    assert here and all(english.licence(name) == said for name, _, said, *_ in here)
    assert not {said for _, _, said, *_ in rows} & {"", "UNKNOWN", "see its files"}


def test_the_page_says_what_a_byte_costs_each_of_the_two_models():
    ours, of_page = ([run["test"] for run in STORED[name]] for name in ("seeds", "page"))
    best = min(STORED["text"]["compressors"].values())
    by_ppm = json.loads((ROOT / "benchmarks" / "ppm.json").read_text("utf-8"))["English"]
    assert max(ours) < by_ppm["primed"] < best < min(of_page)
    said = (
        f"{min(ours):.2f} to {max(ours):.2f} bits per byte (three seeds), "
        f"primed PPM {by_ppm['primed']:.2f}, "
        f"primed `xz` {STORED['text']['compressors']['xz -9, primed']:.2f}, "
    )
    assert said in PAGE


def test_the_model_is_ahead_of_primed_ppm_with_other_documents_too():
    stored = [json.loads((ROOT / "benchmarks" / f"{name}.json").read_text("utf-8"))
              for name in ("ppm", "kneser_ney")]  # fmt: skip
    by_ppm, by_counts = stored[0]["English"], stored[1]
    assert by_ppm["sizes"] == by_counts["sizes"]
    added, sizes = 8 * np.array(by_ppm["added"]), np.array(by_ppm["sizes"])
    assert added.sum() / sizes.sum() == pytest.approx(by_ppm["primed"], abs=1e-4)
    lead = added - by_counts["GPT"]["documents"]
    drawn = np.random.default_rng(1).integers(len(sizes), size=(10_000, len(sizes)))
    assert np.percentile(lead[drawn].sum(1) / sizes[drawn].sum(1), 2.5) > 0


def test_the_page_says_what_counting_the_same_text_costs():
    found = json.loads((ROOT / "benchmarks" / "kneser_ney.json").read_text("utf-8"))
    costs = {kind: found[kind] for kind in ("tokens", "bytes")}
    assert found["GPT"]["test"] == pytest.approx(STORED["seeds"][0]["test"], abs=2e-3)
    for kind in ("GPT", *costs):
        size = sum(found["sizes"])
        assert sum(found[kind]["documents"]) / size == pytest.approx(found[kind]["test"], abs=1e-4)
    best = min(STORED["text"]["compressors"].values())
    assert max(run["test"] for run in STORED["seeds"]) < costs["tokens"]["test"] < best
    assert costs["tokens"]["longest"] == 6 and costs["tokens"]["test"] < costs["bytes"]["test"]
    assert f"counts of up to six tokens {costs['tokens']['test']:.2f}." in PAGE
    on = found["tokens, going on"]
    assert on["longest"] == 6 and f"while they read the test, {on['test']:.2f}: the" in PAGE
    sizes = np.array(found["sizes"])
    lead = np.array(on["documents"]) - found["GPT"]["documents"]
    drawn = np.random.default_rng(0).integers(len(sizes), size=(10_000, len(sizes)))
    ends = np.percentile(lead[drawn].sum(1) / sizes[drawn].sum(1), (2.5, 97.5))
    told = [f"{end:.3f}".replace("-", "−") for end in (lead.sum() / sizes.sum(), *ends)]
    lies = "ahead by {} (with the documents drawn anew, 95% of the leads lie between {} and {})."
    assert lies.format(*told) in PAGE
    assert ends[0] < 0 < ends[1], "level"
    assert f"counts that go on are level with it, at {on['test']:.2f}." in PAGE


def test_the_page_says_how_many_sentences_are_grammatical():
    """Its table is what was judged; the intervals are Wilson's."""
    rows = json.loads((ROOT / "benchmarks" / "sentences.json").read_text("utf-8"))
    for shown, name in {
        "people's, held out": "held out",
        "this model's, 0.5": "GPT, 0.5",
        "counts of up to six tokens, 0.8": "counts, 0.8",
        "this model's, 0.8": "GPT, 0.8",
        "counts of up to six tokens, 0.5": "counts, 0.5",
        "this model's, 0.5, drawn anew": "GPT, 0.5, once more",
    }.items():
        first, again = ([row[n] for row in rows if row[0] == name] for n in (2, 3))
        good, whole, later = sum(x != "x" for x in first), first.count("s"), 60 - again.count("x")
        low, high = (100 * x for x in binomtest(good, len(first)).proportion_ci(method="wilson"))
        assert len(first) == 60
        said = f"| {shown} | {good} | {low:.0f} to {high:.0f} % | {whole} | {later} |"
        assert said in PAGE
    same = sum((first == "x") == (again == "x") for *_, first, again, _ in rows)
    assert f"agree on {same} of {len(rows)}" in PAGE
    people = [row[2] for row in rows if row[0] == "held out, once more"]
    passed = len(people) - people.count("x")
    assert f"with {len(people)} sentences of people, of which {passed} passed" in PAGE
    counts, *ours = (sum(known for whose, known, *_ in rows if whose == name)
                     for name in ("counts, 0.5", "GPT, 0.5", "GPT, 0.5, once more"))  # fmt: skip
    assert f"the training text has {counts} word for word; of the model's, none" in PAGE
    assert ours == [0, 0]
    new = [first for name, known, first, *_ in rows if name == "counts, 0.5" and not known]
    assert f"Of the other {len(new)}, {len(new) - new.count('x')} are grammatical" in PAGE


def test_the_page_says_what_was_found_when_sentences_were_drawn_again():
    found = " ".join(sentences_drawn.__doc__.split())
    both = r"(\d+) and (\d+)"
    told = rf"{both} by the model, {both} by the counts, of which {both} stand in the training text"
    numbers = re.search(told, found).groups()
    said = "{} and {} of 60 for the model, {} and {} for counts, of which {} and {} are copies"
    assert said.format(*numbers) in PAGE


def test_the_page_says_what_is_needed_to_train_it_again():
    made, sizes = pretrained_gpt, gpt.SIZES
    assert (sizes["num_layers"], sizes["num_heads"]) == (3, 4)
    wide = f"three blocks, four heads, $d_\\text{{model}} = {sizes['d_model']}$"
    assert f"({wide}, {made.MERGES:,} merges)" in PAGE and len(gpt.merges()) == made.MERGES
    rate = f"with a rate that rises to {made.MOST} in {made.WARMUP} steps, and no dropout"
    assert f"{made.STEPS:,} steps of {made.BATCH} windows, {rate}; all else is as there" in PAGE
    assert {m.p for m in trained().modules() if isinstance(m, torch.nn.Dropout)} == {0}
    second = trained_writer
    assert (second.ROWS, second.WARM_UP, second.MOST) == (made.BATCH, made.WARMUP, made.MOST)
    told = " ".join(second.__doc__.split())
    first = [run["test"] for run in STORED["seeds"]]
    assert "three seeds {:.3f}, {:.3f} and {:.3f})".format(*first) in told
    again = float(re.search(r"([\d.]+) bits per byte held out", told)[1])
    assert min(first) < again < max(first)


def test_a_seed_takes_half_an_hour_of_one_core_at_most():
    made = STORED["made"]
    assert made["steps"] == pretrained_gpt.STEPS
    assert made["steps"] * made["seconds a step, one core"] < 1800


@pytest.mark.share(0)
def test_the_weights_are_those_whose_bits_are_stored():
    """On the manual's held-out topics, each token with half a window before it, all at once."""
    if STORED["made"]["python"] != platform.python_version():
        pytest.skip(f"the manual is another one: measured on Python {STORED['made']['python']}")
    tokens, half = pretrained_gpt.Tokens(gpt.merges()), gpt.SIZES["context_size"] // 2
    texts = [t.encode().decode("latin-1") for t in python_manual.documents("test").values()]
    ids, nats = tokens.encode(texts), 0.0
    model = blocks.GPT(len(tokens.tokens), **gpt.SIZES).eval()
    model.load_state_dict(gpt.weights())
    with torch.no_grad():
        for start in range(0, len(ids) - half, half):
            log_p = model(ids[None, start : start + 2 * half])[0].log_softmax(-1)
            for t in range(start + half if start else 1, min(start + 2 * half, len(ids))):
                nats -= log_p[t - 1 - start, ids[t]].item()
    size = sum(len(text) for text in texts)
    assert nats / np.log(2) / size == pytest.approx(STORED["seeds"][0]["manual"], abs=2e-3)


def came_after_the_same(ids: list[int], i: int) -> list[int]:
    """The places up to i whose token came after an earlier one that is like token i."""
    return [j for j in range(1, i + 1) if ids[j - 1] == ids[i]]


def test_layer_2_head_0_looks_back_in_circles_and_does_not_find_what_random_tokens_repeat():
    """What the page says, and its table, computed place by place."""
    model, tokens = trained(), pretrained_gpt.Tokens(gpt.merges())
    given, look_back = page_functions(
        "given_to_what_came_next", "look_back", torch=torch, pretrained=model
    )

    def shares(ids: list[int], first: int) -> tuple[torch.Tensor, float]:
        weights, rows, even = look_back(ids), [], []
        for i in range(first, len(ids)):
            if places := came_after_the_same(ids, i):
                rows.append(weights[:, :, i, places].sum(-1))
                even.append(len(places) / (i + 1))
        mean = torch.stack(rows).mean(0)
        found, equal = given(ids, first)
        assert torch.allclose(found, mean, atol=1e-6)
        assert equal == pytest.approx(np.mean(even), abs=1e-6)
        return mean, float(np.mean(even))

    for text in ("The well is", "If the object is", "Return the", "The first", "When the"):
        start = tokens.encode([text]).tolist()
        ids = generate(model, torch.tensor([start]), 60, temperature=0)[0].tolist()
        mean, even = shares(ids, len(start))
        assert divmod(int(mean.argmax()), 4) == (2, 0) and mean.max() > 1.5 * even
    luck, found = torch.Generator().manual_seed(3), []
    for _ in range(8):
        row = torch.randint(257, len(tokens.tokens), (50,), generator=luck).tolist()
        mean, even = shares([0, *row, *row], 51)
        found.append((mean[2, 0].item(), even))
    its, even = np.mean(found, 0)
    assert even < its < 1.5 * even


@pytest.mark.nightly
def test_the_text_can_be_made_again():
    """Where the same documents are held out: byte pairs, in any order, and bits per byte."""
    parts = english.split(english.documents())
    held_out = {
        part: [[*name, len(text.encode())] for name, text in parts[part].items()]
        for part in english.HELD_OUT
    }
    if held_out != STORED["text"]["held out"]:
        pytest.skip("another Python or other packages: not the documents that were held out")
    learnt = pretrained_gpt.learn_tokens(pretrained_gpt.as_bytes(parts["train"])).merges
    assert len(set(learnt) & set(gpt.merges())) > 0.95 * len(gpt.merges())
    kept = pretrained_gpt.Tokens(gpt.merges())
    ids = kept.encode(pretrained_gpt.as_bytes(parts["test"]))
    bits = pretrained_gpt.bits_per_byte(trained(), ids, kept.lengths)
    assert bits == pytest.approx(STORED["seeds"][0]["test"], abs=2e-3)
