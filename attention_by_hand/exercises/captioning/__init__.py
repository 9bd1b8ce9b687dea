"""Chapter 12: attention to another width, BLIP's text layer, its contrastive loss, also with a
queue, hard negatives, the loss of a caption after its prompt, how often partners are found, and
writing a caption."""

from autograder.student.authoring import exercises

EXERCISES = exercises(
    __name__,
    "cross_attention",
    "caption_layer",
    "contrastive_loss",
    "bug_in_contrast",
    "queued_contrastive_loss",
    "hard_negatives",
    "caption_loss",
    "recall_at",
    "write_caption",
)
