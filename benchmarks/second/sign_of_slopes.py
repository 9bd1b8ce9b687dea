"""Chapter 11's relevance, and slope × change, against covering, once more.

Run: python -m benchmarks.second sign_of_slopes [SEED ...]; seconds for the page's own weights, read
from their file; a minute for each model that is trained here on another fifth. The slopes of the
weights are torch's, taken at the weights themselves. Relevance and slope × change with how far the
answer falls: the page's weights, all patches 0.26 and 0.66, changed ones 0.31 and 0.64; seed 1,
0.22 and 0.64, then 0.24 and 0.60; seed 2, 0.26 and 0.64, then 0.27 and 0.60.
"""

import json
import lzma

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import spearmanr
from sklearn.datasets import load_digits

from attention_by_hand.models.checkpoints import file_of
from benchmarks.second.empty_margin import train

HEADS, EPSILON = 4, 1e-6


def stored():
    """The page's model as a dictionary of numbers; its 'curves' are left."""
    data = lzma.decompress(file_of("digits").read_bytes())
    begin, found = 8 + int.from_bytes(data[:8], "little"), {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            start, end = (begin + place for place in entry["data_offsets"])
            numbers = np.frombuffer(data[start:end], "<f2").reshape(entry["shape"])
            found[name] = torch.tensor(numbers.astype(np.float64))
    return found


def as_stored(model):
    """A model of `empty_margin`, under the same names."""
    old = {name: numbers.detach().double() for name, numbers in model.state_dict().items()}
    new = {"cls_token": old["first"], "positions": old["places"]}
    for kind in ("weight", "bias"):
        new[f"patches.projection.{kind}"] = old[f"cut.{kind}"]
        for name in ("norm", "head"):
            new[f"{name}.{kind}"] = old[f"{name}.{kind}"]
        for i in range(3):
            layer, block = f"layers.{i}.", f"blocks.{i}."
            new[f"{block}attn.qkv.{kind}"] = old[f"{layer}self_attn.in_proj_{kind}"]
            new[f"{block}attn.proj.{kind}"] = old[f"{layer}self_attn.out_proj.{kind}"]
            for name in ("linear1", "linear2", "norm1", "norm2"):
                new[f"{block}{name}.{kind}"] = old[f"{layer}{name}.{kind}"]
    return new


def see(of, images):
    """The log-probabilities of images `(B, 10, 10)`, and each layer's weights `(B, 4, 26, 26)`."""
    linear = lambda x, name: F.linear(x, of[f"{name}.weight"].flatten(1), of[f"{name}.bias"])  # noqa: E731
    scaled = lambda name: (of[f"{name}.weight"], of[f"{name}.bias"])  # noqa: E731
    norm = lambda x, name: F.layer_norm(x, (32,), *scaled(name), EPSILON)  # noqa: E731
    x = linear(F.unfold(images[:, None], 2, stride=2).mT, "patches.projection")
    x = torch.cat([of["cls_token"].expand(len(x), -1, -1), x], 1) + of["positions"]
    weights = []
    for name in ("blocks.0.", "blocks.1.", "blocks.2."):
        parts = linear(norm(x, f"{name}norm1"), f"{name}attn.qkv").chunk(3, -1)
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in parts)
        weights.append((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        x = x + linear((weights[-1] @ v).transpose(1, 2).flatten(2), f"{name}attn.proj")
        x = x + linear(F.gelu(linear(norm(x, f"{name}norm2"), f"{name}linear1")), f"{name}linear2")
    return linear(norm(x[:, 0], "norm"), "head").log_softmax(-1), weights


def correlations(of, image, cover):
    """Relevance and slope × change with how far the answer falls: all patches, changed ones."""
    shown = image[None].clone().requires_grad_()
    said, weights = see(of, shown)
    best = said[0].argmax()
    pixels, *slopes = torch.autograd.grad(said[0, best], [shown, *weights])
    passed = torch.eye(26, dtype=torch.double)
    for looks, slope in zip(weights, slopes, strict=True):
        passed = passed + (looks * slope)[0].clamp(min=0).mean(0).detach() @ passed
    hidden = image.repeat(25, 1, 1)
    for i in range(25):
        at = (slice(2 * (i // 5), 2 * (i // 5) + 2), slice(2 * (i % 5), 2 * (i % 5) + 2))
        hidden[i][at] = cover[at]
    with torch.no_grad():
        falls = (said[0, best] - see(of, hidden)[0][:, best]).numpy()
    line = (pixels[0] * (image - hidden)).sum((1, 2))
    kept = (hidden - image).abs().sum((1, 2)).numpy() >= 0.2
    ways = (passed[0, 1:].numpy(), line.numpy())
    return [[spearmanr(way[k], falls[k])[0] for way in ways] for k in (kept | True, kept)]


def main(*seeds: int) -> None:
    digits = load_digits()
    images = F.pad(torch.tensor(digits.images) / 16, (1, 1, 1, 1))
    for seed in (None, *seeds):
        test = torch.zeros(1797, dtype=bool)
        test[: 1797 // 5] = True
        if seed is None:
            of = stored()
        else:
            test = test.roll(101 * seed)
            np.random.seed(seed)
            of = as_stored(train(images[~test].float(), torch.tensor(digits.target)[~test], seed))
        cover = images[~test].mean(0)
        found = np.array([correlations(of, image, cover) for image in images[test][:200]])
        print(f"seed {seed}: with falls, relevance and slope × change")
        for words, mean in zip(("all patches", "changed ones"), found.mean(0), strict=True):
            print(f"   {words:13}", *(f"{number:.3f}" for number in mean))
