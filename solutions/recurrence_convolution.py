"""What attention replaced, and where the three meet: recurrence, convolution, linear attention.

Sources: J. L. Elman, "Finding structure in time" (1990); K. Cho et al., "Learning phrase
representations using RNN encoder–decoder" (2014); D. Bahdanau, K. Cho, Y. Bengio, "Neural machine
translation by jointly learning to align and translate" (2015); J.-B. Cordonnier, A. Loukas, M.
Jaggi, "On the relationship between self-attention and convolutional layers" (2020); A. Vaswani et
al., "Attention is all you need" (2017), table 1; A. Katharopoulos et al., "Transformers are RNNs"
(2020); T. Dao, A. Gu, "Transformers are SSMs" (2024).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class GRUCell(nn.Module):
    """One step of a gated recurrent unit, with the parameters of `nn.GRUCell`.

    Parameters: `weight_ih` `(3h, input_size)`, `weight_hh` `(3h, h)`, `bias_ih` and
    `bias_hh` `(3h,)`, where h is `hidden_size`; each holds the rows of the reset
    gate, then those of the update gate, then those of the new state. They begin as
    uniform random numbers between −1/√h and 1/√h. Source: Cho et al. (2014), section
    2.3, but for the place of the reset gate, which is that of `nn.GRUCell`.
    """

    def __init__(self, input_size: int, hidden_size: int):
        ### BEGIN SOLUTION
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(3 * hidden_size, input_size))
        self.weight_hh = nn.Parameter(torch.empty(3 * hidden_size, hidden_size))
        self.bias_ih = nn.Parameter(torch.empty(3 * hidden_size))
        self.bias_hh = nn.Parameter(torch.empty(3 * hidden_size))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "B input_size"], h: Float[Tensor, "B hidden_size"]
    ) -> Float[Tensor, "B hidden_size"]:
        """Take the state from h to h′ = (1 − z) ⊙ n + z ⊙ h on reading x.

        The gates are r = σ(W_r x + b_r + U_r h + c_r) and z = σ(W_z x + b_z + U_z h + c_z);
        the new state is n = tanh(W_n x + b_n + r ⊙ (U_n h + c_n)). W and b are rows of
        `weight_ih` and `bias_ih`, U and c of `weight_hh` and `bias_hh`. Shapes: x
        `(B, input_size)`, h `(B, hidden_size)` → `(B, hidden_size)`.
        """
        ### BEGIN SOLUTION
        from_x = x @ self.weight_ih.T + self.bias_ih  # (B, 3h)
        from_h = h @ self.weight_hh.T + self.bias_hh  # (B, 3h)
        (x_r, x_z, x_n), (h_r, h_z, h_n) = from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1)
        r = torch.sigmoid(x_r + h_r)  # (B, h)
        z = torch.sigmoid(x_z + h_z)  # (B, h)
        n = torch.tanh(x_n + r * h_n)  # (B, h)
        return (1 - z) * n + z * h
        ### END SOLUTION


class AttentionDecoder(nn.Module):
    """A recurrent decoder that looks at the encoder's states before each step.

    Parts: `embedding` (`nn.Embedding`); for the scores of additive attention the linear
    layers `W_q` (d_hidden to d_hidden), `W_k` (d_memory to d_hidden) and `w_v`
    (d_hidden to 1), none with a bias; `cell` (`nn.GRUCell`), which reads d_embed +
    d_memory features; `output`, a linear layer from d_hidden + d_memory features to
    vocab_size logits. Source: Bahdanau, Cho, Bengio (2015), section 3.1 and appendix
    A.2, simplified.
    """

    def __init__(self, vocab_size: int, d_embed: int, d_hidden: int, d_memory: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_embed)
        self.W_q = nn.Linear(d_hidden, d_hidden, bias=False)
        self.W_k = nn.Linear(d_memory, d_hidden, bias=False)
        self.w_v = nn.Linear(d_hidden, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_memory, d_hidden)
        self.output = nn.Linear(d_hidden + d_memory, vocab_size)

    def forward(
        self,
        target: Int[Tensor, "B m"],
        memory: Float[Tensor, "B n d_memory"],
        state: Float[Tensor, "B d_hidden"],
        memory_mask: Bool[Tensor, "B n"] | None = None,
    ) -> tuple[Float[Tensor, "B m vocab_size"], Float[Tensor, "B m n"]]:
        """Write m tokens, the true ones before each given; return `(logits, weights)`.

        At each step the state *before* the step is the query of additive attention, with
        scores w_vᵀ tanh(W_q state + W_k memory_j); the weighted mean of the memory is the
        context; the cell reads [embedding; context]; the logits come from [new state;
        context].

        Shapes: target `(B, m)`, ids already shifted, m ≥ 1; memory `(B, n, d_memory)`;
        state, the one to begin with, `(B, d_hidden)` → logits `(B, m, vocab_size)`,
        weights `(B, m, n)`. `memory_mask` `(B, n)` is boolean, True = *may attend*; where
        a row of it allows nothing, weights and context are zero.
        """
        ### BEGIN SOLUTION
        keys = self.W_k(memory)  # (B, n, d_hidden)
        logits, weights = [], []
        for embedded in self.embedding(target).unbind(dim=1):  # (B, d_embed)
            scores = self.w_v(torch.tanh(self.W_q(state)[:, None] + keys)).squeeze(-1)  # (B, n)
            if memory_mask is None:
                attention = torch.softmax(scores, dim=-1)
            else:
                scores = scores.masked_fill(~memory_mask, torch.finfo(scores.dtype).min)
                attention = torch.softmax(scores, dim=-1) * memory_mask  # zeros for a row of False
            context = (attention[:, None] @ memory).squeeze(1)  # (B, d_memory)
            state = self.cell(torch.cat([embedded, context], dim=-1), state)  # (B, d_hidden)
            logits.append(self.output(torch.cat([state, context], dim=-1)))
            weights.append(attention)
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)
        ### END SOLUTION


def convolution_by_heads(
    x: Float[Tensor, "B n d_in"],
    weight: Float[Tensor, "d_out d_in k"],
    bias: Float[Tensor, "d_out"] | None = None,
) -> tuple[Float[Tensor, "B n d_out"], Float[Tensor, "k n n"]]:
    """Compute a convolution with k heads of attention that each look one fixed step away.

    Head h looks from position i at position i + h − (k − 1)/2, with weight 1; beyond the
    ends it looks at nothing, and its row of weights is zero. Its values are those of x,
    mapped by `weight[:, :, h]`. The outputs of the heads are added up, then the bias.

    Shapes: x `(B, n, d_in)`; weight `(d_out, d_in, k)`, as in `nn.Conv1d`; bias `(d_out,)`
    → `(output, weights)` of shapes `(B, n, d_out)` and `(k, n, n)`. Raises a `ValueError`
    that names k if k is even. Source: Cordonnier, Loukas, Jaggi (2020), theorem 1.
    """
    ### BEGIN SOLUTION
    n, k = x.shape[1], weight.shape[2]
    if k % 2 == 0:
        raise ValueError(f"a kernel of even width k = {k} has no middle")
    position = torch.arange(n, device=x.device)
    step = torch.arange(k, device=x.device) - (k - 1) // 2
    looked_at = position[:, None] + step[:, None, None]  # (k, n, 1)
    weights = (position == looked_at).to(x.dtype)  # (k, n, n)
    values = x[:, None] @ weight.permute(2, 1, 0)  # (B, k, n, d_out)
    output = (weights @ values).sum(dim=1)  # (B, n, d_out)
    return output if bias is None else output + bias, weights
    ### END SOLUTION


def bug_in_convolution(
    d_in: int, d_out: int, k: int
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Find two inputs for `wrong_convolution`: one shows its bug, one hides it.

    Shapes: k odd, 3 or more → `(shows, hides)`, each `(x, weight)` of shapes `(B, n, d_in)` and
    `(d_out, d_in, k)`; B and n are yours, from 1 to 64. On `shows`, the right output and the
    wrong one differ by 0.01 or more somewhere; on `hides` they are equal, although x differs
    by 0.1 or more from one position to another, and so does each kernel, `weight[o, c]`, from
    one step to another.
    """
    ### BEGIN SOLUTION
    x = torch.zeros(1, k, d_in)
    x[:, 0] = 1.0  # what the output shows of it is the kernel itself
    shows = torch.zeros(d_out, d_in, k)
    shows[:, :, 0] = 1.0
    return (x, shows), (x, shows + shows.flip(2))  # one end alone, then both ends
    ### END SOLUTION


