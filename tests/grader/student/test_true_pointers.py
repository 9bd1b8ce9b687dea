"""What a pointer says is true of its place."""

from types import SimpleNamespace

import numpy as np
import pytest
from pointer_cases import pointed

from autograder.student.engine.locator.counterfactual import _others
from autograder.student.engine.locator.operations import complement
from autograder.student.engine.locator.signatures import signature
from autograder.student.engine.words import describe

pytestmark = pytest.mark.usefixtures("plenty_of_time")


PACK = """
    def pack(sequences, length, causal=False):
        for s in sequences:
            if len(s) > length:
                raise ValueError(len(s))
        used, places = [], []
        for s in sequences:
            r = next((r for r, n in enumerate(used) if n + len(s) <= length), len(used))
            used += [0] * (r == len(used))
            places.append([r, used[r]])
            used[r] += len(s)
        tokens = sequences[0].new_zeros((len(used), length))
        positions = torch.zeros_like(tokens, dtype=torch.long)
        owner = torch.full_like(positions, -1)
        for i, s in enumerate(sequences):
            r, c = places[i]
            tokens[r, c : c + len(s)] = s
            positions[r, c : c + len(s)] = torch.arange(len(s))
            owner[r, c : c + len(s)] = i
        real = owner >= 0
        mask = real[:, None, :, None] & real[:, None, None, :]
        if causal:
            mask = mask & (positions[:, None, :, None] >= positions[:, None, None, :])
        else:
            mask = mask & (owner[:, None, :, None] == owner[:, None, None, :])
        return tokens, positions, mask, torch.tensor(places)
"""


def test_another_axis_of_one_is_not_where_a_mask_goes_wrong():
    line = pointed(PACK, "pack").splitlines()
    assert "real[:, None, :, None]" not in line[0]
    shown = line[2].index("^"), len(line[2])
    assert line[1][slice(*shown)] != "real[:, None, :, None]"


FILL = """
    def fill_gaps(model, ids, mask_id, steps):
        ids = ids{cloned}
        for left in range(steps, 0, -1):
            logits = model(ids).clone()
            logits[..., mask_id] = -torch.inf
            probs = logits.softmax(-1)
            p, token = probs.max(-1)
            {token}
            for b in range(len(ids)):
                gaps = (ids[b] == mask_id).nonzero(){gaps}
                k = math.ceil(len(gaps) / left)
                best = gaps[p[b, gaps].argsort(descending=True)[:k]]
                ids[b, best] = token[b, best]
        return ids
"""


def test_a_part_of_an_array_is_not_what_an_exception_follows_from():
    source = FILL.format(cloned=".clone()", token="", gaps=".squeeze()")
    first = pointed(source, "fill_gaps").splitlines()[0]
    assert first == "The TypeError comes from here:"


def test_leading_axes_that_become_one_are_no_other_order():
    drawn = "token = torch.multinomial(probs.flatten(0, 1), 1).view_as(ids)"
    found = pointed(FILL.format(cloned=".clone()", token=drawn, gaps=".flatten()"), "fill_gaps")
    assert "another order" not in found and "with the call of `multinomial`" in found


@pytest.mark.parametrize("axis", ["7", "-7"])
def test_a_number_as_written_is_not_what_an_exception_follows_from(axis):
    source = f"""
        def cosine_scores(query, key, eps=1e-8):
            query = query / query.norm(dim=-1, keepdim=True).clamp_min(eps)
            key = key / key.norm(dim={axis}, keepdim=True).clamp_min(eps)
            return (query @ key.mT).clamp(-1.0, 1.0)
        """
    said, line, carets = pointed(source, "cosine_scores").splitlines()
    assert said == "The IndexError comes from here:"
    assert line[carets.index("^") : len(carets)] == f"key.norm(dim={axis}, keepdim=True)"


def test_no_number_far_above_its_own_is_tried_in_its_place():
    """Where it is k of 2**k, nothing stops the power once it has begun."""
    place = SimpleNamespace(kind="name", node=None)
    assert [how(0, 3) for how in _others(place, 3, [7, 10**9])] == [4, 2, 7]
    assert 10**9 in [how(0, 10**9 + 5) for how in _others(place, 10**9 + 5, [10**9])]


def test_a_long_value_is_shown_as_cut():
    assert describe("1" * 90) == f"'{'1' * 57}…'"
    assert describe("1" * 58) == f"'{'1' * 58}'"


def test_zeros_and_ones_are_recognised():
    for table in (np.eye(3, 9), np.tril(np.ones((4, 4))), np.zeros(3), np.array([[True, False]])):
        assert signature(table).binary
    for table in (np.arange(3.0), np.eye(3) / 2, np.array([0.0, 0.5, 1.0]), -np.eye(3)):
        assert not signature(table).binary


