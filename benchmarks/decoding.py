"""Greedy decoding with and without a key/value cache: milliseconds a token, over length.

Run: python -m benchmarks.decoding [--threads 2] [--length 512]. The cached decoder is chapter 4's
idea in every layer: self-attention keeps the keys and values of the target so far, cross-attention
those of the source, which never change; a step computes one position. First it is checked that it
gives the full pass's logits. Without a cache the encoder is not run again either, so that the
difference is the decoder's.
"""

import math
import time

import torch
from torch import Tensor, nn

from attention_by_hand.blocks import fused_attention, merge_heads
from benchmarks.command_line import options
from solutions.multi_head import split_heads
from solutions.transformer import Transformer

PAD, BOS = 0, 1


class CachedDecoder:
    """Decodes one token after the other with the parts of a Transformer; eval mode is assumed."""

    def __init__(self, model: Transformer, source: Tensor):
        self.model, self.length = model, 0
        self.source_mask = (source != model.pad_id)[:, None, None, :]  # (B, 1, 1, n_s)
        memory = model.encode(source)
        self.past: list[tuple[Tensor, Tensor] | None] = [None] * len(model.decoder_layers)
        self.memory = [self._keys(layer.cross_attn, memory) for layer in model.decoder_layers]

    @staticmethod
    def _keys(attention: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
        count = attention.num_heads
        return split_heads(attention.W_k(x), count), split_heads(attention.W_v(x), count)

    @staticmethod
    def _attend(attention: nn.Module, x: Tensor, kept, mask: Tensor | None = None) -> Tensor:
        query = split_heads(attention.W_q(x), attention.num_heads)  # (B, H, 1, d_k)
        out = fused_attention(query, *kept, mask)
        return attention.W_o(merge_heads(out))  # (B, 1, d_model)

    def _self_attend(self, number: int, attention: nn.Module, x: Tensor) -> Tensor:
        new, past = self._keys(attention, x), self.past[number]
        if past is not None:
            new = tuple(torch.cat(pair, dim=2) for pair in zip(past, new, strict=True))
        self.past[number] = new
        return self._attend(attention, x, new)  # the new query sees all: no mask

    def step(self, token: Tensor) -> Tensor:
        """Append one token to each row, `(B, 1)`; the logits of the next, `(B, V)`."""
        model = self.model
        x = model.embed(model.target_embedding, token, offset=self.length)  # (B, 1, d_model)
        self.length += 1
        for number, layer in enumerate(model.decoder_layers):
            kept = self.memory[number]
            sublayers = (
                lambda h, n=number, a=layer.self_attn: self._self_attend(n, a, h),
                lambda h, a=layer.cross_attn, k=kept: self._attend(a, h, k, self.source_mask),
                lambda h, its=layer: its.linear2(torch.relu(its.linear1(h))),
            )
            norms = (layer.norm1, layer.norm2, layer.norm3)
            for sublayer, norm in zip(sublayers, norms, strict=True):
                x = x + sublayer(norm(x)) if layer.norm_first else norm(x + sublayer(x))
        return model.target_embedding.logits(model.decoder_norm(x))[:, -1]


def decode(model: Transformer, source: Tensor, length: int, cached: bool) -> list[float]:
    """Write `length` tokens, greedily; the seconds of each step."""
    ids = torch.full((len(source), 1), BOS)
    decoder = CachedDecoder(model, source)
    memory = model.encode(source)
    seconds = []
    for _ in range(length):
        start = time.perf_counter()
        if cached:
            last = decoder.step(ids[:, -1:])
        else:
            hidden = model.decode(ids, memory, source)
            last = model.target_embedding.logits(hidden[:, -1:])[:, -1]
        ids = torch.cat([ids, last.argmax(-1, keepdim=True)], dim=1)
        seconds.append(time.perf_counter() - start)
    return seconds


def check_parity() -> float:
    """The largest difference of the logits in float64, with padding, pre- and post-norm."""
    off = 0.0
    for norm_first in (False, True):
        torch.manual_seed(0)
        model = Transformer(30, 30, 32, 4, 2, 64, norm_first=norm_first).double().eval()
        source, target = torch.randint(3, 30, (3, 9)), torch.randint(3, 30, (3, 24))
        source[1, 5:] = PAD
        decoder = CachedDecoder(model, source)
        steps = torch.stack([decoder.step(token) for token in target.split(1, dim=1)], dim=1)
        off = max(off, (steps - model(source, target)).abs().max().item())
    assert off < 1e-12, f"the logits differ by {off}"
    return off


def main() -> None:
    args = options(__doc__, threads=2, length=512, repeats=5)
    torch.set_num_threads(args.threads)
    with torch.inference_mode():
        print(
            f"with and without the cache, logits differ by at most {check_parity():.0e} (float64)"
        )
        torch.manual_seed(0)
        model = Transformer(1000, 1000, d_model=256, num_heads=8, num_layers=4, d_ff=1024).eval()
        source = torch.randint(3, 1000, (1, 32))
        every: dict[bool, list[list[float]]] = {False: [], True: []}
        decode(model, source, 32, True), decode(model, source, 32, False)
        for _ in range(args.repeats):
            for cached, runs in every.items():
                runs.append(decode(model, source, args.length, cached))
        lengths = [2**k for k in range(4, 1 + int(math.log2(args.length)))]
        print(f"torch {torch.__version__}, {args.threads} threads, batch 1; medians near a length")
        print(f"{'length':>7}{'without, ms':>13}{'with, ms':>10}{'ratio':>8}", end="")
        print(f"{'without, rel.':>15}{'with, rel.':>12}{'cache, kB':>11}")
        first: dict[bool, float] = {}
        for length in lengths:
            near = slice(length - 8, length)
            middle = {}
            for cached, runs in every.items():
                times = sorted(t for run in runs for t in run[near])
                middle[cached] = 1000 * times[len(times) // 2]
                first.setdefault(cached, middle[cached])
            kept = 2 * len(model.decoder_layers) * length * 256 * 4 / 1024
            print(
                f"{length:7}{middle[False]:13.2f}{middle[True]:10.2f}"
                f"{middle[False] / middle[True]:8.1f}{middle[False] / first[False]:15.2f}"
                f"{middle[True] / first[True]:12.2f}{kept:11,.0f}"
            )


if __name__ == "__main__":
    main()
