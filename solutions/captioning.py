"""Looking while writing, BLIP: attention to another width, three losses, and a caption.

Sources: the layer and the three losses after J. Li, D. Li, C. Xiong, S. Hoi, "BLIP" (2022); the
contrastive loss after A. Radford et al., "Learning transferable visual models from natural language
supervision" (2021). Self-attention comes from `blocks`.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention


class CrossAttention(nn.Module):
    """Attention from one sequence to another, whose vectors may have another width.

    Queries come from x, of width d_model; keys and values from the memory, of width
    d_encoder. Parts, all `nn.Linear` with bias: `W_q` (d_model → d_model), `W_k` and
    `W_v` (d_encoder → d_model), `W_o` (d_model → d_model). The constructor raises a
    `ValueError` that names both numbers if num_heads does not divide d_model. Sources:
    Vaswani et al. (2017), section 3.2.3; for the widths, the text decoder of Li et al.
    (2022).
    """

    def __init__(self, d_model: int, d_encoder: int, num_heads: int):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads do not divide {d_model} features evenly")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_encoder, d_model)
        self.W_v = nn.Linear(d_encoder, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        ### END SOLUTION

    def forward(
        self,
        x: Float[Tensor, "B n_q d_model"],
        memory: Float[Tensor, "B n_k d_encoder"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "B n_q d_model"], Float[Tensor, "B num_heads n_q n_k"]]:
        """Let every position of x look at the memory, and return `(output, weights)`.

        Shapes: x `(B, n_q, d_model)`, memory `(B, n_k, d_encoder)` → output
        `(B, n_q, d_model)` and weights `(B, num_heads, n_q, n_k)`. Scores are divided by
        √d_k with d_k = d_model / num_heads; head h has the features h·d_k to
        (h + 1)·d_k − 1. The mask is boolean, True = *may attend*, and broadcasts to
        `(B, 1, n_q, n_k)`. A query that may attend to nothing has weights of 0 and an
        output of 0, without the bias of `W_o`.
        """

        ### BEGIN SOLUTION
        def split(h: Tensor) -> Tensor:
            return h.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, H, n, d_k)

        query, key, value = split(self.W_q(x)), split(self.W_k(memory)), split(self.W_v(memory))
        scores = query @ key.mT / query.shape[-1] ** 0.5  # (B, H, n_q, n_k)
        if mask is None:
            mask = torch.ones(1, dtype=torch.bool, device=x.device)
        mask = mask.expand(len(x), 1, *scores.shape[2:])  # (B, 1, n_q, n_k)
        some = mask.any(dim=-1, keepdim=True)  # (B, 1, n_q, 1)
        weights = scores.masked_fill(~mask & some, -torch.inf).softmax(dim=-1) * some
        heads = (weights @ value).transpose(1, 2).flatten(2)  # (B, n_q, d_model)
        return self.W_o(heads) * some[:, 0], weights
        ### END SOLUTION


class CaptionLayer(nn.Module):
    """A layer of BLIP's text side: it reads text alone, or text with a picture.

    norm1(x + drop(self-attention(x))), then norm2(x + drop(cross-attention(x, memory))),
    then norm3(x + drop(linear2(drop(gelu(linear1(x)))))), with the exact GELU. Without a
    memory, the layer is a text encoder's: the second of the three is left out as a
    whole, norm2 included. Parts: `self_attn` (`blocks.MultiHeadAttention`), `cross_attn`
    (`CrossAttention`), `linear1` (d_model → d_ff), `linear2` (d_ff → d_model), `norm1`,
    `norm2`, `norm3`. Dropout acts in training only. Source: Li et al. (2022), figure 2.
    """

    def __init__(
        self, d_model: int, d_encoder: int, num_heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.cross_attn = CrossAttention(d_model, d_encoder, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B n d_model"],
        memory: Float[Tensor, "B n_k d_encoder"] | None = None,
        self_mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B n d_model"]:
        """Let every word gather from the words, then from the picture, then think.

        Shapes: x `(B, n, d_model)`, memory `(B, n_k, d_encoder)` → the shape of x. The masks
        are boolean, True = *may attend*: self_mask broadcasts to `(B, H, n, n)`, memory_mask
        to `(B, 1, n, n_k)`. `self.self_attn(query, key, value, mask=mask)` and
        `self.cross_attn(x, memory, mask)` return `(output, weights)`.
        """
        ### BEGIN SOLUTION
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask=self_mask)[0]))
        if memory is not None:
            x = self.norm2(x + self.dropout(self.cross_attn(x, memory, memory_mask)[0]))
        h = self.dropout(F.gelu(self.linear1(x)))  # (B, n, d_ff)
        return self.norm3(x + self.dropout(self.linear2(h)))
        ### END SOLUTION


def contrastive_loss(
    image_vectors: Float[Tensor, "B d"],
    text_vectors: Float[Tensor, "B d"],
    temperature: float = 0.07,
) -> Float[Tensor, ""]:
    """How badly pictures and texts find each other in a batch, in nats.

    Picture i belongs to text i. All vectors are scaled to length 1; the similarity of a
    picture and a text is their dot product. For each picture, the similarities to all
    texts, divided by the temperature, are logits whose right answer is its own text; the
    same for each text among the pictures. The loss is the mean of the two mean
    cross-entropies. Shapes: `(B, d)` twice → a scalar. Source: Radford et al. (2021),
    figure 3.
    """
    ### BEGIN SOLUTION
    images, texts = F.normalize(image_vectors, dim=-1), F.normalize(text_vectors, dim=-1)
    logits = images @ texts.T / temperature  # (B, B), a row for each picture
    partner = torch.arange(len(logits), device=logits.device)
    return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    ### END SOLUTION


def bug_in_contrast(B: int, d: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Find two batches for `wrong_contrast`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(image_vectors, text_vectors)`, both `(B, d)`, with
    B ≥ 2 and d ≥ 2. No vector is shorter than 0.1, and no number larger than 1000. On
    `shows`, the right loss and the wrong one differ by 0.01 or more; on `hides` they are
    equal, although no two pictures and no two texts have the same direction (their
    similarity is below 0.9999), and no picture has the direction of its own text.
    """
    ### BEGIN SOLUTION
    angle = 0.5 + torch.arange(B) * 2 / B  # from 0.5 to less than 2.5
    flat = torch.zeros(B, d)
    images, mirrored, astray = flat.clone(), flat.clone(), flat.clone()
    images[:, 0], images[:, 1] = angle.cos(), angle.sin()
    mirrored[:, 0], mirrored[:, 1] = angle.cos(), -angle.sin()
    astray[:, 0], astray[:, 1] = (angle / 4).cos(), (angle / 4).sin()
    return (images, astray), (images, mirrored)  # of mirrored ones, cos(a + b) = cos(b + a)
    ### END SOLUTION


