"""English text that the standard library and the installed, pinned packages carry.

Chapter 9's GPT trained beforehand reads it, so nothing is downloaded. A *document* is a file: the
docstrings of a module, a page of documentation, or what a package says of itself. Prose is kept:
sentences of plain words, each of which stands in three documents or more, without code, formulas
and markup. Of a sentence that stands in several places, the first is kept. Documents are held out
whole, and only such as have no run of eight words in common with another.
"""

import ast
import hashlib
import platform
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from inspect import cleandoc
from pathlib import Path

Name = tuple[str, str]  # of a document: its package, and its file there

ROOT = Path(__file__).resolve().parents[1]
SKIPPED = {"tests", "test", "testing", "_vendor", "vendor", "node_modules", "lib2to3", "idlelib"}
HELD_OUT = {"test": 150_000, "valid": 50_000}  # bytes, at least; the rest is "train"
LEAST, RUN, KNOWN = 1000, 8, 3  # bytes of a document held out; words; documents with a word
LONG = 200  # letters of a string that is no docstring
MARKUP = (
    (re.compile(r":[\w:+-]+:`~?!?([^`<]*?)(\s*<[^`>]*>)?`"), r"`\1`"),  # a role
    (re.compile(r"`+([A-Za-z][a-z]*)`+_*"), r"\1"),  # a word in quotes; other code stays, and goes
    (re.compile(r"\*{1,2}([A-Za-z][a-z ]*)\*{1,2}"), r"\1"),
    (re.compile(r"\s*\[[\w, -]+\]_"), ""),  # a footnote
    (re.compile(r"\s+"), " "),
)
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z])")
WORDS = re.compile(r"[A-Za-z][a-z]*(?:['-][a-z]+)*")


def is_prose(sentence: str) -> bool:
    """Whether a sentence is made of plain words, from a capital to a full stop."""
    if not re.fullmatch(r"[A-Z][A-Za-z' ,;:()-]*[a-z)][.?!]", sentence):
        return False
    words = sentence[:-1].split()
    inside = " ".join(words[1:])
    return (
        4 <= len(words) <= 60
        and not re.search(r"[a-z][A-Z]|[A-Z]{4}|\b[b-z]\b(?!')|[-'(:;,]{2}|\w\(", inside)
        and sentence.count("(") == sentence.count(")")
        and bool(re.search(r"\b(the|a|an|of|to|is|are|in|for|be|this|it|that|and|or)\b", inside))
    )


def find_paragraphs(text: str) -> Iterator[str]:
    """The prose of a docstring or page; the description of a parameter is a paragraph, too."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.split("\n")
        if any(
            line.lstrip().startswith((">>>", "...", "|", "+-", "..", "$", "#")) for line in lines
        ):
            continue
        run: list[str] = []
        for line in [*lines, ""]:
            if run and indent(line) != indent(run[-1]) or re.match(r"\s*([-*] |\d+\. |:)", line):
                yield from keep_prose(run)
                run = []
            run.append(re.sub(r"^\s*[-*] ", "", line) if re.match(r"\s*[-*] ", line) else line)
        yield from keep_prose(run)


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def keep_prose(lines: list[str]) -> Iterator[str]:
    text = " ".join(line.strip() for line in lines).strip()
    for pattern, new in MARKUP:
        text = pattern.sub(new, text)
    kept = [sentence for sentence in SENTENCE.split(text) if is_prose(sentence)]
    if kept:
        yield " ".join(kept)


def find_docstrings(source: str) -> list[str]:
    """Those of a module and of all that it defines; then other long strings that stand alone."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return []
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds)]
    for node in nodes:
        if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Constant):
            text = node.value.value  # the text behind an attribute, or a template of one
            if isinstance(text, str) and len(text) > LONG:
                found.append(cleandoc(text))
    return list(dict.fromkeys(found))


def read_prose(path: Path) -> str:
    """The prose of a file, a paragraph on each line."""
    raw = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".py":
        texts = find_docstrings(raw)
    elif path.name == "METADATA":
        texts = [raw.partition("\n\n")[2]]
    else:
        texts = [raw]
    return "\n".join(p for text in texts for p in find_paragraphs(text.expandtabs()))


def find_pinned() -> Iterator[Distribution]:
    """The packages of `constraints.txt` that are installed as it says."""
    for line in sorted((ROOT / "constraints.txt").read_text("utf-8").lower().split()):
        name, _, version = line.partition("==")
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        if found.version.partition("+")[0] == version:
            yield found


