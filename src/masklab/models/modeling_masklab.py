"""MaskLab's encoder as a Hugging Face model: plain PyTorch, nothing but torch and transformers.

This file is copied into checkpoint folders whose architecture no class of
transformers has; `AutoModelForMaskedLM.from_pretrained(folder, trust_remote_code=True)`
reads them. It favours plainness over speed and doubles as an independent statement
of what the encoder computes. Names of weights are MaskLab's own.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput, MaskedLMOutput


class MaskLabConfig(PretrainedConfig):
    model_type = "masklab"

    def __init__(
        self,
        vocab_size=6,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=32,
        max_position_embeddings=512,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
        initializer_range=0.02,
        layer_norm_eps=1e-12,
        kind="transformer",
        positions="absolute",
        absolute=True,
        relative_buckets=32,
        relative_distance=128,
        norm="post",
        embedding_norm=True,
        head="transform",
        tie_word_embeddings=True,
        **kwargs,
    ):
        given = {name: value for name, value in locals().items() if name not in ("self", "kwargs", "__class__")}
        super().__init__(**kwargs)
        for name, value in given.items():
            setattr(self, name, value)


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.word = nn.Parameter(torch.zeros(config.vocab_size, config.hidden_size))
        absolute = config.positions == "absolute" or (config.positions == "relative" and config.absolute)
        shape = config.max_position_embeddings, config.hidden_size
        self.position = nn.Parameter(torch.zeros(shape)) if absolute else None
        self.segment = None
        if absolute and config.positions == "absolute" and config.norm == "post" and config.embedding_norm:
            self.segment = nn.Parameter(torch.zeros(1, config.hidden_size))
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, ids, positions):
        x = F.embedding(ids, self.word)
        if self.position is not None:
            x = x + F.embedding(positions, self.position)
        if self.segment is not None:
            x = x + self.segment
        return self.dropout(self.norm(x))


class Attention(nn.Module):
    """Multi-head attention; the rows of `in_proj` are [heads, (query, key, value), width]."""

    def __init__(self, config):
        super().__init__()
        self.config, hidden = config, config.hidden_size
        self.heads = config.num_attention_heads
        self.width = hidden // self.heads
        self.disentangled = config.positions == "disentangled"
        self.in_proj = nn.Linear(hidden, 3 * hidden, bias=not self.disentangled)
        if self.disentangled:
            self.q_bias, self.v_bias = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(hidden))
            self.pos_proj, self.pos_q_proj = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)
        self.relative_dropout = nn.Dropout(config.hidden_dropout_prob)

    def split(self, x):
        """[..., length, hidden] -> [..., heads, length, width]"""
        return x.unflatten(-1, (self.heads, self.width)).transpose(-2, -3)

    def forward(self, x, mask, positions, relative):
        q, k, v = self.in_proj(x).unflatten(-1, (self.heads, 3, self.width)).transpose(1, 2).unbind(-2)
        if self.disentangled:
            q, v = q + self.q_bias.view(self.heads, 1, -1), v + self.v_bias.view(self.heads, 1, -1)
        scores = q @ k.transpose(-1, -2)  # [B, heads, T, T]
        if self.disentangled:
            distance = positions[:, :, None] - positions[:, None, :]  # query - key
            rows = (distance + len(relative) // 2)[:, None].expand_as(scores)
            relative = self.relative_dropout(relative)
            to_position = q @ self.split(self.pos_proj(relative)).transpose(-1, -2)  # [B, heads, T, distances]
            from_position = k @ self.split(self.pos_q_proj(relative)).transpose(-1, -2)
            scores = scores + to_position.gather(-1, rows)
            scores = scores + from_position.gather(-1, rows.transpose(-1, -2)).transpose(-1, -2)
        scores = scores / math.sqrt((3 if self.disentangled else 1) * self.width)
        if self.config.positions == "relative":
            distance = positions[:, None, :] - positions[:, :, None]  # key - query
            scores = scores + F.embedding(self.bucket(distance), relative).permute(0, 3, 1, 2)
        weights = scores.masked_fill(~mask[:, None, None, :], torch.finfo(scores.dtype).min).softmax(-1)
        return (self.dropout(weights) @ v).transpose(1, 2).flatten(-2)

    def bucket(self, distance):
        half = self.config.relative_buckets // 2
        exact = half // 2
        longest = math.log((self.config.relative_distance - 1) / exact)
        table = []
        for n in range(self.config.max_position_embeddings):
            # a whole number but for rounding counts as one
            far = math.ceil(math.log(n / exact) / longest * (half - 1 - exact) - 1e-9) if n > exact else 0
            table.append(n if n < exact else min(half - 1, exact + far))
        return distance.sign() * torch.tensor(table, device=distance.device)[distance.abs()] + half - 1


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        hidden, eps = config.hidden_size, config.layer_norm_eps
        self.pre = config.norm == "pre"
        self.attention = Attention(config)
        self.out = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps)
        self.ffn_in = nn.Linear(hidden, config.intermediate_size)
        self.ffn_out = nn.Linear(config.intermediate_size, hidden)
        self.ffn_norm = nn.LayerNorm(hidden, eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x, mask, positions, relative):
        def attend(x):
            return self.dropout(self.out(self.attention(x, mask, positions, relative)))

        def feed_forward(x):
            return self.dropout(self.ffn_out(F.gelu(self.ffn_in(x))))

        if self.pre:
            x = x + attend(self.attention_norm(x))
            return x + feed_forward(self.ffn_norm(x))
        x = self.attention_norm(x + attend(x))
        return self.ffn_norm(x + feed_forward(x))


class LstmBlock(nn.Module):
    """x -> LN(x + BiLSTM(LN(x)))"""

    def __init__(self, config):
        super().__init__()
        hidden = config.hidden_size
        self.input_norm = nn.LayerNorm(hidden, config.layer_norm_eps)
        self.ahead = nn.LSTM(hidden, hidden // 2, batch_first=True)
        self.behind = nn.LSTM(hidden, hidden // 2, batch_first=True)
        self.output_norm = nn.LayerNorm(hidden, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, x, mask, positions, relative):
        lengths, y = mask.sum(1), self.input_norm(x)
        backwards = torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(y, lengths, strict=True)])
        ahead, behind = self.run(self.ahead, y, lengths), self.run(self.behind, backwards, lengths)
        behind = torch.stack([torch.cat([row[:n].flip(0), row[n:]]) for row, n in zip(behind, lengths, strict=True)])
        return self.output_norm(x + self.dropout(torch.cat([ahead, behind], -1)))

    def run(self, lstm, x, lengths):
        packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=x.shape[1])[0]


class Head(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.linear = config.head == "linear"
        if not self.linear:
            self.dense = nn.Linear(config.hidden_size, config.hidden_size)
            self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        shape = config.vocab_size, config.hidden_size
        self.weight = None if config.tie_word_embeddings else nn.Parameter(torch.zeros(shape))

    def forward(self, x, word):
        x = x if self.linear else self.norm(F.gelu(self.dense(x)))
        return F.linear(x, word if self.weight is None else self.weight, self.bias)


class MaskLabPreTrainedModel(PreTrainedModel):
    config_class = MaskLabConfig
    base_model_prefix = "model"

    def _init_weights(self, module):
        for parameter in module.parameters(recurse=False):
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, self.config.initializer_range)
            elif not isinstance(module, nn.LayerNorm):
                nn.init.zeros_(parameter)


class MaskLabModel(MaskLabPreTrainedModel):
    """The encoder. Padding is on the right, as `attention_mask` [B, T] says; no mask: no padding."""

    def __init__(self, config):
        super().__init__(config)
        self.embeddings = Embeddings(config)
        shapes = {"disentangled": (2 * config.max_position_embeddings, config.hidden_size),
                  "relative": (config.relative_buckets, config.num_attention_heads)}  # fmt: skip
        shape = shapes.get(config.positions)
        self.relative = None if shape is None else nn.Parameter(torch.zeros(shape))
        layer = LstmBlock if config.kind == "lstm" else Block
        self.blocks = nn.ModuleList(layer(config) for _ in range(config.num_hidden_layers))
        pre = config.norm == "pre"
        self.final_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps) if pre else nn.Identity()
        self.post_init()

    def forward(self, input_ids, attention_mask=None, position_ids=None, output_hidden_states=False, **ignored):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).expand_as(input_ids)
        states = [self.embeddings(input_ids, position_ids)]
        for block in self.blocks:
            states.append(block(states[-1], mask.bool(), position_ids, self.relative))
        states[-1] = self.final_norm(states[-1])
        return BaseModelOutput(states[-1], tuple(states) if output_hidden_states else None)


class MaskLabForMaskedLM(MaskLabPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = MaskLabModel(config)
        self.head = Head(config)
        self.post_init()

    def forward(self, input_ids, attention_mask=None, position_ids=None, labels=None, **options):
        output = self.model(input_ids, attention_mask, position_ids, **options)
        logits = self.head(output.last_hidden_state, self.model.embeddings.word)
        loss = None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return MaskedLMOutput(loss=loss, logits=logits, hidden_states=output.hidden_states)
