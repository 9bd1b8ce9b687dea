"""Time and memory against length: recurrence, convolution, attention and linear attention.

Run: python -m benchmarks.mixing [--rounds 7]. Four layers of the same width take turns on the same
sequence, forward and then backward, at growing lengths. What is stored is the median of their
processor time, on one thread, and the bytes that each keeps for its backward pass. It goes to
benchmarks/recurrence_convolution_mixing.json, which the chapter's page draws.
"""

import statistics
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.command_line import options
from benchmarks.results import made_by, store
from solutions.recurrence_convolution import linear_attention

RESULT = Path(__file__).with_name("recurrence_convolution_mixing.json")
D, K, BATCH = 64, 3, 4
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048)


class Recurrence(nn.Module):
    """One layer of torch's plain recurrent network."""

    def __init__(self, d: int):
        super().__init__()
        self.layer = nn.RNN(d, d, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


class Convolution(nn.Module):
    """A convolution that sees each position and its neighbours."""

    def __init__(self, d: int):
        super().__init__()
        self.layer = nn.Conv1d(d, d, K, padding=K // 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x.mT).mT


class Attention(nn.Module):
    """One head, as its formula says: the whole table of weights is made."""

    def __init__(self, d: int):
        super().__init__()
        self.project = nn.Linear(d, 3 * d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5, dim=-1) @ v


class LinearAttention(Attention):
    """The same with the sums over the keys made first."""

    def forward(self, x: Tensor) -> Tensor:
        return linear_attention(*self.project(x).chunk(3, dim=-1))


LAYERS = {
    "recurrence": Recurrence,
    "convolution": Convolution,
    "attention": Attention,
    "linear attention": LinearAttention,
}


def kept(layer: nn.Module, x: Tensor) -> int:
    """The bytes of all tensors that a forward pass keeps for the backward pass, each counted once.

    Parameters are not among them: every layer has those anyway.
    """
    own = {p.untyped_storage().data_ptr() for p in layer.parameters()}
    found: dict[int, int] = {}
    alive = []  # so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            alive.append(tensor)
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = layer(x)
    del output
    return sum(found.values())


def timed(layer: nn.Module, x: Tensor) -> tuple[float, float]:
    """Processor seconds of the forward pass and of the backward pass."""
    began = time.process_time()
    output = layer(x)
    between = time.process_time()
    output.backward(torch.ones_like(output))
    return between - began, time.process_time() - between


def measured(rounds: int) -> list[dict]:
    torch.manual_seed(0)
    layers = {name: make(D) for name, make in LAYERS.items()}
    rows = []
    for n in LENGTHS:
        x = torch.randn(BATCH, n, D, requires_grad=True)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in layers}
        for number in range(rounds + 1):
            for name, layer in layers.items():
                found = timed(layer, x)
                if number:  # the first round warms up
                    times[name].append(found)
        for name, found in times.items():
            forward, backward = (statistics.median(part) for part in zip(*found, strict=True))
            row = {"n": n, "layer": name, "forward": forward, "backward": backward}
            rows.append(row | {"kept": kept(layers[name], x)})
            print(
                f"{n:6} {name:17}{1e3 * forward:9.2f} ms{1e3 * backward:9.2f} ms", rows[-1]["kept"]
            )
    return rows


def main() -> None:
    args = options(__doc__, rounds=7)
    torch.set_num_threads(1)
    made = made_by("python -m benchmarks.mixing", d=D, k=K, batch=BATCH, rounds=args.rounds)
    store(RESULT, made, measured(args.rounds))


if __name__ == "__main__":
    main()
