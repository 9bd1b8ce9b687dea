"""Known answers to `GRUCell`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("GRUCell", right, globals())

BANK.changes("""
z_and_1_minus_z_exchanged: (1 - z) * n + z * h → z * n + (1 - z) * h
    z and 1 − z are exchanged: here, as in torch, z is the share of the old state that stays, and
    1 − z that of the new one. Some papers have it the other way round.
gates_exchanged
    ~ (x_r, x_z, x_n), (h_r, h_z, h_n) → (x_z, x_r, x_n), (h_z, h_r, h_n)
    Reset and update gate are exchanged: the first third of the rows is r, the second z.
new_state_first
    ~ (x_r, x_z, x_n), (h_r, h_z, h_n) → (x_n, x_r, x_z), (h_n, h_r, h_z)
    The rows are taken in the order new, reset, update. The first third is the reset gate's, the
    second the update gate's, the last the new state's.
update_gate_last
    ~ (x_r, x_z, x_n), (h_r, h_z, h_n) → (x_r, x_n, x_z), (h_r, h_n, h_z)
    The rows are taken in the order reset, new, update. The update gate's come second, the new
    state's last.
order_turned_round
    ~ (x_r, x_z, x_n), (h_r, h_z, h_n) → (x_n, x_z, x_r), (h_n, h_z, h_r)
    The rows are taken in the order new, update, reset. It is reset, update, new.
gates_interleaved
    ~ from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1) → _every_third(from_x), _every_third(from_h)
    The rows are taken one gate after the other, every third row for the same one. Each gate has a
    third of the rows in one piece: first all of r, then all of z, then all of n.
reset_on_the_input: x_n + r * h_n → r * x_n + h_n
    The reset gate multiplies the input's part of the new state. It decides how much of the old
    state goes in: r ⊙ (U h + c).
reset_around_everything: x_n + r * h_n → r * (x_n + h_n)
    The reset gate multiplies the whole sum inside the tanh. It multiplies the part of the old state
    alone, U h + c.
reset_before_the_matrix
    - n = torch.tanh(x_n + r * h_n)
    + U_n, c_n = self.weight_hh.chunk(3)[2], self.bias_hh.chunk(3)[2]
    + n = torch.tanh(x_n + (r * h) @ U_n.T + c_n)
    The reset gate multiplies h before U_n instead of after it. The first paper on the unit has it
    so; nn.GRUCell, and this exercise, have r ⊙ (U h + c).
second_bias_outside_the_reset
    - n = torch.tanh(x_n + r * h_n)
    + c_n = self.bias_hh.chunk(3)[2]
    + n = torch.tanh(x_n + r * (h_n - c_n) + c_n)
    The second bias of the new state is added outside the reset gate: r ⊙ (U h) + c in the place of
    r ⊙ (U h + c).
reset_forgotten: x_n + r * h_n → x_n + h_n
    The reset gate is not used: the whole old state goes into the new one.
reset_for_update: (1 - z) * n + z * h → (1 - r) * n + r * h
    r mixes the old state and the new one. That is what z is for.
update_for_reset: x_n + r * h_n → x_n + z * h_n
    z multiplies the old state inside the tanh. That is what r is for.
update_forgotten: return (1 - z) * n + z * h → return n
    The new state replaces the old one entirely: the update gate is not used.
difference_the_other_way_round: (1 - z) * n + z * h → h + (1 - z) * (h - n)
    The state goes away from the new one: h + (1 − z) ⊙ (h − n). From h to n leads n − h.
old_state_added_whole: (1 - z) * n + z * h → (1 - z) * n + h
    The old state is added whole instead of with the share z, so states may grow without end.
new_state_added_whole: (1 - z) * n + z * h → n + z * h
    The new state is added whole instead of with the share 1 − z, so states may grow without end.
tanh_for_sigmoid: torch.sigmoid → torch.tanh ×2
    The gates are made with tanh and can be negative. A gate is a share between 0 and 1: σ.
sigmoid_for_tanh: torch.tanh → torch.sigmoid
    The new state is made with σ instead of tanh: it is never negative.
tanh_forgotten: torch.tanh(x_n + r * h_n) → x_n + r * h_n
    The tanh of the new state is missing.
