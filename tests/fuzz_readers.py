"""What `fuzz.py` damages and who reads it: sound files, and for each reader what must hold of what it gives."""

import bz2
import gzip
import io
import json
import lzma
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
from backports import zstd

COMPRESS = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd.compress}
TEXT = "".join(f"The cat number {n} sees a dog that runs far from here.\n" for n in range(40)).encode()
ROWS = [{"sentence": f"a film number {n}", "label": n % 2} for n in range(20)]
PAIRS = [{"sentence_good": f"Cat {n} runs.", "sentence_bad": f"Cat {n} run.", "UID": "agreement"} for n in range(12)]
CONTEXTS = [{"Context1": f"Cat {n} ran.", "Target1": "It is tired.", "Target2": "It is new.", "Domain": "physical"}
            for n in range(12)]  # fmt: skip
BOXES = [
    {"input_prefix": f"Box {n} holds the", "options": [" pen", " cup", " tie"], "numops": n % 3} for n in range(12)
]


def json_lines(rows) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(rows) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


def table(rows, between) -> bytes:
    return "".join(
        between.join(map(str, row)) + "\n" for row in [list(rows[0]), *(row.values() for row in rows)]
    ).encode()


SQUAD = {"data": [{"paragraphs": [{"context": "The cat sat on the mat.", "qas": [
    {"question": f"Who sat {n}?", "is_impossible": n % 3 == 0, "answers": [{"text": "The cat", "answer_start": 0}]}
    for n in range(6)]}]}]}  # fmt: skip
RULES = b"S NP VP 1.0\nNP D N .9\nVP V NP 1\nD the 1\nN cat .5\nN dog .5\nV sees 1\n"
COLA = "".join(f"gj04\t{n % 2}\t\tThe cat number {n} sees.\n" for n in range(10)).encode()
STSB = ("sentence1\tsentence2\tscore\n" + "".join(f"a {n}\tb {n}\t{n % 5}.5\n" for n in range(8))).encode()
CONFIG = (b"run: mine\nmodels:\n  often:\n    like: strict-phase1\n    masking: {rate: 0.4}\nstudies:\n  mine:\n"
          b"    replicates: 2\n    panels: {English: {15 %: strict-phase1, 40 %: often}}\n"
          b"    probes: {minimal-pairs: all}\n    tables: [comparison]\n")  # fmt: skip


# --- readers: what is done with a file, and what must hold of what it gives -------------------------------------------


def corpus(path):
    from masklab.config.schema import TextCorpus
    from masklab.corpora import generate

    config = TextCorpus(kind="text", files=[str(path)], valid=2, test=2, deduplicate=True)
    with tempfile.TemporaryDirectory() as state:
        for split in generate(config, "c", 1, state_folder=state).values():
            for text in split.read_all()["text"].to_pylist():
                assert isinstance(text, str) and text.strip() and "\n" not in text, repr(text)


def first_look(path):
    from masklab.config import data
    from masklab.lines import format_of

    if format_of(path) in (*data.JSON, ".tsv", ".csv", ".parquet"):
        found = data.table(str(path))
        assert all(set(row) <= set(found.columns) for row in found.rows)
    else:
        assert all(isinstance(line, str) for line in data.head(str(path)).lines)
        for _ in data.lines(str(path)):
            pass


def labels(path):
    from masklab.config.schema import LabelFiles
    from masklab.tasks import build, write_task

    splits, facts = build(LabelFiles(kind="label-files", train=str(path), valid=str(path)), "t", 1)
    assert facts["labels"] >= 2
    for frame in splits.values():
        assert len(frame) and frame["label"].between(0, facts["labels"] - 1).all()
        assert frame["text_a"].str.strip().ne("").all() and frame["text_a"].notna().all()
    write_task(path.parent / "task", splits, facts)


def pairs(path):
    from masklab.config.schema import PairFiles
    from masklab.tasks import build, write_task

    splits, facts = build(PairFiles(kind="pair-files", files=[str(path)]), "t", 1)
    assert len(splits["test"]) and splits["test"].notna().all().all()
    write_task(path.parent / "task", splits, facts)


