"""Chapter 10: BERT's embeddings and layer, blanks and the loss of filling them in, what a token
matters to another, and heads that are cut out."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "bert_embeddings",
    "bert_layer",
    "mask_tokens",
    "masked_loss",
    "attention_relevance",
    "bug_in_relevance",
    "prune_heads",
)
