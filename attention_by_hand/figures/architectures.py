"""Who can know of whom in the book's models: found out by changing one token at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import torch
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle
from torch import Tensor, nn

from attention_by_hand import plots
from attention_by_hand.blocks import (
    GPT,
    BertEmbeddings,
    BertLayer,
    CaptionLayer,
    GRUEncoder,
    Transformer,
    VisionTransformer,
)

WRITTEN, READ, SIDE = 6, 4, 2  # tokens in a text; those read beside it; patches a side
KINDS, WIDTH, HEADS, LAYERS = 16, 16, 2, 2


def known_of(model: Callable[[Tensor], Tensor], tokens: Tensor) -> list[list[bool]]:
    """Which outputs change with which token.

    `model` makes of tokens `(n,)` an output `(m, …)`, a row for each place; the result is `(m, n)`.
    """
    before, columns = model(tokens), []
    for place in range(len(tokens)):
        changed = tokens.clone()
        changed[place] = changed[place] + 1
        columns.append((model(changed) != before).flatten(1).any(dim=1))
    return torch.stack(columns, dim=1).tolist()


def recurrent() -> Callable[[Tensor], Tensor]:
    """The states of chapter 8's reader."""
    reader = GRUEncoder(KINDS, WIDTH, WIDTH)
    return lambda ids: reader(ids[None])[0][0]


def transformer() -> Callable[[Tensor], Tensor]:
    """What chapter 7's decoder says at each place of the target; the source comes first."""
    model = Transformer(KINDS, KINDS, WIDTH, HEADS, LAYERS, WIDTH, dropout=0.0).eval()
    return lambda ids: model(ids[None, :READ], ids[None, READ:])[0]


def gpt() -> Callable[[Tensor], Tensor]:
    """What chapter 9's model says at each place."""
    model = GPT(KINDS, WRITTEN, WIDTH, HEADS, LAYERS).eval()
    return lambda ids: model(ids[None])[0]


def bert() -> Callable[[Tensor], Tensor]:
    """A vector at each place, from chapter 10's layers."""
    layers = [BertLayer(WIDTH, HEADS, WIDTH) for _ in range(LAYERS)]
    model = nn.Sequential(BertEmbeddings(KINDS, WIDTH, WRITTEN), *layers).eval()
    return lambda ids: model(ids[None])[0]


def vision() -> Callable[[Tensor], Tensor]:
    """A vector at each place of chapter 11's model, the class token's first; a patch is a pixel."""
    model = VisionTransformer(SIDE, 1, 1, KINDS, WIDTH, HEADS, LAYERS).eval()
    seen: list[Tensor] = []
    model.norm.register_forward_hook(lambda norm, x, y: seen.append(y))

    def at_each_place(patches: Tensor) -> Tensor:
        model(patches.reshape(1, 1, SIDE, SIDE).float())
        return seen.pop()[0]

    return at_each_place


def captioner() -> Callable[[Tensor], Tensor]:
    """A vector at each word, from chapter 12's layers; the patches of the picture come first."""
    past = torch.ones(WRITTEN, WRITTEN, dtype=torch.bool).tril()
    words, patches = nn.Embedding(KINDS, WIDTH), nn.Embedding(KINDS, 2 * WIDTH)
    layers = [CaptionLayer(WIDTH, 2 * WIDTH, HEADS, WIDTH).eval() for _ in range(LAYERS)]

    def at_each_word(ids: Tensor) -> Tensor:
        memory, x = patches(ids[None, :READ]), words(ids[None, READ:])
        for layer in layers:
            x = layer(x, memory, self_mask=past)
        return x[0]

    return at_each_word


@dataclass(frozen=True)
class Model:
    """A panel: its title, the model, how many tokens stand in it, and what its two axes are."""

    title: str
    make: Callable[[], Callable[[Tensor], Tensor]]
    tokens: int
    columns: str
    rows: str
    beside: int = 0  # of the tokens, the first that are read and not written
    used: int | None = None  # the row that alone is read at the end


PANELS = (
    Model("8  GRU, reading", recurrent, WRITTEN, "words", "states"),
    Model("9  GPT", gpt, WRITTEN, "words", "words"),
    Model("10  BERT", bert, WRITTEN, "words", "words"),
    Model("7  Transformer", transformer, READ + WRITTEN, "source | target", "target", READ),
    Model("12  BLIP's writer", captioner, READ + WRITTEN, "patches | words", "words", READ),
    Model("11  ViT", vision, SIDE * SIDE, "patches", "class, patches", 0, 0),
)


def who_knows_whom() -> None:
    """A square for each place that comes out (row) and each token that went in (column)."""
    torch.manual_seed(0)
    figure, axes = plt.subplots(2, 3, figsize=(7.2, 5.0))
    for axis, model in zip(axes.flat, PANELS, strict=True):
        with torch.no_grad():
            known = known_of(model.make(), torch.arange(1, model.tokens + 1))
        axis.imshow(known, cmap=ListedColormap([plots.PAPER, plots.SKY]), vmin=0, vmax=1)
        rows, columns = len(known), len(known[0])
        axis.set_xticks([i - 0.5 for i in range(columns + 1)], minor=True)
        axis.set_yticks([i - 0.5 for i in range(rows + 1)], minor=True)
        axis.grid(which="minor", color=plots.GREY, linewidth=0.6)
        axis.grid(which="major", visible=False)
        axis.tick_params(which="both", length=0, labelbottom=False, labelleft=False)
        if model.beside:
            axis.axvline(model.beside - 0.5, color=plots.BLACK, linewidth=2.5)
        if model.used is not None:
            edge: dict[str, Any] = {"fill": False, "edgecolor": plots.VERMILLION, "linewidth": 2.5}
            axis.add_patch(Rectangle((-0.5, model.used - 0.5), columns, 1, **edge))
        axis.set_title(model.title)
        axis.set_xlabel(model.columns)
        axis.set_ylabel(model.rows)
        for spine in axis.spines.values():
            spine.set_visible(True)
