"""`masklab export`: a trained model as the folder that evaluation pipelines load, with a card from its own record.

The folder is a Hugging Face repository as BabyLM's pipelines of 2023, 2024 and 2025 and the language-model evaluation
harness read it: config.json, model.safetensors (fp32), a fast tokenizer in the form that transformers 4.27 to 5 read
alike, README.md. Without a step every kept checkpoint is beside the last one, in a folder that is named as the pipeline
of 2025 calls the revision: `chck_3M` after about three million words, of which earlier phases are part.
"""

import functools
import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from masklab.config.schema import Masking
from masklab.errors import MaskLabError
from masklab.files import atomic_folder, read_json, read_table
from masklab.markdown import escaped
from masklab.masking import maskable
from masklab.models.weightless import check_network
from masklab.scores.facts import base
from masklab.scores.schema import KEY
from masklab.texts import TextFile

MILLION = 1_000_000
# Splits that a card gives scores of, and what is said behind the name of the task: MNLI has two test splits.
SPLITS = {"test": "", "matched": ", matched", "mismatched": ", mismatched"}


def export(reference: str, folder, results="results", full_width: bool = False) -> list[Path]:
    """Write a model to `folder`, which must be new or empty; returns the folders to load from, the main one first.

    Args:
        reference: `recipe@step` of replicate 1, `recipe/r2@step`, or `recipe` for all checkpoints, the last as the
            main one; or the folder of a checkpoint.
        results: folder of the run; not asked where a folder is given, which is of the run that it lies in, or of none.
        full_width: the latent logits stand behind those of the vocabulary, as in the checkpoints that Berend (2023)
            published; scores are then those of the softmax over both.

    Raises:
        MaskLabError: no such model, one without a network or made elsewhere, a folder that holds something; with
            `full_width` a model without latent logits.
    """
    target, results = Path(folder), Path(results)
    if target.exists() and (not target.is_dir() or any(target.iterdir()) or target.resolve() == Path.cwd()):
        raise MaskLabError(f"{folder}: exists; name a new folder")
    steps, results = _steps(reference, results)
    main = steps[-1]
    for step in steps:
        _check(step, full_width)
    cards = [card(step, results, full_width) for step in steps]
    names = _revisions(steps, results) if len(steps) > 1 else []
    with atomic_folder(target) as made:
        _write(main, made, cards[-1], full_width)
        for name, step, text in zip(names, steps, cards, strict=False):
            _write(step, made / name, text, full_width)
    return [target, *(target / name for name in names)]


def _steps(reference: str, results: Path) -> tuple[list[Path], Path | None]:
    """Folders of the checkpoints that are meant, in the order of their steps, and of their run, if they are of one."""
    given = Path(reference)
    if (given / "config.json").is_file():  # of a run: <run>/models/<recipe>/r<k>/step-<n>
        above = given.absolute().parents
        return [given], above[3] if len(above) > 3 and above[2].name == "models" else None
    name, at, step = reference.partition("@")
    recipe, _, replicate = name.partition("/r")
    folder = results / "models" / recipe / f"r{replicate or 1}"
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        from masklab.models.checkpoint import check_holds_checkpoint, checkpoints_in

        check_network(given)
        if checkpoints_in(given):  # the folder of a recipe, or of a replicate
            check_holds_checkpoint(given)
        models = results / "models"
        if finished := sorted(int(path.parent.name[1:]) for path in folder.parent.glob("r*/manifest.json")):
            there = ", ".join(f"r{number}" for number in finished)
            raise MaskLabError(f"{reference}: no finished replicate r{replicate or 1}; there are {there}")
        recipes = sorted(path.name for path in models.iterdir() if path.is_dir()) if models.is_dir() else []
        there = ", ".join(recipes) or "none"
        raise MaskLabError(f"{reference}: no finished model in {folder}; recipes there: {there}")
    kept = sorted(map(int, read_json(manifest)["steps"]))
    if at and (not step.isdecimal() or int(step) not in kept):
        raise MaskLabError(f"{reference}: no step {step!r}; {recipe} keeps {', '.join(map(str, kept))}")
    return [folder / f"step-{number}" for number in ([int(step)] if step else kept)], results


def _check(step: Path, full_width: bool) -> None:
    check_network(step)
    if not (step / "model.safetensors").is_file():
        raise MaskLabError(f"{step}: holds no weights")
    made = read_json(step / "masklab.json") if (step / "masklab.json").is_file() else {}
    if "adopted" in made or not {"model", "step", "config"} <= {*made}:  # one grown from a folder says just that
        raise MaskLabError(f"{step}: was made elsewhere; export is of models that were trained here")
    if full_width and not (step / "latent.safetensors").is_file():
        raise MaskLabError(f"{step}: has no latent logits, which stand behind the vocabulary's at full width")


