"""A class of made-up students, with the marks that each deserves.

The marks were worked out by hand from the exercises' declarations; grading the class and comparing
the marks (`autograder sample`) tests the whole grader.
"""

from autograder.gradebook.sample_class import ExpectedMarks
from autograder.judge.judgement import UNUSABLE
from solutions.sample_class.notebooks import FULL, SLUG, submissions

__all__ = ["DOWNLOADED_TWICE", "EXPECTED", "SLUG", "submissions"]

DOWNLOADED_TWICE = {"otto"}  # whose browser has put " (1)" behind the notebook's name

NOTHING = dict.fromkeys(FULL, 0.0)
EXPECTED: dict[str, ExpectedMarks] = {
    "ada": ExpectedMarks("everything right", FULL),
    "ben": ExpectedMarks(
        "softmax without subtracting the maximum: NaN for ±10,000 (0.5) and for a row of −inf "
        "(0.25). The answers that call it are judged with the course's own, and are right.",
        FULL | {"softmax": 2.25},
        {"softmax": "max_not_subtracted"},
    ),
    "cleo": ExpectedMarks(
        "wrong in ways that nobody foresaw: epanechnikov squared (0.55), and a boxcar that turns "
        "float32 into float64 (0.2); the median of the squares (all of 3: dtype and inputs count "
        "only if the first aspect holds); predictions shifted by 0.01, of which only the gradients "
        "(0.5, and 0.25 with exclude_self) are right.",
        FULL | {"kernel_weights": 2.25, "leave_one_out_mse": 0.0, "KernelRegression": 0.75},
    ),
    "dan": ExpectedMarks("nothing written", NOTHING),
    "eve": ExpectedMarks(
        "a syntax error in softmax, which has nothing; the answers that call it are judged with "
        "the course's own, and are right.",
        FULL | {"softmax": 0.0},
    ),
    "finn": ExpectedMarks("attention_pool never ends; uncalled", FULL | {"attention_pool": 0.0}),
    "gus": ExpectedMarks(
        "leave_one_out_mse ends the process, and so does an added cell",
        FULL | {"leave_one_out_mse": 0.0},
    ),
    "hana": ExpectedMarks("warns on stderr; right all the same", FULL),
    "ivo": ExpectedMarks("check cells copied, an answer split in two; all right", FULL),
    "jun": ExpectedMarks("all check cells deleted; all right", FULL),
    "kim": ExpectedMarks(
        "an edited check cell that praises itself, over an empty attention_pool",
        FULL | {"attention_pool": 0.0},
    ),
    "leo": ExpectedMarks("helper cells, and softmax in a cell of its own; all right", FULL),
    "mia": ExpectedMarks("no notebook", NOTHING, status=UNUSABLE),
    "noor": ExpectedMarks("half a file", NOTHING, status=UNUSABLE),
    "otto": ExpectedMarks(
        "the first two exercises, under the file name of a second download",
        NOTHING | {"softmax": 3.0, "gaussian_scores": 2.0},
    ),
    "pia": ExpectedMarks("scripts everywhere, and a thousand points claimed; all right", FULL),
    "rosa": ExpectedMarks(
        "nadaraya_watson normalised over the queries (nothing: its rows and inputs count only with "
        "right predictions); the own point kept in leave_one_out_mse (nothing); exclude_self "
        "ignored: 1.0, and with it its gradients (0.25) and the narrow kernels (0.25)",
        FULL | {"nadaraya_watson": 0.0, "leave_one_out_mse": 0.0, "KernelRegression": 2.5},
        {
            "nadaraya_watson": "normalised_over_queries",
            "leave_one_out_mse": "own_point_kept",
        },
    ),
}  # fmt: skip
