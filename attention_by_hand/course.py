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
PRELOADED = ("torch", "torch.nn.functional", "jaxtyping")
BLOCKS = (
    "attention_by_hand.blocks"  # what stands in for answers that are not right yet; "" for nothing
)
