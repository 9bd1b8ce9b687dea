"""Chapter 9: byte pairs, GPT-2's layer and model, its loss, bits per byte, drawing and writing the
next tokens, packing a text into bits, and attention with grouped queries."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "byte_pair_merges",
    "byte_pair_encode",
    "decoder_block",
    "gpt",
    "load_gpt2",
    "next_token_loss",
    "bug_in_shifting",
    "bits_per_byte",
    "training_step",
    "next_token_probabilities",
    "generate",
    "arithmetic_coder",
    "grouped_query_attention",
)
