"""Measured numbers in a sentence stand in an output, a table or the code of the same page, too.

What stands nowhere on its page is either computed here again or has a reason to be there.
"""

import inspect
import json
import math
import re
from pathlib import Path
from statistics import mean, stdev

import pytest
import torch
from bs4 import BeautifulSoup

SHOWN = "pre, table, svg, .abh-check, .pencil, .progress-bar"
NOT_MEASURED = (
    f"{SHOWN}, script, style, a, .citation, .caption-number, .eqno, .section-number, .glance, "
    ".exercise-head, .path-more"
)
NUMBER = re.compile(r"(?<![\w.,])\d+\.?\d*(?:e[-+]?\d+)?")
TOLD = re.compile(r"(?<![\w.,])(?<!section )(\d+\.\d+)(?![\w.])( ?%)?|(?<![\w.,])(\d+) ?%")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
CHAPTERS = (
    "01_kernel_regression",
    "02_attention_scoring",
    "03_multi_head",
    "04_masking",
    "05_positional_encoding",
    "06_residual_layernorm",
    "07_transformer",
    "08_recurrence_convolution",
    "09_language_model",
    "10_bert",
    "11_vision_transformer",
    "12_captioning",
)
NO_MEASUREMENT = {
    "03_multi_head": {"95 %": "the level of the intervals"},
    "09_language_model": {
        "1.3": "Shannon's, with its source",
        "0.001": "a bound, from chapter 6",
        "0.003": "a setting, held with the others of the GPT trained beforehand",
    },
    "10_bert": {
        "91 %": "a claim to be judged, in an exercise",
        "84.5": "of Wettig et al., with its source",
        "84.3": "of Wettig et al., with its source",
        "84.2": "of Wettig et al., with its source",
        "83.7": "of Wettig et al., with its source",
        "79.6": "of Devlin et al., with its source",
        "94.9": "of Devlin et al., with its source",
        "95.9": "of Devlin et al., with its source",
        "75.1": "of Devlin et al., with its source",
        "64.2": "of the code's README, with its source",
        "73.5": "of the code's README, with its source",
        "16.2": "in other code, beside the sentence",
    },
    "11_vision_transformer": {"68 %": "held with the chapter's other figures of no positions"},
    "12_captioning": {
        "12.10": "a section",
        "1.9": "a claim to be judged, in an exercise",
        "4.4": "held with the chapter's other intervals",
        "9.8": "held with the chapter's other intervals",
        "20.5": "in other code, named beside it",
        "6.9": "in other code, named beside it",
    },
}


def known_otherwise() -> dict[str, dict[str, float]]:
    """Numbers that no cell shows, and what they must be."""
    stored = json.loads((BENCHMARKS / "heads.json").read_text(encoding="utf-8"))
    gaps = {
        name: 100 * (mean(shares["learnt"]) - mean(shares["kept back"]))
        for name, shares in stored["on few windows"].items()
    }
    guides, both = stored["guides"], 100 * mean(stored["counted"]["both neighbours"])
    many, eight = (stored["runs"][name]["1500"]["kept back"] for name in ("32 heads", "8 heads"))
    lead = [100 * (a - b) for a, b in zip(many, eight, strict=True)]
    betas = inspect.signature(torch.optim.Adam).parameters["betas"].default
    e = [math.exp(score / math.sqrt(2)) for score in (3, 0, 4)]  # of "sings", in the three views
    partner = math.e / (math.e + 1 + 1 + 1 / math.e)  # of cosines 1, 0, 0 and −1
    return {
        "02_attention_scoring": {"0.64": e[2] / sum(e), "0.32": e[0] / sum(e)},
        "03_multi_head": {
            **{f"{gap:.1f}": gap for gap in gaps.values()},
            **{f"{abs(r):.2f}": abs(r) for each in guides.values() for r in spread(each)},
            f"{both:.1f}": both,
            "1056": useful_directions(32, 1),
            "3040": useful_directions(32, 32),
            "0.48": math.e / (math.e + 3),
            "4.4": mean(lead),
            "4.8": 2.776 * stdev(lead) / math.sqrt(5),
        },
        "04_masking": {"4.7": 2 * 96 * 12_288 * 2 / 1e6},
        "05_positional_encoding": {
            "0.01": 10_000 ** (-2 / 4),
            "0.14": math.sin(3),
            "0.99": -math.cos(3),
            "0.03": math.sin(3 * 10_000 ** (-2 / 4)),
            "1.00": math.cos(3 * 10_000 ** (-2 / 4)),
        },
        "06_residual_layernorm": {"5.77": math.sqrt(100 / 3)},
        "07_transformer": {
            "0.007": 0.1 / 14,
            "0.69": math.log(2),
            "0.097": -math.log(0.9 + 0.1 / 14),
            "4.94": math.log(14 / 0.1),
            "0.999": betas[1],
        },
        "08_recurrence_convolution": {"0.95": 1 / (1 + math.exp(-3))},
        "09_language_model": {
            "7.14": math.log(1257),
            "4.16": math.log(64),
            "1.44": 1 / math.log(2),
        },
        "11_vision_transformer": {"6.7": lead_over_the_vit("svm")},
        "12_captioning": {
            "0.53": partner,
            "0.63": -math.log(partner),
            "18.1": mean(lead_over_patches()),
            "0.8": 4.303 * stdev(lead_over_patches()) / math.sqrt(3),
        },
    }


