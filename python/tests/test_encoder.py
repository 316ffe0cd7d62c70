# SPDX-License-Identifier: Apache-2.0
"""The encoder's arithmetic against torch's own layer, and its shape rules."""

import pytest
import torch
from torch import nn

from tonnage.encoder import Layer, Size, random_encoder

SMALL = Size(vocabulary=50, positions=16, width=24, layers=2, heads=3, inner=40)


def torch_layer(layer: Layer) -> nn.TransformerEncoderLayer:
    other = nn.TransformerEncoderLayer(SMALL.width, SMALL.heads, SMALL.inner, dropout=0.0, activation="gelu",
                                       layer_norm_eps=SMALL.norm_epsilon, batch_first=True)
    other.load_state_dict({
        "self_attn.in_proj_weight": layer.query_key_value.weight, "self_attn.in_proj_bias": layer.query_key_value.bias,
        "self_attn.out_proj.weight": layer.attention_out.weight, "self_attn.out_proj.bias": layer.attention_out.bias,
        "linear1.weight": layer.inner.weight, "linear1.bias": layer.inner.bias,
        "linear2.weight": layer.outer.weight, "linear2.bias": layer.outer.bias,
        "norm1.weight": layer.attention_norm.weight, "norm1.bias": layer.attention_norm.bias,
        "norm2.weight": layer.outer_norm.weight, "norm2.bias": layer.outer_norm.bias,
    })
    return other.train()  # without the fused path


def test_a_layer_agrees_with_torchs_own_under_a_padding_mask():
    torch.manual_seed(3)
    layer = Layer(SMALL)
    hidden = torch.randn(2, 5, SMALL.width)
    padding = torch.tensor([[False] * 5, [False, False, True, True, True]])
    penalty = padding[:, None, None, :].float() * torch.finfo(torch.float32).min
    ours, theirs = layer(hidden, penalty), torch_layer(layer)(hidden, src_key_padding_mask=padding)
    assert torch.allclose(ours[~padding], theirs[~padding], atol=1e-5)


def test_an_embedding_has_length_one_and_ignores_padding():
    encoder = random_encoder(SMALL, seed=1).eval()
    ids = torch.tensor([[3, 4, 5], [6, 7, 0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    together = encoder(ids, mask)
    assert torch.allclose(together.norm(dim=1), torch.ones(2))
    assert torch.allclose(together[1], encoder(ids[1:, :2], mask[1:, :2])[0], atol=1e-6)


def test_a_row_without_any_own_position_gives_zeros_not_nan():
    encoder = random_encoder(SMALL, seed=1).eval()
    nothing = torch.zeros(1, 4, dtype=torch.int64)
    assert encoder(nothing, nothing).abs().sum() == 0


def test_more_positions_than_the_model_has_are_refused():
    encoder = random_encoder(SMALL, seed=1).eval()
    too_long = torch.zeros(1, SMALL.positions + 1, dtype=torch.int64)
    with pytest.raises(RuntimeError):
        encoder(too_long, torch.ones_like(too_long))


def test_random_weights_are_seeded():
    one, same, other = (random_encoder(SMALL, seed=s).state_dict() for s in (1, 1, 2))
    assert all(torch.equal(one[k], same[k]) for k in one)
    assert not torch.equal(one["words.weight"], other["words.weight"])
    assert abs(float(one["words.weight"].std()) - 0.02) < 0.002
