"""Chapter 9's PPM once more, by 7-Zip's own program; a minute.

Run: python -m benchmarks.second packed_by_7z, where 7z is installed. It takes less memory for less
text, and forgets when that is full; zeros behind each text, whose bytes are subtracted, keep it
from that. 7-Zip 26.01, alone and primed: manual 1.883 and 1.579 bits per byte, English 1.795 and
1.379. The validation parts, with the longest run of 4, 6, 8 and 12, take five bytes less than on
the page.
"""

import subprocess
import tempfile
from pathlib import Path

from attention_by_hand.data import python_manual
from benchmarks import english

ZEROS = bytes(50 * 2**20)


def packed(text: bytes, longest: int) -> int:
    """The length of a text in an archive, with the zeros behind it."""
    with tempfile.TemporaryDirectory() as folder:
        file, archive = Path(folder, "text"), Path(folder, "text.7z")
        file.write_bytes(text + ZEROS)
        way = f"-m0=PPMd:o={longest}:mem=1g"
        subprocess.run(["7z", "a", way, archive, file], check=True, capture_output=True)
        told = subprocess.run(["7z", "l", "-slt", archive], check=True, capture_output=True)
    lines = told.stdout.decode().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("Packed Size"))


def main() -> None:
    manual = {part: python_manual.documents(part) for part in ("train", "valid", "test")}
    texts = {"manual": (manual, 16), "English": (english.split(english.documents()), 24)}
    for name, (parts, best) in texts.items():
        text = {part: "".join(found.values()).encode() for part, found in parts.items()}
        for longest in (4, 6, 8, 12, best):
            nothing, primer = packed(b"", longest), packed(text["train"], longest)
            told = []
            for part in ("valid", "test"):
                alone = packed(text[part], longest) - nothing
                after = packed(text["train"] + text[part], longest) - primer
                size = len(text[part]) / 8
                told.append(f"{part} alone {alone / size:.4f}, primed {after / size:.4f}")
            print(f"{name}, up to {longest}: {'; '.join(told)}")
