"""What a run starts from: the model before the first update, and the teacher of a second phase."""

import numpy as np
import torch
from safetensors.torch import load_file

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.models.checkpoint import load_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.starting import place_embeddings, shuffle_weights
from masklab.rng import torch_generator
from masklab.training.run import Run

HEAD = ("latent.weight", "latent.bias")  # the tensors of a latent head
DECODED = ("head.dense.", "head.norm.")  # what a head has of the width of a decoder's states


def initial_model(run: Run, vocab_size: int, atoms: int) -> MaskedLM:
    """The model before the first update, on the CPU.

    Its weights are drawn; then come, as far as the run has them, those of the checkpoint `run.init`, shuffled if the
    recipe says `shuffle`, and the word embeddings of `run.embeddings`. atoms: size of the latent head, 0 for none. A
    head of the checkpoint that scores the properties of another dictionary is left, and the model's own starts anew. So
    does the head of a decoder of another width than the encoder's, which a checkpoint without its decoder does not have
    (`masklab.models.weights.export_weights`).
    """
    model = MaskedLM(run.encoder, vocab_size, latent=atoms, generator=torch_generator(*run.address, "init"))
    if run.init is not None:
        weights, wanted = load_checkpoint(run.init).state_dict(), model.state_dict()
        left = () if _of_one_dictionary(run, weights, wanted) else HEAD
        if model.head.project is not None and "decoder.position" not in weights:
            left += tuple(name for name in wanted if name.startswith(DECODED))
        kept = {key: value for key, value in weights.items() if key in wanted and key not in left}
        model.load_state_dict(kept, strict=False)
    if run.model.shuffle:
        shuffle_weights(model, *run.address)
    if run.embeddings is not None:
        place_embeddings(model, np.load(run.embeddings / "vectors.npy"))
    return model


def _of_one_dictionary(run: Run, weights: dict, wanted: dict) -> bool:
    """Whether the latent head among the `weights` of `run.init` scores the properties that the run's own will score.

    A checkpoint says of which dictionary its head is. Of one that does not, the head has to have the same shape.
    """
    file = run.init / "masklab.json"
    config = read_json(file).get("config") if file.is_file() else None
    theirs, own = (config or {}).get("dictionary"), run.dictionary_config
    if theirs is not None and own is not None:
        return _coding(theirs) == _coding(own.model_dump(mode="json"))
    return all(weights[key].shape == wanted[key].shape for key in HEAD if key in weights and key in wanted)


def _coding(dictionary: dict) -> dict:
    """The settings of a dictionary that its codes depend on."""
    return {key: value for key, value in dictionary.items() if key != "wordnet"}


def teacher(run: Run, vocab_size: int, device: torch.device):
    """The `masklab.objectives.teacher.Teacher` of a run on its device, or None if no term needs one.

    It is the checkpoint `run.teacher`, else the one that the run starts from. Sparse codes are gathered from those on
    disk (`codes: stored` or `masked`), or computed from the model and the dictionary.

    Raises:
        MaskLabError: it has no row for some of the `vocab_size` tokens.
    """
    needs_codes, needs_model = run.objective.needs("codes"), run.objective.needs("teacher")
    if not needs_codes and not needs_model:
        return None
    from masklab.objectives.teacher import Teacher

    stored = needs_codes and run.model.codes != "on-the-fly"
    store = dictionary = model = None
    if stored:
        from masklab.sparse.codes import CodeStore

        store = CodeStore(run.codes, "train")
    elif needs_codes:
        dictionary = load_file(run.dictionary / "dictionary.safetensors")["D"].to(device)
    if needs_model or (needs_codes and not stored):
        model = load_checkpoint(run.teacher or run.init).to(device)
        if model.vocab_size < vocab_size:
            raise MaskLabError(
                f"{run.name}: its teacher, {run.teacher or run.init}, has rows for {model.vocab_size:,} tokens, and its"
                f" tokenizer has {vocab_size:,}"
            )
    made = run.dictionary_config
    coding = {} if made is None else {"layer": made.layer, "penalty": made.penalty, "solver": made.solver}
    return Teacher(model, dictionary, store=store, **coding)
