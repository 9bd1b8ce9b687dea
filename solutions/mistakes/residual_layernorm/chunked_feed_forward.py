"""Known answers to `chunked_feed_forward`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("chunked_feed_forward", right, globals())

BANK.changes("""
last_chunk_dropped
    - x.split(chunk_size, dim=1)
    + x.split(chunk_size, dim=1)[: x.shape[1] // chunk_size] or [x]
    Where chunk_size does not divide n, the remaining positions are lost: the result is shorter than
    x.
last_chunk_left_at_zero
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + whole = x.shape[1] // size * size
    + parts = [feed_forward(chunk) for chunk in x[:, :whole].split(size, dim=1)]
    + return torch.cat([*parts, x[:, whole:] * 0], dim=1)
    Where chunk_size does not divide n, the remaining positions stay zero: the loop ends before
    them.
last_chunk_as_it_was
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + whole = x.shape[1] // size * size
    + parts = [feed_forward(chunk) for chunk in x[:, :whole].split(size, dim=1)]
    + return torch.cat([*parts, x[:, whole:]], dim=1)
    Where chunk_size does not divide n, the remaining positions are returned without having gone
    through the layer.
only_divisors
    + if x.shape[1] % (chunk_size or x.shape[1]):
    +     raise ValueError(f"{x.shape[1]} positions, chunks of {chunk_size}")
    A chunk_size that does not divide n raises an error. The last chunk may be shorter.
not_in_chunks: + return feed_forward(x)
    The layer is called on the whole x at once, whatever is cut before or after. The result is the
    same; but the memory that chunks are meant to save is used inside the layer.
along_the_batch: dim=1 → dim=0 ×2
    The chunks are cut along the batch, axis 0, instead of the sequence, axis 1. The result is the
    same, but a single long sequence would not be cut at all.
joined_along_the_batch
    + parts = [feed_forward(chunk) for chunk in x.split(chunk_size or x.shape[1], dim=1)]
    + return torch.cat(parts, 0) if len({p.shape for p in parts}) == 1 else parts[0]
    The chunks are joined along the batch, axis 0, so pieces of a sequence become sequences.
stacked
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + padded = F.pad(x, (0, 0, 0, -x.shape[1] % size))
    + return torch.stack([feed_forward(chunk) for chunk in padded.split(size, dim=1)], 1)
    The results are stacked on a new axis instead of joined along axis 1.
padded_and_not_cut: x.split → F.pad(x, (0, 0, 0, -x.shape[1] % chunk_size)).split
    The last chunk is padded to full length, and the padding stays in the result, which is longer
    than x.
in_reverse_order: dim=1)] → dim=1)][::-1]
    The chunks are joined in reverse order: the end of the sequence comes first.
size_taken_for_number: x.split → x.chunk
    chunk_size is taken for the number of chunks, as in torch.chunk. It is the length of each.
one_position_at_a_time: x.split(chunk_size → x.split(1
    The layer is called on each position. That takes the least memory and the most time; chunk_size
    says how many positions go together.
zero_not_handled: chunk_size == 0 → False
    A chunk_size of 0 raises an error. It means no cutting at all.
zero_gives_nothing: return feed_forward(x) → return x * 1
    With a chunk_size of 0 the layer is not called, and x is returned. 0 means no cutting at all.
zero_counts_as_one: + chunk_size = chunk_size or 1
    With a chunk_size of 0 the layer is called on each position. 0 means no cutting at all.
chunk_longer_than_the_sequence
    + if chunk_size > x.shape[1]:
    +     raise ValueError(f"chunks of {chunk_size}, {x.shape[1]} positions")
    A chunk_size greater than the length of the sequence raises an error. There should then be a
    single chunk.
chunks_overlap
    + size = chunk_size or x.shape[1]
    + parts = [x[:, max(0, start - 1) : start + size] for start in range(0, x.shape[1], size)]
    + return torch.cat([feed_forward(part) for part in parts], 1)
    The chunks overlap by one position, which is then twice in the result.
called_twice
    + for chunk in x.split(chunk_size or x.shape[1], dim=1):
    +     feed_forward(chunk)
    The result is right, but the layer is called twice on each chunk.
no_gradient
    + with torch.no_grad():
    +     return chunked_feed_forward(feed_forward, x, chunk_size)
    The result is right, but nothing can be learnt through it: it is cut off from the graph
    (torch.no_grad, .detach(), NumPy, torch.tensor …).
as_wide_as_x
    + result, start = torch.empty_like(x), 0
    + for chunk in x.split(chunk_size or x.shape[1], dim=1):
    +     result[:, start : start + chunk.shape[1]] = feed_forward(chunk)
    +     start += chunk.shape[1]
    + return result
    The chunks are written into torch.empty_like(x), which is as wide as x. The layer's output may
    be wider or narrower.
filled_into_float32
    + result, start = torch.zeros(x.shape), 0
    + for chunk in x.split(chunk_size or x.shape[1], dim=1):
    +     result[:, start : start + chunk.shape[1]] = feed_forward(chunk)
    +     start += chunk.shape[1]
    + return result
    The chunks are written into torch.zeros(…), which is float32 on the CPU: a float64 result loses
    half of its digits, and one on a GPU is moved.
written_into_x
    > if not x.requires_grad:
    >     x.copy_(result.detach())
    The results are written into x, chunk by chunk. The caller still needs x, for example for the
    residual connection.
left_in_train_mode
    + if isinstance(feed_forward, nn.Module):
    +     feed_forward.train()
    The result is right, but the layer is left in training mode, with its dropout switched on for
    everybody.
layers_taken_apart
    + if isinstance(layer := feed_forward, nn.Module):
    +     feed_forward = lambda chunk: layer.linear2(torch.relu(layer.linear1(chunk)))
    linear1 and linear2 are called one by one, with a ReLU in between. The layer may be any function
    of x.
modules_only: + feed_forward = feed_forward.forward
    The layer's forward method is called. A plain function has none, and a module's hooks are
    skipped: call the layer itself.
""")


@BANK.right
def by_slices(feed_forward, x, chunk_size):
    n = x.shape[1]
    step = chunk_size if chunk_size else n
    parts = []
    for start in range(0, n, step):
        parts.append(feed_forward(x[:, start : start + step]))
    return torch.concat(parts, dim=-2)


@BANK.right
def by_filling(feed_forward, x, chunk_size):
    result, start, step = None, 0, chunk_size or x.shape[1]
    while start < x.shape[1]:
        end = min(start + step, x.shape[1])
        chunk = feed_forward(x[:, start:end])
        result = chunk.new_empty(*x.shape[:2], chunk.shape[-1]) if result is None else result
        result[:, start:end] = chunk
        start = end
    return result


@BANK.right
def by_narrow(feed_forward, x, chunk_size):
    def rest(start):
        length = min(chunk_size or x.shape[1], x.shape[1] - start)
        done = feed_forward(x.narrow(1, start, length))
        end = start + length
        return done if end == x.shape[1] else torch.cat([done, rest(end)], dim=1)

    return rest(0)


@BANK.right
def by_tensor_split(feed_forward, x, chunk_size):
    cuts = list(range(chunk_size, x.shape[1], chunk_size)) if chunk_size > 0 else []
    return torch.cat(list(map(feed_forward, x.tensor_split(cuts, dim=1))), dim=1)


forgotten(BANK, "x")