def _write(step: Path, target: Path, text: str, full_width: bool) -> None:
    if full_width:
        from masklab.models.checkpoint import load_checkpoint, save_checkpoint

        metadata = read_json(step / "masklab.json")
        save_checkpoint(
            load_checkpoint(step), target, tokenizer_folder=step, metadata=metadata, keep_latent_logits=True
        )
    else:
        shutil.copytree(step, target, dirs_exist_ok=True)
    (target / "README.md").write_text(text, encoding="utf-8")


def _revisions(steps: list[Path], results: Path) -> list[str]:
    """Names of the folders of checkpoints: by millions of words, where these tell them apart; else by their steps."""
    counts = [words_seen(read_json(step / "masklab.json")["config"], _number(step), results) for step in steps]
    if None not in counts:
        names = [f"chck_{round(count / MILLION)}M" for count in counts]
        if len(set(names)) == len(names) and "chck_0M" not in names:
            return names
    return [step.name for step in steps]


def _number(step: Path) -> int:
    return read_json(step / "masklab.json")["step"]


def words_seen(config: dict, step: int, results) -> float | None:
    """Whitespace-separated words that a model has read by a step, its earlier phases included.

    config: as it stands in masklab.json. A sequence counts, as often as it was read, with the mean of those of its
    corpus that can be read: under `count: floor` short ones never are. Of all, where their tokens lie there no longer.
    None: there is no folder of results, or the corpus, or that of an earlier phase, no longer lies there or holds no
    readable text.
    """
    if results is None:
        return None
    model, results = config["model"], Path(results)
    before = 0.0
    if init := model.get("init"):
        recipe, _, at = init.rpartition("@")
        earlier = results / "models" / recipe / f"r{config['replicate']}" / f"step-{at}" / "masklab.json"
        found = words_seen(read_json(earlier)["config"], int(at), results) if earlier.is_file() else None
        if found is None:
            return None
        before = found
    corpus = results / "corpora" / model["corpus"]
    files = [folder / "train.parquet" for folder in (corpus, corpus / f"r{config['replicate']}")]
    file = next((file for file in files if file.is_file()), None)
    masking = json.dumps(model.get("masking", {}))
    mean = _mean_words(file.resolve(), file.stat().st_mtime_ns, _offsets(config, results), masking) if file else None
    return None if mean is None else before + step * model["batch_size"] * mean


def _offsets(config: dict, results: Path) -> Path | None:
    """Where each training sequence of a model begins in its token arrays; None: they lie there no longer."""
    model, own = config["model"], f"r{config['replicate']}"
    for of_corpus, of_tokenizer in itertools.product(("", own), repeat=2):  # each may be a replicate's own
        place = results / "tokens" / model["corpus"] / of_corpus / model["tokenizer"] / of_tokenizer
        if (file := place / "train.offsets.npy").is_file():
            return file
    return None


@functools.lru_cache(maxsize=16)
def _mean_words(path: Path, changed: int, offsets: Path | None, masking: str) -> float | None:
    """Words of a text of a corpus, of which an export asks for every checkpoint; changed: when its file was.

    offsets: of its tokens; masking: the settings by which sequences are hidden in, as JSON.
    """
    try:
        texts = TextFile(path)
    except MaskLabError:
        return None
    words = np.concatenate([np.empty(0, np.int64), *map(_words, texts.pieces())])
    if offsets is not None and len(lengths := np.diff(np.load(offsets)) + 2) == len(words):
        words = words[maskable(lengths, Masking(**json.loads(masking)))]
    return float(words.mean()) if len(words) else None


def _words(texts) -> np.ndarray:
    """Whitespace-separated words of each of some texts, an Arrow array."""
    texts = pc.utf8_trim_whitespace(texts)
    counts = pc.list_value_length(pc.utf8_split_whitespace(texts))  # of nothing a word: the empty one
    return pc.if_else(pc.equal(texts, ""), 0, counts).fill_null(0).to_numpy(zero_copy_only=False)


# --- the card -----------------------------------------------------------------


def card(step: Path, results, full_width: bool = False) -> str:
    """README.md of a checkpoint: what it is, how it was trained, what it scores, how it is loaded."""
    made = read_json(step / "masklab.json")
    config = made["config"]
    manifest = read_json(step.parent / "manifest.json") if (step.parent / "manifest.json").is_file() else {}
    facts = manifest.get("facts", {})
    custom = "auto_map" in read_json(step / "config.json")
    task = "fill-mask" if config["encoder"]["decoder"] is None else "feature-extraction"
    head = ["---", "library_name: transformers", f"pipeline_tag: {task}", "tags: [masklab]", "---", ""]
    name = f"{made['model']}, replicate {config['replicate']}, step {made['step']}"
    lines = [*head, f"# {escaped(name)}", "", "Pre-trained with MaskLab. All below is from the run's own record.", ""]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| {key} | {escaped(str(value))} |" for key, value in _rows(made, config, facts, results) if value]
    lines += ["", "```python", "from transformers import AutoModelForMaskedLM, AutoTokenizer", ""]
    argument = ", trust_remote_code=True" if custom else ""
    lines += [f'model = AutoModelForMaskedLM.from_pretrained("<this folder>"{argument})']
    lines += ['tokenizer = AutoTokenizer.from_pretrained("<this folder>")', "```", ""]
    if full_width:
        lines += ["Its logits are those of the vocabulary, then those of the latent properties.", ""]
    elif (step / "latent.safetensors").is_file():
        lines += ["The head of the latent properties lies in latent.safetensors; transformers does not read it.", ""]
    if config["encoder"]["decoder"] is not None:
        kept = not full_width and (step / "decoder.safetensors").is_file()
        lies = "lies in decoder.safetensors" if kept else "is left out"
        lines += [
            f"Masked tokens were predicted through a decoder, which {lies}; transformers reads the encoder alone, whose"
            " own predictions mean nothing. The loss, and what is scored by predictions, is through the decoder.",
            "",
        ]
    if scores := _scores(made, config, results):
        lines += ["| task | probe | training rows | metric | value |", "| --- | --- | ---: | --- | ---: |"]
        for task, probe, size, metric, value in scores:
            rows = f"{size:,}" if size else ""
            lines.append(f"| {escaped(task)} | {escaped(probe)} | {rows} | {escaped(metric)} | {value:.4f} |")
        lines += ["", "Values are means over phenomena or paradigms and over seeds of fine-tuning.", ""]
    return "\n".join(lines)


