"""A Hugging Face folder with special tokens of its own as one with ours, for every probe to read.

Our tokenizers have [CLS], [SEP], <unk>, <pad> and [MASK] as their ids 0 to 4. A copy of another model gets them there:
its tokens are numbered anew and the rows of its embeddings and of its output follow, so that it computes the same.
Which architectures there are: huggingface.py. Pairs of texts are read without segment ids, as by our own models.
"""

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

from masklab.errors import MaskLabError
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.tokenizers import SPECIALS, template

ROLES = ("cls_token", "sep_token", "unk_token", "pad_token", "mask_token")  # in the order of SPECIALS


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
def adopt(folder, output) -> None:
    """Write the folder of an encoder to the folder `output`, with our special tokens.

    Raises:
        MaskLabError: an architecture we do not have, a tokenizer that is not fast or lacks one of the five tokens.
    """
    model = load_checkpoint(folder)
    tokenizer = _read_tokenizer(folder)
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    specials = [getattr(tokenizer, f"{role}_id") for role in ROLES]
    for role, index in zip(ROLES, specials, strict=True):
        if index is None or index >= model.vocab_size or specials.count(index) > 1:
            raise MaskLabError(f"{folder}: its tokenizer has no {role} of its own, or one that the model does not know")
    taken = set(specials)
    order = specials + [index for index in range(model.vocab_size) if index not in taken]  # new id -> old id
    for tensor in (model.embeddings.word, model.head.weight, model.head.bias):
        if tensor is not None:
            tensor.copy_(tensor[order].clone())
    # the loss probe masks as a model was trained to: of one made elsewhere as the defaults say
    save_checkpoint(model, output, metadata={"adopted": str(folder), "config": {"model": {"masking": {}}}})
    adopted = Tokenizer.from_str(json.dumps(_renumbered(content, {old: new for new, old in enumerate(order)})))
    adopted.post_processor = template()
    adopted.save(str(Path(output) / "tokenizer.json"))


def _read_tokenizer(folder):
    import transformers

    transformers.logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        message = " ".join(str(error).split())[:300]
        raise MaskLabError(f"{folder}: transformers cannot read its tokenizer ({message})") from None
    if not tokenizer.is_fast:
        raise MaskLabError(f"{folder}: its tokenizer is not a fast one, which is saved as tokenizer.json")
    return tokenizer


def _renumbered(content: dict, new: dict[int, int]) -> dict:
    """tokenizer.json with other ids (`new`: old -> new) and our names of special tokens."""
    model = content["model"]
    if model["type"] == "Unigram":
        pieces = dict(enumerate(map(tuple, model["vocab"])))
        pieces |= {token["id"]: (token["content"], 0.0) for token in content["added_tokens"] if token["id"] in new}
        by_new = sorted((new[old], piece) for old, piece in pieces.items())
        model["vocab"] = [[_name(at, text), score] for at, (text, score) in by_new]
        model["unk_id"] = SPECIALS.index("<unk>")
    else:
        ids = model["vocab"] | {token["content"]: token["id"] for token in content["added_tokens"]}
        ids = {text: new[old] for text, old in ids.items() if old in new}
        model["vocab"] = {_name(at, text): at for text, at in sorted(ids.items(), key=lambda item: item[1])}
        model["unk_token"] = "<unk>"
    content["added_tokens"] = sorted(
        (
            token | {"id": new[token["id"]], "content": _name(new[token["id"]], token["content"])}
            for token in content["added_tokens"]
            if token["id"] in new
        ),
        key=lambda token: token["id"],
    )
    content["post_processor"] = content["truncation"] = content["padding"] = None
    return content


def _name(index: int, text: str) -> str:
    return SPECIALS[index] if index < len(SPECIALS) else text
