"""What chapter 2 asks: attention by dot products, in NumPy and in torch, and other scores."""

from autograder.exercises.attention_scoring.additive_attention import ADDITIVE_ATTENTION
from autograder.exercises.attention_scoring.bilinear_attention import BILINEAR_ATTENTION
from autograder.exercises.attention_scoring.cosine_scores import COSINE_SCORES
from autograder.exercises.attention_scoring.scaled_dot_product_attention import (
    SCALED_DOT_PRODUCT_ATTENTION,
)
from autograder.exercises.attention_scoring.self_attention import SELF_ATTENTION
from autograder.exercises.attention_scoring.self_similarity import SELF_SIMILARITY
from autograder.exercises.attention_scoring.simple_attention import SIMPLE_ATTENTION

EXERCISES = (
    SIMPLE_ATTENTION,
    SELF_SIMILARITY,
    SCALED_DOT_PRODUCT_ATTENTION,
    ADDITIVE_ATTENTION,
    BILINEAR_ATTENTION,
    COSINE_SCORES,
    SELF_ATTENTION,
)