def _rows(made, config, facts, results):
    model, encoder, masking = config["model"], config["encoder"], config["model"]["masking"]
    words = words_seen(config, made["step"], results)
    optimiser = model["optimiser"]
    hidden = "one token of a sequence" if masking["count"] == "one" else f"{masking['rate']:g} ({masking['count']})"
    heads = "" if encoder["kind"] == "lstm" else f" {encoder['heads']} heads,"
    yield "objective", " + ".join(f"{term['weight']:g} {name}" for name, term in config["objective"].items())
    yield "corpus", model["corpus"]
    yield "starts from", model.get("init")
    yield "learns from", model.get("teacher")
    yield "updates", f"{made['step']:,} of {model['steps']:,}, {model['batch_size']:,} sequences each"
    yield "words read", words and f"{words:,.0f}"
    yield "masking", f"{hidden}, {masking['mask']:g} [MASK], {masking['random']:g} random"
    yield (
        "optimiser",
        f"{optimiser['kind']}, rate {optimiser['lr']:g}, {optimiser['schedule']},"
        f" weight decay {optimiser['weight_decay']:g}",
    )
    yield "precision", model["precision"]
    yield (
        "encoder",
        f"{encoder['kind']}, {encoder['layers']} layers of {encoder['hidden']},{heads}"
        f" {encoder['positions']} positions, {encoder['norm']}-norm, up to {encoder['max_positions']} tokens",
    )
    yield "parameters", facts.get("parameters") and f"{facts['parameters']:,}"
    yield "vocabulary", facts.get("vocab_size") and f"{facts['vocab_size']:,}"
    loss = (facts.get("valid_loss") or {}).get(str(made["step"]))
    yield "validation loss", loss and f"{loss:.4f} nats a masked token"
    yield "of word frequencies", facts.get("unigram_loss") and f"{facts['unigram_loss']:.4f}"
    yield "seed", str(config["seed"])


def _scores(made, config, results) -> list[tuple[str, str, int, str, float]]:
    """(task, probe, training rows or 0, metric, mean) of what was measured of this very checkpoint on test splits.

    What was trained on other numbers of rows, or read by another probe, is another measurement and no part of a mean.
    """
    values = {}
    for row in _measured(made, config, results):
        metric, split = row["metric"], row["split"]
        shown = metric in ("accuracy", "accuracy_full_width", "mcc", "f1", "pearson", "spearman", "exact")
        if shown and split in SPLITS:
            key = base(row["task"]) + SPLITS[split], row["probe"], row["train_size"], metric
            values.setdefault(key, {}).setdefault(row["task"], []).append(row["value"])
    means = {key: [sum(each) / len(each) for each in tasks.values()] for key, tasks in values.items()}
    return [(*key, sum(each) / len(each)) for key, each in sorted(means.items())]


def _measured(made, config, results) -> list[dict]:
    """Score rows of a checkpoint: those that probes wrote, or, where nothing else was kept, of the table of all.

    That table is made for the pages of results alone, and not with a single study.
    """
    if results is None:
        return []
    probes, own = Path(results) / "scores", f"{made['model']}/r{config['replicate']}"
    files = [file for file in probes.glob("*") if file.is_dir()]
    files = [file for probe in files for file in (probe / own).glob("*.parquet") if ".items" not in file.suffixes]
    files = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file)) or [Path(results) / "scores.parquet"]
    wanted = {"recipe": made["model"], "replicate": config["replicate"], "step": made["step"]}
    rows = {}  # what was measured again by another job is there once, as of the last one
    for file in files:
        table = read_table(file) if file.is_file() else None
        for column, value in wanted.items() if table else ():
            table = table.filter(pc.equal(table[column], value))
        for row in table.to_pylist() if table else ():
            rows[tuple(str(row[name]) for name in KEY)] = row
    return list(rows.values())
