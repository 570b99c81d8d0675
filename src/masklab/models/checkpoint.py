"""Checkpoints as Hugging Face folders, written and read without the transformers package.

huggingface.py says which class a folder is of. Where there is none, the folder
brings its own: modeling_masklab.py is copied into it, and transformers reads it
with `trust_remote_code=True`. Only safetensors files are read: nothing is ever
unpickled, and no code of a folder is run.
"""

import importlib.util
import shutil
from pathlib import Path

import torch
from pydantic import ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from masklab.config.schema import Decoder
from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json, write_json
from masklab.models.companions import write_companions
from masklab.models.encoder import MaskedLM
from masklab.models.huggingface import export_config, import_config
from masklab.models.weightless import check_network
from masklab.models.weights import export_weights, import_weights, plain_copy, word_names

DECODER = ("decoder.", "head.")
FOREIGN = "adopted.json"  # in folders of models of transformers that have no place in our encoder
MOST = 12  # checkpoints that a message names
MODELING = "masklab.models.modeling_masklab"  # a file to copy: it imports transformers and is never imported


# --- writing ---------------------------------------------------------------


def save_checkpoint(
    model: MaskedLM,
    folder,
    *,
    tokenizer_folder=None,
    metadata: dict,
    keep_latent_logits: bool = False,
    keep_decoder: bool = False,
) -> None:
    """Write `model` as a Hugging Face folder, atomically, replacing `folder`.

    Files: config.json, model.safetensors (fp32), the files of `tokenizer_folder`, masklab.json
    (`metadata`), and latent.safetensors {"weight" [K, H], "bias" [K]} when the model has a latent head.

    Args:
        keep_latent_logits: append the latent head to the token embeddings and the decoder instead
            (vocabulary V + K), the layout of the checkpoints published with Berend (2023).
        keep_decoder: write the decoder of a masked autoencoder, and its head, to decoder.safetensors; else
            it is dropped.
    """
    with atomic_folder(folder) as temporary:
        weights = export_weights(model)
        vocab_size = model.vocab_size
        if model.latent is not None:
            latent = {"weight": model.latent.weight, "bias": model.latent.bias}
            latent = {name: plain_copy(tensor) for name, tensor in latent.items()}
            if keep_latent_logits:
                vocab_size += model.latent_size
                _append_latent(model.config, weights, latent)
            else:
                save_file(latent, temporary / "latent.safetensors")
        if keep_decoder and model.decoder is not None:
            parts = {n: plain_copy(t) for n, t in model.state_dict().items() if n.startswith(DECODER)}
            save_file(parts, temporary / "decoder.safetensors", {"decoder": model.config.decoder.model_dump_json()})
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        config = export_config(model.config, vocab_size)
        if "auto_map" in config:
            shutil.copyfile(importlib.util.find_spec(MODELING).origin, temporary / "modeling_masklab.py")
        write_json(config, temporary / "config.json", lasting=False)
        write_companions(temporary, metadata, tokenizer_folder)


def _append_latent(config, weights, latent):
    word, *outputs = word_names(config)
    # tied, the embeddings are the output matrix; untied, the latent properties get embeddings of zeros
    extra = latent["weight"] if config.tied_head else torch.zeros_like(latent["weight"])
    weights[word] = torch.cat([weights[word], extra])
    for name in outputs:
        weights[name] = torch.cat([weights[name], latent["weight" if weights[name].dim() == 2 else "bias"]])


# --- reading ---------------------------------------------------------------


def check_holds_checkpoint(folder) -> None:
    """MaskLabError for a folder without a config and weights; it names the checkpoints that lie in it."""
    folder = Path(folder)
    if not (folder / "config.json").is_file() and not any(folder.glob("*.safetensors")):
        check_network(folder)
        steps = checkpoints_in(folder)
        hint = f"; it has {', '.join(steps[:MOST])}" if steps else ""
        hint += f" and {len(steps) - MOST} more" if len(steps) > MOST else ""
        raise MaskLabError(f"{folder}: no checkpoint: no config.json{hint}")


def checkpoints_in(folder) -> list[str]:
    """Checkpoints that lie in the folder of a replicate (step-20, ...), or of a recipe (r1/step-20, ...), in order."""
    found = [*Path(folder).glob("step-*")] or [*Path(folder).glob("r*/step-*")]
    names = [path.relative_to(folder).parts for path in found]
    return ["/".join(parts) for parts in sorted(names, key=lambda parts: [(len(part), part) for part in parts])]


def load_checkpoint(folder, device="cpu") -> MaskedLM:
    """Read a folder written by `save_checkpoint` or by transformers' `save_pretrained` of the same classes.

    The model is in training mode, as any new module. Its latent head and its decoder come from
    latent.safetensors and decoder.safetensors where the folder has them. Of a model of an architecture that is not
    ours, adopted as it was, it is a `masklab.models.foreign.ForeignMaskedLM`.

    Raises:
        MaskLabError: a file is missing or broken, config.json describes an encoder we do not have, or the model has no
            network.
    """
    folder = Path(folder)
    check_network(folder)
    if (folder / FOREIGN).is_file():
        from masklab.models.foreign import load_foreign

        return load_foreign(folder, device)
    values = read_json(folder / "config.json")
    config, vocab_size = import_config(values, folder / "config.json")
    weights = _read(folder / "model.safetensors")
    state = import_weights(config, weights, folder / "model.safetensors", values)
    decoder_file = folder / "decoder.safetensors"
    if decoder_file.exists():
        state |= _read(decoder_file)
        config = config.model_copy(update={"decoder": _decoder(decoder_file)})
    latent_file = folder / "latent.safetensors"
    latent = _read(latent_file) if latent_file.exists() else {}
    if latent and set(latent) != {"weight", "bias"}:
        raise MaskLabError(f"{latent_file}: tensors are {sorted(latent)}, allowed: bias and weight")
    with torch.device("meta"):
        model = MaskedLM(config, vocab_size, len(latent["bias"]) if latent else 0)
    state |= {f"latent.{name}": tensor for name, tensor in latent.items()}
    for name, parameter in model.state_dict().items():
        if name in state and state[name].shape != parameter.shape:
            shape, wanted = tuple(state[name].shape), tuple(parameter.shape)
            raise MaskLabError(f"{folder}: {name} has shape {shape}, config.json asks for {wanted}")
    # copies: a parameter must not be a window on a file that somebody may rewrite
    state = {name: tensor.to(torch.float32, copy=True) for name, tensor in state.items()}
    try:
        model.load_state_dict(state, assign=True)
    except RuntimeError as error:
        raise MaskLabError(f"{folder}: {' '.join(str(error).split())}") from None
    return model.to(device)


def _decoder(path: Path) -> Decoder:
    with safe_open(path, "pt") as file:
        stored = (file.metadata() or {}).get("decoder", "")
    try:
        return Decoder.model_validate_json(stored)
    except ValidationError:
        raise MaskLabError(f"{path}: its metadata describe no decoder") from None


def _read(path: Path) -> dict[str, torch.Tensor]:
    if not path.exists():
        raise MaskLabError(f"{path}: no such file (weights are read from safetensors files only){_cure(path)}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise MaskLabError(f"{path}: not a safetensors file ({error}){_cure(path)}") from None


def _cure(path: Path) -> str:
    """What to do where a model of a run has lost its weights: nobody misses them while its manifest is there."""
    model = path.parent.parent
    return f"; remove {model} and run again, which makes it anew" if (model / "manifest.json").exists() else ""
