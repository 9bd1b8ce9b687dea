"""Facts about `equivariance_gap`, found by other means than the reference."""

import pytest
import torch
from torch import nn

from attention_by_hand.blocks import VisionTransformer
from solutions.vision_transformer import equivariance_gap, patchify


def same(x):
    return x


def one_to_the_right(x):
    return x.roll(1, -1)


def two_down(x):
    return x.roll(2, -2)


def images(n, side, channels=1):
    luck = torch.Generator().manual_seed(3)
    return torch.randn(n, channels, side, side, generator=luck, dtype=torch.float64)


def test_a_case_by_hand():
    """The answer is the upper left pixel: 0, 1 and 3. Mirrored, it is the upper right one."""
    pixels = torch.tensor([[[0.0, 2], [0, 0]], [[1, 1], [0, 0]], [[3, 0], [0, 0]]])[:, None]
    corner = nn.AvgPool2d(1, stride=2)
    # astray by 2, 0 and 3; pairs 1, 2 and 3 apart
    gap = ((4 + 0 + 9) / 3 / ((1 + 4 + 9) / 3)) ** 0.5
    found = equivariance_gap(corner, pixels, [(lambda x: x.flip(-1), same), (two_down, same)])
    assert found.tolist() == pytest.approx([gap, 0])


def test_where_two_images_change_places_the_gap_is_one():
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 3)).double()
    found = equivariance_gap(model, images(2, 4), [(lambda x: x.flip(0), same)])
    assert found.tolist() == pytest.approx([1.0])


def test_what_a_convolution_keeps_by_definition():
    layer = nn.Conv2d(1, 3, 3, padding=1, padding_mode="circular").double()
    steps = nn.Conv2d(1, 3, 2, stride=2).double()
    mean = nn.Sequential(layer, nn.Tanh(), nn.AdaptiveAvgPool2d(1))
    x, moves = images(4, 6), [(one_to_the_right, one_to_the_right)]
    assert equivariance_gap(layer, x, moves).item() < 1e-12
    assert equivariance_gap(mean, x, [(one_to_the_right, same), (two_down, same)]).max() < 1e-12
    assert equivariance_gap(steps, x, [(two_down, lambda y: y.roll(1, -2))]).item() < 1e-12
    assert equivariance_gap(steps, x, [(one_to_the_right, same)]).item() > 0.1


def test_a_vit_without_positions_does_not_see_where_patches_lie():
    torch.manual_seed(2)
    model = VisionTransformer(6, 2, 1, 3, d_model=8, num_heads=2, num_layers=2).double().train()
    nn.init.normal_(model.positions)
    order = torch.randperm(9)

    def reordered(x):
        cut = patchify(x, 2)[:, order]
        return nn.functional.fold(cut.mT, (6, 6), kernel_size=2, stride=2)

    changes = [(reordered, same), (two_down, same), (one_to_the_right, same)]
    assert equivariance_gap(model, images(4, 6), changes).min() > 0.01
    nn.init.zeros_(model.positions)
    patches, down, pixel = equivariance_gap(model, images(4, 6), changes).tolist()
    assert max(patches, down) < 1e-9 and pixel > 0.01
    assert all(part.training for part in model.modules())
