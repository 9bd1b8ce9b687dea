"""A small BLIP that describes letters: its vocabulary, the model, and one that has been trained.

Pictures and names come from `glyphs`. The weights in `captioner.bin` were made by
`benchmarks/captions.py`, which says how; they are half-precision arrays in numpy's compressed
format, without pickled objects, so that reading them runs nothing.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import PatchEmbedding, ViTBlock
from attention_by_hand.blocks.captions import CaptionLayer
from attention_by_hand.data.glyphs import SIZE, Glyph, glyphs, picture

WEIGHTS = Path(__file__).with_name("captioner.bin")
SPECIAL = PAD, CLS, ENC, DEC, EOS = range(5)
GRID = 8  # places of the memory, both ways


@cache
def vocabulary() -> tuple[str, ...]:
    """The five special tokens, then all words of all names, in alphabetical order."""
    words = {word for glyph in glyphs() for word in glyph.name.split()}
    return ("[PAD]", "[CLS]", "[ENC]", "[DEC]", "[EOS]", *sorted(words))


@cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(vocabulary())}


def longest() -> int:
    """The number of tokens of the longest caption, [DEC] and [EOS] included."""
    return max(len(glyph.name.split()) for glyph in glyphs()) + 2


def ids_of(names: Sequence[str]) -> Int[Tensor, "B n"]:
    """Names → ids `(B, longest())`: [DEC], the words, [EOS], padding.

    Raises a `KeyError` for a word that is in no name.
    """
    ids = torch.full((len(names), longest()), PAD)
    for row, name in zip(ids, names, strict=True):
        tokens = [DEC, *(_numbers()[word] for word in name.split()), EOS]
        row[: len(tokens)] = torch.tensor(tokens)
    return ids


def words_of(ids: Int[Tensor, "n"]) -> str:
    """The words of a caption, without special tokens."""
    return " ".join(vocabulary()[i] for i in ids.tolist() if i not in SPECIAL)


def prompt() -> Int[Tensor, "2"]:
    """What every caption begins with and no model has to predict: [DEC] LATIN."""
    return ids_of(["LATIN"])[0, :2]


def pictures(of: Sequence[Glyph]) -> Float[Tensor, "B 32 32"]:
    """The pictures of some glyphs, 0 for paper and 1 for ink."""
    return torch.from_numpy(np.stack([picture(glyph) for glyph in of]))


def convolutions(d_model: int, width: int = 32, batch_norm: bool = True) -> nn.Sequential:
    """Three layers of convolutions that make 8 × 8 places of 32 × 32 pixels."""
    sizes = (1, width, width, d_model)
    layers: list[nn.Module] = []
    for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
        norm = nn.BatchNorm2d(fan_out) if batch_norm else nn.Identity()
        layers += [nn.Conv2d(fan_in, fan_out, 3, padding=1), norm, nn.ReLU()]
        if fan_out != d_model:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


class Captioner(nn.Module):
    """An image encoder, and a text side that reads alone, reads with a picture, or writes.

    `convolutional` says what makes 8 × 8 vectors of a picture: three convolutional layers, or the
    projection of patches of 4 × 4 pixels, as in ViT. `num_blocks` of ViT follow. The three uses of
    the text side share all weights; they differ in the first token and in the mask.
    """

    pad_id = PAD

    def __init__(
        self,
        convolutional: bool = True,
        batch_norm: bool = True,
        num_blocks: int = 1,
        num_layers: int = 2,
        d_encoder: int = 64,
        d_model: int = 48,
        num_heads: int = 4,
        d_shared: int = 32,
    ):
        super().__init__()
        self.stem: nn.Module
        if convolutional:
            self.stem = convolutions(d_encoder, batch_norm=batch_norm)
        else:
            self.stem = PatchEmbedding(SIZE, 4, 1, d_encoder)
        self.places = nn.Parameter(0.1 * torch.randn(1, GRID * GRID, d_encoder))
        made = [ViTBlock(d_encoder, num_heads, 2 * d_encoder) for _ in range(num_blocks)]
        self.blocks = nn.Sequential(*made)
        self.norm = nn.LayerNorm(d_encoder)
        self.tokens = nn.Embedding(len(vocabulary()), d_model)
        self.positions = nn.Embedding(longest(), d_model)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.1)
        self.layers = nn.ModuleList(
            CaptionLayer(d_model, d_encoder, num_heads, 2 * d_model) for _ in range(num_layers)
        )
        self.to_image = nn.Linear(d_encoder, d_shared)
        self.to_text = nn.Linear(d_model, d_shared)
        self.to_match = nn.Linear(d_model, 2)

    def encode(self, images: Float[Tensor, "B 32 32"]) -> Float[Tensor, "B 64 d_encoder"]:
        """Pictures `(B, 32, 32)` → the memory `(B, 64, d_encoder)`, a vector for each place."""
        x = self.stem(images[:, None])
        if x.dim() == 4:
            x = x.flatten(2).transpose(1, 2)
        return self.norm(self.blocks(x + self.places))

    def decode(
        self, ids: Int[Tensor, "B n"], memory: Float[Tensor, "B 64 d_encoder"]
    ) -> Float[Tensor, "B n V"]:
        """Ids `(B, n)` → logits `(B, n, V)` for the token after each; n at most `longest()`."""
        n = ids.shape[1]
        causal = torch.ones((n, n), device=ids.device).tril().bool()
        return self._read(ids, memory, causal) @ self.tokens.weight.T

    def image_vectors(self, memory: Float[Tensor, "B 64 d_encoder"]) -> Float[Tensor, "B d_shared"]:
        """Memories → a vector for each picture, to be compared with `text_vectors`."""
        return self.to_image(memory.mean(dim=1))

    def text_vectors(self, ids: Int[Tensor, "B n"]) -> Float[Tensor, "B d_shared"]:
        """Captions, read without a picture → a vector for each."""
        return self.to_text(self._first(ids, None, CLS))

    def match(
        self, ids: Int[Tensor, "B n"], memory: Float[Tensor, "B 64 d_encoder"]
    ) -> Float[Tensor, "B 2"]:
        """Captions, read beside a picture → logits: does not belong to it, does."""
        return self.to_match(self._first(ids, memory, ENC))

    @torch.no_grad()
    def looks(
        self, ids: Int[Tensor, "B n"], memory: Float[Tensor, "B 64 d_encoder"]
    ) -> Float[Tensor, "B num_layers num_heads n 8 8"]:
        """The weights of the cross-attention while ids are read as by `decode`.

        Row t is where the model looks when it chooses the token after t.
        """
        seen: list[Tensor] = []
        hooks = [
            layer.get_submodule("cross_attn").register_forward_hook(
                lambda _, __, out: seen.append(out[1])
            )
            for layer in self.layers
        ]
        try:
            self.decode(ids, memory)
        finally:
            for hook in hooks:
                hook.remove()
        return torch.stack(seen, dim=1).unflatten(-1, (GRID, GRID))

    def _read(self, ids: Tensor, memory: Tensor | None, mask: Bool[Tensor, "..."]) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, memory, mask)
        return x

    def _first(self, ids: Tensor, memory: Tensor | None, token: int) -> Tensor:
        """What the first position, which reads `token` instead of [DEC], gathers from all words."""
        ids = torch.cat([torch.full_like(ids[:, :1], token), ids[:, 1:]], dim=1)
        return self._read(ids, memory, (ids != PAD)[:, None, None])[:, 0]


def save(model: Captioner, path: Path = WEIGHTS) -> None:
    """Write a model's weights, as half-precision numbers."""
    arrays = {name: value.numpy() for name, value in model.state_dict().items()}
    halves = {n: a.astype(np.float16) if a.dtype == np.float32 else a for n, a in arrays.items()}
    with path.open("wb") as file:
        np.savez_compressed(file, **halves)


def trained(path: Path = WEIGHTS) -> Captioner:
    """The model that has been trained, in eval mode."""
    model = Captioner()
    with np.load(path, allow_pickle=False) as arrays:
        state = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    model.load_state_dict({n: v.float() if v.is_floating_point() else v for n, v in state.items()})
    model.eval()
    return model
