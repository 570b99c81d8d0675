"""The tokenizer of a Hugging Face folder with our special tokens: the same pieces of a text, numbered anew."""

import json

from tokenizers import Tokenizer

from masklab.errors import MaskLabError, in_one_line
from masklab.tokenizers import ROLES, SPECIALS, template


def renumbered(folder, vocab_size: int | None = None) -> tuple[Tokenizer, list[int]]:
    """A tokenizer whose ids 0 to 4 are our special tokens, with our names, and the old id of each new one.

    vocab_size: rows of the model that goes with it, which may be more than the tokenizer has tokens, or fewer; None:
    as many as its highest id asks for.

    Raises:
        MaskLabError: transformers cannot read it, it is not fast, lacks one of the five tokens, has one in two roles,
            or calls another so.
    """
    tokenizer = _read(folder)
    if not tokenizer.get_vocab():
        raise MaskLabError(f"{folder}: its tokenizer has no tokens")
    if vocab_size is None:
        vocab_size = 1 + max(tokenizer.get_vocab().values())
    specials = [getattr(tokenizer, f"{role}_id") for role in ROLES]
    for role, index in zip(ROLES, specials, strict=True):
        if index is None:
            raise MaskLabError(f"{folder}: its tokenizer has no {role}; it needs {', '.join(ROLES)}")
        if (other := [*ROLES][specials.index(index)]) != role:
            name = tokenizer.convert_ids_to_tokens(index)
            raise MaskLabError(
                f"{folder}: its tokenizer has {name!r} as {other} and as {role}; each needs its own token"
            )
        if index >= vocab_size:
            raise MaskLabError(f"{folder}: its {role} has the id {index}; its model knows 0 to {vocab_size - 1}")
    taken, ids = set(specials), tokenizer.get_vocab()
    for role, name in zip(ROLES, SPECIALS, strict=True):
        if (index := ids.get(name, vocab_size)) < vocab_size and index not in taken:
            raise MaskLabError(f"{folder}: its tokenizer has a token {name!r} that is not its {role}, as it is here")
    order = specials + [index for index in range(vocab_size) if index not in taken]
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    try:
        made = Tokenizer.from_str(json.dumps(_numbered(content, {old: new for new, old in enumerate(order)})))
    except Exception as error:  # the library raises bare ones
        raise MaskLabError(f"{folder}: its tokenizer cannot be numbered anew ({in_one_line(error)})") from None
    made.post_processor = template()
    return made, order


def _read(folder):
    import transformers

    transformers.logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # of any kind: those of the file's own values, bare ones of the Rust library
        raise MaskLabError(f"{folder}: transformers cannot read its tokenizer ({in_one_line(error)})") from None
    if not tokenizer.is_fast:
        raise MaskLabError(f"{folder}: its tokenizer is not a fast one, which is saved as tokenizer.json")
    return tokenizer


def _numbered(content: dict, new: dict[int, int]) -> dict:
    """tokenizer.json with other ids (`new`: old -> new) and our names of special tokens.

    Numbers below the highest that stand for no token get one: the library counts tokens where we count rows.
    """
    model = content["model"]
    if model["type"] == "Unigram":
        pieces = dict(enumerate(map(tuple, model["vocab"])))
        pieces |= {token["id"]: (token["content"], 0.0) for token in content["added_tokens"]}
        pieces = {new[old]: piece for old, piece in pieces.items() if old in new}
        pieces |= {at: (hole, 0.0) for hole, at in _holes(pieces).items()}
        model["vocab"] = [[_name(at, text), score] for at, (text, score) in sorted(pieces.items())]
        model["unk_id"] = SPECIALS.index("<unk>")
    else:
        ids = model["vocab"] | {token["content"]: token["id"] for token in content["added_tokens"]}
        ids = {text: new[old] for text, old in ids.items() if old in new}
        ids |= _holes(ids.values())
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


def _holes(ids) -> dict[str, int]:
    """A token for each number below the highest of `ids` that is none of them; for its spaces, no text has it."""
    return {f"<no token {at}>": at for at in sorted(set(range(max(ids))) - set(ids))}


def _name(index: int, text: str) -> str:
    return SPECIALS[index] if index < len(SPECIALS) else text