def find_files() -> Iterator[tuple[str, str, Path]]:
    """Package, name of the file in it, and path."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        yield "Python", path.relative_to(library).as_posix(), path
    for package in find_pinned():
        for file in sorted(package.files or (), key=str):
            if file.suffix in {".py", ".rst", ".md"} or file.name == "METADATA":
                yield package.metadata["Name"], str(file), Path(str(package.locate_file(file)))


@cache
def documents() -> dict[Name, str]:
    """All documents: a paragraph on each line, no sentence twice, no rare word."""
    texts = {}
    for package, name, path in find_files():
        parts = set(name.split("/")[:-1])
        if not parts & (SKIPPED | {"site-packages", ".."}) and path.is_file():
            texts[package, name] = read_prose(path)
    return without_rare_words(without_repeats(texts))


def keep_sentences(text: str, wanted) -> str:
    """The sentences of a text that are wanted, a paragraph on each line."""
    lines = ([s for s in SENTENCE.split(line) if s and wanted(s)] for line in text.splitlines())
    return "".join(" ".join(line) + "\n" for line in lines if line)


def without_repeats(texts: dict[Name, str]) -> dict[Name, str]:
    """Of each sentence only the first copy stays."""
    seen: set[str] = set()
    is_new = lambda s: not (s in seen or seen.add(s))  # noqa: E731
    return {name: kept for name, text in texts.items() if (kept := keep_sentences(text, is_new))}


def without_rare_words(texts: dict[Name, str]) -> dict[Name, str]:
    """Sentences with a word that fewer than KNOWN documents have are left out."""
    holders: Counter[str] = Counter()
    for text in texts.values():
        holders.update({word.lower() for word in WORDS.findall(text)})
    is_known = lambda s: all(holders[w.lower()] >= KNOWN for w in WORDS.findall(s))  # noqa: E731
    return {name: kept for name, text in texts.items() if (kept := keep_sentences(text, is_known))}


def runs_of_words(text: str) -> set[tuple[str, ...]]:
    """All runs of RUN words within a paragraph."""
    lines = (line.lower().split() for line in text.splitlines())
    return {tuple(line[i : i + RUN]) for line in lines for i in range(len(line) - RUN + 1)}


def split(texts: dict[Name, str]) -> dict[str, dict[Name, str]]:
    """The parts `"train"`, `"valid"` and `"test"`; who is held out is drawn by the names alone."""
    holders = Counter(run for text in texts.values() for run in runs_of_words(text))
    order = sorted(texts, key=lambda name: hashlib.sha256("/".join(name).encode()).digest())
    alone = (
        name
        for name in order
        if len(texts[name]) >= LEAST and all(holders[r] == 1 for r in runs_of_words(texts[name]))
    )
    part_of = dict.fromkeys(texts, "train")
    for part, size in HELD_OUT.items():
        taken = 0
        while taken < size:
            name = next(alone)
            part_of[name] = part
            taken += len(texts[name].encode())
    return {
        part: {name: texts[name] for name in sorted(texts) if part_of[name] == part}
        for part in ("train", *HELD_OUT)
    }


def licence(package: str) -> str:
    """What a package says its licence is, in a few words."""
    if package == "Python":
        return "PSF-2.0"
    about = distribution(package).metadata
    short = (about.get("License-Expression") or about.get("License") or "").strip()
    if " AND " in short:
        short = f"{short.partition(' AND ')[0]} and others"
    if short in ("", "UNKNOWN") or len(short) > 40:
        kinds = [k for k in about.get_all("Classifier") or () if k.startswith("License ::")]
        short = "; ".join(kind.rpartition(" :: ")[2] for kind in kinds)
    return short or read_licence(package)


def read_licence(package: str) -> str:
    """The heading of the licence that comes with a package."""
    file = next(f for f in distribution(package).files or () if f.name.startswith("LICEN"))
    return file.read_text(encoding="utf-8").partition("\n")[0]


def sources(texts: dict[Name, str]) -> list[list]:
    """Package, version, licence, documents and bytes, the largest first."""
    sizes: dict[str, list[int]] = {}
    for (package, _), text in texts.items():
        sizes.setdefault(package, []).append(len(text.encode()))
    version = lambda p: platform.python_version() if p == "Python" else distribution(p).version  # noqa: E731
    rows = [[p, version(p), licence(p), len(found), sum(found)] for p, found in sizes.items()]
    return sorted(rows, key=lambda row: -row[-1])
