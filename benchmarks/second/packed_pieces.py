"""Chapter 9's packed pieces once more: the training text's topics shuffled anew for each piece.

Run: python -m benchmarks.second.packed_pieces [SHUFFLES]
"""

import bz2
import lzma
import random
import sys
from statistics import stdev

from attention_by_hand.data import python_manual


def main(shuffles):
    topics = list(python_manual.documents("train").values())
    kept = "".join(python_manual.documents("test").values()).encode()
    for name, pack in (("bz2", bz2.compress), ("xz", lambda data: lzma.compress(data, preset=9))):
        draw, alone, informed, size = random.Random(1), [], 0, 0
        for start in [*range(0, len(kept), 3600)] * shuffles:
            draw.shuffle(topics)
            learnt, piece = "".join(topics).encode(), kept[start : start + 600]
            alone.append(len(pack(learnt + piece)) - len(pack(learnt)))
            so_far = learnt + kept[:start]
            informed += len(pack(so_far + piece)) - len(pack(so_far))
            size += len(piece)
        off = 8 * 1.96 * stdev(alone) * len(alone) ** 0.5 / size
        print(f"{name}: alone {8 * sum(alone) / size:.2f} ± {off:.2f}, ", end="")
        print(f"with the test so far {8 * informed / size:.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 6)
