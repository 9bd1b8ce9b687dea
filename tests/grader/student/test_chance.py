"""What is left to chance: fresh objects draw anew under other seeds, and alike under the same."""

import numpy as np
import pytest
import torch
from torch import nn

from autograder.judge.reference import expected, records
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.chance import draws_afresh
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Aspect, Draw, Finding, Record, Trial, module, tensor
from solutions import bert, captioning, language_model, residual_layernorm

_BESIDE = torch.Generator().manual_seed(0)


class Draws(nn.Module):
    """Draws with a generator, made anew in each object if it has a `seed`."""

    generator, seed = None, None

    def __init__(self):
        super().__init__()
        if self.seed is not None:
            self.generator = torch.Generator().manual_seed(self.seed)

    def forward(self, x):
        return x * (torch.rand(x.shape, generator=self.generator) < 0.5)


class Seeded(Draws):
    seed = 0


class Beside(Draws):
    generator = _BESIDE


class Nothing(Draws):
    def forward(self, x):
        return x * (torch.arange(len(x)) % 2)


class Numpys(Draws):
    def forward(self, x):
        return x * torch.from_numpy(np.random.rand(*x.shape) < 0.5)


@pytest.mark.parametrize(
    ("answer", "anew", "with_torchs"),
    [
        (Draws, True, True),
        (Numpys, True, True),
        (Seeded, False, False),
        (Nothing, False, False),
        (Beside, True, False),
    ],
)
def test_draws_follow_the_seed_of_the_global_generators(answer, anew, with_torchs):
    run = module().then(tensor(np.ones(64), "float32"))
    aspect = Aspect(
        "drawn", 1.0, "", lambda draw: [run, run.at_random(draw)], lambda trials: Finding(True)
    )
    for wanted, fine in ((False, anew), (True, with_torchs)):
        made = draws_afresh(aspect, wanted)
        runs = made.runs(Draw(b"any"))
        trials = [Trial(run, probe(answer, run)) for run in runs]
        assert made.judge(trials).passed == fine


class DropPathSeeded(residual_layernorm.DropPath):
    def __init__(self, p=0.0):
        super().__init__(p)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, x):
        if not self.training or not self.p:
            return x
        draws = torch.rand(len(x), *[1] * (x.dim() - 1), generator=self.generator)
        return torch.where(draws >= self.p, x / (1 - self.p), torch.zeros_like(x))


class DropPathByASine(residual_layernorm.DropPath):
    """Nothing is drawn: what is dropped follows from the number of the call."""

    calls = 0

    def forward(self, x):
        if not self.training or not self.p:
            return x
        self.calls += 1
        numbers = torch.arange(1, len(x) + 1) * 12.9898 + self.calls * 78.233
        kept = (torch.sin(numbers) * 43758.5453) % 1 >= self.p
        kept = kept.reshape(-1, *[1] * (x.dim() - 1))
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


def mask_tokens(ids, mask_id, vocab_size, special_ids=(), probability=0.15, generator=None):
    given = ids, mask_id, vocab_size, special_ids, probability
    return bert.mask_tokens(*given, generator or _BESIDE)


def hard_negatives(similarity, generator=None):
    return captioning.hard_negatives(similarity, generator or _BESIDE)


def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None):
    given = model, ids, max_new_tokens, temperature, top_k, top_p
    return language_model.generate(*given, generator or _BESIDE)


@pytest.mark.parametrize(
    ("name", "answer", "title"),
    [
        ("DropPath", DropPathSeeded, "each sample is drawn on its own, in each call"),
        ("DropPath", DropPathByASine, "each sample is drawn on its own, in each call"),
        ("mask_tokens", mask_tokens, "each token on its own"),
        ("hard_negatives", hard_negatives, "drawn from the softmax, each on its own"),
        ("generate", generate, "drawn at random, with the right chances"),
    ],
)
def test_chance_that_is_none_costs_the_aspect_about_it(name, answer, title):
    slug, exercise = find_exercise(name)
    (aspect,) = [aspect for aspect in exercise.aspects if aspect.title == title]
    runs = [aspect.runs(Draw(b"any" + title.encode()))]
    for made, fine in ((records(answer, runs), False), (expected(slug, name, runs), True)):
        trials = [
            Trial(*row, Record(), exercise.arguments) for row in zip(*runs, *made, strict=True)
        ]
        finding = aspect.judge(trials)
        assert finding.passed == fine
        assert fine or "the same" in finding.message


def test_whatever_drops_is_tried_under_two_seeds():
    """Each exercise with random calls in training mode, and each that takes a generator."""
    for slug in chapters():
        for exercise in exercises_of(slug):
            rows = [[run for run in row if run.random] for row in exercise.runs(b"any")]
            chance = any(run.training and len(run.steps) > 1 for row in rows for run in row)
            if chance or "generator" in exercise.arguments:
                first = [row[0].seed + 1 in [run.seed for run in row] for row in rows if row]
                assert any(first), exercise.name