def test_zeros_and_ones_are_told_from_those_that_are_turned_round():
    for table in (np.tril(np.ones((4, 3))), np.zeros(3), np.ones((2, 2)), np.eye(3, 9) > 0):
        turned = complement(signature(table))
        assert turned.same(signature(1 - table)) and not turned.same(signature(table))


GAP = """
    def equivariance_gap(model, images, changes):
        B = len(images)
        if B < 2:
            raise ValueError(f"B = {{B}}, and pairs need two")
        modes = [(m, m.training) for m in model.modules()]
        model.eval()
        with torch.no_grad():
            f = model(images)
            below = {below}
            above = torch.stack([{above}.mean() for g, h in changes])
        for m, mode in modes:
            m.training = mode
        return {gap}
"""
PAIRS = "torch.pdist(f.flatten(1)).pow(2).mean()"
NEIGHBOURS = "(f[1:] - f[:-1]).flatten(1).pow(2).sum() / (B - 1)"
ASTRAY = "(model(g(images)) - h(f)).pow(2).flatten(1).sum(1)"
RATIO = "torch.where(above == 0, 0, (above / below).sqrt())"
STEP = """
    def training_step(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
        optimizer.zero_grad()
        loss = next_token_loss(model(ids), ids)
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        norm = {norm}
        rate = most * min(step / warm_up, (1 + math.cos(math.pi * ({step}) / num_steps)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if norm > max_norm:
            for g in grads:
                g.mul_(max_norm / norm)
        if torch.isfinite(loss) and torch.isfinite(norm):
            optimizer.step()
        return loss.item(), norm.item()
"""
NORM = "torch.sqrt(sum(g.pow(2).sum() for g in grads))"
LENGTHS = "sum(g.norm() for g in grads)"
RATE = "most * min(step / warm_up, (1 + math.cos(math.pi * (step - 1) / num_steps)) / 2)"
QUEUED = """
    def queued_contrastive_loss(vectors, keys, queue, size, temperature=0.07):
        vectors = F.normalize(vectors, dim=-1)
        keys = F.normalize(keys.detach(), dim=-1)
        new = torch.cat([keys, queue.detach()], dim=1)
        target = torch.arange(vectors.shape[1], device=vectors.device)
        pictures = F.cross_entropy(vectors[0] @ new[1].T / temperature, target)
        texts = F.cross_entropy(vectors[1] @ keys[0].T / temperature, target)
        return (pictures + texts) / 2, new[:, :size]
"""
CHUNKED = """
    def chunked_linear_attention(query, key, value, chunk, state=None):
        if chunk < 1 or key.shape[-2] != query.shape[-2]:
            raise ValueError(f"{chunk} {key.shape[-2]} {query.shape[-2]}")
        q, k = F.elu(query) + 1, F.elu(key) + 1
        S = value.new_zeros(*key.shape[:-1][:-1], key.shape[-1], value.shape[-1])
        S, z = (S, key.new_zeros(*key.shape[:-2], key.shape[-1])) if state is None else state
        outputs = []
        for a in range(0, query.shape[-2], chunk):
            qc, kc, vc = (x[..., a : a + chunk, :] for x in (q, k, value))
            w = (qc @ kc.transpose(-1, -2)).tril()
            bottom = qc @ z.unsqueeze(-1) + w.sum(-1, keepdim=True)
            outputs.append((qc @ S + w @ vc) / bottom)
            S = S + kc.transpose(-1, -2) @ vc
        return torch.cat(outputs, dim=-2), (S, z)
"""
ONE_WAY = """
    def contrastive_loss(image_vectors, text_vectors, temperature=0.07):
        image, text = F.normalize(image_vectors, dim=-1), F.normalize(text_vectors, dim=-1)
        logits = image @ text.T / temperature
        labels = torch.arange(len(image), device=image.device)
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits, labels)) / 2
"""
LOGITS = FILL.replace("logits.softmax(-1)", "logits")
MORE = "import torch.nn.functional as F\nfrom attention_by_hand.blocks import next_token_loss\n"


