"""Known answers to `contrastive_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("contrastive_loss", right, globals())

BANK.changes("""
lengths_left
    - images, texts = F.normalize(image_vectors, dim=-1), F.normalize(text_vectors, dim=-1)
    + images, texts = image_vectors, text_vectors
    The vectors are not scaled to length 1, so a long one is alike to everything.
texts_not_scaled: F.normalize(text_vectors, dim=-1) → text_vectors
    The texts' vectors are not scaled to length 1; only the pictures' are.
images_not_scaled: F.normalize(image_vectors, dim=-1) → image_vectors
    The pictures' vectors are not scaled to length 1; only the texts' are.
scaled_over_the_batch: dim=-1) → dim=0) ×2
    Each feature is scaled to length 1 over the batch. It is each vector that should have length 1.
images_scaled_over_the_batch
    - F.normalize(image_vectors, dim=-1)
    + F.normalize(image_vectors, dim=0)
    The pictures' vectors are scaled feature by feature, over the batch. Each vector should get
    length 1: its features are the last axis.
scaled_by_the_sum: F.normalize( → (lambda x, dim: x / x.abs().sum(dim, keepdim=True))( ×2
    The vectors are divided by the sum of their numbers' sizes. Their length is the root of the sum
    of squares.
scaled_by_the_square: F.normalize( → (lambda x, dim: x / x.square().sum(dim, keepdim=True))( ×2
    The vectors are divided by the square of their length.
softmax_before: images @ texts.T / temperature → (images @ texts.T / temperature).softmax(-1)
    The cross-entropy gets probabilities. It takes logits, and applies a softmax of its own.
temperature_multiplied: / temperature → * temperature
    The similarities are multiplied by the temperature. They should be divided by it.
exp_of_the_temperature: / temperature → * 2.718281828459045**temperature
    The similarities are multiplied by exp(temperature), as CLIP does with a parameter that it
    learns. Here the temperature itself is given: divide by it.
temperature_ignored: images @ texts.T / temperature → images @ texts.T
    The temperature makes no difference.
temperature_fixed: / temperature → / 0.07
    The temperature is 0.07, whatever is given.
temperature_is_one_by_default: temperature=0.07 → temperature=1.0
    The temperature is 1 unless it is given. It should be 0.07.
root_of_the_temperature: / temperature → / temperature**0.5
    The similarities are divided by the root of the temperature.
temperature_squared: / temperature → / temperature**2
    The similarities are divided by the square of the temperature.
only_images_to_texts
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + return F.cross_entropy(logits, partner)
    Only one way counts: from picture to text. The other one is missing.
only_texts_to_images
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + return F.cross_entropy(logits.T, partner)
    Only one way counts: from text to picture. The other one is missing.
summed_not_averaged
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + return F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)
    The two ways are added. Take their mean.
summed_over_the_batch
    ~ F.cross_entropy(logits, partner) → F.cross_entropy(logits, partner, reduction="sum")
    ~ F.cross_entropy(logits.T, partner) → F.cross_entropy(logits.T, partner, reduction="sum")
    The losses of a batch are summed: a larger batch has a larger loss. Take their mean.
without_the_partner
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
    + others = logits.masked_fill(own, -torch.inf)
    + return (others.logsumexp(0) + others.logsumexp(1) - 2 * logits.diagonal()).mean() / 2
    The partner is left out of the sum of the softmax. It is one of those who may be chosen.
first_is_the_partner
    - partner = torch.arange(len(logits), device=logits.device)
    + partner = torch.zeros_like(logits[0]).long()
    The right answer is the first text for every picture. Partners stand on the diagonal.
distance_for_similarity
    - logits = images @ texts.T / temperature
    + logits = torch.cdist(images, texts) / temperature
    The logits are distances, which are small for those that are alike. Take dot products.
sign_lost: return (F → return -(F
    The loss has the wrong sign: it falls as partners move apart.
mean_squared_error
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + return F.mse_loss(images @ texts.T, torch.eye(len(logits)).to(logits))
    The similarities are compared with 1 and 0 by their squares. Take cross-entropies, over rows and
    over columns.
logarithm_of_the_softmax
    - return (F.cross_entropy(logits, partner) + F.cross_entropy(logits.T, partner)) / 2
    + rows, columns = logits.softmax(1).diagonal().log(), logits.softmax(0).diagonal().log()
    + return -(rows + columns).mean() / 2
    Right for ordinary logits; for large ones a softmax underflows to 0, and its logarithm is −∞.
in_bits: > result = result / 0.6931471805599453
    The loss is in bits. It should be in nats.
images_detached: F.normalize(image_vectors → F.normalize(image_vectors.detach()
    The pictures' vectors are detached: the picture side never learns.
lengths_detached
    - images, texts = F.normalize(image_vectors, dim=-1), F.normalize(text_vectors, dim=-1)
    + images = image_vectors / image_vectors.norm(dim=-1, keepdim=True).detach()
    + texts = text_vectors / text_vectors.norm(dim=-1, keepdim=True).detach()
    The lengths are detached, so the gradient does not know that vectors are scaled: it pulls them
    longer and shorter as well.
scaled_in_place
    + image_vectors.div_(image_vectors.norm(dim=-1, keepdim=True))
    The caller's vectors are scaled, in place.
rounded_to_single: > result = result.float()
    The result is float32 whatever the vectors are.
a_number: > result = result.item()
    The loss is a Python number, from which nothing can be learnt. Return a tensor.
detached: > result = result.detach()
    No gradient reaches either side, so nothing learns: the loss is cut off from the graph
    (torch.no_grad, .detach(), NumPy, torch.tensor …).
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


@BANK.right
def by_log_softmax(image_vectors, text_vectors, temperature=0.07):
    similar = F.cosine_similarity(image_vectors[:, None], text_vectors[None], dim=-1)
    rows, columns = (F.log_softmax(similar / temperature, dim=d).diagonal() for d in (1, 0))
    return -(rows.mean() + columns.mean()) / 2


@BANK.right
def by_logsumexp(image_vectors, text_vectors, temperature=0.07):
    images = image_vectors / image_vectors.norm(dim=1, keepdim=True)
    texts = text_vectors / text_vectors.norm(dim=1, keepdim=True)
    logits = torch.einsum("id,td->it", images, texts) / temperature
    own = logits.diagonal()
    return (logits.logsumexp(1) + logits.logsumexp(0) - 2 * own).mean() / 2


@BANK.right
def temperature_on_the_vectors(image_vectors, text_vectors, temperature=0.07):
    scale = temperature**-0.5
    images, texts = (nn.functional.normalize(x) * scale for x in (image_vectors, text_vectors))
    logits = images.matmul(texts.mT)
    partner = torch.arange(logits.shape[0], device=logits.device)
    loss = nn.CrossEntropyLoss()
    return torch.stack([loss(logits, partner), loss(logits.mT, partner)]).mean()


@BANK.right
def with_one_hot_targets(image_vectors, text_vectors, temperature=0.07):
    lengths = [x.square().sum(-1, keepdim=True).sqrt() for x in (image_vectors, text_vectors)]
    logits = (image_vectors / lengths[0]) @ (text_vectors / lengths[1]).T / temperature
    target = torch.eye(len(logits), dtype=logits.dtype, device=logits.device)
    return 0.5 * F.cross_entropy(logits, target) + 0.5 * F.cross_entropy(logits.T, target)


forgotten(BANK, "image_vectors", result=True)
