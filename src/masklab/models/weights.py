"""The weights of our encoder under the names of the Hugging Face class that huggingface.py chooses.

They map one to one, but for query, key and value, which we hold as one matrix;
for embeddings of a segment, which only our BERT form has: other classes are given
zeros, and an imported one is added to the positions; and for the rows that RoBERTa
and ESM keep free before the first position.
"""

import torch

from masklab.config.schema import Encoder
from masklab.errors import MaskLabError
from masklab.models.encoder import MaskedLM
from masklab.models.huggingface import CLASS, first_position, model_type, pad_id
from masklab.tokenizers import PAD

# Parts of other heads, and of a tied decoder, that a file may hold and we have no use for.
UNUSED = (
    "predictions.decoder.",
    "lm_head.decoder.",
    "cls.seq_relationship.",
    "pooler.",
    "embeddings.position_ids",
    "esm.contact_head.",
    "rotary_embeddings.",
)
# The output matrix's own bias, which equals the head's.
TWIN = {
    "bert": "cls.predictions.decoder.bias",
    "deberta": "cls.predictions.decoder.bias",
    "roberta-prelayernorm": "lm_head.decoder.bias",
}
# Layer norms of a layer, after its prefix: of attention, of the feed-forward.
NORMS = {
    "bert": ("attention.output.LayerNorm", "output.LayerNorm"),
    "deberta": ("attention.output.LayerNorm", "output.LayerNorm"),
    "esm": ("attention.LayerNorm", "LayerNorm"),
    "roberta-prelayernorm": ("attention.LayerNorm", "intermediate.LayerNorm"),
}


def export_weights(model: MaskedLM) -> dict[str, torch.Tensor]:
    """fp32 copies of the weights under Hugging Face names; a tied output matrix and the latent head are left out.

    A decoder is left out too. Where its width is not the encoder's, its head fits the encoder's states no more:
    the head written is then the identity, gelu, and layer norm, and of a linear head the output matrix and the bias.
    """
    config, state, kind = model.config, model.state_dict(), model_type(model.config)
    if model.head.project is not None and config.head == "transform":
        plain = state["embeddings.word"].new_zeros(config.hidden)
        state |= {"head.dense.weight": torch.eye(config.hidden), "head.dense.bias": plain}
        state |= {"head.norm.weight": plain + 1, "head.norm.bias": plain.clone()}
    weights = {theirs: state[ours] for ours, theirs in _names(config).items()}
    if kind in ("bert", "roberta-prelayernorm"):
        # both segments are the same, so that segment ids change nothing
        base = kind.replace("-", "_")
        segment = state.get("embeddings.segment", state["embeddings.word"].new_zeros(1, config.hidden))
        weights[f"{base}.embeddings.token_type_embeddings.weight"] = segment.expand(2, -1)
    if first := first_position(kind, PAD):
        name = _names(config)["embeddings.position"]
        weights[name] = torch.cat([weights[name].new_zeros(first, config.hidden), weights[name]])
    if kind == "esm":
        weights["esm.contact_head.regression.weight"] = torch.zeros(1, config.layers * config.heads)
        weights["esm.contact_head.regression.bias"] = torch.zeros(1)
    for ours, theirs in _split(config):
        parts = state[ours].unflatten(0, (config.heads, 3, -1)).unbind(1)
        weights |= {name: part.flatten(0, 1) for name, part in zip(theirs, parts, strict=True)}
    if kind in TWIN and not config.tied_head:
        weights[TWIN[kind]] = state["head.bias"].clone()
    return {name: plain_copy(tensor) for name, tensor in weights.items()}


def plain_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("cpu", torch.float32).contiguous()


