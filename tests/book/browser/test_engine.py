"""The engine that computes in pages, layer by layer against torch: random parameters and inputs."""

import base64
import functools
import http.server
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from playwright.sync_api import Browser
from torch import Tensor, nn

from attention_by_hand.blocks import ViTBlock
from attention_by_hand.data import glyphs
from attention_by_hand.models import captioner
from attention_by_hand.models.safetensors import packed, unpacked
from solutions import transformer as reference
from solutions.bert import BertLayer
from solutions.captioning import CaptionLayer, write_caption
from solutions.vision_transformer import VisionTransformer

from .conftest import ROOT, Quiet
from .exploring import SAMPLED

STATIC = ROOT / "book" / "extensions" / "static" / "explorables"
CLOSE = {"rtol": 1e-5, "atol": 2e-6}  # of numbers of about 1
COMPUTE = """async ([body, file, args]) => {
  const m = await import("/trained.js");
  const bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
  const { state, notes } = file ? m.unpacked(bytes.buffer) : {};
  const typed = (x) => (x?.[0]?.map ? x.map((row) => Float32Array.from(row)) : x);
  const plain = (x) => (x?.map ? Array.from(x, plain) : x);
  const args_ = args.map(typed);
  return plain(new Function("m", "state", "notes", "x", "y", body)(m, state, notes, ...args_));
}"""
Compute = Callable[..., np.ndarray]


@pytest.fixture(scope="module")
def compute(chromium: Browser) -> Iterator[Compute]:
    """Runs the body of a function of `m`, the engine, `state`, its parameters, and `x` and `y`."""
    handler = functools.partial(Quiet, directory=str(STATIC))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{listening.server_port}/transformer.js")

        def run(body: str, state: dict[str, Tensor] | None = None, *args: object, keep=False):
            file = base64.b64encode(packed(state)).decode() if state else ""
            plain = [a.tolist() if isinstance(a, Tensor) else a for a in args]
            found = page.evaluate(COMPUTE, [body, file, plain])
            return found if keep else np.array(found, dtype=float)

        yield run
        page.close()
        listening.shutdown()


def drawn(module: nn.Module) -> dict[str, Tensor]:
    """Parameters drawn at random, small enough for half precision; the module gets the same."""
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            scale = 1.0 if value.dim() == 1 else value.shape[-1] ** -0.5
            offset = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            value.copy_((offset + scale * torch.randn_like(value)).half())
            if name.endswith("running_var"):
                value.abs_().add_(0.5).copy_(value.half())
    module.double().eval()
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(found: np.ndarray, right: Tensor) -> None:
    torch.testing.assert_close(torch.from_numpy(found), right.detach().double(), **CLOSE)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_a_file_of_half_precision_numbers_is_read_as_numpy_reads_it(compute):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = torch.from_numpy(halves[np.isfinite(halves)].astype(np.float32))
    found = compute("return state.all.data", {"all": finite, "other": torch.ones(2, 3)})
    assert np.array_equal(found, finite.numpy())
    state, notes = unpacked(packed({"a": finite.reshape(2, -1)}, said="é"))
    assert torch.equal(state["a"], finite.reshape(2, -1)) and notes == {"said": "é"}


def test_what_layers_are_made_of_is_what_torch_computes(compute):
    x = 3 * torch.randn(7, 6)
    far = torch.linspace(-8, 8, 321)[None]
    exact = far.double()
    same(compute("return m.gelu(x)", None, far), F.gelu(exact))
    same(compute("return m.relu(x)", None, x), x.relu())
    tail = compute("return x.map(m.erfc)", None, far[0].tolist())
    assert np.allclose(tail, torch.erfc(exact[0]).numpy(), rtol=2e-7, atol=0)
    same(compute("return m.sinusoidal_encoding(50, 7)"), reference.sinusoidal_encoding(50, 7))
    for layer, made in (
        (nn.Linear(6, 5), "m.Linear"), (nn.Linear(6, 5, bias=False), "m.Linear"),
        (nn.LayerNorm(6), "m.LayerNorm"),
    ):  # fmt: skip
        state = {f"part.{name}": value for name, value in drawn(layer).items()}
        same(compute(f'return {made}(state, "part")(x)', state, x), layer(x.double()))
    norm = nn.BatchNorm1d(6)
    state = drawn(norm)
    names = ("running_mean", "running_var", "weight", "bias")
    listed = ", ".join(f"state.{name}.data" for name in names)
    same(compute(f"return m.batch_norm(x, {listed})", state, x), norm(x.double()))


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(3, 1, 1), (4, 4, 0), (3, 2, 1)])
def test_unfolded_and_multiplied_is_a_convolution(compute, kernel, stride, padding):
    side = 9 if stride == 2 else 8
    images = torch.randn(1, 3, side, side)
    layer = nn.Conv2d(3, 5, kernel, stride, padding)
    state = drawn(layer)
    body = (
        f"return m.linear(m.unfold(x, {side}, {kernel}, {stride}, {padding}), "
        "m.rows(state.weight), state.bias.data)"
    )
    pixels = images[0].flatten(1).T  # (side², channels)
    same(compute(body, state, pixels), layer(images.double())[0].flatten(1).T)
    if side == 8:
        pooled = F.max_pool2d(images, 2)[0].flatten(1).T
        same(compute("return m.max_pool(x, 8)", None, pixels), pooled)