def squad(path):
    from masklab.config.schema import SquadTask
    from masklab.tasks import build, write_task

    splits, facts = build(SquadTask(kind="squad", train=str(path), valid=str(path)), "t", 1)
    for row in splits["train"].itertuples():
        for answer, start in zip(row.answers, row.starts, strict=True):
            assert row.context[start : start + len(answer)] == answer, (answer, start)
    write_task(path.parent / "task", splits, facts)


def glue(name):
    def read(path):
        from masklab.config.schema import GlueTask
        from masklab.tasks import build, write_task

        for file in ("train.tsv", "dev.tsv"):
            shutil.copyfile(path, path.parent / file)
        splits, facts = build(GlueTask(kind="glue", task=name, folder=str(path.parent)), "t", 1)
        assert len(splits["train"]) and splits["train"]["text_a"].notna().all()
        write_task(path.parent / "task", splits, facts)

    return read


def rules(path):
    from masklab.corpora.pcfg.read import read_rules

    read_rules(path)


def config(path):
    from masklab.config import read

    read(str(path))


def run_file(path):
    from masklab.training.run import read_run

    read_run(path)


def tokenizer(path):
    from masklab.tokenizers import load_tokenizer

    found = load_tokenizer(path.parent)
    ids = found.encode("The cat sees 17 dogs.").ids
    assert all(token >= 0 for token in ids)


def foreign(path):
    from masklab.config.check_tokenizers import check_folder
    from masklab.foreign_tokenizers import renumbered
    from masklab.tokenizers import SPECIALS

    for file in ("tokenizer.json", "tokenizer_config.json"):
        if file != path.name:
            shutil.copyfile(SOUND["checkpoint"] / file, path.parent / file)
    files = [str(path.parent / file) for file in ("tokenizer.json", "tokenizer_config.json")]
    check_folder("tokenizers.t", SimpleNamespace(folder=str(path.parent), files=files))
    made, _ = renumbered(path.parent)
    assert [made.id_to_token(index) for index in range(5)] == list(SPECIALS)
    assert all(token >= 0 for token in made.encode("The cat sees 17 dogs.").ids)


def checkpoint(path):
    from masklab.models.checkpoint import load_checkpoint

    for file in SOUND["checkpoint"].iterdir():
        if file.name != path.name:
            shutil.copyfile(file, path.parent / file.name)
    model = load_checkpoint(path.parent)
    import torch

    ids = torch.tensor([[0, 5, 6, 1]])
    states = list(model.eval().states(ids, torch.tensor([4])))
    assert len(states) == model.config.layers + 1 and all(state.shape[-1] == model.config.hidden for state in states)


def words(path):
    from masklab.models.words import load_words

    found = load_words(path.parent)
    assert found.probabilities.ndim == 1 and found.max_positions > 0


def saved_state(path):
    from masklab.jobs import saved

    found = saved.load(path, {"config": 1})
    assert found is None or (found.facts["step"] == 7 and (found.tensors["w"] == 7).all())


def record(path):
    from masklab.probes.outcomes import kept

    found = kept(path)
    assert found is None or found == [{"value": 0.5}]


def scores(path):
    from masklab.files import read_table

    read_table(path).to_pylist()


def ranked(path):
    from masklab.probes.folder import line_batches, read_own

    reader = read_own(SOUND["checkpoint"], 32)
    for ids, lengths in line_batches(path, reader, 512, None):
        assert ids.shape[1] == lengths.max() <= 32


SOUND: dict[str, Path] = {}  # folders that `prepare` makes


