"""Chapter 11's references against torch's own layers, a strided convolution, and hand-made maps."""

import pytest
import torch
import torch.nn.functional as F
from parity import PRECISION, close, shaken
from torch import nn

from attention_by_hand import blocks
from solutions import vision_transformer as ref

OURS = pytest.mark.parametrize("ours", [ref, blocks], ids=["reference", "block"])
D, H = 8, 2
pytestmark = pytest.mark.seed(41)


# --- patches ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("height", "width", "p"), [(6, 6, 2), (4, 8, 4), (9, 3, 3), (2, 5, 1)])
def test_a_linear_layer_on_patches_is_a_strided_convolution(height, width, p):
    images = torch.randn(2, 3, height, width, dtype=torch.float64)
    layer = nn.Conv2d(3, 5, p, stride=p, dtype=torch.float64)
    linear = F.linear(ref.patchify(images, p), layer.weight.flatten(1), layer.bias)
    assert close(linear, layer(images).flatten(2).mT, 1e-13)


@pytest.mark.parametrize("shape", [(5, 4), (4, 5), (2, 8), (3, 3)])
def test_sides_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b4\b)"):
        ref.patchify(torch.randn(1, 1, *shape), 4)


@OURS
def test_an_embedding_reads_each_patch_alone_and_in_the_order_of_patchify(ours):
    layer = ours.PatchEmbedding(6, 2, 3, D)
    assert layer.num_patches == 9
    images = torch.randn(2, 3, 6, 6)
    for i in range(9):
        other = images.clone()
        other[:, :, i // 3 * 2, i % 3 * 2] += 1
        moved = (layer(other) - layer(images)).abs().amax((0, 2)) > 1e-6
        assert moved.tolist() == [j == i for j in range(9)]


@OURS
def test_images_of_another_size_are_refused(ours):
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b8\b)(?=.*\b6\b)"):
        ours.PatchEmbedding(6, 2, 1, D)(torch.randn(1, 1, 6, 8))
    with pytest.raises(ValueError, match=r"(?s)(?=.*\b7\b)(?=.*\b2\b)"):
        ours.PatchEmbedding(7, 2, 1, D)


# --- attention and the block --------------------------------------------------------------------

_NAMES = {
    "in_proj_weight": "qkv.weight",
    "in_proj_bias": "qkv.bias",
    "out_proj.weight": "proj.weight",
    "out_proj.bias": "proj.bias",
}


def packed(state):
    """Torch's names by ours: its in_proj is our qkv."""
    return {
        next((name.replace(a, b) for a, b in _NAMES.items() if name.endswith(a)), name).replace(
            "self_attn", "attn"
        ): tensor
        for name, tensor in state.items()
    }


def same_gradients(out, parameters, expected, theirs, within):
    probe = torch.randn_like(out) / out[..., 0].numel()
    grads = torch.autograd.grad((out * probe).sum(), [*parameters.values()])
    mine = dict(zip(parameters, grads, strict=True))
    others = torch.autograd.grad((expected * probe).sum(), [*theirs.values()])
    others = packed(dict(zip(theirs, others, strict=True)))
    assert mine.keys() == others.keys()
    largest = max(g.abs().max() for g in others.values())
    for name, grad in mine.items():
        assert (grad - others[name]).abs().max() <= 10 * within * largest, name


@OURS
@PRECISION
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_packed_attention_is_torchs(ours, dtype, within, heads):
    theirs = shaken(nn.MultiheadAttention(D, heads, batch_first=True, dtype=dtype))
    layer = ours.PackedAttention(D, heads).to(dtype)
    layer.load_state_dict(packed(theirs.state_dict()))
    x = torch.randn(3, 5, D, dtype=dtype)
    out, expected = layer(x), theirs(x, x, x, need_weights=False)[0]
    assert close(out, expected, 5 * within)
    parameters = dict(layer.named_parameters())
    same_gradients(out, parameters, expected, dict(theirs.named_parameters()), within)


@OURS
def test_attention_has_no_order(ours):
    layer, x = ours.PackedAttention(D, H, qkv_bias=False), torch.randn(2, 5, D)
    order = torch.tensor([3, 1, 4, 0, 2])
    assert close(layer(x[:, order]), layer(x)[:, order], 1e-6)
    assert layer.qkv.bias is None
    assert layer.proj.bias is not None


def test_the_blocks_weights_are_torchs():
    theirs = shaken(nn.MultiheadAttention(D, H, batch_first=True, dtype=torch.float64))
    layer = blocks.PackedAttention(D, H).double()
    layer.load_state_dict(packed(theirs.state_dict()))
    x = torch.randn(3, 5, D, dtype=torch.float64)
    expected = theirs(x, x, x, average_attn_weights=False)[1]
    assert close(layer.weights(x), expected, 1e-12)


