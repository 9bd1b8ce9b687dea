"""What becomes of *well* in two sentences, step by step, by benchmarks/one_token.py.

`MADE` is the model and how it was trained; the stages in `TEXTS` are what each step gives, in the
order in which they are computed. The first axis of query to average is that of the two heads.
"""

import json
from pathlib import Path
from typing import Any

_FOUND = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
MADE: dict[str, Any] = _FOUND["made"]
TEXTS: dict[str, Any] = _FOUND["texts"]
