"""Known answers to `layers_to_see_all`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import MADE_ON_THE_CPU, THROUGH_NUMPY
from solutions import recurrence_convolution as right

BANK = Bank("layers_to_see_all", right, globals())

BANK.changes("""
one_layer_too_few: return layers → return layers - 1
    The count is one too low: `reads` itself is the first layer, so a table that is all True takes
    one layer, not none.
one_layer_too_many: return layers → return layers + 1
    The count is one too high: `reads` itself is the first layer, so a table that is all True takes
    one layer.
transposed_in_turn
    - depends = one_layer @ depends.double() > 0
    + depends = (depends.double() @ one_layer).T > 0
    The product is transposed at every layer, so that rows and columns change places in turn. Where
    reading goes both ways, nothing shows.
against_its_transpose: one_layer @ depends.double() > 0 → one_layer.T @ depends.double() > 0
    One factor of the product is transposed. Output i depends on what its inputs depend on: rows of
    the one, columns of the other.
adds_themselves
    - depends = reads
    + reads = reads | torch.eye(len(reads), dtype=bool, device=reads.device)
    + one_layer, depends = reads.double(), reads
    Every output is made to read its own input as well, as a residual connection would. The layers
    are those that `reads` describes.
any_number_up_to
    - depends = one_layer @ depends.double() > 0
    + depends = depends | (one_layer @ depends.double() > 0)
    Your table adds up what depends on what after one layer, after two, and so on. What counts is
    the last layer alone: an output that does not read its own input may have lost something.
some_output_is_enough: if depends.all(): → if depends.all(dim=1).any():
    One output that depends on every input is enough here. All of them have to.
some_input_is_enough: if depends.all(): → if depends.all(dim=0).any():
    One input on which every output depends is enough here. Every one has to be.
ends_only: if depends.all(): → if depends[0, -1] and depends[-1, 0]:
    Only the first and the last position are looked at. With other tables than a window the last
    pair to be joined may be any.
first_row_only: if depends.all(): → if depends[0].all():
    Only output 0 is looked at. Another may take longer.
half_is_enough: if depends.all(): → if depends.double().mean() > 0.5:
    More than half of the pairs are enough here. All of them have to be joined.
gives_up_after_n_layers: (len(reads) - 1) ** 2 + 2 → len(reads) + 1
    The search ends after n layers. That is enough where every output reads its own input; where
    outputs do not, up to (n − 1)² + 1 layers can be needed.
gives_up_when_nothing_new
    - depends = one_layer @ depends.double() > 0
    + before, depends = depends, one_layer @ depends.double() > 0
    + if depends.sum() <= before.sum():
    +     break
    The search ends as soon as a layer brings no more pairs than the one before. Where outputs do
    not read their own inputs, the number of pairs can stay the same, or fall, and rise again.
powers_of_two_only
    ~ range(1, (len(reads) - 1) ** 2 + 2) → (2**i for i in range(2 * len(reads) + 2))
    ~ one_layer @ depends.double() > 0 → depends.double() @ depends.double() > 0
    The number of layers is doubled at each try, so the result is the next power of two and not the
    least number.
counts_of_squarings
    ~ range(1, (len(reads) - 1) ** 2 + 2) → range(1, 2 * len(reads) + 2)
    ~ one_layer @ depends.double() > 0 → depends.double() @ depends.double() > 0
    The table is squared at each try, and the tries are counted: two squarings are four layers.
paths_counted_in_bytes
    ~ one_layer = reads.double() → one_layer = reads.to(torch.uint8)
    ~ depends = reads → depends = one_layer
    ~ one_layer @ depends.double() > 0 → one_layer @ depends
    The products count the ways from input to output, in bytes: 256 ways are 0 again. Ask after each
    layer whether there is a way, and forget how many.
paths_counted_in_whole_numbers
    ~ one_layer = reads.double() → one_layer = reads.long()
    ~ depends = reads → depends = one_layer
    ~ if depends.all(): → if (depends > 0).all():
    ~ one_layer @ depends.double() > 0 → one_layer @ depends
    The products count the ways from input to output, in whole numbers of 64 bits: from 2^63 on they
    are negative. Ask after each layer whether there is a way, and forget how many.
exact_number_of_ways: one_layer @ depends.double() > 0 → one_layer @ depends.double() == 1
    Only pairs that are joined in exactly one way count. More ways than one join them, too.
error_forgotten
    - raise ValueError("however many layers there are, some output never depends on some input")
    + return 0
    Where no number of layers is enough, 0 is returned. It should be a ValueError.
