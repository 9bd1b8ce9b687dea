"""Chapter 11: pictures cut into patches, attention in one packed projection, ViT, positions for
images of another size, and what a token has drawn from the patches."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "patchify",
    "patch_embedding",
    "packed_attention",
    "vision_transformer",
    "attention_rollout",
    "bug_in_patches",
)
