"""`bug_in_masking`: two tables of scores for a softmax whose mask multiplies."""

from attention_by_hand.exercises.shared import random_mask
from autograder.student.authoring import Declaration, Draw, Run, call, tensor
from autograder.student.authoring.counterexample import Bug

EXERCISE = Declaration("bug_in_masking", "Find the bug: the mask", ("mask",), recorded=False)


BUG = Bug(
    names=("scores",),
    shapes=lambda mask: [tuple(map(int, mask.data.shape))],
    function="masking",
    dull=lambda arrays: None,  # a mask that forbids something has always something to show
    extra_arguments=lambda mask: (mask,),
)


def _masks(draw: Draw) -> list[Run]:
    sizes = [(draw.integer(2, 4), draw.integer(2, 4)), (5, draw.integer(6, 9)), (9, 12)]
    return [call(tensor(random_mask(draw, *size))) for size in sizes]


BUG.declare(
    EXERCISE,
    _masks,
    shows="What score does a forbidden key have after the multiplication, and what weight does "
    "that score earn beside the others?",
    hides="A forbidden key keeps a share of the weight that depends on how far its score lies "
    "below the allowed ones. How large must these be for the share to vanish?",
)
