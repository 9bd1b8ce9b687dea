# what: written after Hugging Face's BERT: transpose_for_scores, config objects, type comments
# answers: split_heads, MultiHeadAttention, load_torch_weights
import math
from dataclasses import dataclass
from typing import Optional, Tuple, Union

import torch
import torch.utils.checkpoint
from torch import nn


@dataclass
class AttentionConfig:
    hidden_size: int = 768
    num_attention_heads: int = 12
    attention_probs_dropout_prob: float = 0.1
    position_embedding_type: Optional[str] = None


# %%
def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    if x.size(-1) % num_heads != 0:
        raise ValueError(
            f"The hidden size ({x.size(-1)}) is not a multiple of the number of attention "
            f"heads ({num_heads})"
        )
    new_x_shape = x.size()[:-1] + (num_heads, x.size(-1) // num_heads)
    return x.view(new_x_shape).permute(0, 2, 1, 3)


# %%
class BertSelfAttention(nn.Module):
    def __init__(self, config: AttentionConfig):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0 and not hasattr(
            config, "embedding_size"
        ):
            raise ValueError(
                f"The hidden size ({config.hidden_size}) is not a multiple of the number of attention "
                f"heads ({config.num_attention_heads})"
            )
        self.config = config
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = int(config.hidden_size / config.num_attention_heads)
        self.all_head_size = self.num_attention_heads * self.attention_head_size

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
        x = x.view(new_x_shape)
        return x.permute(0, 2, 1, 3)


class MultiHeadAttention(BertSelfAttention):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__(AttentionConfig(d_model, num_heads, dropout))
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, self.all_head_size, bias=bias)
        self.W_k = nn.Linear(d_model, self.all_head_size, bias=bias)
        self.W_v = nn.Linear(d_model, self.all_head_size, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(self.config.attention_probs_dropout_prob)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        head_mask: Optional[torch.FloatTensor] = None,
        output_attentions: Optional[bool] = True,
    ) -> Tuple[torch.Tensor, ...]:
        query_layer = self.transpose_for_scores(self.W_q(query))
        key_layer = self.transpose_for_scores(self.W_k(key))
        value_layer = self.transpose_for_scores(self.W_v(value))

        # Take the dot product between "query" and "key" to get the raw attention scores.
        attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
        attention_scores = attention_scores / math.sqrt(self.attention_head_size)

        # Normalize the attention scores to probabilities.
        attention_probs = nn.functional.softmax(attention_scores, dim=-1)
        unmasked_probs = attention_probs

        # This is actually dropping out entire tokens to attend to, which might
        # seem a bit unusual, but is taken from the original Transformer paper.
        attention_probs = self.dropout(attention_probs)

        # Mask heads if we want to
        if head_mask is not None:
            attention_probs = attention_probs * head_mask.view(1, -1, 1, 1)

        context_layer = torch.matmul(attention_probs, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        new_context_layer_shape = context_layer.size()[:-2] + (self.all_head_size,)
        context_layer = context_layer.view(new_context_layer_shape)
        outputs = (
            (self.W_o(context_layer), unmasked_probs) if output_attentions else (context_layer,)
        )
        return outputs


# %%
@torch.no_grad()
def load_torch_weights(attention: nn.Module, torch_attention: nn.MultiheadAttention) -> nn.Module:
    state = torch_attention.state_dict()
    renamed = {}
    for kind in ("weight", "bias"):
        if f"in_proj_{kind}" in state:
            q, k, v = state[f"in_proj_{kind}"].chunk(3, dim=0)
            renamed |= {f"W_q.{kind}": q, f"W_k.{kind}": k, f"W_v.{kind}": v}
            renamed[f"W_o.{kind}"] = state[f"out_proj.{kind}"]
    missing, unexpected = attention.load_state_dict(
        {k: v.clone() for k, v in renamed.items()}, strict=False
    )
    assert not unexpected, unexpected
    return attention
