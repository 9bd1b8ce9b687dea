"""Which *bank*? The numbers of the book's first picture, by benchmarks/two_banks.py.

`MADE` is the model and how it was trained; `TEXTS` has, for each sentence, its words, the row of
*bank* in the table `(4,)`, values `(n, 2)`, weights `(n,)`, their average `(2,)`, and the answer, a
probability for each sense. `LOOKS` has the weight that ten trainings give to the word that decides,
in each sentence.
"""

import json
from pathlib import Path
from typing import Any

_FOUND = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
MADE: dict[str, Any] = _FOUND["made"]
TEXTS: dict[str, Any] = _FOUND["texts"]
LOOKS: list[list[float]] = _FOUND["looks"]
