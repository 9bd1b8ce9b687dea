"""What this course is: its title, its chapters in the book's order, what its notebooks need."""

TITLE = "Attention by Hand"
NAME = "attention-by-hand"  # of what students download, and of the printed book
CHAPTERS = (
    "kernel_regression",
    "attention_scoring",
    "multi_head",
    "masking",
    "positional_encoding",
    "residual_layernorm",
    "transformer",
    "recurrence_convolution",
    "language_model",
    "bert",
    "vision_transformer",
    "captioning",
)
# that a student installs
PACKAGES = ("torch", "numpy", "matplotlib", "jaxtyping", "Babel", "scikit-learn")
# What the sandbox has imported before a submission runs, besides NumPy, matplotlib and `check`.
PRELOADED = ("torch", "torch.nn.functional", "jaxtyping", "attention_by_hand.plots")
BLOCKS = "attention_by_hand.blocks"  # what stands in for answers that are not right yet
VARIABLES = "ATTENTION"  # ATTENTION_DEVICE and ATTENTION_SECONDS are what a student may set
# What notebooks of the last release import, by its name of today.
OLD_NAMES = {
    "autograder.blocks": "attention_by_hand.blocks",
    "autograder.plots": "attention_by_hand.plots",
    **{f"autograder.{name}": f"attention_by_hand.data.{name}" for name in ("dates", "glyphs")},
    "autograder.manual": "attention_by_hand.data.python_manual",
    **{
        f"autograder.{name}": f"attention_by_hand.figures.{name}"
        for name in ("dataflow", "decoders", "encoders", "journey")
    },
    "autograder.dataflow_two": "attention_by_hand.figures.recurrent",
    "autograder.captioner": "attention_by_hand.models.captioner",
}