@pytest.mark.parametrize("mask", [False, True])
def test_attention_is_the_reference_s_in_one_go_and_with_a_cache(compute, mask):
    attention = reference.MultiHeadAttention(8, 2)
    state = {f"a.{name}": value for name, value in drawn(attention).items()}
    x, y = torch.randn(6, 8), torch.randn(6, 8)
    triangle = torch.ones(6, 6).tril().bool() if mask else None
    output, weights = attention(*(t.double()[None] for t in (x, y, y)), mask=triangle)
    attend = 'const attend = m.MultiHeadAttention(state, "a", 2); '
    how = "{ mask: m.causal_mask }" if mask else "{}"
    same(compute(f"{attend} return attend(x, y, y, {how})[0]", state, x, y), output[0])
    same(compute(f"{attend} return attend(x, y, y, {how})[1]", state, x, y), weights[0])
    if mask:  # keys and values of two positions, then of the others one by one
        body = (
            "const cache = {}; const how = { mask: m.causal_mask, cache }; const out = []; "
            "for (const [a, b] of [[0, 2], [2, 3], [3, 4], [4, 6]]) "
            "out.push(...attend(x.slice(a, b), y.slice(a, b), y.slice(a, b), how)[0]); return out"
        )
        same(compute(attend + body, state, x, y), output[0])
    for parameter in attention.W_q.parameters():
        parameter.data.mul_(2)  # the root of d_k, which is 4
    output, _ = attention(*(t.double()[None] for t in (x, y, y)))
    same(compute(f"{attend} return attend(x, y, y, {{ scale: 1 }})[0]", state, x, y), output[0])


def test_layers_of_encoder_and_decoder_are_the_references(compute):
    x, memory = torch.randn(5, 8), torch.randn(7, 8)
    layer = reference.EncoderLayer(8, 2, 12)
    state = {f"l.{name}": value for name, value in drawn(layer).items()}
    same(compute('return m.EncoderLayer(state, "l", 2)(x)', state, x), layer(x.double()[None])[0])
    layer = reference.DecoderLayer(8, 2, 12)
    state = {f"l.{name}": value for name, value in drawn(layer).items()}
    triangle = torch.ones(5, 5).tril().bool()
    right = layer(x.double()[None], memory.double()[None], triangle)[0]
    body = 'return m.DecoderLayer(state, "l", 2)(x, y, { mask: m.causal_mask })'
    same(compute(body, state, x, memory), right)


def test_a_layer_of_vit_and_one_that_looks_at_pictures_are_the_references(compute):
    x, memory = torch.randn(5, 8), torch.randn(7, 6)
    layer = ViTBlock(8, 2, 12)
    state = {f"l.{name}": value for name, value in drawn(layer).items()}
    same(compute('return m.ViTBlock(state, "l", 2)(x)', state, x), layer(x.double()[None])[0])
    layer = CaptionLayer(8, 6, 2, 12)
    state = {f"l.{name}": value for name, value in drawn(layer).items()}
    triangle = torch.ones(5, 5).tril().bool()
    right = layer(x.double()[None], memory.double()[None], triangle)[0]
    body = 'return m.DecoderLayer(state, "l", 2, m.gelu)(x, y, { mask: m.causal_mask })'
    same(compute(body, state, x, memory), right)


def test_a_layer_of_bert_is_the_reference_and_so_are_some_of_its_rows(compute):
    x = torch.randn(5, 8)
    layer = BertLayer(8, 2, 12)
    state = {f"l.{name}": value for name, value in drawn(layer).items()}
    how = '{ attention: "attention", activation: m.gelu, eps: 1e-12 }'
    made = f'return m.EncoderLayer(state, "l", 2, {how})'
    right = layer(x.double()[None])[0]
    same(compute(f"{made}(x)", state, x), right)
    same(compute(f"{made}(x, {{ queries: [x[3], x[1]] }})", state, x), right[[3, 1]])


def test_a_whole_vision_transformer_s_logits_are_the_reference_s(compute):
    model = VisionTransformer(6, 2, 1, 4, 8, 2, 2)
    state, images = drawn(model), torch.rand(3, 36)
    make = "const model = new m.VisionTransformer(state, 2); "
    found = compute(f"{make} return x.map((image) => model.logits(image))", state, images)
    same(found, model(images.double().view(3, 1, 6, 6)))