def layers_to_see_all(reads: Bool[Tensor, "n n"]) -> int:
    """Count the layers after which every output depends on every input.

    Shapes: reads `(n, n)`, boolean, n ≥ 1, True where output i of a layer reads its input
    j; all layers are alike → the least number of layers, 1 or more. Raises a `ValueError`
    if no number of them is enough. Source: Vaswani et al. (2017), section 4, for the
    question; H. Wielandt, "Unzerlegbare, nicht negative Matrizen" (1950): if any number
    is enough, then some number up to (n − 1)² + 1.
    """
    ### BEGIN SOLUTION
    one_layer = reads.double()
    depends = reads  # after one layer
    for layers in range(1, (len(reads) - 1) ** 2 + 2):
        if depends.all():
            return layers
        depends = one_layer @ depends.double() > 0  # (n, n)
    raise ValueError("however many layers there are, some output never depends on some input")
    ### END SOLUTION


def linear_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    causal: bool = False,
) -> Float[Tensor, "*batch n_q d_v"]:
    """Attend with weights φ(q)·φ(k) over their sum, where φ(x) = elu(x) + 1.

    Row i of the output is φ(q_i) Σ_j φ(k_j)ᵀ v_j / (φ(q_i) · Σ_j φ(k_j)): the sums over j
    do not depend on i, so no table with an entry for each query and key is needed, and
    none may be made. With `causal`, they run over j ≤ i only.

    Shapes: query `(..., n_q, d_k)`, key `(..., n_k, d_k)`, value `(..., n_k, d_v)` →
    `(..., n_q, d_v)`. Raises a `ValueError` that names both numbers if `causal` and
    n_q ≠ n_k. Source: Katharopoulos et al. (2020), equations 5 to 9.
    """
    ### BEGIN SOLUTION
    query, key = F.elu(query) + 1, F.elu(key) + 1
    if not causal:
        S = key.transpose(-2, -1) @ value  # (..., d_k, d_v)
        z = key.sum(dim=-2).unsqueeze(-1)  # (..., d_k, 1)
        return (query @ S) / (query @ z)  # (..., n_q, d_v)
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(f"causal, but {query.shape[-2]} queries and {key.shape[-2]} keys")
    S = (key.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(dim=-3)  # (..., n, d_k, d_v)
    z = key.cumsum(dim=-2)  # (..., n, d_k)
    return (query.unsqueeze(-2) @ S).squeeze(-2) / (query * z).sum(dim=-1, keepdim=True)
    ### END SOLUTION


def linear_attention_step(
    query: Float[Tensor, "B d_k"],
    key: Float[Tensor, "B d_k"],
    value: Float[Tensor, "B d_v"],
    state: tuple[Float[Tensor, "B d_k d_v"], Float[Tensor, "B d_k"]] | None = None,
) -> tuple[Float[Tensor, "B d_v"], tuple[Float[Tensor, "B d_k d_v"], Float[Tensor, "B d_k"]]]:
    """Take one step of causal linear attention, as a recurrent network with a matrix for a state.

    The state `(S, z)` holds the sums of φ(k_j)ᵀ v_j and of φ(k_j) over the positions so
    far, φ(x) = elu(x) + 1. The new position is added first; then the output is
    φ(q) S / (φ(q) · z). Shapes: query and key `(B, d_k)`, value `(B, d_v)`, S
    `(B, d_k, d_v)`, z `(B, d_k)`; None is the state before the first position →
    `(output, new state)`, output `(B, d_v)`. The state passed in is left as it was.
    Source: Katharopoulos et al. (2020), equations 16 to 20.
    """
    ### BEGIN SOLUTION
    query, key = F.elu(query) + 1, F.elu(key) + 1
    S = key.unsqueeze(-1) * value.unsqueeze(-2)  # (B, d_k, d_v)
    z = key  # (B, d_k)
    if state is not None:
        S, z = state[0] + S, state[1] + z
    output = (query.unsqueeze(-2) @ S).squeeze(-2)  # (B, d_v)
    return output / (query * z).sum(dim=-1, keepdim=True), (S, z)
    ### END SOLUTION


def chunked_linear_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    chunk: int,
    state: tuple[Float[Tensor, "*batch d_k d_v"], Float[Tensor, "*batch d_k"]] | None = None,
) -> tuple[
    Float[Tensor, "*batch n_q d_v"],
    tuple[Float[Tensor, "*batch d_k d_v"], Float[Tensor, "*batch d_k"]],
]:
    """Compute causal linear attention chunk by chunk, in about n / chunk steps.

    A chunk is `chunk` positions, the last one what is left over. Its queries read what came
    before it from the state, as in `linear_attention_step`, and each other through a masked
    table of at most chunk × chunk weights φ(q_i)·φ(k_j), j ≤ i; then the whole chunk is
    added to the state. The outputs are those of `linear_attention` with `causal`. Neither a
    table of n × n nor a state for each position may be made.

    Shapes: query and key `(..., n, d_k)`, value `(..., n, d_v)`, n ≥ 1; `state` is the pair
    `(S, z)` that comes before the first position, `(..., d_k, d_v)` and `(..., d_k)`, and
    None stands for zeros → `(output, new state)`, output `(..., n, d_v)`. The state passed
    in is left as it was. Raises a `ValueError` that names the number for a chunk below 1, and
    one that names both for n queries and another number of keys. Sources: Katharopoulos et
    al. (2020), equations 9 and 16 to 20; for the chunks, Dao, Gu (2024), section 6.
    """
    ### BEGIN SOLUTION
    if chunk < 1:
        raise ValueError(f"a chunk has at least one position, not {chunk}")
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(f"causal, but {query.shape[-2]} queries and {key.shape[-2]} keys")
    query, key = F.elu(query) + 1, F.elu(key) + 1
    if state is None:
        zeros = key.new_zeros(*key.shape[:-2], key.shape[-1], 1 + value.shape[-1])
        state = zeros[..., 1:], zeros[..., 0]  # (..., d_k, d_v), (..., d_k)
    S, z = state
    outputs = []
    for q, k, v in zip(*(x.split(chunk, dim=-2) for x in (query, key, value)), strict=True):
        weights = (q @ k.transpose(-2, -1)).tril()  # (..., chunk, chunk)
        above = q @ S + weights @ v  # (..., chunk, d_v)
        below = q @ z.unsqueeze(-1) + weights.sum(dim=-1, keepdim=True)  # (..., chunk, 1)
        outputs.append(above / below)
        S, z = S + k.transpose(-2, -1) @ v, z + k.sum(dim=-2)
    return torch.cat(outputs, dim=-2), (S, z)
    ### END SOLUTION
