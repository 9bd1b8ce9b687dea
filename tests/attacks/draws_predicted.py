# tries: fixes every random generator, so that the inputs might be known before
# by: the seed is an HMAC of a secret
# layer: fresh inputs
# verdict: wrong

import os
import random

import numpy as np
import torch

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
np.random.RandomState = lambda *args: np.random.mtrand._rand
os.urandom = lambda n: bytes(n)


def softmax(scores, axis=-1):
    return scores * 0
