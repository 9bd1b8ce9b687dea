"""What torch offers ready-made, by what it computes, and which names are among what is forbidden.

`ready_made.json` is made from torch's own registry (`autograder.publishing.ready_made`): for each
concept the names of the operators, functions and modules that compute it.
"""

import json
import re
from collections.abc import Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.autograd.graph import Node

FILE = Path(__file__).with_name("ready_made.json")
_LISTED = json.loads(FILE.read_text("utf-8"))
CONCEPTS: Mapping[str, frozenset[str]] = {
    concept: frozenset(names) for concept, names in _LISTED["concepts"].items()
}
TAKEN_OFF = "torch.overrides"  # the name noted when an answer has removed the observer's hooks
_NAMESPACES = frozenset([*_LISTED["namespaces"], "higher_order"])
# As the graph of gradients names them: NativeLayerNormBackward0.
_SQUASHED = frozenset(n.replace("_", "") for names in CONCEPTS.values() for n in names)


@lru_cache(maxsize=1 << 14)
def is_match(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a dotted name belongs to a concept or matches a pattern, and no exception.

    Patterns are those of `Observer`. Upper and lower case are the same.
    """
    concepts, yes, no = _compile(patterns)
    name = name.lower()
    found = yes.fullmatch(name) or any(computes(name, concept) for concept in concepts)
    return bool(found) and not no.fullmatch(name)


def is_forbidden(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether an operation is forbidden; removing the hooks always is."""
    return name == TAKEN_OFF or is_match(name, patterns)


@lru_cache(maxsize=1 << 14)
def computes(name: str, concept: str) -> bool:
    """Whether what torch calls by a dotted name in lower case computes a concept."""
    names, parts = CONCEPTS[concept], name.split(".")
    if parts[0] != "torch" or (parts[1:2] == ["ops"] and parts[2] not in _NAMESPACES):
        return False  # an operator of somebody's own: what counts is what runs inside
    wholes = (".".join(parts[:end]) for end in range(2, len(parts) + 1))
    return not names.isdisjoint(parts) or not names.isdisjoint(wholes)


def is_backward_of(node: "Node | None") -> bool:
    """Whether a node of torch's own is the backward pass of something ready-made, seen before."""
    import torch

    if node is None or isinstance(node, torch._C._FunctionBase):  # made in Python: any name
        return False
    return re.sub(r"Backward\d*$", "", node.name()).lower() in _SQUASHED


@lru_cache(maxsize=256)
def _compile(patterns: tuple[str, ...]) -> tuple[list[str], re.Pattern, re.Pattern]:
    plain = [pattern for pattern in patterns if "." not in pattern]
    if unknown := {*plain} - {*CONCEPTS}:
        raise ValueError(f"{unknown} is nothing to forbid; there are {', '.join(CONCEPTS)}")
    dotted = [pattern.lower() for pattern in patterns if "." in pattern]
    yes = [translate(pattern) for pattern in dotted if pattern[0] != "!"]
    no = [translate(pattern[1:]) for pattern in dotted if pattern[0] == "!"]
    return plain, re.compile("|".join(yes) or r"(?!)"), re.compile("|".join(no) or r"(?!)")