@PRECISION
def test_a_block_is_torchs_pre_norm_layer_with_gelu(dtype, within):
    sizes = (D, H, 4 * D, 0.0, "gelu")
    kinds = {"layer_norm_eps": 1e-6, "batch_first": True, "norm_first": True, "dtype": dtype}
    theirs = shaken(nn.TransformerEncoderLayer(*sizes, **kinds)).train()
    layer = blocks.ViTBlock(D, H, 4 * D).to(dtype)
    layer.load_state_dict(packed(theirs.state_dict()))
    x = torch.randn(3, 5, D, dtype=dtype)
    out, expected = layer(x), theirs(x)
    assert close(out, expected, 10 * within)
    parameters = dict(layer.named_parameters())
    same_gradients(out, parameters, expected, dict(theirs.named_parameters()), within)


def test_stochastic_depth_keeps_the_mean():
    """Over many images, what both branches add is in training what it is in eval mode."""
    layer = blocks.ViTBlock(D, H, 4 * D, drop_path=0.5).double()
    with torch.no_grad():
        layer.linear2.weight.zero_()  # so that the second branch does not depend on the first
    x = torch.randn(1, 3, D, dtype=torch.float64)
    added = layer.train()(x.expand(20_000, -1, -1)) - x
    whole = layer.eval()(x) - x
    error = added.std(0) / 20_000**0.5
    assert ((added.mean(0) - whole[0]).abs() <= 5 * error + 1e-12).all()
    assert ((added == 0).all((1, 2)).double().mean() - 0.25).abs() < 5 * (
        0.25 * 0.75 / 20_000
    ) ** 0.5


# --- the model ----------------------------------------------------------------------------------


@OURS
def test_vit_base_has_its_number_of_parameters(ours):
    with torch.device("meta"):
        model = ours.VisionTransformer(224, 16, 3, 1_000, 768, 12, 12)
    embedding = 3 * 16 * 16 * 768 + 768 + 768 + (1 + 14 * 14) * 768
    attention = 768 * 3 * 768 + 3 * 768 + 768 * 768 + 768
    block = attention + 2 * 768 * 3_072 + 3_072 + 768 + 2 * 2 * 768
    by_hand = embedding + 12 * block + 2 * 768 + 768 * 1_000 + 1_000
    assert sum(p.numel() for p in model.parameters()) == by_hand == 86_567_656


@OURS
def test_only_positions_tell_where_a_patch_lies(ours):
    model = shaken(ours.VisionTransformer(4, 2, 1, 3, D, H, 2)).double()
    images = torch.randn(2, 1, 4, 4, dtype=torch.float64)
    turned = images.roll((2, 2), (2, 3))  # the four patches change places
    assert (model(images) - model(turned)).abs().max() > 1e-3
    with torch.no_grad():
        model.positions[:, 1:] = model.positions[:, 1:2]
    assert close(model(images), model(turned), 1e-12)


def test_reference_and_block_agree_and_the_blocks_tokens_and_maps_belong_to_it():
    model = shaken(ref.VisionTransformer(6, 2, 3, 4, D, H, 2, 0.1)).double().eval()
    block = blocks.VisionTransformer(6, 2, 3, 4, D, H, 2, 0.1).double().eval()
    block.load_state_dict(model.state_dict())
    images = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    assert close(block(images), model(images), 1e-12)
    assert close(block.head(block.encode(images)[:, 0]), model(images), 1e-12)
    maps = block.maps(images)
    assert [m.shape for m in maps] == [(2, H, 10, 10)] * 2
    assert all(close(m.sum(-1), torch.ones(2, H, 10).double(), 1e-12) for m in maps)


# --- rollout ------------------------------------------------------------------------------------


def test_rollout_worked_by_hand():
    """The first layer's ½A + ½I is ((½, ½), (0, 1)), the second one's ((1, 0), (½, ½))."""
    first = torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])
    second = torch.tensor([[[[1.0, 0.0], [1.0, 0.0]]]])
    assert ref.attention_rollout([first]).tolist() == [[[0.5, 0.5], [0.0, 1.0]]]
    both = [[[0.5, 0.5], [0.25, 0.75]]]
    assert ref.attention_rollout([first, second]).tolist() == both
    heads = torch.cat([2 * first, 0 * first], dim=1)  # of which first is the mean
    assert ref.attention_rollout([heads, second]).tolist() == both
