"""The page *Where things are* says of each model what the model's own code does."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from attention_by_hand import blocks
from attention_by_hand.course import CHAPTERS
from attention_by_hand.figures.architectures import PANELS, known_of
from autograder.student.course import exercises_of
from solutions.transformer import Transformer

PAGE = (Path(__file__).parents[2] / "book/where_things_are.md").read_text(encoding="utf-8")
SLUGS = {slug: number for number, slug in enumerate(CHAPTERS, 1)}


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    text = PAGE.split(f"## {heading}")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


MODELS = {row[0].split("**")[1]: row for row in rows("Seven models in seven columns")}
PARTS = rows("Where each part is")
COLUMNS = (
    *("model", "chapter", "mask", "norm", "activation", "positions", "shared", "learnt"),
    "inference",
)


def said(model: str, column: str) -> str:
    return MODELS[model][COLUMNS.index(column)]


def test_every_model_has_every_column():
    assert len(MODELS) == 7
    assert all(len(row) == len(COLUMNS) and all(row) for row in MODELS.values())


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title.split("  ")[1])
def test_the_picture_shows_what_the_table_says_of_masks(panel):
    torch.manual_seed(1)
    known = torch.tensor(known_of(panel.make(), torch.arange(1, panel.tokens + 1)))
    beside, text = known[:, : panel.beside], known[:, panel.beside :]
    assert beside.all()
    name = panel.title.split("  ")[1].replace("GRU, reading", "GRU encoder–decoder")
    future_hidden = "future" in said(name, "mask") or "before it" in said(name, "mask")
    assert torch.equal(text, text.tril() if future_hidden else torch.ones_like(text))
    assert text.tril().sum() == torch.ones_like(text).tril().sum()


class Called(TorchFunctionMode):
    """Notes the names of torch's functions that run."""

    def __init__(self):
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.add((resolve_name(function) or "").rpartition(".")[2])
        return function(*args, **(kwargs or {}))


LAYERS = {
    "Transformer": lambda: blocks.EncoderLayer(8, 2, 16),
    "GPT": lambda: blocks.DecoderBlock(8, 2, 16),
    "BERT": lambda: blocks.BertLayer(8, 2, 16),
    "ViT": lambda: blocks.ViTBlock(8, 2, 16),
    "BLIP's writer": lambda: blocks.CaptionLayer(8, 6, 2, 16),
}


@pytest.mark.parametrize("name", LAYERS)
def test_norms_stand_and_numbers_are_bent_where_the_table_says(name):
    layer, x, inputs = LAYERS[name]().eval(), torch.randn(1, 3, 8), []
    layer.norm1.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    with Called() as called:
        layer(x)
    before = torch.equal(inputs[0], x)
    assert said(name, "norm").startswith("before" if before else "after")
    bent = {"relu", "gelu", "tanh", "sigmoid"} & called.names
    assert bent == {said(name, "activation").lower()}


def test_the_transformer_can_have_its_norms_before_the_sublayers_and_has_one_more_then():
    assert "before each sublayer with `norm_first`" in said("Transformer", "norm")
    for first in (False, True):
        model = Transformer(5, 5, 8, 2, 1, 16, norm_first=first)
        assert isinstance(model.encoder_norm, nn.LayerNorm) == first


def test_who_shares_a_table_with_the_output_and_who_learns_positions():
    n_vocab, room = 23, 29
    made = {
        "Transformer": blocks.Transformer(n_vocab, n_vocab, 8, 2, 1, 16),
        "GPT": blocks.GPT(n_vocab, room, 8, 2, 1),
        "GRU with attention": blocks.AttentionDecoder(n_vocab, 8, 8, 8),
        "ViT": blocks.VisionTransformer(8, 2, 1, n_vocab, 8, 2, 1),
    }
    matrices = {
        name: [p.shape for p in model.parameters() if p.dim() == 2 and n_vocab in p.shape]
        for name, model in made.items()
    }
    assert len(matrices["GPT"]) == 1  # tokens and output
    assert len(matrices["Transformer"]) == 2  # source; target and output
    assert len(matrices["GRU with attention"]) == 2  # the target's tokens; output
    assert said("GRU with attention", "shared") == "nothing"
    assert said("GPT", "shared") == "embedding and output"
    assert said("Transformer", "shared") == "target embedding and output"
    learnt = {n: "positions" in dict(m.named_modules()) for n, m in made.items()}
    learnt["ViT"] = "positions" in dict(made["ViT"].named_parameters())
    assert learnt == {name: said(name, "positions").startswith("a learnt table") for name in made}


def test_what_the_tables_name_is_in_the_chapter_that_they_give():
    for _, cell, *_ in [*PARTS, *MODELS.values()]:
        for piece in cell.split("{doc}")[1:]:
            number, slug = re.match(r"`(\d+) <\d+_(\w+)>`", piece).groups()
            assert SLUGS[slug] == int(number)
            asked = {exercise.name for exercise in exercises_of(slug)}
            for name in re.findall(r"`(\w+)`", piece.split(">`")[1]):
                assert name in asked or hasattr(blocks, name), name


def test_each_later_use_of_a_part_names_what_that_chapter_asks():
    for *_, used in PARTS:
        for number, names in re.findall(r"(\d+): ((?:`\w+`(?:, )?)+)", used):
            asked = {exercise.name for exercise in exercises_of(CHAPTERS[int(number) - 1])}
            assert set(re.findall(r"`(\w+)`", names)) <= asked


def test_a_changed_token_is_seen_where_it_counts_and_nowhere_else():
    previous = known_of(lambda ids: torch.stack([ids, ids.roll(1)], dim=1), torch.arange(4))
    assert previous == [
        [True, False, False, True],
        [True, True, False, False],
        [False, True, True, False],
        [False, False, True, True],
    ]
