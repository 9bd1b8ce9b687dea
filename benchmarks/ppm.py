"""Chapter 9's two texts packed by PPM: predict each byte from the runs before it, and go on.

Run: python -m benchmarks.ppm; a few minutes on one core. It takes pyppmd, which is not among the
course's requirements: pip install pyppmd. The variant is PPMd's H, that of 7-zip's own format. The
longest run is the best of ORDERS on the validation parts, primed by the training text.
benchmarks/ppm.json has bits per byte, alone and primed, and of the test's parts one by one, primed:
by how many bytes each makes the file longer (to within the few that the coder still holds).
"""

import datetime
from pathlib import Path

import pyppmd

from attention_by_hand.data import python_manual
from benchmarks import english
from benchmarks.results import write

RESULT = Path(__file__).with_suffix(".json")
ORDERS = (4, 6, 8, 12, 16, 24)
MEMORY = 2**30  # so much that nothing is forgotten


def added(texts: list[bytes], order: int) -> list[int]:
    """Bytes that each text adds to the file, after all those before it."""
    packer = pyppmd.Ppmd7Encoder(order, MEMORY)
    lengths = [len(packer.encode(text)) for text in texts]
    return [*lengths[:-1], lengths[-1] + len(packer.flush(endmark=False))]


def measure(parts: dict[str, dict]) -> dict:
    """One text: the order, and what the test costs with it."""
    learnt, valid, test = (
        [text.encode() for text in parts[part].values()] for part in ("train", "valid", "test")
    )
    learnt, valid, whole = map(b"".join, (learnt, valid, test))
    per_byte = lambda packed, text: round(8 * packed / len(text), 4)  # noqa: E731
    tried = [[order, per_byte(added([learnt, valid], order)[1], valid)] for order in ORDERS]
    order = min(tried, key=lambda row: row[1])[0]
    costs = added([learnt, *test], order)[1:]
    return {
        "bytes": {"train": len(learnt), "valid": len(valid), "test": len(whole)},
        "tried": tried,
        "order": order,
        "alone": per_byte(sum(added([whole], order)), whole),
        "primed": per_byte(sum(costs), whole),
        "sizes": [len(text) for text in test],
        "added": costs,
    }


def main() -> None:
    found = {
        "made": {
            "script": "python -m benchmarks.ppm",
            "date": datetime.date.today().isoformat(),
            "pyppmd": pyppmd.__version__,
        }
    }
    manual = {part: python_manual.documents(part) for part in ("train", "valid", "test")}
    for name, parts in (("manual", manual), ("English", english.split(english.documents()))):
        found[name] = measure(parts)
        print(
            name, {k: v for k, v in found[name].items() if k not in ("sizes", "added")}, flush=True
        )
    write(RESULT, **found)


if __name__ == "__main__":
    main()
