"""Known answers to `rnn_states`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("rnn_states", right, globals())

BANK.changes("""
state_not_carried
    - h = torch.tanh(x_t @ W_x + h @ W_h + b)
    - states.append(h)
    + states.append(torch.tanh(x_t @ W_x + h @ W_h + b))
    The state is not carried on: every step starts from the first state again, so each result
    depends on its own position alone.
states_before_the_step
    - h = torch.tanh(x_t @ W_x + h @ W_h + b)
    - states.append(h)
    + states.append(h)
    + h = torch.tanh(x_t @ W_x + h @ W_h + b)
    The states are one step late: h_{t−1} stands where h_t belongs, the state to begin with comes
    first, and the last one is missing.
first_state_returned_too: states = [] → states = [h]
    The state to begin with is returned as well: there are n + 1 states, one more than positions.
last_state_only: torch.stack(states, dim=1) → h
    Only the last state is returned. There should be one for each position, (B, n, d_h).
last_state_everywhere
    ~ states = [] → states, h = [], h.clone()
    ~ h = torch.tanh(x_t @ W_x + h @ W_h + b) → h.copy_(torch.tanh(x_t @ W_x + h @ W_h + b))
    All states are equal to the last one: one tensor is overwritten at every step, and the list
    holds that same tensor n times.
tanh_forgotten: torch.tanh(x_t @ W_x + h @ W_h + b) → x_t @ W_x + h @ W_h + b
    The tanh is missing: each state is only a linear function of the inputs.
tanh_of_the_input_only
    ~ torch.tanh(x_t @ W_x + h @ W_h + b) → torch.tanh(x_t @ W_x + b) + h @ W_h
    tanh is taken of the input's part alone, and the old state's part is added outside. It belongs
    around the whole sum: otherwise nothing keeps the states from growing.
tanh_of_each_part
    ~ torch.tanh(x_t @ W_x + h @ W_h + b) → torch.tanh(x_t @ W_x + b) + torch.tanh(h @ W_h)
    tanh is taken of the input's part and of the state's part separately, before they are added. It
    belongs around their sum.
bias_outside_the_tanh
    ~ torch.tanh(x_t @ W_x + h @ W_h + b) → torch.tanh(x_t @ W_x + h @ W_h) + b
    b is added after the tanh instead of inside it.
relu_for_tanh: torch.tanh → torch.relu
    ReLU is used in place of tanh.
sigmoid_for_tanh: torch.tanh → torch.sigmoid
    The logistic sigmoid is used in place of tanh: all states are positive.
tanh_of_exponentials
    - h = torch.tanh(x_t @ W_x + h @ W_h + b)
    + grown = torch.exp(2 * (x_t @ W_x + h @ W_h + b))
    + h = (grown - 1) / (grown + 1)
    tanh is computed from exponentials, which overflow where the sum is large: ∞/∞ is NaN.
bias_forgotten: h @ W_h + b → h @ W_h
    b is not added.
bias_at_the_first_step_only
    - states.append(h)
    + states.append(h)
    + b = torch.zeros_like(b)
    b is added at the first step alone. Every step has it.
W_h_transposed: h @ W_h → h @ W_h.T
    The state is multiplied by the transpose of W_h. States are rows here, so it is h W_h, without a
    transpose, unlike in nn.Linear.
W_x_forgotten: x_t @ W_x → x_t @ torch.ones_like(W_x)
    W_x is not used: the features are added up with equal weights.
W_h_forgotten: h @ W_h → h
    The old state is added as it is, without W_h.
state_forgotten: x_t @ W_x + h @ W_h → x_t @ W_x
    The old state does not enter the new one: W_h h_{t−1} is missing from the sum.
h0_ignored: x.new_zeros(len(x), len(b)) if h0 is None else h0 → x.new_zeros(len(x), len(b))
    h0 is ignored: every sequence starts from zeros.
h0_after_the_sequence
    ~ torch.stack(states, dim=1) → torch.stack(states, dim=1) + (0 if h0 is None else h0[:, None])
    ~ x.new_zeros(len(x), len(b)) if h0 is None else h0 → x.new_zeros(len(x), len(b))
    h0 is added to the finished states. It is the state before the first step, and belongs into the
    recurrence.
