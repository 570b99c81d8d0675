"""Effective rank of any Hugging Face encoder on a text file: `masklab rank <folder> --text file`.

Folders of this workbench are read by its own encoder, all others by transformers (`AutoTokenizer`, `AutoModel`), which
runs no code of the folder. Nothing is held but the Gram matrices and a few thousand lines.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from masklab.config.schema import Masking
from masklab.errors import MaskLabError, in_one_line
from masklab.lines import read_texts
from masklab.models.checkpoint import check_holds_checkpoint, load_checkpoint
from masklab.models.initial import initial
from masklab.probes.rank import PLACES, SPLITS, rank_rows, state_grams
from masklab.rng import generator
from masklab.tasks.encoding import content_ids, fitting, of_text
from masklab.tokenizers import CLS, MASK, PAD, SEP, load_tokenizer

CHUNK = 4096  # lines tokenised, and sorted by length, together
BATCH_TOKENS = {"cpu": 4096, "cuda": 65536}


@dataclass
class Reader:
    """encode: texts -> ids of each, [CLS] ... [SEP]; states: (ids [B, T], lengths [B]) -> states by layer [B T, H].

    spans: texts -> (ids, (first, last) character of each token) of each.
    """

    encode: Callable
    states: Callable
    mask_id: int
    pad_id: int
    spans: Callable

    def padded(self, rows) -> tuple[torch.Tensor, torch.Tensor]:
        """(ids [B, T], lengths [B]) of rows of ids, as `states` takes them."""
        lengths = torch.tensor([len(row) for row in rows])
        ids = torch.full((len(rows), int(lengths.max())), self.pad_id)
        for row, place in zip(rows, ids, strict=True):
            place[: len(row)] = torch.tensor(row)
        return ids, lengths


def folder_ranks(
    folder,
    text,
    *,
    rate=0.15,
    threshold=0.9,
    length=512,
    lines=None,
    subspace=0.99,
    specials=False,
    untrained=False,
    seed=1,
    device="cpu",
    progress=None,
) -> list[dict]:
    """Score rows without a task (see `masklab.probes.rank`) of the encoder in `folder` on the lines of `text`.

    Args:
        folder: a Hugging Face folder of an encoder with a fast tokenizer and a [MASK]; no hub is asked.
        text: UTF-8, one sequence a line, plain or compressed; empty lines are left out.
        rate: share of tokens masked; lines: so many first lines; None: all.
        subspace: share of the squared norm of real tokens that their subspace holds.
        length: tokens a sequence is cut to, specials counted; never more than the encoder has positions for.
        untrained: of its architecture with initial weights, as a null.

    Raises:
        MaskLabError: a file that cannot be read, a model that is no such encoder, a text without lines.
    """
    reader, masking = reader_of(folder, length, device, untrained), Masking(rate=rate, count="rounded")
    rngs = [generator(seed, "rank", purpose) for purpose in ("masks", "words")]
    batches = line_batches(text, reader, fitting(BATCH_TOKENS, device), lines, progress)
    grams = state_grams(reader.states, batches, masking, 0, *rngs, reader.mask_id, specials)
    if not grams:
        raise MaskLabError(f"{text}: no text")
    return rank_rows(grams, threshold, subspace)


def line_batches(path, reader: Reader, tokens: int, lines: int | None, progress=None) -> Iterator[tuple]:
    """(ids [B, T], lengths [B]) of the lines of a file, about `tokens` tokens each, lines of like length together."""
    source = islice(read_texts(path), lines)
    done = 0
    while chunk := list(islice(source, CHUNK)):
        for rows in in_batches((row for row in reader.encode(chunk) if len(row) > 2), tokens):
            yield reader.padded(rows)
        done += len(chunk)
        if progress:
            progress(done, lines or done)


def in_batches(rows, tokens: int, length=len) -> Iterator[list]:
    """Rows in batches of `tokens` padded tokens at most, or of one row, the longest first; length: tokens of a row."""
    rows = sorted(rows, key=length)
    while rows:
        size = max(1, tokens // length(rows[-1]))
        yield rows[-size:]
        rows = rows[:-size]


def reader_of(folder, length: int, device="cpu", untrained: bool = False) -> Reader:
    """Any encoder, made here or elsewhere; MaskLabError if it cannot be read, or if there is no such folder."""
    if not Path(folder).is_dir():
        raise MaskLabError(f"{folder}: {'not a folder' if Path(folder).exists() else 'no such folder'}")
    is_ours = (Path(folder) / "masklab.json").is_file()
    return (read_own if is_ours else read_foreign)(folder, length, device, untrained)


def read_own(folder, length: int, device="cpu", untrained: bool = False) -> Reader:
    """A checkpoint of this workbench; untrained: its architecture with initial weights."""
    tokenizer, model = load_tokenizer(folder), load_checkpoint(folder, device).eval()
    model = initial(model) if untrained else model
    length = min(length, model.config.max_positions)

    def encode(texts):
        for ids in content_ids(tokenizer, texts):
            yield [CLS, *ids[: length - 2], SEP]

    def spans(texts):
        for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
            ids, offsets = of_text(encoding.ids[: length - 2]), encoding.offsets[: length - 2]
            yield [CLS, *ids, SEP], [(0, 0), *offsets, (0, 0)]

    def states(ids, lengths):
        return model.states(ids.to(device), lengths.to(device))

    return Reader(encode, states, MASK, PAD, spans)


def read_foreign(folder, length: int, device="cpu", untrained: bool = False) -> Reader:
    """Whatever encoder transformers reads from `folder`; untrained: its architecture with initial weights."""
    import transformers

    check_holds_checkpoint(folder)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        how = {"local_files_only": True, "trust_remote_code": False}  # None: a person would be asked
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **how)
        # whatever precision its weights are stored in, which transformers would compute in
        model, found = transformers.AutoModel.from_pretrained(
            folder, **how, dtype=torch.float32, output_loading_info=True
        )
    except Exception as error:  # of any kind: those of the file's own values, of safetensors, of the library
        raise MaskLabError(f"{folder}: transformers cannot read it ({in_one_line(error)})") from None
    # a pooler is not read, and masked language models have none; any other weight would be drawn at random
    if missing := [name for name in sorted(found["missing_keys"]) if "pooler" not in name]:
        raise MaskLabError(f"{folder}: has no weights for {missing[0]} of its {type(model).__name__}")
    model = model.to(device).eval()
    if tokenizer.mask_token_id is None or getattr(model.config, "is_encoder_decoder", False):
        raise MaskLabError(f"{folder}: {type(model).__name__} is not an encoder with a [MASK]")
    model = initial(model) if untrained else model
    known = getattr(model.config, "vocab_size", sys.maxsize)
    length, pad = min(length, tokenizer.model_max_length, positions(model)), tokenizer.pad_token_id or 0
    specials = set(tokenizer.all_special_ids)

    def surrounded(rows):
        for ids in rows:
            if not ids or not {ids[0], ids[-1]} <= specials:
                raise MaskLabError(f"{folder}: its tokenizer puts no special tokens around a text")
            yield ids

    def encode(texts):
        return surrounded(tokenizer(texts, truncation=True, max_length=length)["input_ids"])

    def spans(texts):
        if not tokenizer.is_fast:
            raise MaskLabError(f"{folder}: its tokenizer is not a fast one, which alone says where tokens lie")
        read = tokenizer(texts, truncation=True, max_length=length, return_offsets_mapping=True)
        return zip(surrounded(read["input_ids"]), read["offset_mapping"], strict=True)

    def states(ids, lengths):
        if (last := int(ids.max())) >= known:
            token = tokenizer.convert_ids_to_tokens(last)
            raise MaskLabError(
                f"{folder}: its tokenizer gives {token!r} the id {last}; its model knows 0 to {known - 1}"
            )
        seen = (torch.arange(ids.shape[1]) < lengths[:, None]).long().to(device)
        output = model(input_ids=ids.to(device), attention_mask=seen, output_hidden_states=True)
        # the last entry of hidden_states comes before a final layer norm
        for layer in (*output.hidden_states[:-1], output.last_hidden_state):
            yield layer.flatten(0, 1)

    return Reader(encode, states, tokenizer.mask_token_id, pad, spans)


def positions(model) -> int:
    """Tokens that a model of transformers has positions for; those of relative ones alone are not bounded."""
    for name, part in model.named_modules():
        parent, _, own = name.rpartition(".")
        table = getattr(part, "weight", None)
        if own in ("position_embeddings", "embed_positions") and table is not None and table.dim() == 2:
            # RoBERTa and its kin count from the row after the one that padding has
            padding = getattr(part, "padding_idx", None)
            counted = getattr(model.get_submodule(parent), "position_ids", None)
            rows = len(table) - (0 if padding is None else padding + 1)
            return rows if counted is None else min(rows, counted.shape[-1])  # YOSO has rows that none counts to
    return sys.maxsize


def table(rows: list[dict]) -> str:
    """Rows of `folder_ranks` as lines by layer: ranks, plain and centred, and shares outside real tokens' subspace."""
    ranks = {(row["metric"], row["split"], row["layer"]): row["value"] for row in rows}
    splits = [split for split in SPLITS if any(row["split"] == split for row in rows)]
    head = f"{'layer':>5}" + "".join(f"{split:>16}{'centred':>9}" for split in splits)
    lines = [head]
    for layer in sorted({row["layer"] for row in rows}):
        cells = [[ranks[f"rank_interpolated{of}", split, layer] for of in ("", "_centred")] for split in splits]
        lines.append(f"{layer:5}" + "".join(f"{plain:16.1f}{centred:9.1f}" for plain, centred in cells))
    lines += _outside_lines(rows)
    counts = {row["split"]: row["n"] for row in rows}
    return "\n".join([*lines, "tokens " + ", ".join(f"{split}: {counts[split]:,}" for split in splits)])


def _outside_lines(rows):
    shares = {(row["split"], row["layer"]): row["value"] for row in rows if row["metric"] == "outside"}
    if not shares:
        return []
    lines = ["share outside the subspace of real tokens", f"{'layer':>5}" + "".join(f"{split:>16}" for split in PLACES)]
    for layer in sorted({layer for _, layer in shares}):
        lines.append(f"{layer:5}" + "".join(f"{shares[split, layer]:16.4f}" for split in PLACES))
    return lines