def lead_over_patches() -> list[float]:
    """In points, of convolutions without batch norm, both in 4,500 steps; three seeds."""
    runs = json.loads((BENCHMARKS / "captions.json").read_text(encoding="utf-8"))["runs"]
    unnormed, patches = (
        [100 * run["new"]["exact"] for run in runs if run["run"] == name and run["seed"] < 3]
        for name in ("no batch norm, longer", "patches, longer")
    )
    return [a - b for a, b in zip(unnormed, patches, strict=True)]


def lead_over_the_vit(model: str) -> float:
    """In points, on all training images as they stand, the mean of all seeds."""
    runs = json.loads((BENCHMARKS / "vision_models.json").read_text(encoding="utf-8"))["runs"]
    plain = {"images": 1437, "shifts": False, "order": "as they are"}
    right = {
        name: mean(
            100 * run["test"]
            for run in runs
            if plain.items() <= run.items() and (run["model"], run["steps"]) == (name, steps)
        )
        for name, steps in ((model, None), ("vit", 800))
    }
    return right[model] - right["vit"]


def spread(found: list[float]) -> tuple[float, float, float]:
    return mean(found), min(found), max(found)


def useful_directions(d: int, heads: int) -> int:
    """How many directions of four d × d matrices change attention that a single vector asks for."""
    return heads * d + 2 * d**2 - d**2 // heads


def unheld(article: BeautifulSoup) -> list[str]:
    """The decimals and percentages in the text that nothing shown on the page rounds to."""
    text = " ".join(part.get_text() for part in article.select(SHOWN)).replace("−", "-")
    shown = [n for n in map(float, NUMBER.findall(text)) if math.isfinite(n)]
    for part in article.select(NOT_MEASURED):
        part.decompose()
    missing = []
    for decimal, per_cent, whole in TOLD.findall(article.get_text()):
        number = float(decimal or whole)
        places = len(decimal.partition(".")[2])
        scales = (1, 100) if whole or per_cent else (1,)
        if not any(math.isclose(round(n * s, places), number) for n in shown for s in scales):
            missing.append(decimal or f"{whole} %")
    return missing


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CHAPTERS)
def test_a_measured_number_in_a_sentence_is_shown_on_its_page(name, pages):
    article = pages[f"book/{name}.html"].find("article")
    explained = {**known_otherwise().get(name, {}), **NO_MEASUREMENT.get(name, {})}
    found = unheld(BeautifulSoup(str(article), "html.parser"))
    assert [number for number in found if number not in explained] == []
    assert [n for n in explained if n.replace(" %", "") not in article.get_text()] == []


@pytest.mark.parametrize(
    ("told", "computed"), [pair for known in known_otherwise().values() for pair in known.items()]
)
def test_a_number_that_no_cell_shows_is_what_it_must_be(told, computed):
    assert round(computed, len(told.partition(".")[2])) == float(told)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_useful_directions_are_those_that_move_an_output(heads):
    """Every one and no more: the rank of the Jacobian, for one fixed query over many windows."""
    d = 4
    torch.manual_seed(heads)
    matrices = tuple(torch.randn(4, d, d, dtype=torch.float64))
    query, windows = torch.randn(d).double(), torch.randn(40, 5, d).double()

    def attention(W_q, W_k, W_v, W_o):
        q = (query @ W_q).view(heads, 1, -1)
        k, v = ((windows @ W).unflatten(-1, (heads, -1)).transpose(1, 2) for W in (W_k, W_v))
        gathered = (q @ k.mT).softmax(-1) @ v  # (40, heads, 1, d_k)
        return gathered.flatten(1) @ W_o

    derivatives = torch.autograd.functional.jacobian(attention, matrices)
    jacobian = torch.cat([part.reshape(40 * d, -1) for part in derivatives], 1)
    assert torch.linalg.matrix_rank(jacobian, rtol=1e-9) == useful_directions(d, heads)


def test_a_number_that_nothing_shows_is_found():
    page = (
        "<article><p>About 0.35, or 12.34, or 12 %, or 47 %, or 99.4 %, or 3.5 %; section 5.1."
        "</p><pre>0.3512 0.12 0.994</pre></article>"
    )
    assert unheld(BeautifulSoup(page, "html.parser")) == ["12.34", "47 %", "3.5"]