sigmoid_of_r_forgotten: torch.sigmoid(x_r + h_r) → x_r + h_r
    The reset gate is used without its σ: it is any number, not a share.
sigmoid_of_z_forgotten: torch.sigmoid(x_z + h_z) → x_z + h_z
    The update gate is used without its σ: it is any number, not a share.
gates_without_the_state
    ~ torch.sigmoid(x_r + h_r) → torch.sigmoid(x_r)
    ~ torch.sigmoid(x_z + h_z) → torch.sigmoid(x_z)
    The gates look at the input alone. They depend on the old state as well, through U and c.
gates_without_the_input
    ~ torch.sigmoid(x_r + h_r) → torch.sigmoid(h_r)
    ~ torch.sigmoid(x_z + h_z) → torch.sigmoid(h_z)
    The gates look at the old state alone. They depend on the input as well, through W and b.
input_bias_forgotten: self.weight_ih.T + self.bias_ih → self.weight_ih.T
    bias_ih is not added.
state_bias_forgotten: self.weight_hh.T + self.bias_hh → self.weight_hh.T
    bias_hh is not added.
biases_exchanged
    ~ self.weight_ih.T + self.bias_ih → self.weight_ih.T + self.bias_hh
    ~ self.weight_hh.T + self.bias_hh → self.weight_hh.T + self.bias_ih
    bias_ih and bias_hh are exchanged. In the gates that makes no difference; in the new state, only
    bias_hh stands behind the reset gate.
tanh_of_the_result: (1 - z) * n + z * h → torch.tanh((1 - z) * n + z * h)
    There is one tanh too many: that of the new state is enough, and the mixture stays as it is.
state_changed_in_place
    > with torch.no_grad():
    >     h.copy_(result)
    The caller's state is overwritten with the new one. The caller may still need it, for another
    continuation or for the backward pass.
state_kept_in_the_cell
    + h = getattr(self, "kept", h)
    > self.kept = result
    The cell keeps its state itself and ignores the one that is passed in from the second call on.
    Two sequences, or two layers that share a cell, then get mixed up.
gates_detached: z = torch.sigmoid(x_z + h_z) → z = torch.sigmoid(x_z + h_z).detach()
    The update gate is detached: its rows of the parameters get no gradient, and the unit never
    learns what to keep.
no_gradient
    > result = result.detach()
    No gradient reaches any argument or parameter: the result is cut off from the graph
    (torch.no_grad, .detach(), NumPy, torch.tensor …).
begins_with_zeros
    - nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)
    + nn.init.zeros_(parameter)
    All parameters of a new cell are zero. All features of the state are then alike, and stay so in
    training, since all get the same gradient.
begins_too_large
    - nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)
    + nn.init.normal_(parameter)
    Some numbers of a new cell are too large, as with a standard deviation of 1 whatever the size.
    They should be between −1/√h and 1/√h, so that gates begin neither open nor closed.
weights_the_other_way_round
    ~ torch.empty(3 * hidden_size, input_size) → torch.empty(input_size, 3 * hidden_size)
    ~ torch.empty(3 * hidden_size, hidden_size) → torch.empty(hidden_size, 3 * hidden_size)
    ~ self.weight_ih.T → self.weight_ih
    ~ self.weight_hh.T → self.weight_hh
    The weights are (input_size, 3h) and (h, 3h). nn.GRUCell stores them the other way round, and
    its parameters do not fit.
one_bias_only
    - self.bias_hh = nn.Parameter(torch.empty(3 * hidden_size))
    ~ self.weight_hh.T + self.bias_hh → self.weight_hh.T
    The cell has one bias. nn.GRUCell has two, and its parameters cannot be loaded; behind the reset
    gate the second one makes a difference.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
computed_in_float32
    + x, h = x.float(), h.float()
    ~ x @ self.weight_ih.T + self.bias_ih → x @ self.weight_ih.float().T + self.bias_ih.float()
    ~ h @ self.weight_hh.T + self.bias_hh → h @ self.weight_hh.float().T + self.bias_hh.float()
    The step is computed in float32, whatever the dtype of cell and inputs is.
