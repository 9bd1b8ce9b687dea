"""What chapter 10's page says of its models, its ways to explain and its probes, held to data."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from solutions.bert import BertEmbeddings, BertLayer

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "benchmarks" / "bert_models.json"
MADE, RUNS = json.loads(MEASURED.read_text(encoding="utf-8")).values()
BY_SEED = pytest.mark.parametrize("run", RUNS, ids=lambda run: f"seed {run['seed']}")


def test_there_are_three_seeds_and_where_they_come_from():
    assert sorted(run["seed"] for run in RUNS) == [0, 1, 2]
    assert {"script", "date", "machine", "torch", "rows", "steps"} <= set(MADE)
    assert MADE["rows"] == 200
    assert "/" not in MADE["machine"]


@BY_SEED
def test_bert_beats_the_best_of_the_counts_and_no_untrained_encoder_does_anything(run):
    best = max(MADE["baselines"].values())
    assert best == MADE["baselines"]["both neighbours, counted"]
    assert run["test"] > best + 0.1
    assert run["never trained"] < MADE["baselines"]["always the space"] + 0.005
    assert run["train"] > run["test"]


@BY_SEED
def test_the_training_takes_a_minute_and_a_half_at_most(run):
    assert run["cpu_seconds"] <= 90


@BY_SEED
def test_relevance_leads_where_the_sign_counts_and_is_not_ahead_of_nearness_where_it_does_not(run):
    size, sign = run["agreement"], run["signed"]
    for way, (mean, half) in sign.items():
        if way != "relevance":
            assert mean + half < sign["relevance"][0] - sign["relevance"][1], way
    assert size["relevance"][0] - size["relevance"][1] < size["nearness"][0] + size["nearness"][1]
    assert min(size, key=lambda way: size[way][0]) == "rollout"


def test_the_weights_of_the_last_layer_agree_least_but_one_or_best_as_luck_has_it():
    behind = [run["agreement"]["last layer's weights"][0] for run in RUNS]
    ruler = [run["agreement"]["nearness"][0] for run in RUNS]
    best = [max(run["agreement"], key=lambda way: run["agreement"][way][0]) for run in RUNS]
    assert behind[0] < ruler[0] - 0.05
    assert best[1:] == ["last layer's weights"] * 2
    right = [run["test"] for run in RUNS]
    assert max(right) - min(right) < 0.02


@BY_SEED
def test_the_topic_is_read_from_letters_as_well_and_the_length_of_a_word_is_not(run):
    topic, length = zip(run["probe"], run["probe, its table"], run["probe, never trained"],
                        MADE["letters"], strict=True)  # fmt: skip
    assert max(topic[1:]) > topic[0] - 0.01, "some control names the topic as well"
    assert length[0] > max(length[1:]) + 0.08


def test_bert_has_as_many_parameters_as_the_page_says():
    with torch.device("meta"):
        parts = [BertEmbeddings(30_522, 768), nn.Linear(768, 768)]
        parts += [BertLayer(768, 12, 3072) for _ in range(12)]
    assert sum(p.numel() for part in parts for p in part.parameters()) == 109_482_240
