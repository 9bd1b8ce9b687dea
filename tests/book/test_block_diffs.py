"""Chapter 9's block with the lines of a later chapter's diff changed is that chapter's layer."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from attention_by_hand import blocks
from solutions import language_model
from solutions.bert import BertLayer
from solutions.captioning import CaptionLayer, CrossAttention

BOOK = Path(__file__).resolve().parents[2] / "book"


def changed(chapter: str, **parts: type) -> type[nn.Module]:
    """`DecoderBlock` after the chapter's diff; `parts` are what only the new lines call.

    A line with + takes the place of the line with - above it, or else of the one that sets the
    same name; if there is none, it follows the line with + before it.
    """
    source = inspect.getsource(language_model.DecoderBlock)
    [diff] = re.findall(r"^```diff\n(.*?)^```", (BOOK / chapter).read_text("utf-8"), re.M | re.S)
    before, gone = "", ""
    for sign, line, note in re.findall(r"^(@@|[+-])(.+?)(?:  # (.*)| @@)?$", diff, re.MULTILINE):
        if sign == "@@":
            name = line.split("(")[0].strip()
            head = re.search(rf"def {name}\(.*?\)", source, re.DOTALL)[0]
            source = source.replace(head, f"def{line}")
        elif sign == "-":
            gone = line.removesuffix("…")
        else:
            begins = gone or re.match(r" +(?:return|[\w.]+ =) ", line)[0]
            old = [text for text in source.splitlines() if text.startswith(begins)]
            assert len(old) == 1 or (not old and not gone)
            after = [line] if old else [before, line]
            if note == "and norm2":
                after.append(line.replace("norm1", "norm2"))
                source = source.replace(old[0].replace("norm1", "norm2") + "\n", "")
            source = source.replace(old[0] if old else before, "\n".join(after))
            before, gone = line, ""
    names = vars(language_model) | parts
    exec(source.replace("DecoderBlock", "Changed"), names)
    return names["Changed"]


def made_of(layer: nn.Module) -> dict[str, dict[str, Any]]:
    """Every part of a layer by name: its kind, its settings and the shapes of its numbers."""
    return {
        name: {key: value for key, value in vars(part).items() if key[0] != "_"}
        | {key: p.shape for key, p in part.named_parameters()}
        | {"kind": type(part) if name else "the layer"}
        for name, part in layer.named_modules()
    }


def test_with_chapter_10s_lines_it_is_made_of_the_parts_of_berts():
    """(`forward` is the reader's.)"""
    mine, bert = changed("10_bert.md")(8, 2, 12, 0.1, 5), BertLayer(8, 2, 12, 0.1, 5)
    assert made_of(mine) == made_of(bert)
    assert made_of(mine) != made_of(BertLayer(8, 2, 12, 0.2, 5))


@pytest.mark.parametrize("training", [False, True])
def test_with_chapter_11s_lines_it_is_vits(training):
    parts = {"PackedAttention": blocks.PackedAttention, "DropPath": blocks.DropPath}
    mine = changed("11_vision_transformer.md", **parts)(8, 2, 12, 0.1, 0.3).train(training)
    vit = blocks.ViTBlock(8, 2, 12, 0.1, 0.3).train(training)
    vit.load_state_dict(mine.state_dict())
    x, found = torch.randn(6, 3, 8), []
    for layer in (mine, vit):
        torch.manual_seed(3)
        found.append(layer(x))
    torch.testing.assert_close(*found)
    assert {mine.norm1.eps, mine.norm2.eps} == {vit.norm1.eps, vit.norm2.eps}


def test_with_chapter_12s_lines_it_is_made_of_the_parts_of_the_captioners():
    mine = changed("12_captioning.md", CrossAttention=CrossAttention)(8, 6, 2, 12, 0.1)
    assert made_of(mine) == made_of(CaptionLayer(8, 6, 2, 12, 0.1))
