"""Parameters in half precision, in the format safetensors: what pages compute with.

A file begins with the length of its header, eight bytes; then come the header, in JSON, which says
where each parameter lies, and the numbers (https://huggingface.co/docs/safetensors). Reading it
runs nothing. `book/extensions/static/explorables/transformer.js` reads it, too.
"""

import json
import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor


def packed(state: Mapping[str, Tensor], **notes: str) -> bytes:
    """The floating-point tensors of a state dict as half-precision numbers, with notes."""
    header: dict[str, object] = {"__metadata__": notes}
    body = b""
    for name, value in state.items():
        if value.is_floating_point():
            numbers = value.detach().cpu().half().numpy().tobytes()
            place = [len(body), len(body) + len(numbers)]
            header[name] = {"dtype": "F16", "shape": [*value.shape], "data_offsets": place}
            body += numbers
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + body


def unpacked(file: bytes) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of such a file, in single precision, and its notes."""
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    notes = header.pop("__metadata__", {})
    state = {}
    for name, about in header.items():
        count = math.prod(about["shape"])
        numbers = np.frombuffer(file, "<f2", count, end + about["data_offsets"][0])
        state[name] = torch.from_numpy(numbers.astype(np.float32)).reshape(about["shape"])
    return state, notes