sigmoid_of_exponentials
    ~ torch.sigmoid(x_r + h_r) → (x_r + h_r).exp() / (1 + (x_r + h_r).exp())
    ~ torch.sigmoid(x_z + h_z) → (x_z + h_z).exp() / (1 + (x_z + h_z).exp())
    The gates are computed with an exponential that overflows where the sum is large: ∞/∞ is NaN.
    torch.sigmoid knows how to avoid that.
""")


def _every_third(rows):
    return tuple(rows[..., i::3] for i in range(3))


@BANK.right
class GateByGate(right.GRUCell):
    """Six products with slices of the parameters, in nn.Linear's way."""

    def part(self, which, x, h):
        rows = slice(which * h.shape[1], (which + 1) * h.shape[1])
        return (
            F.linear(x, self.weight_ih[rows], self.bias_ih[rows]),
            F.linear(h, self.weight_hh[rows], self.bias_hh[rows]),
        )

    def forward(self, x, h):
        r, z = (torch.sigmoid(sum(self.part(i, x, h))) for i in (0, 1))
        left, right_ = self.part(2, x, h)
        return torch.lerp(torch.tanh(left + r * right_), h, z)


@BANK.right
class ByStepsFromTheOldState(right.GRUCell):
    """h' = h + (1 − z)(n − h), with both gates in one go."""

    def forward(self, x, h):
        d = h.shape[-1]
        left = torch.addmm(self.bias_ih, x, self.weight_ih.mT)
        right_ = torch.addmm(self.bias_hh, h, self.weight_hh.mT)
        gates = (left[:, : 2 * d] + right_[:, : 2 * d]).sigmoid()
        r, keep = gates.split(d, dim=1)
        n = (left[:, 2 * d :] + r * right_[:, 2 * d :]).tanh()
        return h + (1 - keep) * (n - h)


@BANK.right
class ByEinsum(nn.Module):
    """Parameters of three blocks each, in float64, drawn by torch's own rule."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        bound = 1 / hidden_size**0.5

        def drawn(*shape):
            return nn.Parameter((2 * torch.rand(*shape) - 1) * bound)

        self.weight_ih = drawn(3 * hidden_size, input_size)
        self.weight_hh = drawn(3 * hidden_size, hidden_size)
        self.bias_ih, self.bias_hh = drawn(3 * hidden_size), drawn(3 * hidden_size)

    def forward(self, x, h):
        size = h.shape[1]
        W, U = (w.double().unflatten(0, (3, size)) for w in (self.weight_ih, self.weight_hh))
        b, c = (v.double().view(3, 1, size) for v in (self.bias_ih, self.bias_hh))
        left = torch.einsum("bi,ghi->gbh", x.double(), W) + b
        right_ = torch.einsum("bj,ghj->gbh", h.double(), U) + c
        r, z = torch.sigmoid(left[:2] + right_[:2])
        n = torch.tanh(left[2] + r * right_[2])
        return (n - z * n + z * h).to(x.dtype)


@BANK.right
class OnTheBaseClass(nn.RNNCellBase):
    """torch's own parameters, which its base class for cells makes."""

    def __init__(self, input_size, hidden_size):
        super().__init__(input_size, hidden_size, bias=True, num_chunks=3)

    def forward(self, x, h):
        left = (F.linear(x, self.weight_ih) + self.bias_ih).tensor_split(3, dim=1)
        right_ = (F.linear(h, self.weight_hh) + self.bias_hh).tensor_split(3, dim=1)
        r = 1 - torch.sigmoid(-left[0] - right_[0])
        z = 1 - torch.sigmoid(-left[1] - right_[1])
        n = torch.tanh(torch.addcmul(left[2], r, right_[2]))
        return z * h + n * (1 - z)


@BANK.right
class FromTheNewStateToTheOld(right.GRUCell):
    """As torch's own code has it: n + z ⊙ (h − n)."""

    def forward(self, x, h):
        left = F.linear(x, self.weight_ih, self.bias_ih).chunk(3, 1)
        right_ = F.linear(h, self.weight_hh, self.bias_hh).chunk(3, 1)
        r, z = torch.sigmoid(left[0] + right_[0]), torch.sigmoid(left[1] + right_[1])
        n = torch.tanh(left[2] + r * right_[2])
        return n + z * (h - n)


forgotten(BANK, "x", result=True)
