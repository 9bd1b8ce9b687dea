"""*Follow one token*: an explorable that carries a word's vector through an encoder, step by step.

    ```{follow}
    ```

The numbers are those of `figures.one_token`; the pictures *you are here* show the same.
"""

from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attention_by_hand import plots
from attention_by_hand.figures import journey, one_token

SHORT = {"pronoun": "pron.", "adverb": "adv.", "article": "art.", "adjective": "adj.",
         "full stop": "stop"}  # fmt: skip
# The name of each step, and what it does.
TOLD = (
    ("embedding", "A row of a table: the same four numbers wherever the word stands."),
    ("+ position", "The place in the sentence is added, as a pattern of sines and cosines."),
    ("query q", "What well asks: two numbers in each of the two heads, 0 and 1."),
    ("scores q · k / √dₖ", "How well each word's key answers the query, in head 1."),
    ("mask", "Padding is hidden: its score becomes minus infinity."),
    ("softmax", "Scores become weights, which sum to 1."),
    ("average of v", "The values of all words, averaged with these weights, head by head."),
    ("× Wᴼ", "The two heads, side by side, are mixed into one vector."),
    ("add & norm", "Added to what well was before; then brought to a common size."),
    ("feed-forward", "A small network works on this position alone."),
    ("add & norm", "Added and normalised again: the vector that leaves the layer."),
    ("kind of word", "One score for each kind of word, and a softmax."),
)
ROW, FLOOR, LEFT, RIGHT = 29, 342, 200, 452
MIDDLE, TALLEST = 190, 88  # where a bar begins, and the most that it takes, in pixels


def chapters(step: journey.Step) -> str:
    """Where a step is marked in *you are here*; the last of them in chapter 7 alone."""
    marked = [str(chapter) for chapter in step.chapters or (7,)]
    return f"chapter{'s' * (len(marked) > 1)} {' and '.join(marked)}"


def entries(text: str) -> list[dict]:
    """What the page shows of each step: labels, numbers as they are written, heights of bars."""
    found = []
    for step in journey.STEPS:
        values = journey.numbers(step, text)
        if step.by_word:
            labels = one_token.TEXTS[text]["words"]
        elif step.stage == "output":
            labels = [SHORT.get(kind, kind) for kind in one_token.MADE["kinds"]]
        elif step.stage in ("query", "average"):
            labels = ["head 0", "", "head 1", ""]
        else:
            labels = [""] * len(values)
        largest = max(abs(value) for value in values if value is not None)
        found.append(
            {
                "labels": labels,
                "said": [journey.format_number(value) for value in values],
                "bars": [round((value or 0) / largest, 3) for value in values],
            }
        )
    return found


def bars(entry: dict) -> str:
    """The right half of the picture; journey.js draws the same for another step."""
    parts, room = [], (RIGHT - LEFT) / len(entry["bars"])
    for i, (bar, said, label) in enumerate(
        zip(entry["bars"], entry["said"], entry["labels"], strict=True)
    ):
        x, height = LEFT + (i + 0.5) * room, abs(bar) * TALLEST
        top = MIDDLE - height if bar > 0 else MIDDLE
        above = top - 6 if bar >= 0 else MIDDLE + height + 17
        below = MIDDLE + 19 if bar >= 0 else above + 19
        parts.append(
            f'<rect x="{x - 12:.1f}" y="{top:.1f}" width="24" height="{height:.1f}" '
            f'fill="{"#0072B2" if bar > 0 else "#D55E00"}"/>'
            f'<text x="{x:.1f}" y="{above:.1f}">{said}</text>'
            f'<text x="{x:.1f}" y="{below:.1f}" font-style="italic">{escape(label)}</text>'
        )
    return "".join(parts)


def explorable() -> plots.Explorable:
    """The figure with its still: the scores, in the sentence of the first chapter's picture."""
    texts = {text: entries(text) for text in one_token.TEXTS}
    first, begin = next(iter(texts)), 5
    boxes = "".join(
        f'<g class="journey-step"><rect x="2" y="{FLOOR - ROW * i - 12}" width="168" height="24" '
        'fill="none" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<text x="86" y="{FLOOR - ROW * i + 5}">{escape(name)}</text></g>'
        for i, (name, _) in enumerate(TOLD)
    )
    mark = FLOOR - ROW * begin - 12
    still = (
        '<svg viewBox="0 0 460 378" role="img" aria-label="A tower of twelve steps, from the '
        "embedding, below, to the kind of word, above; the softmax is marked, and beside it stand "
        f'its weights: {escape(", ".join(texts[first][begin]["said"]))}." text-anchor="middle" '
        'fill="currentColor" style="width:100%;max-width:36rem">'
        f'<text x="86" y="{FLOOR + 32}" font-weight="bold">well</text>{boxes}'
        f'<rect data-part="mark" x="2" y="{mark}" width="168" height="24" fill="#0072B2" '
        'fill-opacity="0.25" stroke="#0072B2" stroke-width="3"/>'
        f'<path d="M{LEFT} {MIDDLE}H{RIGHT}" stroke="currentColor" stroke-opacity="0.5"/>'
        f'<g data-part="bars">{bars(texts[first][begin])}</g></svg>'
    )
    return plots.explorable(
        "journey",
        "Follow one word.",
        "The word well, a vector of four numbers, on its way through a small encoder that was "
        "trained to name the kind of each word. Choose a sentence and go up step by step: up to "
        "which step are the two wells alike?",
        still,
        {
            "steps": [
                {"name": name, "chapters": chapters(step), "does": does}
                | ({} if step.by_word else {"labels": entry["labels"]})
                for (name, does), step, entry in zip(TOLD, journey.STEPS, texts[first], strict=True)
            ],
            "texts": [
                {"words": one_token.TEXTS[text]["words"], "said": [step["said"] for step in found]}
                for text, found in texts.items()
            ],
            "start": begin,
            "frame": {"row": ROW, "floor": FLOOR, "left": LEFT, "right": RIGHT,
                      "middle": MIDDLE, "tallest": TALLEST},
        },
    )  # fmt: skip


class TokenExplorable(SphinxDirective):
    """The explorable, on a page that is no notebook."""

    def run(self) -> list[nodes.Node]:
        for module in (journey, one_token, plots):
            self.env.note_dependency(str(Path(module.__file__)))
        self.env.note_dependency(str(Path(one_token.__file__).with_suffix(".json")))
        self.env.note_dependency(__file__)
        return [nodes.raw("", explorable().html, format="html")]


def setup(app: Sphinx) -> dict:
    app.add_directive("follow", TokenExplorable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
