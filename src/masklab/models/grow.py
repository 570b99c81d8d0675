"""Growth that leaves the function as it is: a small model as a special case of a large one.

Liu et al. (2023, appendix B.1.2): every feature, and every attention head, is written `width` times and matrices
between features are divided by `width`, so that sums stay; layers of zeros are added on top, which residual
connections pass by. With a tied output matrix the embeddings are divided by `width` too, which the layer norm that
follows them takes back; where the output has a matrix of its own, only that one is divided.
"""

import shutil
import tempfile
from pathlib import Path

import torch

from masklab.config.growth import growth_problem
from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json
from masklab.models.adopt import adopt, is_foreign
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.companions import TOKENIZER_FILES
from masklab.models.encoder import MaskedLM

KEPT = {"head.bias", "latent.bias"}  # no axis of features
FIRST_KEPT = (
    "embeddings.word",
    "embeddings.position",
    "embeddings.segment",
    "relative",
    "head.weight",
    "latent.weight",
)


def grow(model: MaskedLM, width: int = 1, layers: int | None = None) -> MaskedLM:
    """A model with `width` times the hidden size and `layers` layers in all, and the same logits in eval mode.

    The same in exact arithmetic but for the epsilon of layer norms: one epsilon serves all of them, so the grown
    model's is divided by width^2 where embeddings are, which moves the others by about epsilon / their variance.
    In float64 logits agree to 1e-10 for BERT's epsilon (1e-12); up to 1e-6 is allowed.

    Args:
        model: transformers of every kind of positions, LSTMs; a latent head grows with it.
        width: how many times each feature and each head is written, an integer.
        layers: layers of the result; None: as many as `model` has. More only for a transformer with `norm: pre`:
            under `post`, and in an LSTM, a layer norm follows every sum, and a norm of a norm is another function.

    Raises:
        MaskLabError: growth would not leave the function as it is, or the sizes are no growth.
    """
    if not isinstance(model, MaskedLM):
        raise MaskLabError("grow: a model of an architecture that is not ours does not grow")
    config = model.config
    layers = config.layers if layers is None else layers
    if problem := growth_problem(config, width, layers):
        raise MaskLabError(f"grow: {problem}")
    divided = config.tied_head and width > 1
    changes = {"hidden": config.hidden * width, "heads": config.heads * width, "layers": layers}
    if config.intermediate is not None:
        changes["intermediate"] = config.intermediate * width
    if divided:
        changes["norm_eps"] = config.eps / width**2
    some = model.head.bias
    with torch.device("meta"):
        grown = MaskedLM(config.model_copy(update=changes), model.vocab_size, model.latent_size)
    state = {
        name: torch.zeros(value.shape, dtype=some.dtype, device=some.device)
        for name, value in grown.state_dict().items()
        if name.startswith("blocks.") and int(name.split(".")[1]) >= config.layers
    }
    for name, value in model.state_dict().items():
        state[name] = widen(name, value, width, config.hidden // config.heads, divided)
    grown.load_state_dict(state, assign=True)
    return grown.requires_grad_(True).train(model.training)


def widen(name: str, value: torch.Tensor, k: int, head: int, divided: bool) -> torch.Tensor:
    """One parameter with every feature written k times; `head`: width of a head; `divided`: embeddings are."""
    if k == 1 or name in KEPT:
        return value.clone()
    leaf = name.rsplit(".", 2)[-2] if name.endswith((".weight", ".bias")) else name.rsplit(".", 1)[-1]
    rows = {"in_proj": 3 * head, "pos_proj": head, "pos_q_proj": head, "q_bias": head, "v_bias": head}.get(leaf, 1)
    if name not in FIRST_KEPT:
        value = _repeat(value, 0, rows, k)
    if value.dim() == 2:
        value = _repeat(value, 1, head if leaf == "out" else 1, k)
        if not name.startswith(("embeddings.", "relative")) or (divided and name.startswith("embeddings.")):
            value = value / k
    return value


def _repeat(value, axis, size, k):
    """Each run of `size` along `axis` k times in a row."""
    return value.unflatten(axis, (-1, size)).repeat_interleave(k, axis).flatten(axis, axis + 1)


def grow_folder(folder, output, width: int = 1, layers: int | None = None) -> None:
    """`grow` a checkpoint folder into the folder `output`, with its tokenizer; masklab.json says from what.

    Weights are written in fp32. One made elsewhere gets our special tokens (`masklab.models.adopt`).
    """
    with tempfile.TemporaryDirectory(prefix="masklab-") as work:
        folder = Path(folder)
        if is_foreign(folder):
            adopt(folder, adopted := Path(work) / "adopted")
            folder = adopted
        model = grow(load_checkpoint(folder), width, layers)
        metadata = read_json(folder / "masklab.json") if (folder / "masklab.json").exists() else {}
        metadata["grown"] = {"width": width, "layers": model.config.layers}
        if "encoder" in metadata.get("config", {}):
            metadata["config"]["encoder"] = model.config.model_dump(mode="json")
        with atomic_folder(output) as made:
            save_checkpoint(model, made, metadata=metadata)
            for name in TOKENIZER_FILES:  # an adopted folder has the first of them alone
                if (folder / name).is_file():
                    shutil.copyfile(folder / name, made / name)