@pytest.mark.parametrize(
    ("source", "says", "place"),
    [
        (
            GAP.format(below=PAIRS, above=ASTRAY, gap=f"{RATIO}.squeeze()"),
            "The result was right before this:",
            f"{RATIO}.squeeze()",
        ),
        (
            GAP.format(
                below=f"{PAIRS}.clamp_min(1e-12)", above=ASTRAY, gap="(above / below).sqrt()"
            ),
            "Here a large number takes the place of infinity:",
            "above / below",
        ),
        (
            GAP.format(below=NEIGHBOURS, above=ASTRAY, gap=RATIO),
            "Your numbers leave those of a right answer with the indexing:",
            "f[1:]",
        ),
        (
            GAP.format(below=PAIRS, above="(model(g(images)) - h(f)).pow(2).sum(-1)", gap=RATIO),
            "Here your numbers are those of a right answer:",
            "model(g(images)) - h(f)",
        ),
        (QUEUED, "Here your numbers are those of a right answer:", "vectors[1] @ keys[0].T"),
        (
            CHUNKED,
            "Here numbers of a right answer come out as they went in:",
            "qc @ z.unsqueeze(-1) + w.sum(-1, keepdim=True)",
        ),
        (
            STEP.format(norm=NORM, step="step - 1"),
            "Your numbers leave those of a right answer with the multiplication:",
            RATE,
        ),
        (
            STEP.format(norm=LENGTHS, step="step"),
            "Your numbers leave those of a right answer with the call of `sum`:",
            LENGTHS,
        ),
        (
            LOGITS.format(cloned=".clone()", token="", gaps=".flatten()"),
            "Your numbers leave those of a right answer with the call of `max`:",
            "probs.max(-1)",
        ),
    ],
    ids=["another form", "next to infinity", "a factor", "no order", "something else next"]
    + ["idle", "float32's digits", "what cancels", "an array and a number"],
)
def test_what_is_said_is_true_of_the_place(source, says, place):
    name = source.partition("def ")[2].partition("(")[0]
    said, line, carets, *_ = pointed(source, name, MORE).splitlines()
    assert (said, line[carets.index("^") : len(carets)]) == (says, place)


def test_what_takes_an_arrays_form_does_nothing_with_its_numbers():
    assert "torch.arange" not in pointed(ONE_WAY, "contrastive_loss", MORE)


CODER = """
    class ArithmeticCoder:
        def __init__(self, frequencies):
            self.frequencies = frequencies

        def encode(self, ids):
            low, width, whole = 0, 1, 1
            for i in range(len(ids)):
                counts = self.frequencies(ids[:i])
                {encoding}
                whole *= sum(counts)
            k = (whole // width).bit_length() - 1
            while True:
                n = -(-low * 2**k // whole)
                if (n + 1) * whole <= (low + width) * 2**k:
                    return "".join(str(n >> j & 1) for j in reversed(range(k)))
                k += 1

        def decode(self, bits, length):
            value = sum((Fraction(int(b), 2**j) for j, b in enumerate(bits, 1)), Fraction(0))
            ids = []
            for _ in range(length):
                counts = self.frequencies(ids)
                value *= {total}
                c = 0
                while c < len(counts) - 1 and value >= counts[c]:
                    value -= counts[c]
                    c += 1
                value /= counts[c]
                ids.append(c)
            return ids
"""
RIGHT = "low = low * sum(counts) + width * sum(counts[: ids[i]]); width *= counts[ids[i]]"
LATE = "width *= counts[ids[i]]; low = low * sum(counts) + width * sum(counts[: ids[i]])"


@pytest.mark.parametrize(
    ("encoding", "total", "unsaid"),
    [(RIGHT, "len(counts)", "return ids"), (LATE, "sum(counts)", "ids[i]")],
    ids=["a name computes nothing", "right by chance in some runs"],
)
def test_a_place_that_only_may_be_wrong_is_not_shown(encoding, total, unsaid):
    source = CODER.format(encoding=encoding, total=total)
    found = pointed(source, "ArithmeticCoder", "from fractions import Fraction\n")
    assert unsaid not in found


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (
            """
        def gaussian_scores(query, key, w=1.0):
            table = np.zeros((len(query), len(key)))
            for i in range(len(query)):
                for j in range(len(query)):
                    table[i, j] = -0.5 * ((query[i] - key[j]) * w) ** 2
            return table
            """,
            "gaussian_scores",
        ),
        (
            """
        def convolution_by_heads(x, weight, bias=None):
            n, k = x.shape[1], weight.shape[2]
            if k % 2 == 0:
                raise ValueError(k)
            table = torch.zeros(k, n, n, dtype=x.dtype)
            for h in range(k):
                for i in range(n):
                    if (j := i + h - k // 2) < n:
                        table[h, i, j] = 1
            out = sum(table[h] @ x @ weight[:, :, h].T for h in range(k))
            return out if bias is None else out + bias, table
            """,
            "convolution_by_heads",
        ),
    ],
    ids=["rows too few", "from the other end"],
)
def test_a_table_goes_wrong_where_it_is_filled_and_what_is_filled_in_may_be_right(made, name):
    said, line, _ = pointed(made, name).splitlines()
    assert "What is filled in here" in said and "] = " in line


def test_picking_numbers_out_of_an_array_is_no_mistake():
    source = FILL.format(cloned=".clone()", token="", gaps=".flatten()")
    assert "p[b, gaps]" not in pointed(source.replace("/ left", "/ steps"), "fill_gaps")