def prepare(folder: Path) -> None:
    """A tokenizer, a checkpoint, a model of words, a state, a record, a run: written by MaskLab itself."""
    import numpy as np
    import torch

    from masklab.config.schema import Encoder, Model, Objective
    from masklab.jobs import saved
    from masklab.models.checkpoint import save_checkpoint
    from masklab.models.encoder import MaskedLM
    from masklab.models.words import Words, save_words
    from masklab.probes.outcomes import keep
    from masklab.subwords import train
    from masklab.tokenizers import save_tokenizer
    from masklab.training.run import Run, write_run

    found = train(TEXT.decode().splitlines(), 57)
    save_tokenizer(found, folder / "tokenizer", 32)
    model = MaskedLM(Encoder(layers=1, hidden=8, heads=2, max_positions=32), found.get_vocab_size())
    save_checkpoint(model, folder / "checkpoint", metadata={}, tokenizer_folder=folder / "tokenizer")
    save_words(folder / "words", Words(np.full(20, 0.05, np.float32), False, 16))
    saved.save(folder / "state.safetensors", {"w": torch.full((30,), 7.0)}, {"config": 1}, step=7)
    keep([{"value": 0.5}], folder / "record.json")
    places = {name: folder / name for name in ("tokens", "tokenizer", "output", "state")}
    entities = Model(corpus="c", tokenizer="t", encoder="e", objective="o", steps=3), Encoder(), Objective(mlm=1)
    write_run(Run("m", 1, *entities, **places), folder / "run.json")
    SOUND.update({"checkpoint": folder / "checkpoint", "": folder})


def readers(folder: Path) -> dict:
    """Name -> (function of a path, name of the file, its sound content before compression, suffix of compression)."""
    listed = {}
    for end in COMPRESS:
        listed[f"text{end}"] = corpus, "a.txt", TEXT, end
        listed[f"labels.csv{end}"] = labels, "a.csv", table(ROWS, ","), end
        listed[f"pairs.jsonl{end}"] = pairs, "a.jsonl", json_lines(PAIRS), end
        listed[f"first look at text{end}"] = first_look, "a.txt", TEXT, end
    texts = [{"text": line} for line in TEXT.decode().splitlines()]
    listed |= {
        "text.jsonl": (corpus, "a.jsonl", json_lines(texts), ""),
        "pairs in contexts": (pairs, "a.jsonl", json_lines(CONTEXTS), ""),
        "pairs of options": (pairs, "a.jsonl", json_lines(BOXES), ""),
        "text.parquet": (corpus, "a.parquet", parquet(texts), ""),
        "labels.tsv": (labels, "a.tsv", table(ROWS, "\t"), ""),
        "labels.jsonl": (labels, "a.jsonl", json_lines(ROWS), ""),
        "labels.parquet": (labels, "a.parquet", parquet(ROWS), ""),
        "first look at csv": (first_look, "a.csv", table(ROWS, ","), ""),
        "first look at tsv": (first_look, "a.tsv", table(ROWS, "\t"), ""),
        "first look at jsonl": (first_look, "a.jsonl", json_lines(ROWS), ""),
        "first look at parquet": (first_look, "a.parquet", parquet(ROWS), ""),
        "squad.json": (squad, "a.json", json.dumps(SQUAD).encode(), ""),
        "glue cola": (glue("cola"), "cola.tsv", COLA, ""),
        "glue stsb": (glue("stsb"), "stsb.tsv", STSB, ""),
        "rules of a grammar": (rules, "rules.txt", RULES, ""),
        "lines for rank": (ranked, "a.txt", TEXT, ""),
        "config.yaml": (config, "config.yaml", CONFIG, ""),
        "scores.parquet": (scores, "scores.parquet", parquet(ROWS), ""),
    }
    for name, read, file in (
        ("tokenizer.json", tokenizer, "tokenizer/tokenizer.json"),
        ("tokenizer of others", foreign, "tokenizer/tokenizer.json"),
        ("its tokenizer_config.json", foreign, "tokenizer/tokenizer_config.json"),
        ("checkpoint: config.json", checkpoint, "checkpoint/config.json"),
        ("checkpoint: model.safetensors", checkpoint, "checkpoint/model.safetensors"),
        ("words", words, "words/words.safetensors"),
        ("state", saved_state, "state.safetensors"),
        ("record", record, "record.json"),
        ("run.json", run_file, "run.json"),
    ):
        listed[name] = read, Path(file).name, (folder / file).read_bytes(), ""
    return listed
