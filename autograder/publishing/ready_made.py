"""Lists what torch offers ready-made, by what it computes: `engine/ready_made.json`.

Run: python -m autograder.publishing.ready_made

What an exercise may forbid is a concept ("gelu"). The names of each come from torch's registry of
operators, from its callables and from the definitions in its sources: those that hold one of the
concept's words, those that have one of its arguments, and those that are known to compute it
though no word says so. A new version of torch makes another list, to be reviewed as a diff.
"""

import json
import re
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from autograder.student.engine.ready_made import FILE

# Where torch is written in Python and an answer may find something: its frames are named by these.
SOURCES = ("nn", "ao/nn", "_refs", "_prims", "_decomp", "_higher_order_ops", "onnx/ops", "sparse")
SOURCES += ("nested", "masked", "utils", "functional.py", "_inductor/fx_passes/fuse_attention.py")
SPACES = (
    "_C",
    "_C._nn",
    "_C._VariableFunctions",
    "_VF",
    "Tensor",
    "nn",
    "nn.functional",
    "special",
)
# Written in Python, these compute nothing: they ask, choose, set, count, describe or rewrite.
APART = re.compile(
    r"^_?(jit_pass|get|set|is|can|cur|current|list|register|restore|activate|select|use|setup|trace"
    r"|convert|validate|unpack|bucket|pre_bucket|dedup|identify|fuse|update|sdpa_kernel)_"
    r"|fsdp|sdpa_kernel|_benchmark_|_flop(_count)?$|_fake|_check$|_init$|normalizer|picker|_for_same|_args_and_"
    r"|cubic_convolution|backend|handle$|graph_transform|_proxy_|_functionalize$|fusion"
)


@dataclass(frozen=True)
class Concept:
    """What the names of a concept hold (`words`).

    `arguments` are those that only its operators have, `known` are further names, whole prefixes if
    they have dots.
    """

    words: str
    arguments: frozenset[str] = frozenset()
    known: tuple[str, ...] = ()


# The last of each is a kernel that computes a whole encoder layer.
_LAYER = "_transformer_encoder_layer_fwd"
CONCEPTS = {
    "gelu": Concept(
        "gelu|_pointwise",  # one by name, of the result of a matrix product or a convolution
        arguments=frozenset(("use_gelu", "approximate", "unary_attr", "post_op_name")),
        known=(_LAYER,),
    ),
    "normalisation": Concept(
        "(layer|group|instance|batch|rms|response)_?norm|lrn", known=(_LAYER,)
    ),
    "attention": Concept(
        "attention|attn|sdpa?(?![b-z])|sfdp|safe_softmax",
        known=(
            *("_transform_bias_rescale_qkv", "torch.onnx", "torch.ops.onnx", _LAYER),
            *("torch.nn.attention.flex_attention", "torch._higher_order_ops.flex_attention"),
            *(
                "torch.ops.higher_order.flex_attention",
                "torch.ops.higher_order.flex_attention_backward",
            ),
        ),
    ),
    "softmax_with_mask": Concept("(masked|safe)_softmax", known=("torch.masked._ops.softmax",)),
    "multi_head_attention": Concept(
        "multi_?head_?att", known=("_transform_bias_rescale_qkv", _LAYER)
    ),
    "transformer": Concept("transformer"),
    "recurrence": Concept("rnn|lstm|gru"),
    "convolution": Concept("conv(?!ert|ersion|ention|enien)"),
    "autograd": Concept("make_dual", known=("make_dual", "torch.autograd")),
}


def names_of_torch() -> dict[str, list[str]]:
    """The names of each concept, in lower case: components of names, or prefixes with dots."""
    operators, defined = _operators(), _definitions()
    written = [*defined, *_callables()]
    written = [(module, name) for module, name in written if not APART.search(name.lower())]
    modules = {part for module, _ in defined for part in module.split(".")}
    listed = {}
    for concept, rule in CONCEPTS.items():
        fits = re.compile(rule.words).search
        found = [*rule.known]
        for where, name in [*operators, *written]:
            own = not rule.arguments.isdisjoint(operators.get((where, name), ()))
            if own or fits(name.lower()):
                ambiguous = name.lower() in modules  # a module has that name, too
                found.append(f"{where}.{name}" if ambiguous else name)
        listed[concept] = sorted({name.lower() for name in found})
    return listed


def _operators() -> dict[tuple[str, str], set[str]]:
    """The arguments that the operators of a name have, by "torch.ops.<namespace>" and name."""
    import torch
    import torch.onnx.ops  # registers its own

    found: dict[tuple[str, str], set[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        found.setdefault((f"torch.ops.{space}", name), set()).update(
            argument.name for argument in schema.arguments
        )
    for whole in torch._C._dispatch_get_all_op_names():
        space, _, name = whole.partition(".")[0].partition("::")
        found.setdefault((f"torch.ops.{space}", name), set())
    return found


def _callables() -> list[tuple[str, str]]:
    """What can be called in torch's namespaces: the namespace and the name."""
    import torch

    return [
        (f"torch.{space}", name)
        for space in SPACES
        for name in dir(attrgetter(space)(torch))
        if callable(getattr(attrgetter(space)(torch), name, None))
    ]


def _definitions() -> list[tuple[str, str]]:
    """The functions and classes at the top of torch's source files, each with its module."""
    import torch

    root = Path(torch.__file__).parent
    defined = []
    for source in SOURCES:
        paths = [root / source] if source.endswith(".py") else sorted((root / source).rglob("*.py"))
        for path in paths:
            module = ".".join(("torch", *path.relative_to(root).with_suffix("").parts))
            names = re.findall(r"^(?:def|class) (\w+)", path.read_text("utf-8"), re.MULTILINE)
            defined += [(module.removesuffix(".__init__"), name) for name in names]
    return defined


def text() -> str:
    """What the file holds: the namespaces of torch's operators, and the names of each concept.

    The same for each build of torch: `cuda`, which some lack, computes nothing.
    """
    spaces = sorted({space.removeprefix("torch.ops.") for space, _ in _operators()} - {"cuda"})
    return json.dumps({"namespaces": spaces, "concepts": names_of_torch()}, indent=1) + "\n"


def main() -> None:
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