def queued_contrastive_loss(
    vectors: Float[Tensor, "2 B d"],
    keys: Float[Tensor, "2 B d"],
    queue: Float[Tensor, "2 q d"],
    size: int,
    temperature: float = 0.07,
) -> tuple[Float[Tensor, ""], Float[Tensor, "2 n d"]]:
    """The contrastive loss with keys of earlier batches as wrong answers; and the new queue.

    In each argument, `[0]` is the pictures' and `[1]` the texts'. The vectors ask, and the
    keys answer: in practice, a slow copy of the model has made them of the same batch.
    Both are scaled to length 1; those in the queue are already, the newest first. For each
    picture, its similarities to all keys of texts, those of the batch and those of the
    queue, divided by the temperature, are logits whose right answer is its own text's key;
    the same for each text among the keys of pictures. The loss is the mean of the two mean
    cross-entropies. The new queue: the scaled keys of the batch, in their order, then the
    old queue, and of these the first `size`, or all if there are fewer. Gradients reach the
    vectors alone. Shapes: vectors and keys `(2, B, d)`, queue `(2, q, d)`, where q may be 0
    → a scalar and `(2, n, d)`, with n at most `size`. Source: Li et al. (2021), section
    3.2, after He et al. (2020), algorithm 1.
    """
    ### BEGIN SOLUTION
    asking, keys = F.normalize(vectors, dim=-1), F.normalize(keys.detach(), dim=-1)
    answers = torch.cat([keys, queue.detach()], dim=1)  # (2, B + q, d)
    logits = asking @ answers.flip(0).mT / temperature  # (2, B, B + q)
    partner = torch.arange(logits.shape[1], device=logits.device).repeat(2)
    return F.cross_entropy(logits.flatten(0, 1), partner), answers[:, :size]
    ### END SOLUTION


