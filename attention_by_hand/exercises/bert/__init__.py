"""Chapter 10: BERT's layer, blanks, their loss, filling them in, what a token matters to another,
and heads that are cut out."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "bert_layer",
    "mask_tokens",
    "masked_loss",
    "fill_gaps",
    "attention_relevance",
    "bug_in_relevance",
    "prune_heads",
)
