"""A Hugging Face folder with special tokens of its own made into one with ours, which every probe can read.

Our tokenizers have [CLS], [SEP], <unk>, <pad> and [MASK] as their ids 0 to 4. A copy of another model gets them there:
its tokens are numbered anew and the rows of its embeddings and of its output follow, so that it computes the same.
Which architectures there are: huggingface.py. Pairs of texts are read without segment ids, as by our own models.
"""

from pathlib import Path

import torch
from tokenizers import Tokenizer

from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.foreign_tokenizers import renumbered
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.flops import count_parameters
from masklab.models.foreign import adopt_whole
from masklab.models.huggingface import import_config
from masklab.tokenizers import SPECIALS


def is_foreign(folder) -> bool:
    """Whether a folder of an encoder has special tokens that are not ours; one without a tokenizer has none."""
    names = ("tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "spm.model")
    if not any((Path(folder) / name).is_file() for name in names):
        return False
    path = Path(folder) / "tokenizer.json"
    if not path.is_file():
        return True
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise MaskLabError(f"{path}: not a tokenizer ({error})") from None
    return [tokenizer.id_to_token(index) for index in range(len(SPECIALS))] != list(SPECIALS)


@torch.no_grad()
def adopt(folder, output) -> int:
    """Write the folder of an encoder to the folder `output`, with our special tokens; the number of its parameters.

    An architecture that we do not have stays one of transformers (`masklab.models.foreign`).

    Raises:
        MaskLabError: no masked language model, a tokenizer that is not fast or lacks one of the five tokens.
    """
    if not _is_ours(folder):
        return adopt_whole(folder, output)
    model = load_checkpoint(folder)
    tokenizer, order = renumbered(folder, model.vocab_size)
    for tensor in (model.embeddings.word, model.head.weight, model.head.bias):
        if tensor is not None:
            tensor.copy_(tensor[order].clone())
    # the loss probe masks as a model was trained to: of one made elsewhere as the defaults say
    save_checkpoint(model, output, metadata={"adopted": str(folder), "config": {"model": {"masking": {}}}})
    tokenizer.save(str(Path(output) / "tokenizer.json"))
    written = model.config.model_copy(update={"decoder": None})
    return count_parameters(written, model.vocab_size, model.latent_size)


def _is_ours(folder) -> bool:
    """Whether config.json describes an architecture that our encoder has."""
    path = Path(folder) / "config.json"
    try:
        import_config(read_json(path), path)
    except MaskLabError:
        return False
    return True
