"""Known answers to `equivariance_gap`: mistakes, then right answers."""

import copy
from itertools import combinations

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import vision_transformer as right

BANK = Bank("equivariance_gap", right, globals())

BANK.changes("""
answers_not_changed: h(answers) → answers
    The answers to the changed images are compared with the answers as they were. h says what should
    have become of these.
h_on_the_wrong_side: model(g(images)) - h(answers) → h(model(g(images))) - answers
    h is applied to the answers to the changed images. That turns or shifts them once more, instead
    of bringing the other ones to where they should be.
h_on_both_sides: model(g(images)) - h(answers) → h(model(g(images))) - h(answers)
    h is applied on both sides. The answers to the changed images are compared as they are.
images_not_changed: model(g(images)) → model(images)
    The model never sees the changed images: the answers to the images as they are stand on both
    sides.
changed_answers_not_computed: model(g(images)) → g(model(images))
    g is applied to the answers. It changes images, and the model reads these.
compared_with_the_original_images: model(g(images)) - h(answers) → g(images) - images
    This measures how far the images are changed, not the answers.
pairs_with_themselves: (B * (B - 1)) → B**2
    The mean over pairs includes each image with itself, whose difference is 0: what you compare
    with is too small, most of all in a small batch.
pairs_counted_once: (B * (B - 1)) → (B * (B - 1) / 2)
    Each pair is in the sum twice, in both orders, but you divide by the number of pairs without
    order: the gap is too small by √2.
neighbours_in_the_batch_only
    ~ answers[:, None] - answers → answers - answers.roll(1, 0)
    ~ (B * (B - 1)) → B
    Each image is compared with the one before it only. The mean is over all pairs.
each_with_the_next
    ~ answers[:, None] - answers → answers[1:] - answers[:-1]
    ~ (B * (B - 1)) → (B - 1)
    Each image is compared with the next one only. The mean is over all pairs.
first_image_with_the_others
    ~ answers[:, None] - answers → answers[1:] - answers[0]
    ~ (B * (B - 1)) → (B - 1)
    Only the first image is compared with the others. The mean is over all pairs.
distance_from_the_mean
    ~ answers[:, None] - answers → answers - answers.mean(0)
    ~ (B * (B - 1)) → B
    The answers are compared with their mean. Two answers are farther from each other than each is
    from the mean.
variance_for_pairs: apart.square().sum() / (B * (B - 1)) → answers.var(0).sum()
    What you compare with is half of what it should be, such as the variance of the answers. The
    mean squared distance of two of them is twice as much.
relative_to_the_answers: apart.square().sum() / (B * (B - 1)) → answers.square().sum() / B
    The gap is divided by how long the answers are, not by how far two of them are apart. What all
    answers share makes it small.
relative_to_the_changed_answers
    - pairs = apart.square().sum() / (B * (B - 1))
    + moved = torch.stack([model(g(images)) for g, h in changes])
    + pairs = (moved[:, :, None] - moved[:, None]).flatten(1).square().sum(1) / (B * (B - 1))
    The gap is divided by how far the answers to the changed images are apart. It should be those to
    the images as they are, the same for every change.
relative_to_the_wanted_answers
    - pairs = apart.square().sum() / (B * (B - 1))
    + wanted = torch.stack([h(answers) for g, h in changes])
    + pairs = (wanted[:, :, None] - wanted[:, None]).flatten(1).square().sum(1) / (B * (B - 1))
    The gap is divided by how far the answers are apart after h. It should be those that the model
    gives, the same for every change.
relative_to_the_farthest_pair
    ~ apart.square().sum() / (B * (B - 1)) → apart.square().flatten(2).sum(-1).max()
    The gap is divided by the distance of the two answers that are farthest apart. It should be the
    mean over all pairs.
not_relative: (found / pairs).sqrt() → found.sqrt()
    The distances are not divided by anything, so a model with larger answers has larger gaps.
relative_to_the_images: answers[:, None] - answers → images[:, None] - images
    The gap is divided by how far the images are apart. It should be their answers.
root_forgotten: (found / pairs).sqrt() → found / pairs
    This is the square of the gap.
root_above_only: (found / pairs).sqrt() → found.sqrt() / pairs
    Only the upper mean has a root. Both need it, or their ratio.
lengths_averaged
    - pairs = apart.square().sum() / (B * (B - 1))
    - found = astray.square().flatten(1).sum(dim=1) / B
    + pairs = (apart.flatten(2).norm(dim=2).sum() / (B * (B - 1))).square()
    + found = astray.flatten(2).norm(dim=2).mean(1).square()
    The lengths are averaged. Their squares should be, with the root in the end.
each_image_on_its_own
    - pairs = apart.square().sum() / (B * (B - 1))
    - found = astray.square().flatten(1).sum(dim=1) / B
    + pairs = apart.square().flatten(2).sum(2).sum(1) / (B - 1)
    + found = astray.square().flatten(2).sum(2)
    > result = result.mean(1)
    Each image has a ratio of its own, and these are averaged. There is one ratio of two means.
summed_over_the_images: sum(dim=1) / B → sum(dim=1)
    Above, the squares are added up over the images, below averaged over the pairs: the gap grows
    with the batch.
averaged_over_the_numbers: sum(dim=1) / B → mean(dim=1)
    Above, the squares are averaged over the numbers of an answer as well, below they are added up.
last_axis_alone
    ~ astray.square().flatten(1).sum(dim=1) / B → astray.square().sum(-1).flatten(1).mean(1)
    Above, the squares are added up over the last axis of the answers, and averaged over the others.
    The length of an answer is taken over all of its numbers.
averaged_over_the_numbers_below: square().sum() / (B * (B - 1)) → square().mean() * B / (B - 1)
    Below, the squares are averaged over the numbers of an answer as well, above they are added up.
farthest_image: flatten(1).sum(dim=1) / B → flatten(2).sum(2).amax(1)
    The gap is that of the image whose answer goes farthest astray. It should be a mean over all.
nearest_image: flatten(1).sum(dim=1) / B → flatten(2).sum(2).amin(1)
    The gap is that of the image whose answer goes least astray. It should be a mean over all.
first_image_only: flatten(1).sum(dim=1) / B → flatten(2).sum(2)[:, 0]
    Only the first image counts above. The mean is over all of them.
absolute_differences
    ~ apart.square() → apart.abs().flatten(2).sum(2).square()
    ~ astray.square() → astray.abs().flatten(2).sum(2).square()
    Absolute differences are added up. A Euclidean length is the root of a sum of squares.
differences_added_before_squaring
    ~ apart.square() → apart.flatten(2).sum(2).square()
    ~ astray.square() → astray.flatten(2).sum(2).square()
    The differences are added up before they are squared, so those of opposite sign cancel.
difference_of_the_means
    - found = astray.square().flatten(1).sum(dim=1) / B
    + found = astray.mean(1).square().flatten(1).sum(dim=1)
    The differences are averaged over the images before they are squared: images that go astray in
    opposite directions cancel.
difference_of_lengths
    - astray = torch.stack([model(g(images)) - h(answers) for g, h in changes])
    + moved = torch.stack([model(g(images)) for g, h in changes]).flatten(2).norm(dim=2)
    + astray = moved - torch.stack([h(answers) for g, h in changes]).flatten(2).norm(dim=2)
    The lengths of the two answers are subtracted, so an answer that turns without growing counts as
    unchanged. It is the length of their difference.
names_compared
    - found = astray.square().flatten(1).sum(dim=1) / B
    - gaps = torch.where(found > 0, (found / pairs).sqrt(), 0)
    + wanted = torch.stack([h(answers) for g, h in changes])
    + told = ((wanted + astray).flatten(2).argmax(2), wanted.flatten(2).argmax(2))
    + gaps = (told[0] != told[1]).to(answers.dtype).mean(1)
    This is the share of images whose largest score is another one. Answers may move far without
    that.
softmax_first
    ~ model(images) → torch.softmax(model(images), dim=1)
    ~ model(g(images)) → torch.softmax(model(g(images)), dim=1)
    The answers are made into probabilities first. Compare them as the model gives them.
changes_pile_up
    - astray = torch.stack([model(g(images)) - h(answers) for g, h in changes])
    + astray, x, y = [], images, answers
    + for g, h in changes:
    +     x, y = g(x), h(y)
    +     astray.append(model(x) - y)
    + astray = torch.stack(astray)
    Each change is made after those before it. Every one begins with the images as they are.
images_pile_up
    - astray = torch.stack([model(g(images)) - h(answers) for g, h in changes])
    + astray, x = [], images
    + for g, h in changes:
    +     x = g(x)
    +     astray.append(model(x) - h(answers))
    + astray = torch.stack(astray)
    The changed images are changed again by the next change. Every one begins with the images as
    they are.
one_by_one
    - model(g(images)) - h(answers)
    + model(torch.stack([g(x) for x in images])) - torch.stack([h(y) for y in answers])
    g and h get one image and one answer, without the axis of the batch. They are made for batches.
mean_over_the_changes: > result = result.mean()
    The gaps of all changes are averaged. There is one for each change.
first_change_only: in changes] → in changes[:1]]
    Only the first change is measured.
last_change_only: in changes] → in changes[-1:]]
    Only the last change is measured.
zero_by_zero_is_nan: torch.where(found > 0, (found / pairs).sqrt(), 0) → (found / pairs).sqrt()
    Where all answers are equal and nothing goes astray, 0 is divided by 0, which gives NaN. The gap
    is 0.
infinite_gaps_are_large
    ~ torch.where(found > 0, (found / pairs).sqrt(), 0) → (found / pairs).sqrt().nan_to_num()
    The infinite gap is a large number instead: nan_to_num replaces ∞ as well as NaN.
equal_answers_are_infinite
    ~ torch.where(found > 0, → torch.where(pairs > 0,
    ~ .sqrt(), 0) → .sqrt(), torch.inf)
    Where all answers are equal, the gap is ∞ even if nothing goes astray. Then it is 0.
little_is_nothing: found > 0 → found > 1e-8
    What is small counts as 0, so a model with small answers has no gap. Only 0 itself is nothing.
infinite_gaps_are_zero: found > 0 → pairs > 0
    Where all answers are equal, the gap is 0 whatever goes astray. If something does, it is ∞.
no_gap_is_one: .sqrt(), 0) → .sqrt(), 1)
    Where nothing goes astray, the gap is 1. It should be 0.
a_little_added_below: found / pairs → found / (pairs + 1e-6)
    A small number is added to what you divide by, so models with small answers get gaps that are
    too small, and infinite ones become finite.
floor_below: found / pairs → found / pairs.clamp(min=1e-6)
    What you divide by is kept from being small, so models with small answers get gaps that are too
    small, and infinite ones become finite.
less_added_below of a_little_added_below: 1e-6 → 1e-8
    A small number, though very small, is added to what you divide by, so models with small answers
    get gaps that are too small, and infinite ones become finite.
next_to_nothing_below of a_little_added_below: 1e-6 → 1e-12
    What you divide by is kept from being 0 by a number next to nothing. Still, models with small
    answers get gaps that are too small, and infinite ones become finite.
cut_off_at_one: > result = result.clamp(max=1)
    Gaps above 1 are cut off. A change may move an answer farther than another image would.
squares_less_the_square
    - pairs = apart.square().sum() / (B * (B - 1))
    + pairs = 2 / (B - 1) * (answers.square().sum(0) - B * answers.mean(0).square()).sum()
    The distances come from a mean of squares less the square of a mean. Where the answers have much
    in common, their digits cancel. Subtract first, then square.
distances_from_cdist
    - pairs = apart.square().sum() / (B * (B - 1))
    + pairs = torch.cdist(answers.flatten(1), answers.flatten(1)).square().sum() / (B * (B - 1))
    Where the answers are many, torch.cdist multiplies their squares out. Where they have much in
    common, digits cancel. Subtract first, then square.
batch_of_one_is_nan
    - if B < 2:
    -     raise ValueError(f"{B} images: there is no other answer to compare the gap with")
    One image has no other to be compared with, and the result is NaN, or ∞. Raise a ValueError.
batch_of_one_is_zero
    - raise ValueError(f"{B} images: there is no other answer to compare the gap with")
    + return images.new_zeros(len(changes))
    With one image, the gaps are 0, as if all were exact. Raise a ValueError.
another_kind_of_error: raise ValueError( → raise RuntimeError(
    A batch of one raises another kind of error. It should be a ValueError.
error_without_the_number: f"{B} images: there → "there
    The error does not name the number of images.
two_images_refused: B < 2 → B < 3
    Two images are refused. They are enough: there is one pair.
measured_as_it_comes
    - model.eval()
    The model is measured in the mode in which it comes. In training, dropout alone makes two
    answers differ, and batch norm mixes the images of a batch.
answered_before_eval
    ~ model.eval() → pass
    ~ answers = model(images) → answers = model(images); model.eval()
    The answers to the images as they are come from the mode in which the model comes. Both are
    wanted in eval mode.
left_in_eval_mode
    - for part, training in modes:
    -     part.training = training
    The model is left in eval mode: whoever trains it after your call trains without dropout.
left_in_training_mode
    - for part, training in modes:
    -     part.training = training
    > model.train()
    The model is in training mode afterwards, whatever its mode was.
mode_of_the_whole_for_all
    - for part, training in modes:
    -     part.training = training
    + model.train(modes[0][1])
    Every part gets the mode of the whole model. Parts that were switched off by themselves, as when
    they are not to be trained, are switched on.
whole_left_in_eval_mode: in model.modules()] → in model.children()]
    The parts get their modes back, but not the model itself, which stays in eval mode.
parts_of_parts_left: in model.modules()] → in [model, *model.children()]]
    The model and its parts get their modes back, but parts of parts stay in eval mode.
graph_kept: with torch.no_grad() → with torch.enable_grad()
    The result keeps a graph, through the model and all changed images. Measure without recording
    gradients.
gradients_switched_off: + torch.set_grad_enabled(False)
    Gradients are switched off for the whole program and stay so.
parameters_frozen: + model.requires_grad_(False)
    The model's parameters are frozen, and stay so: it cannot be trained any more.
rounded_to_single: > result = result.float()
    The gaps are float32 whatever the answers are.
always_double: > result = result.double()
    The gaps are float64 whatever the answers are.
a_list_of_numbers: > result = result.tolist()
    The gaps come back as a list of Python numbers. A tensor is wanted.
images_overwritten: > images.copy_(changes[0][0](images))
    The gaps are right, but the caller's images are overwritten.
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


def _in_eval(model, ask):
    """What `ask()` returns while the model is in eval mode."""
    modes = {part: part.training for part in model.modules()}
    try:
        model.eval()
        return ask()
    finally:
        for part, mode in modes.items():
            part.training = mode


def _two_or_more(images):
    if len(images) == 1:
        raise ValueError("1 image is one too few")


@BANK.right
def pair_by_pair(model, images, changes):
    """Loops, over pairs without order and over images."""
    _two_or_more(images)

    @torch.no_grad()
    def measure():
        answers, gaps = model(images), []
        pairs = [(a - b).norm() ** 2 for a, b in combinations(answers, 2)]
        apart = sum(pairs) / len(pairs)
        for g, h in changes:
            off = [(a - b).norm() ** 2 for a, b in zip(model(g(images)), h(answers), strict=True)]
            off = sum(off) / len(off)
            gaps.append(torch.sqrt(off / apart) if off > 0 else off)
        return torch.stack(gaps)

    return _in_eval(model, measure)


@BANK.right
def change_by_change(model, images, changes):
    """A loop over the changes, and a batch laid flat."""
    B = len(images)
    if B < 2:
        raise ValueError(f"{B} images are too few")
    was = {part: part.training for part in model.modules()}
    model.eval()
    gaps = []
    with torch.no_grad():
        answers = model(images)
        flat = answers.reshape(B, -1)
        pairs = (flat[:, None] - flat[None]).pow(2).sum(-1)
        below = pairs.sum() / (B * (B - 1))
        for g, h in changes:
            above = (model(g(images)) - h(answers)).reshape(B, -1).pow(2).sum(-1).mean()
            gaps.append(above if above == 0 else (above / below).sqrt())
    for part, mode in was.items():
        part.training = mode
    return torch.stack(gaps)


@BANK.right
def by_the_variance(model, images, changes):
    """Twice the variance is the mean squared distance of two."""
    if (B := len(images)) < 2:
        raise ValueError(f"B = {B}")
    before = [part.training for part in model.modules()]
    model.train(False)
    answers = model(images).detach()
    spread = 2 * (answers - answers.mean(0)).pow(2).sum() / (B - 1)
    gaps = answers.new_zeros(len(changes))
    for k, (change, wanted) in enumerate(changes):
        off = torch.nn.functional.mse_loss(model(change(images)).detach(), wanted(answers))
        off = off * answers[0].numel()
        if off.item() != 0:
            gaps[k] = off.div(spread).sqrt()
    for part, mode in zip(model.modules(), before, strict=True):
        part.training = mode
    return gaps


@BANK.right
def on_a_copy_in_one_batch(model, images, changes):
    """A copy of the model reads all images, as they are and changed, at once."""
    assert len(changes) > 0
    if len(images) < 2:
        raise ValueError(f"needs two images or more, and has {len(images)}")
    still = copy.deepcopy(model).eval()
    every = torch.cat([images, *(g(images) for g, _ in changes)])
    answers, *moved = still(every).detach().split(len(images))
    wanted = torch.stack([h(answers) for _, h in changes])
    off = (torch.stack(moved) - wanted).flatten(2).square().sum(-1).mean(-1)
    i, j = torch.triu_indices(len(images), len(images), 1, device=answers.device)
    apart = (answers[i] - answers[j]).flatten(1).square().sum(-1).mean()
    return (off / apart).sqrt().masked_fill(off == 0, 0.0)


@BANK.right
def in_numpy(model, images, changes):
    """Image by image, and the numbers in NumPy's float64."""
    _two_or_more(images)

    def ask(some):
        return torch.cat([model(one[None]) for one in some]).detach()

    def measure():
        answers = ask(images)
        return answers, [(ask(g(images)).cpu(), h(answers).cpu()) for g, h in changes]

    answers, sides = _in_eval(model, measure)
    flat = answers.cpu().double().flatten(1).numpy()
    apart = ((flat[:, None] - flat) ** 2).sum(-1)[~np.eye(len(flat), dtype=bool)].mean()
    off = np.array([((a - b).double().flatten(1).numpy() ** 2).sum(1).mean() for a, b in sides])
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where(off == 0, 0.0, np.sqrt(off / apart))
    return torch.as_tensor(gaps, dtype=answers.dtype, device=answers.device)


@BANK.right
def with_distances(model, images, changes):
    """The distances of all pairs from torch, none of an image with itself."""
    B = len(images)
    if B <= 1:
        raise ValueError(f"cannot tell from a batch of {B}")
    modes = {name: part.training for name, part in model.named_modules()}
    with torch.no_grad():
        answers = model.eval()(images)
        apart = torch.pdist(answers.flatten(1)).square().mean()
        off = [torch.dist(model(g(images)), h(answers)).square() / B for g, h in changes]
    for name, training in modes.items():
        model.get_submodule(name).training = training
    return torch.stack([x if x == 0 else (x / apart).sqrt() for x in off])


forgotten(BANK, "images", numpy=True, result=True)
