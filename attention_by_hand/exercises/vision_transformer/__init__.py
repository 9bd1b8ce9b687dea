"""Chapter 11: pictures cut into patches, attention in one packed projection, ViT, which changes of
a picture move the answer, and what a token has drawn from the patches."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "patchify",
    "patch_embedding",
    "packed_attention",
    "vision_transformer",
    "equivariance_gap",
    "attention_rollout",
    "bug_in_patches",
)