minus_one_for_never
    - raise ValueError("however many layers there are, some output never depends on some input")
    + return -1
    Where no number of layers is enough, −1 is returned. Whoever calculates with the result does not
    notice: raise a ValueError.
infinity_for_never
    - raise ValueError("however many layers there are, some output never depends on some input")
    + return float("inf")
    Where no number of layers is enough, ∞ is returned. It should be a ValueError.
runtime_error_for_never: raise ValueError → raise RuntimeError
    Where no number of layers is enough, another error than a ValueError is raised.
turns_taken_for_enough
    - raise ValueError(
    + if _joined_at_some_time(reads):
    +     return len(reads)
    + raise ValueError(
    Outputs that take turns, so that each depends on some inputs after an even number of layers and
    on the others after an odd one, never depend on all of them at once.
unread_inputs_overlooked: if depends.all(): → if depends[:, reads.any(dim=0)].all() and reads.any():
    Inputs that nobody reads are left out of the question. Outputs never depend on them, so no
    number of layers is enough.
lone_position_sees_itself
    - one_layer = reads.double()
    + if len(reads) == 1:
    +     return 1
    + one_layer = reads.double()
    A single position is said to see itself in one layer, even where `reads` is False there.
number_not_an_int: return layers → return torch.tensor(layers, device=reads.device)
    The number is a tensor or a float. It should be Python's int.
reads_overwritten
    - if depends.all():
    + reads.fill_(True)
    + if depends.all():
    ~ depends = reads → depends = reads.clone()
    The caller's table is overwritten: methods whose names end in _ write into the tensor they are
    called on.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")
BANK.change(
    "made_on_the_cpu",
    MADE_ON_THE_CPU,
    before="reads = reads & torch.ones(reads.shape, dtype=torch.bool)",
)
BANK.change("through_numpy", THROUGH_NUMPY, before="reads = torch.from_numpy(reads.numpy())")


def _never():
    raise ValueError("never")


@BANK.right
def with_sets(reads):
    rows = [{j for j, marked in enumerate(row) if marked} for row in reads.tolist()]
    n, seen, depends, layers = len(rows), set(), rows, 1
    while any(len(row) < n for row in depends):
        state = tuple(map(frozenset, depends))
        if state in seen:
            raise ValueError("the layers repeat themselves")
        seen.add(state)
        depends = [set().union(*(depends[j] for j in row)) for row in rows]
        layers += 1
    return layers


@BANK.right
def with_whole_numbers(reads):
    """Each row as the bits of one number."""
    rows = [sum(1 << j for j, marked in enumerate(row) if marked) for row in reads.tolist()]
    full, depends = (1 << len(rows)) - 1, list(rows)
    for layers in range(1, len(rows) ** 2 + 2):
        if all(row == full for row in depends):
            return layers
        old = depends
        depends = []
        for row in rows:
            total = 0
            for j, other in enumerate(old):
                total |= other if row >> j & 1 else 0
            depends.append(total)
    raise ValueError("no number of layers is enough")


@BANK.right
def with_numpy(reads):
    one = reads.cpu().numpy().copy()
    depends, n = one, len(one)
    for layers in range(1, n * n + 2):
        if np.all(depends):
            return layers
        depends = np.any(depends[:, :, None] & one[None], axis=1) if n < 20 else depends @ one
    raise ValueError(f"{n} positions never all see each other")


@BANK.right
def with_any(reads):
    """From the right: what the layers so far read of what one more reads; by any() over the way."""
    depends, before = reads, []
    while not bool(depends.all()):
        if (
            any(torch.equal(depends, known) for known in before[-1:])
            or len(before) > len(reads) ** 2
        ):
            raise ValueError("more layers change nothing")
        before.append(depends)
        depends = (depends.float() @ reads.float()).clamp(max=1) == 1
    return len(before) + 1


@BANK.right
def by_halving(reads):
    """Once all pairs are joined they stay so: the least number is between the last two tries."""
    low, high = 0, len(reads) ** 2 + 1
    if not _power(reads.double(), high).all():
        raise ValueError(f"not even {high} layers are enough")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(reads.double(), middle).all() else (middle, high)
    return high


def _power(table, layers):
    """A power by squaring, with ones for all that is not zero."""
    if layers == 1:
        return table
    half = _power(table, layers // 2)
    whole = (half @ half).clamp(max=1.0)
    return (whole @ table).clamp(max=1.0) if layers % 2 else whole


def _joined_at_some_time(reads):
    with_itself = reads.double() + torch.eye(len(reads), device=reads.device)
    return bool((_power(with_itself.clamp(max=1.0), len(reads)) > 0).all())