@pytest.fixture
def whole() -> tuple[reference.Transformer, dict[str, Tensor]]:
    """A whole Transformer of two layers and its parameters."""
    model = reference.Transformer(9, 7, 16, 4, 2, 24, dropout=0.0)
    state = drawn(model)
    model.positions = reference.sinusoidal_encoding(30, 16).double()
    return model, state


LOGITS = "const model = new m.Transformer(state, 4); return model.logits(y, model.encode(x))"
SOURCE, TARGET = [3, 8, 4, 4, 1, 5, 7], [1, 3, 6, 4, 5]


def test_a_whole_transformer_s_logits_are_the_reference_s(compute, whole):
    model, state = whole
    right = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    found = compute(LOGITS, state, SOURCE, TARGET)
    assert np.abs(found - right.detach().numpy()).max() < 1e-4 * right.abs().max()


@pytest.mark.parametrize("part", ["scale", "mask", "positions"])
def test_what_is_switched_off_is_gone_from_the_whole_model(compute, whole, part):
    model, state = whole
    body = LOGITS.replace("return", f'model.without.add("{part}"); return')
    found = compute(body, state, SOURCE, TARGET)
    before = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    if part == "positions":
        model.positions = torch.zeros_like(model.positions)
    for attention in (m for m in model.modules() if isinstance(m, reference.MultiHeadAttention)):
        if part == "scale":
            for parameter in attention.W_q.parameters():
                parameter.data.mul_(2)  # the root of d_k, which is 4
        if part == "mask":
            attention.register_forward_pre_hook(
                lambda _, args, kwargs: (args, kwargs | {"mask": None}), with_kwargs=True
            )
    right = model(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0]
    assert np.abs(found - right.detach().numpy()).max() < 1e-4 * right.abs().max()
    assert (before - right).abs().max() > 0.01


def test_writing_is_the_references_greedy_and_with_beams(compute, whole):
    model, state = whole
    source = torch.tensor([SOURCE])
    make = "const model = new m.Transformer(state, 4); const memory = model.encode(x); "
    greedy = "return [...m.greedy_decode(model, memory, [1], 2, 9)].map((step) => step.id)"
    found = compute(make + greedy, state, SOURCE)
    assert found.tolist() == reference.greedy_decode(model, source, 1, 2, 9)[0].tolist()
    right = reference.beam_search(model, source, 1, 2, 9, 3, 0.0)
    for k, (ids, score) in enumerate(right):
        beams = make + f"const beam = m.beam_search(model, memory, 1, 2, 9, 3)[{k}]; return "
        assert compute(f"{beams} beam.ids", state, SOURCE).tolist() == ids.tolist()
        assert compute(f"{beams} beam.log_p", state, SOURCE) == pytest.approx(score, abs=1e-4)
        steps = compute(f"{beams} beam.steps", state, SOURCE)
        assert np.log(steps).sum() == pytest.approx(score, abs=1e-4)


@SAMPLED
def test_the_trained_captioner_writes_what_torch_writes_for_pictures_held_out(compute, count):
    model = captioner.trained().eval()
    held = [glyph for glyph in glyphs.glyphs() if glyph.pair in glyphs.held_out()]
    images = captioner.pictures(held[:: len(held) // count][:count])
    with torch.no_grad():
        ids = write_caption(model, images, captioner.prompt(), captioner.EOS, captioner.longest())
        memory = model.encode(images)
        logits = model.decode(ids, memory)
        looks = model.looks(ids, memory)
    make = "const model = new m.Captioner(state); return x.map((pixels) => { "
    write = (
        f"const memory = model.encode(pixels); return [...m.greedy_decode(model, memory, "
        f"{captioner.prompt().tolist()}, {captioner.EOS}, {captioner.longest() - 1})]"
    )
    state, pixels = model.state_dict(), images.flatten(1)
    both = f"{make} {write}.map(({{ id, logits }}) => [id, logits]) }})"
    found = compute(both, state, pixels, keep=True)
    for steps, row, theirs in zip(found, ids.tolist(), logits.tolist(), strict=True):
        assert [i for i, _ in steps] == [i for i in row[2:] if i != captioner.PAD]
        ours = np.array([numbers for _, numbers in steps])
        assert np.abs(ours - theirs[1 : 1 + len(ours)]).max() < 1e-3
    body = f"{make} {write}[0].seen[1].cross_attn.map((table) => table.at(-1)) }})"
    where = compute(body, state, pixels[:20])
    assert where == pytest.approx(looks[:20, 1, :, 1].flatten(2).numpy(), abs=1e-4)
