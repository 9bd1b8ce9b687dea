"""`load_gpt2`: GPT-2's published parameters in the reader's own model."""

from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.parameters import layer_state, norm_state, prefixed, token_ids
from attention_by_hand.exercises.shared import State, applied, itself
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Recipe,
    Run,
    StridedArray,
    as_argument,
    call,
    tensor,
)
from autograder.student.engine.arrays import Value

if TYPE_CHECKING:
    from torch import Tensor, nn

EXERCISE = Declaration(
    "load_gpt2",
    "Real weights",
    ("state_dict", "num_heads"),
    forbids=("transformer",),
    allows=("GPT", "DecoderBlock"),
    uses=("MultiHeadAttention",),
)

_HEADS = 2


def checkpoint(
    draw: Draw,
    vocab: int,
    context: int,
    d: int,
    num_layers: int,
    dtype: str = "float32",
    size: float = 0.02,
) -> State:
    """Parameters as they are published, in an order that says nothing: the last layer's first.

    What goes into GELU is about `size`: where that is small, its two forms agree.
    """
    state: State = {
        "wte.weight": draw.tensor(vocab, d, dtype=dtype),
        "wpe.weight": draw.tensor(context, d, dtype=dtype),
        **norm_state(draw, "ln_f", d, dtype),
    }
    sizes = {"attn.c_attn": (d, 3 * d), "attn.c_proj": (d, d)}
    sizes |= {"mlp.c_fc": (d, 4 * d), "mlp.c_proj": (4 * d, d)}
    for i in range(num_layers):
        layer = norm_state(draw, "ln_1", d, dtype) | norm_state(draw, "ln_2", d, dtype)
        for name, (n_in, n_out) in sizes.items():
            scale = {"mlp.c_fc": size, "mlp.c_proj": 0.5 / size}.get(name, 1.0)
            weight = draw.normal(n_in, n_out, scale=1.3 * scale * n_in**-0.5)
            layer[f"{name}.weight"] = tensor(weight, dtype)
            layer[f"{name}.bias"] = draw.tensor(n_out, scale=0.4 * min(scale, 1.0), dtype=dtype)
        state |= prefixed(f"h.{i}", layer)
    names = [[*state][i] for i in draw.permutation(len(state))]
    names.sort(key=lambda name: not name.startswith(f"h.{num_layers - 1}."))
    return {name: state[name] for name in names}


def _masks(context: int, num_layers: int, kind: str) -> State:
    """What layers once were saved with, beside their parameters."""
    past, low = tensor(np.tri(context)[None, None], kind), tensor(np.float32(-1e4))
    masks: State = {}
    for i in range(num_layers):
        masks |= {f"h.{i}.attn.bias": past, f"h.{i}.attn.masked_bias": low}
    return masks


def _ids(draw: Draw, B: int, n: int, vocab: int) -> Array:
    return token_ids(draw, B, n, vocab, low=0)


def _loaded(state: object, num_heads: int, *ids: object) -> Run:
    """Loads a model, then asks it about some tokens."""
    run = call(state, num_heads)
    for given in ids:
        run = run.then_apply(Previous(0), given)
    return run


@EXERCISE.equals("the logits of small checkpoints", 1.5)
def _runs(draw: Draw) -> list[Run]:
    """x @ weight + bias has the weight the other way round than nn.Linear. The columns of c_attn
    are those of the queries, then of the keys, then of the values. The number of layers, the
    sizes and the context can be read off the names and shapes."""
    named = call(state_dict=checkpoint(draw, 5, 4, 6, 1), num_heads=3)
    return [
        _loaded(checkpoint(draw, 7, 6, 8, 2), _HEADS, _ids(draw, 2, 5, 7), _ids(draw, 3, 6, 7)),
        named.then_apply(Previous(0), _ids(draw, 1, 4, 5)),
        _loaded(checkpoint(draw, 6, 5, 4, 3), 1, _ids(draw, 2, 5, 6)),
        _loaded(checkpoint(draw, 3, 9, 4, 1), 4, _ids(draw, 2, 1, 3), _ids(draw, 1, 9, 3)),
    ]