def import_weights(config: Encoder, weights: dict[str, torch.Tensor], source, values: dict) -> dict[str, torch.Tensor]:
    """State of `MaskedLM` (without the latent head) from weights under the names of the class of `values`."""
    kind = values["model_type"]
    # as in old BERT files, and as transformers 5 writes ESM's
    old = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
    ends = [(name, next((end for end in old if name.endswith(end)), None)) for name in weights]
    weights = {name.removesuffix(end) + old[end] if end else name: weights[name] for name, end in ends}

    def take(name):
        if name not in weights:
            raise MaskLabError(f"{source}: tensor {name} is missing")
        return weights.pop(name)

    if kind in TWIN and not config.tied_head:
        # an untied decoder has a bias of its own, and nobody reads the other one
        weights[TWIN[kind].replace("decoder.", "")] = take(TWIN[kind])
    state = {ours: take(theirs) for ours, theirs in _names(config, kind).items()}
    if first := first_position(kind, pad_id(values)):
        state["embeddings.position"] = state["embeddings.position"][first:]
    if kind in ("bert", "roberta-prelayernorm"):
        segment = take(f"{kind.replace('-', '_')}.embeddings.token_type_embeddings.weight")[:1]
        if kind == "bert":
            state["embeddings.segment"] = segment
        else:
            state["embeddings.position"] = state["embeddings.position"] + segment
    for ours, theirs in _split(config, kind):
        parts = [take(name).unflatten(0, (config.heads, -1)) for name in theirs]
        state[ours] = torch.stack(parts, 1).flatten(0, 2)
    unknown = [name for name in weights if not any(part in name for part in UNUSED)]
    if unknown:
        raise MaskLabError(f"{source}: tensor {unknown[0]} has no place in {CLASS[kind]}")
    return state


def word_names(config: Encoder) -> list[str]:
    """Names of the token embedding, of the output bias, and, untied, of the output matrix and its bias."""
    names = _names(config)
    tied = [names["embeddings.word"], names["head.bias"]]
    twin = TWIN.get(model_type(config))
    return tied if config.tied_head else [*tied, names["head.weight"], *([twin] if twin else [])]


def _names(config: Encoder, kind: str | None = None) -> dict[str, str]:
    """Our names -> Hugging Face names of all tensors that correspond one to one."""
    kind = kind or model_type(config)
    if kind == "masklab":
        with torch.device("meta"):
            state = MaskedLM(config.model_copy(update={"decoder": None}), PAD + 1).state_dict()
        return {name: name if name.startswith("head.") else f"model.{name}" for name in state}
    base = kind.replace("-", "_")
    names = {"embeddings.word": f"{base}.embeddings.word_embeddings.weight"}
    if config.embedding_norm:
        names |= _pair("embeddings.norm", f"{base}.embeddings.{'layer_norm' if kind == 'esm' else 'LayerNorm'}")
    if kind == "deberta":
        names["relative"] = "deberta.encoder.rel_embeddings.weight"
    else:
        names["embeddings.position"] = f"{base}.embeddings.position_embeddings.weight"
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"{base}.encoder.layer.{layer}"
        names |= _pair(f"{ours}.out", f"{theirs}.attention.output.dense")
        names |= _pair(f"{ours}.attention_norm", f"{theirs}.{NORMS[kind][0]}")
        names |= _pair(f"{ours}.ffn_in", f"{theirs}.intermediate.dense")
        names |= _pair(f"{ours}.ffn_out", f"{theirs}.output.dense")
        names |= _pair(f"{ours}.ffn_norm", f"{theirs}.{NORMS[kind][1]}")
        if kind == "deberta":
            for name in ("in_proj.weight", "q_bias", "v_bias", "pos_proj.weight"):
                names[f"{ours}.attention.{name}"] = f"{theirs}.attention.self.{name}"
            names |= _pair(f"{ours}.attention.pos_q_proj", f"{theirs}.attention.self.pos_q_proj")
    if config.norm == "pre":
        names |= _pair("final_norm", f"{base}.encoder.emb_layer_norm_after" if kind == "esm" else f"{base}.LayerNorm")
    old = kind in ("bert", "deberta")
    head = "cls.predictions" if old else "lm_head"
    names |= _pair("head.dense", f"{head}.transform.dense" if old else f"{head}.dense")
    names |= _pair("head.norm", f"{head}.transform.LayerNorm" if old else f"{head}.layer_norm")
    names["head.bias"] = f"{head}.bias"
    if not config.tied_head:
        names["head.weight"] = f"{head}.decoder.weight"
    return names


def _pair(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}


def _split(config: Encoder, kind: str | None = None):
    """Our fused projections and the names of their query, key and value parts, where the class has them apart."""
    kind = kind or model_type(config)
    if kind in ("masklab", "deberta"):
        return
    base = kind.replace("-", "_")
    for layer in range(config.layers):
        for tensor in ("weight", "bias"):
            names = [f"{base}.encoder.layer.{layer}.attention.self.{part}" for part in ("query", "key", "value")]
            yield f"blocks.{layer}.attention.in_proj.{tensor}", [f"{name}.{tensor}" for name in names]
