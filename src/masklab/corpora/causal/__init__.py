"""Sentences of a causal language model restricted to few words (Liu et al. 2023, section 2.2, A.1).

`loading` reads any Hugging Face causal model, `vocabulary` chooses its words, `restricted_model` is the model over
them, `sample` draws sentences, `law` knows the exact law; `training` trains a small model for those who have no other.
"""

import logging
import zipfile
import zlib
from dataclasses import asdict
from pathlib import Path

import numpy as np

from masklab.errors import MaskLabError
from masklab.files import fingerprint, read_json, write_json
from masklab.jobs.progress import Progress
from masklab.rng import torch_generator

log = logging.getLogger("masklab")
CHUNK = 1 << 16  # sentences that a restart need not draw again
EXAMPLES = 8


def generate(config, name: str, seed: int, model=None, device="cpu", state_folder=None, named=None) -> dict:
    """Tables of a `CausalCorpus`: the column `symbols` (see `masklab.symbols`).

    model: folder or hub id of the causal model where `config.causal` is the name of an entry; named: how the header
    names it, so that the corpus is the same in every run. state_folder: where finished parts are kept, so that a killed
    job goes on from them, until the caller removes them; None: nowhere.

    The header holds the resolved config, seed, and what `law.of_header` makes the law of: the model, the hash of its
    weights, and the rules of its sentences; besides `sentence_entropy` with its standard error, in nats, and
    `mean_length`, of the test sentences, and some `examples` of these as text.
    """
    import pyarrow as pa

    from masklab import symbols
    from masklab.corpora.causal.loading import load, weights_of
    from masklab.corpora.causal.restricted_model import Restricted
    from masklab.corpora.causal.vocabulary import rules_of

    model = model or config.causal
    causal, tokenizer = load(model, device)
    most = getattr(causal.config, "max_position_embeddings", None)
    if most is not None and config.length > most:
        raise MaskLabError(f"corpora.{name}.length: {config.length} words; {model} reads at most {most}")
    rules = rules_of(config, name, causal, tokenizer, torch_generator(seed, "causal", config.seed, "counted"))
    settings = {"model": str(named or model), "local": Path(model).is_dir(), "weights": weights_of(model, causal)}
    settings |= asdict(rules)
    header = {"kind": "causal", "seed": seed, "config": config.model_dump(mode="json"), "law": settings}
    restricted = Restricted(causal, rules)
    sizes = {"train": config.sequences, "valid": config.valid, "test": config.test}
    progress = Progress(f"corpus {name}", "sentences", folder=state_folder)
    parts = _Parts(state_folder, fingerprint(header | {"name": name}))
    drawn, done = {}, 0
    for split, count in sizes.items():
        drawn[split] = []
        for start in range(0, count, CHUNK):
            size = min(CHUNK, count - start)
            part = parts.get(
                f"{split}-{start}", lambda s=split, a=start, n=size: _draw(restricted, config, seed, s, a, n)
            )
            drawn[split].append(part)
            done += size
            progress(done, sum(sizes.values()))
    words, counts, logs = (np.concatenate(arrays) for arrays in zip(*drawn["test"], strict=True))
    header["mean_length"] = float(counts.mean())
    header["sentence_entropy"] = -float(logs.mean())
    header["sentence_entropy_se"] = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else float("nan")
    ends = np.cumsum(counts)[:EXAMPLES]
    ids = np.array(rules.ids)
    header["examples"] = [tokenizer.decode(ids[words[end - n : end]]) for end, n in zip(ends, counts, strict=False)]
    names = tokenizer.convert_ids_to_tokens(list(rules.ids))
    tables = {}
    for split, done in drawn.items():
        columns = pa.chunked_array([symbols.column(words, counts) for words, counts, _ in done])
        tables[split] = symbols.with_header(pa.table({symbols.COLUMN: columns}), names, **header)
    return tables


def _draw(restricted, config, seed, split, start, count):
    """(words end to end uint16, words per sentence int64, log probabilities) of one part of a split."""
    from masklab.corpora.causal.sample import sample

    rng = torch_generator(seed, "causal", config.seed, "sentences", split, start)
    words, counts, logs = [], [], []
    for begin in range(0, count, config.batch_size):
        sentences, lengths, probability = sample(restricted, min(config.batch_size, count - begin), rng)
        words.append(sentences[np.arange(sentences.shape[1]) < lengths[:, None]].astype(np.uint16))
        counts.append(lengths)
        logs.append(probability)
    return np.concatenate(words), np.concatenate(counts), np.concatenate(logs)


class _Parts:
    """Finished parts in a folder, for one fingerprint; those of another are removed."""

    def __init__(self, folder, mark):
        self.folder = None if folder is None else Path(folder)
        if self.folder is None:
            return
        path = self.folder / "parts.json"
        try:
            same = read_json(path) == {"fingerprint": mark}
        except MaskLabError:
            same = False
        if not same:
            self.clear()
            write_json({"fingerprint": mark}, path)

    def get(self, name, make):
        """The arrays of part `name`: read, or made and kept."""
        from masklab.files import atomic

        if self.folder is None:
            return make()
        path = self.folder / f"{name}.npz"
        if path.exists():
            try:
                with np.load(path) as file:  # an archive, which has a checksum for each array
                    return tuple(file[key] for key in file.files)
            except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
                log.warning("%s: not a whole part (%s); it is drawn again", path, error)
        arrays = make()
        with atomic(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, *arrays)
        return arrays

    def clear(self):
        """Forget all parts."""
        for path in [] if self.folder is None else [*self.folder.glob("*.npz"), self.folder / "parts.json"]:
            path.unlink(missing_ok=True)