@EXERCISE.equals("with head, masks and a longer name", 1.0)
def _saved(draw: Draw) -> list[Run]:
    """Take `transformer.` off the front of a name. lm_head.weight is the table of tokens again.
    h.0.attn.bias and h.0.attn.masked_bias are masks, but h.0.attn.c_attn.bias is a bias."""
    one, two, three = (checkpoint(draw, 7, 5, 8, n) for n in (2, 1, 2))
    head = {"lm_head.weight": one["wte.weight"]}
    only_past = {k: v for k, v in _masks(5, 1, "bool").items() if "masked" not in k}
    whole = prefixed("transformer", _masks(5, 2, "float32") | three)
    return [
        _loaded(prefixed("transformer", one) | head, _HEADS, _ids(draw, 2, 5, 7)),
        _loaded(only_past | two, _HEADS, _ids(draw, 2, 5, 7)),
        _loaded({"lm_head.weight": three["wte.weight"]} | whole, _HEADS, _ids(draw, 2, 4, 7)),
    ]


@EXERCISE.equals("twelve layers", 0.5)
def _many(draw: Draw) -> list[Run]:
    """The layers are numbered; as strings, h.10 comes before h.2. The order of the entries says
    nothing."""
    return [
        _loaded(checkpoint(draw, 5, 4, 4, 12), 1, _ids(draw, 2, 4, 5)),
        _loaded(prefixed("transformer", checkpoint(draw, 4, 3, 4, 11)), 2, _ids(draw, 2, 3, 4)),
    ]


def of_another(_model: Value, block: "nn.Module", x: "Tensor") -> Value:
    """What a block that has nothing to do with the model gives after the model was loaded."""
    return block(x)


@EXERCISE.equals("GELU in its tanh form", 0.75)
def _gelu(draw: Draw) -> list[Run]:
    """The exact GELU differs from the form that was trained by less than 0.001, which is enough
    for other logits: a block for these parameters needs the tanh form. Other blocks keep the exact
    one: subclass DecoderBlock, and replace nothing in it or in torch."""
    runs = []
    for n in (1, 4):
        run = _loaded(checkpoint(draw, 6, 5, 6, n, "float64", 1.0), 2, _ids(draw, 3, 5, 6))
        state = layer_state(draw, 6, 24, ("attn",), "float64")
        block = Recipe("attention_by_hand.blocks:DecoderBlock", (6, 2, 24), {}, state)
        runs.append(
            run.then_apply(as_argument(of_another), Previous(0), block, draw.double(2, 3, 6))
        )
    return runs


@EXERCISE.equals("no layers, one token, one feature", 0.25)
def _small(draw: Draw) -> list[Run]:
    """Sizes may be 1, and there may be no layer at all."""
    return [
        _loaded(checkpoint(draw, 6, 5, 4, 0), _HEADS, _ids(draw, 2, 4, 6)),
        _loaded(checkpoint(draw, 1, 3, 4, 1), 4, _ids(draw, 2, 3, 1)),
        _loaded(checkpoint(draw, 4, 1, 3, 2), 1, _ids(draw, 2, 1, 4)),
        _loaded(checkpoint(draw, 5, 4, 1, 1), 1, _ids(draw, 2, 4, 5)),
    ]


def descended(model: Value, ids: Value, rate: float) -> Value:
    """The logits after one step of training down the slope of a loss, with all parameters; what
    keeps them in other shapes, or together, takes the same step."""
    import torch

    logits = model.train()(ids)
    (logits.log_softmax(-1)[..., 0]).mean().neg().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(rate * parameter.grad)
        return model(ids)


@EXERCISE.equals("a model to train on, with one table at both ends", 0.75)
def _trained(draw: Draw) -> list[Run]:
    """All parameters get gradients. That of tokens.weight comes from the look-up and from the
    logits; a head with a table of its own drifts away from it. In training, too, there is no
    dropout."""
    return [
        call(checkpoint(draw, 5, 4, 8, n, size=0.5), _HEADS).then_apply(
            as_argument(descended), Previous(0), _ids(draw, 2, 4, 5), 0.3
        )
        for n in (0, 2)
    ]