def hard_negatives(
    similarity: Float[Tensor, "B B"], generator: torch.Generator | None = None
) -> tuple[Int[Tensor, "B"], Int[Tensor, "B"]]:
    """Draw a wrong partner for each picture and each text, the likelier the more alike they are.

    Rows are pictures, columns are texts, and partners stand on the diagonal. The text for
    a picture is drawn from the softmax of its row without its partner, and the picture for
    a text from the softmax of its column without its partner. The temperature is in the
    similarities already. Shapes: similarity `(B, B)` → `(text_of_image, image_of_text)`,
    both `(B,)`, long. All draws are made with `generator`, or else with torch's own.
    Raises a `ValueError` if B = 1: nobody is left. Source: Li et al. (2022), section 3.2,
    after Li et al. (2021).
    """
    ### BEGIN SOLUTION
    B = len(similarity)
    if B == 1:
        raise ValueError("a batch of 1 has no negatives")
    own = torch.eye(B, dtype=torch.bool, device=similarity.device)
    chances = (s.masked_fill(own, -torch.inf).softmax(dim=1) for s in (similarity, similarity.T))
    text, image = (torch.multinomial(p, 1, generator=generator)[:, 0] for p in chances)
    return text, image
    ### END SOLUTION


def caption_loss(
    logits: Float[Tensor, "B n V"], ids: Int[Tensor, "B n"], prompt_length: int, pad_id: int
) -> Float[Tensor, ""]:
    """How badly captions are written after a prompt: mean cross-entropy, in nats a token.

    The logits at position t are for the id at t + 1. An id counts if a position before it
    predicts it (so never the first), if its position is prompt_length or later (positions
    count from 0), and if it is not `pad_id`. The mean is over all that count in the whole
    batch; where none does, the loss is 0, and so is its gradient. Shapes: logits
    `(B, n, V)`, ids `(B, n)` → a scalar. Source: Li et al. (2022), section 3.2, and for
    the prompt, their code.
    """
    ### BEGIN SOLUTION
    target = ids[:, 1:]  # (B, n − 1)
    position = torch.arange(1, ids.shape[1], device=ids.device)
    counts = (target != pad_id) & (position >= prompt_length)
    labels = target.masked_fill(~counts, -100)
    total = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), reduction="sum")
    return total / counts.sum().clamp(min=1)
    ### END SOLUTION


def recall_at(similarity: Float[Tensor, "n n"], k: int) -> tuple[float, float]:
    """Say how often the right partner is among the k best, from picture to text and back.

    Rows are pictures, columns are texts, and partners stand on the diagonal. The first
    number is the share of rows whose partner is among the k highest numbers of the row,
    the second that of columns whose partner is among the k highest of the column. Of
    equal numbers, the one with the lower index comes first. Shapes: `(n, n)`, with or
    without gradients → two floats from 0 to 1; with a k of n or more, both are 1. Raises
    a `ValueError` that names k if it is below 1.
    """
    ### BEGIN SOLUTION
    if k < 1:
        raise ValueError(f"k = {k}, and the best are at least one")

    def share(rows: Tensor) -> float:
        order = rows.argsort(dim=1, descending=True, stable=True)[:, :k]  # (n, k)
        partner = torch.arange(len(rows), device=rows.device)[:, None]
        return (order == partner).any(dim=1).double().mean().item()

    return share(similarity), share(similarity.T)
    ### END SOLUTION


def write_caption(
    model: nn.Module,
    images: Float[Tensor, "B ..."],
    prompt_ids: Int[Tensor, "p"],
    eos_id: int,
    max_len: int,
) -> Int[Tensor, "B n"]:
    """Write a caption for each picture, always the likeliest token.

    `model.encode(images)` returns the memory and is called once; `model.decode(ids,
    memory)` returns logits `(B, n, V)` for ids `(B, n)`, those at the last position for
    the next token. Every caption begins with the prompt, ids `(p,)`. One that has written
    `eos_id` is finished, and gets `model.pad_id` from there on; writing stops when all
    are finished or max_len tokens long, the prompt included; an eos in the prompt
    finishes nothing. Returns the ids `(B, at most max_len)`, with prompt and eos; a
    prompt of max_len tokens or more comes back cut to max_len. Writes in eval mode and
    without gradients; afterwards every part of the model is in the mode in which it came.
    """
    ### BEGIN SOLUTION
    modes = {module: module.training for module in model.modules()}
    model.eval()
    ids = prompt_ids[:max_len].repeat(len(images), 1)  # (B, p)
    done = torch.zeros(len(images), dtype=torch.bool, device=ids.device)
    with torch.no_grad():
        memory = model.encode(images)
        while ids.shape[1] < max_len and not done.all():
            best = model.decode(ids, memory)[:, -1].argmax(dim=-1)  # (B,)
            new = best.masked_fill(done, model.pad_id).to(ids.dtype)
            done = done | (new == eos_id)
            ids = torch.cat([ids, new[:, None]], dim=1)
    for module, training in modes.items():
        module.training = training
    return ids
    ### END SOLUTION