starts_from_ones: x.new_zeros( → x.new_ones(
    Without h0 the first state is made of ones. It should be zeros.
read_from_the_end: in x.unbind(dim=1) → in x.flip(1).unbind(dim=1)
    The sequence is read from its last position to its first.
read_from_the_end_and_put_back
    ~ in x.unbind(dim=1) → in x.flip(1).unbind(dim=1)
    ~ torch.stack(states, dim=1) → torch.stack(states, dim=1).flip(1)
    The sequence is read from the end: each state knows what comes after its position, and not what
    came before.
inputs_of_the_step_before: in x.unbind(dim=1) → in [torch.zeros_like(x[:, 0]), *x.unbind(1)[:-1]]
    Step t reads the features of position t − 1, so the last position is never read.
positions_first: torch.stack(states, dim=1) → torch.stack(states)
    The result is (n, B, d_h), with positions before sequences. The batch comes first.
steps_over_the_batch
    ~ x.new_zeros(len(x), len(b)) → x.new_zeros(x.shape[1], len(b))
    ~ in x.unbind(dim=1) → in x
    ~ torch.stack(states, dim=1) → torch.stack(states)
    The loop runs over the sequences of the batch instead of over the positions: x is (B, n, d_in),
    and its second axis counts positions.
all_steps_at_once: + return torch.tanh(x @ W_x + (x @ W_x).cumsum(1) @ W_h + b)
    All states are computed at once, without a loop. The tanh stands between one state and the next,
    so each has to be there before the next one can be computed.
no_past_beyond_one_step
    - h = torch.tanh(x_t @ W_x + h @ W_h + b)
    - states.append(h)
    + states.append(torch.tanh(x_t @ W_x + h @ W_h + b))
    + h = torch.tanh(x_t @ W_x + b)
    Each state knows its own position and the one before, and nothing earlier: what is carried on is
    computed without the old state.
squeezed: > result = result.squeeze()
    squeeze() without an axis removes every axis of size 1, even that of the batch.
detached_between_steps
    - states.append(h)
    + states.append(h)
    + h = h.detach()
    The state is detached after every step. The numbers are right, but a late state's gradient stops
    before it reaches earlier positions: the network cannot learn what to remember.
state_detached_at_the_start: if h0 is None else h0 → if h0 is None else h0.detach()
    h0 is detached: whatever computed it, an encoder for instance, gets no gradient.
no_gradient
    + with torch.no_grad():
    +     return rnn_states(x, W_x, W_h, b, h0)
    Everything runs under torch.no_grad, so no gradient reaches any argument.
computed_in_float32
    ~ x.new_zeros(len(x), len(b)) if → x.new_zeros(len(x), len(b), dtype=torch.float32) if
    ~ torch.tanh(x_t @ W_x + h @ W_h + b) → torch.tanh(x_t @ W_x + h.to(W_h) @ W_h + b).float()
    The states are float32 whatever the arguments are: float64 in should give float64.
h0_overwritten
    ~ torch.stack(states, dim=1) → torch.stack(states, dim=1) if h0 is None else _stored(states, h0)
    The caller's h0 is overwritten: the last state is written into it. Whoever reads another
    sequence from the same state starts somewhere else.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")


def _stored(states, h0):
    stacked = torch.stack(states, dim=1)
    with torch.no_grad():
        h0.copy_(states[-1])
    return stacked


@BANK.right
def written_into_a_tensor(x, W_x, W_h, b, h0=None):
    B, n, _ = x.shape
    states = x.new_empty(B, n, W_h.shape[0])
    h = torch.zeros(B, W_h.shape[0], dtype=x.dtype, device=x.device) if h0 is None else h0
    for t in range(n):
        h = (torch.matmul(x[:, t, :], W_x) + torch.matmul(h, W_h) + b).tanh()
        states[:, t] = h
    return states


@BANK.right
def inputs_mapped_beforehand(x, W_x, W_h, b, h0=None):
    mapped = torch.einsum("bni,ih->nbh", x, W_x) + b
    states = []
    for part in mapped:
        last = states[-1] if states else h0
        states.append(torch.tanh(part if last is None else part + last @ W_h))
    return torch.stack(states).transpose(0, 1)


@BANK.right
def side_by_side(x, W_x, W_h, b, h0=None):
    """One matrix for [x; h]."""
    W = torch.cat([W_x, W_h])
    h = torch.zeros_like(x[:, 0, :1] @ W_x[:1]) if h0 is None else h0
    states = []
    for t in range(x.shape[1]):
        h = torch.tanh(torch.addmm(b, torch.cat([x[:, t], h], dim=-1), W))
        states += [h[:, None]]
    return torch.cat(states, dim=1)


@BANK.right
def by_recursion(x, W_x, W_h, b, h0=None):
    """The last state from those before it; columns for rows, in float64."""
    if x.shape[1] == 0:
        return x.new_empty(len(x), 0, len(b))
    before = by_recursion(x[:, :-1], W_x, W_h, b, h0)
    h = h0 if before.shape[1] == 0 else before[:, -1]
    total = (W_x.T.double() @ x[:, -1].double().T).T + b.double()
    total = total if h is None else total + (W_h.T.double() @ h.double().T).T
    return torch.cat([before, torch.tanh(total).to(x.dtype).unsqueeze(1)], dim=1)


@BANK.right
def sequence_by_sequence(x, W_x, W_h, b, h0=None):
    rows = []
    for i, sequence in enumerate(x):
        h = b.new_zeros(b.shape) if h0 is None else h0[i]
        states = []
        for features in sequence:
            h = torch.tanh(features @ W_x + h @ W_h + b)
            states.append(h)
        rows.append(torch.stack(states))
    return torch.stack(rows)


forgotten(BANK, "x", result=True)