@EXERCISE.equals("parameters of its own", 0.5, only_if_right=True)
def _copies(draw: Draw) -> list[Run]:
    """Training the model must leave the state_dict alone, from which another may be made: copy the
    tensors into the parameters."""
    runs = []
    for sizes in ((5, 4, 8, 1), (6, 3, 8, 2)):
        state = checkpoint(draw, *sizes, size=0.5)
        vocab, context = len(state["wte.weight"].data), len(state["wpe.weight"].data)
        ids = _ids(draw, 2, context, vocab)
        run = applied(itself, state).then(Previous(0), _HEADS)
        run = run.then_apply(as_argument(descended), Previous(1), ids, 0.02)
        runs.append(run.then(Previous(0), _HEADS).then_apply(Previous(3), ids))
    return runs


def _wrong_names(run: Run) -> list[str]:
    """What is missing in a checkpoint of one layer, or has no place in it."""
    layer = [f"h.0.{p}" for p in ("ln_1", "ln_2", "attn.c_attn", "attn.c_proj")]
    layer += ["h.0.mlp.c_fc", "h.0.mlp.c_proj", "ln_f"]
    known = {f"{part}.{kind}" for part in layer for kind in ("weight", "bias")}
    given = {name.removeprefix("transformer.") for name in run.steps[0].args[0]}
    return sorted(given ^ {"wte.weight", "wpe.weight", *known})


@EXERCISE.raises("a parameter too few, or one too many", 0.5, ValueError, naming=_wrong_names)
def _misfits(draw: Draw) -> list[Run]:
    """What is missing would be left as it was drawn at random, and what is not used was meant for
    something. Compare the names that are there with those that you expect; a ValueError should
    hold all on which they differ."""
    runs = []
    for gone in (("h.0.mlp.c_fc.bias",), ("wpe.weight", "h.0.ln_2.weight"), ("wte.weight",)):
        state = checkpoint(draw, 5, 4, 4, 1)
        runs.append(call({k: v for k, v in state.items() if k not in gone}, _HEADS))
    vector: State = {"rotary.weight": draw.tensor(4)}
    like_masks: State = {"table": draw.tensor(1, 1, 4, 4), "scale": draw.tensor()}
    for more in (vector, like_masks):  # whether an entry has a place, its name tells
        whole = checkpoint(draw, 5, 4, 4, 1) | prefixed("h.0.attn", more)
        runs.append(call(prefixed("transformer", whole), _HEADS))
    return runs


def described(model: Value) -> dict[str, object]:
    """What a caller reads off a model before writing with it."""
    modes = [module.training for module in model.modules()]
    return {"context_size": model.context_size, "in training": any(modes)}


@EXERCISE.equals("context_size, and eval mode", 0.15, only_if_right=True, forgeable=True)
def _attributes(draw: Draw) -> list[Run]:
    """context_size is the number of rows of wpe.weight. Whoever loads a model wants to use it:
    leave it in eval mode."""
    return [
        call(checkpoint(draw, 5, context, 4, 1), _HEADS).then_apply(
            as_argument(described), Previous(0)
        )
        for context in (3, 7)
    ]


@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """The model has the dtype of the checkpoint."""
    return [_loaded(checkpoint(draw, 6, 5, 8, 2, "float64", 0.01), _HEADS, _ids(draw, 2, 4, 6))]


@EXERCISE.equals("tensors that are views", 0.25)
def _views(draw: Draw) -> list[Run]:
    """The order of the numbers in memory is not that of the tensor: use transpose or .T, not a
    reshape."""
    state = {k: StridedArray(v) for k, v in checkpoint(draw, 6, 5, 4, 1).items()}
    return [_loaded(state, _HEADS, _ids(draw, 2, 4, 6))]


EXERCISE.leaves_inputs_alone(0.05, _saved)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _saved)
