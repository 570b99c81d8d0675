"""What a notebook asks of models and results: `import masklab`, then `masklab.load_model(...)` and so on.

A checkpoint is a Hugging Face folder, made here (`results/models/<recipe>/r<k>/step-<n>`) or elsewhere; code of a
folder is never run, and no hub is asked. A run is a folder of results: `results`, or `results/<run>`.
"""

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path

from masklab.config import read as read_config
from masklab.errors import MaskLabError

__all__ = [
    "fill_mask", "hidden_states", "load_claims", "load_facts", "load_model", "load_scores", "load_tokenizer", "measure",
    "pseudo_log_likelihood", "read_config",
]  # fmt: skip


# --- models ----------------------------------------------------------------


def load_model(checkpoint, device="cpu"):
    """The `masklab.models.encoder.MaskedLM` of a checkpoint, ready to predict; its tokenizer is `model.tokenizer`.

    Of a folder made elsewhere, special tokens are renumbered as ours are (`masklab.models.adopt`): ids are those of
    `model.tokenizer`, what it computes is the same. A masked autoencoder has its decoder where the folder keeps it.

    Raises:
        MaskLabError: no such folder, one that holds no encoder, or one that cannot be read as a masked language model;
            no such device.
    """
    from masklab.models.checkpoint import load_checkpoint
    from masklab.tokenizers import load_tokenizer as read_tokenizer

    device = _device(device)
    with _ours(checkpoint) as folder:
        model = load_checkpoint(folder, device).eval()
        model.tokenizer = read_tokenizer(folder) if (folder / "tokenizer.json").is_file() else None
        model.made = _autoencoder(folder)
    return model


def load_tokenizer(checkpoint):
    """The `tokenizers.Tokenizer` of a checkpoint, or of `results/tokenizers/<tokenizer>`.

    `.encode(text)` has `.ids` and `.tokens`, [CLS] and [SEP] included. Raises MaskLabError where there is none.
    """
    from masklab.tokenizers import load_tokenizer as read_tokenizer

    folder = _folder(checkpoint)
    if not (folder / "config.json").is_file():
        return read_tokenizer(folder)
    with _ours(folder) as folder:
        return read_tokenizer(folder)


def fill_mask(model, text: str, top: int = 5):
    """What a model predicts for the one [MASK] of a text: a frame of `token` and `probability`, the likeliest first.

    model: as `load_model` gives it, or a checkpoint's folder; top: rows. The probabilities are over the vocabulary.
    Raises MaskLabError for a text without exactly one [MASK], or longer than the model reads, for no rows, and for a
    masked autoencoder whose predictions cannot be read.
    """
    import pandas as pd

    from masklab.probes.prediction import masked_ids, predict, shown

    _check_text(text)
    if _whole("top", top) < 1:
        raise MaskLabError(f"top: {top}: must be at least 1")
    model = _predicting("fill_mask", model)
    tokens, _ = predict(model, masked_ids(model.tokenizer, text), _device_of(model))
    best = (-tokens).argsort(kind="stable")[:top]
    return pd.DataFrame({"token": [shown(model.tokenizer, token) for token in best], "probability": tokens[best]})


def pseudo_log_likelihood(model, sentences):
    """How likely a model finds sentences: a frame of `sentence`, `tokens` and `score`, one row each.

    score: the sum of log p(token | all other tokens) over the tokens, each of which is hidden in turn, in nats (Salazar
    et al. 2020); of two sentences the probe `minimal_pairs` has the model prefer the one of the higher score. tokens:
    how many, [CLS] and [SEP] not among them. model: as `load_model` gives it, or a checkpoint's folder.

    Raises:
        MaskLabError: no sequence of texts, a sentence longer than the model reads, and a masked autoencoder whose
            predictions cannot be read.
    """
    import pandas as pd

    from masklab.probes.minimal_pairs import of_ids, scored_ids

    if isinstance(sentences, str) or not isinstance(sentences, Iterable):
        raise MaskLabError(f"sentences: must be several texts, as a list (got {sentences!r})")
    sentences = list(sentences)
    for text in sentences:
        _check_text(text)
    model = _predicting("pseudo_log_likelihood", model)
    rows = scored_ids(model.tokenizer, sentences)
    tokens = [len(ids) for _, ids in rows]
    scores = of_ids(model, rows, sentences, device=_device_of(model))
    return pd.DataFrame({"sentence": sentences, "tokens": tokens, "score": scores})


def hidden_states(model, text: str, layer: int | None = None):
    """Hidden states of a text, a float32 tensor on the CPU: [L + 1, T, H] of all layers, or [T, H] of one.

    Layer 0 is the embeddings, layer l the output of block l. The T tokens are those of `model.tokenizer.encode(text)`,
    [CLS] and [SEP] included. model: as `load_model` gives it, or a checkpoint's folder. Raises MaskLabError for a
    layer that there is not and a text of more tokens than the model reads.
    """
    import torch

    _check_text(text)
    layer = None if layer is None else _whole("layer", layer)
    model = _loaded(model)
    if layer is not None and not 0 <= layer <= model.config.layers:
        raise MaskLabError(f"layer {layer}: the encoder has layers 0 to {model.config.layers}")
    ids = torch.tensor([model.tokenizer.encode(text).ids], device=_device_of(model))
    with torch.inference_mode():
        states = torch.stack(list(model.states(ids, torch.tensor([ids.shape[1]], device=ids.device)))).cpu()
    return states if layer is None else states[layer]


# --- measuring -------------------------------------------------------------


def measure(checkpoint, probe, task=None, text=None, *, seed: int = 1, device="auto", **settings):
    """What a probe finds of a checkpoint: a frame of score rows, with the columns of `masklab.scores.schema.COLUMNS`.

        masklab.measure("results/models/strict-mlm/r1/step-400", "minimal_pairs", task="results/tasks/blimp")
        masklab.measure("bert/", "finetune", task={"rte": {"kind": "glue", "task": "rte", "folder": "RTE"}}, epochs=3)
        masklab.measure("bert/", "rank", text="lines.txt")

    Args:
        probe: its kind (docs/config.md lists them: minimal_pairs, finetune, linear_probe, loss, rank, prediction, ...);
            one of your own is known after `read_config` of the config that names its file.
        task: a folder of `results/tasks`, settings of a task (`{"kind": "glue", "task": "rte", "folder": "RTE"}`; the
            rows then call it by its kind), or names mapped to such folders or settings, as in a config's `tasks`.
        text: for probes that read a corpus: a file of one sequence a line, plain or compressed.
        seed: of all that the probe draws; device: auto, cpu or cuda; settings: the probe's, as in a config.

    Raises:
        MaskLabError: what is wrong with the folder, a setting, the task or the text, in one line; a masked autoencoder
            whose predictions cannot be read, by the rule of the workflow.
    """
    from masklab.config import kinds
    from masklab.config.autoencoder import probe_problem
    from masklab.config.problems import problems
    from masklab.probes import Context, run
    from masklab.scores.schema import rows_to_frame

    device, seed = _device(device), _whole("seed", seed)
    text = None if text is None else _path("text", text, "a file")
    with tempfile.TemporaryDirectory(prefix="masklab-") as work, _ours(checkpoint) as folder:
        kind = kinds.find("probes", probe)
        tasks = _tasks(task, Path(work) / "tasks", seed)
        stated = {"kind": probe, **({"tasks": list(tasks)} if tasks else {}), **settings}
        entity = _checked(kind.entity(), stated, ("probes", probe), problems)
        if problem := probe_problem(entity, probe, *_autoencoder(folder)):
            raise MaskLabError(f"{checkpoint}: {problem}")
        context = Context(
            probe=entity,
            checkpoint=folder,
            tasks=tasks,
            seed=seed,
            name=probe,
            device=device,
            tokens=_tokens(text, folder, Path(work) / "tokens") if text is not None else _needs_no_text(kind),
        )
        found = [row for row in run(context) if "predictions" not in row]
    return rows_to_frame([_named(checkpoint) | {"probe": probe, **row} for row in found])


# Probes to which a run gives the tokens of the corpus, and that measure a checkpoint by itself as well.
WITHOUT_TEXT = ("prediction", "cost", "replaced")


def _needs_no_text(kind):
    """None, the tokens of a probe that reads no corpus; MaskLabError for one that does."""
    if kind.entity().reads_tokens and kind.name not in WITHOUT_TEXT:
        raise MaskLabError(f"measure: probes of kind {kind.name} read text: give text=, a file of one sequence a line")


def _tasks(task, work: Path, seed: int) -> dict[str, Path]:
    """Name -> folder of tasks, those given by their settings made below `work`."""
    from masklab.config import kinds
    from masklab.config.problems import problems
    from masklab.config.sources import opened_from
    from masklab.tasks import build, write_task

    if task is None:
        return {}
    if isinstance(task, Mapping) and isinstance(kind := task.get("kind"), str):
        task = {kind: task}
    if not isinstance(task, Mapping | str | os.PathLike):
        raise MaskLabError(f"task: must be a task's folder, its settings, or a mapping of names (got {task!r})")
    found = {}
    for name, given in (task if isinstance(task, Mapping) else {_path("task", task).resolve().name: task}).items():
        if not isinstance(name, str):
            raise MaskLabError(f"task: a name must be text (got {name!r})")
        if not isinstance(given, Mapping | str | os.PathLike):
            raise MaskLabError(f"task {name!r}: must be a task's folder, or its settings (got {given!r})")
        given = given if isinstance(given, Mapping) else _path("task", given)
        if isinstance(given, Mapping):
            entity = kinds.find("tasks", given.get("kind")).entity()
            settings = opened_from(None, _checked(entity, given, ("tasks", name), problems))
            _stands_alone(name, settings)
            write_task(work / name, *build(settings, name, seed))
            given = work / name
        elif (Path(given) / "r1/task.json").is_file():
            raise MaskLabError(f"{given}: every replicate has a task of its own; name one of them, as {given}/r1")
        elif not (Path(given) / "task.json").is_file():
            raise MaskLabError(
                f"{given}: no task: a task is a folder with task.json, or settings such as"
                " {'kind': 'pair-files', 'files': ['pairs.jsonl']}"
            )
        found[name] = given
    return found


def _stands_alone(name: str, settings) -> None:
    """MaskLabError for settings that name entries of a config, of which there is none here."""
    from masklab.config.references import OF_CORPUS, named_law

    law = named_law(settings)
    if law and isinstance(law[1], str):
        raise MaskLabError(
            f"tasks.{name}.{law[0]}: {law[1]!r} names an entry of a config; write the law's own keys in its place, or"
            " give the task's folder of a run"
        )
    if settings.kind in OF_CORPUS:
        raise MaskLabError(
            f"tasks.{name}: {settings.kind} is made of a corpus of a config; give the task's folder of a run"
        )


def _checked(entity, stated, path, problems):
    from pydantic import ValidationError

    try:
        return entity.model_validate(dict(stated))
    except ValidationError as error:
        first = problems(error, entity, stated, path)[0]
        raise MaskLabError(f"{'.'.join(map(str, first.path))}: {first.message}") from None


def _tokens(text, folder, work: Path) -> Path:
    """Token arrays of a file of lines, the same under the name of every split."""
    from masklab.lines import read_texts, stem_of
    from masklab.models.checkpoint import load_checkpoint
    from masklab.tokenizers import load_tokenizer as read_tokenizer
    from masklab.tokens import write_tokens

    lines = [*read_texts(text)]
    if not lines:
        raise MaskLabError(f"{text}: no text")
    config = load_checkpoint(folder).config
    arrays = work / stem_of(text) / "tokens"
    for split in ("test", "valid"):
        write_tokens(lines, read_tokenizer(folder), config.max_positions, arrays, split)
    return arrays


def _named(checkpoint) -> dict:
    """What score rows call a checkpoint: recipe, replicate and step, of one made elsewhere its folder's name."""
    path = _folder(checkpoint).resolve()
    made = _record(path)
    replicate = (made.get("config") or {}).get("replicate", 1)
    return {"recipe": made.get("model") or path.name, "replicate": replicate, "step": made.get("step") or 0}


def _record(folder: Path) -> dict:
    """How the model of a folder was made, {} where nothing says it."""
    from masklab.files import read_json

    return read_json(folder / "masklab.json") if (folder / "masklab.json").is_file() else {}


def _autoencoder(folder: Path):
    """(recipe, what its predictions depend on) of a checkpoint, as its own record says."""
    from masklab.config.autoencoder import Autoencoder
    from masklab.config.schema import Decoder, Mae, Masking

    made = _record(folder)
    config = {"encoder": {}, "objective": {}, "model": {}} | (made.get("config") or {})
    decoder, how = config["encoder"].get("decoder"), config["objective"].get("mae")
    return made.get("model") or folder.name, Autoencoder(
        (folder / "decoder.safetensors").is_file(),
        decoder and Decoder.model_construct(**decoder),
        how and Mae.model_construct(**how),
        Masking.model_construct(**config["model"].get("masking") or {}).mask,
    )


# --- results ---------------------------------------------------------------


def load_scores(run="results"):
    """Every score of a run: a frame of one number a row, with these columns, of the same types always.

    study: that asks for the score; two studies that ask the same have a row each
    recipe, replicate, step: which recipe or null was measured, which replicate of it, after so many updates
    probe, task: what measured it, and on what: of minimal pairs `task/phenomenon`, of a loss the corpus
    split: the part of the task or corpus that was scored, such as `test`
    train_size: fine-tuning examples; 0 where nothing was fine-tuned
    at: a coordinate that no other column holds, such as the offset of a slice of the loss; else NaN
    layer: whose states were read, 0 for the embeddings; -1 where no layer was chosen
    seed: of the probe, such as that of fine-tuning; 0 where it has none
    metric, value: what was measured, such as `accuracy`, and the number; docs/columns.md lists the metrics
    n: test items behind the value; of losses the tokens that were predicted, of predictions the rank

    run: a folder of results. Raises MaskLabError where it has no scores.parquet, naming the target that makes it.
    """
    from masklab.scores.schema import GATHERED

    return _frame(run, "scores", GATHERED)


def load_facts(run="results"):
    """Every fact of a run: a frame of one fact a row, with these columns.

    noun, name: `recipe`, `corpus`, `task` or `probe`, and its name in the config
    replicate: the one that it holds for; 0: all of them
    key: what is stated, as a key of the config with dots: `objective.mae.delta`
    value, number: the value, a Python object; the same where it is a number, else NaN

    run: a folder of results. Raises MaskLabError where it has no facts.parquet, naming the target that makes it.
    """
    import json

    from masklab.scores.facts import COLUMNS

    frame = _frame(run, "facts", dict.fromkeys(COLUMNS))
    frame["value"] = [json.loads(value) for value in frame["value"]]
    return frame


def load_claims(run="results"):
    """Every claim of a run: a frame of one claim a row, with these columns.

    study, claim, section, figure, text: whose claim it is, its name, where the paper says and shows it, the sentence
    headline: whether it is one of the few claims that its study stands for
    comparison, region, margin: the effect in words; where it lies if the sentence is true; what counts as equal
    value, low, high, unit: the effect, its mean over replicates with its 95 % interval (NaN for one replicate)
    replicates, items: replicates behind it; whether the interval covers the choice of test items too
    p: the least level at which the claim is decided; NaN where it was not tested
    verdict, why: supported, contradicted, negligible, inconclusive or untested; why, of the last three
    corrected: the verdict after Holm's correction for the number of claims tested
    needed: replicates that would decide an inconclusive claim with 80 % power; 1001: more than 1000; 0: unsaid
    of_seeds: share of the variance between replicates that seeds of its probes make, likewise; NaN: unsaid
    same_effect: the first claim of the study with this very effect; its own name where no other has it

    run: a folder of results. Raises MaskLabError where it has no claims.parquet, naming the target that makes it.
    """
    from masklab.claims.verdict import COLUMNS

    return _frame(run, "claims", COLUMNS)


def _frame(run, name: str, columns: Mapping):
    from masklab.files import read_table

    path = _folder(run, "run") / f"{name}.parquet"
    if not path.is_file():
        raise MaskLabError(f"{path}: no such file; `snakemake {name}` makes it, with the config of the run")
    frame = read_table(path).to_pandas()
    if list(frame.columns) != list(columns):
        raise MaskLabError(f"{path}: its columns are {', '.join(frame.columns)}; must be {', '.join(columns)}")
    try:
        return frame.astype({column: dtype for column, dtype in columns.items() if dtype})
    except (TypeError, ValueError) as error:
        raise MaskLabError(f"{path}: a column is of another type: {error}") from None


# --- folders ---------------------------------------------------------------


def _path(key: str, path, what: str = "a folder") -> Path:
    if not isinstance(path, str | os.PathLike):
        raise MaskLabError(f"{key}: must be the path of {what} (got {path!r})")
    return Path(path).expanduser()


def _folder(path, key: str = "checkpoint") -> Path:
    folder = _path(key, path)
    if not folder.is_dir():
        raise MaskLabError(f"{path}: {'not a folder' if folder.exists() else 'no such folder'}")
    return folder


@contextmanager
def _ours(checkpoint):
    """The folder of a checkpoint as all our code reads it: of one made elsewhere, a copy for the time being."""
    from masklab.models.adopt import adopt, is_foreign
    from masklab.models.checkpoint import check_holds_checkpoint

    folder = _folder(checkpoint)
    check_holds_checkpoint(folder)
    if not is_foreign(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="masklab-") as work:
        adopt(folder, Path(work) / folder.resolve().name)
        yield Path(work) / folder.resolve().name


def _loaded(model):
    model = load_model(model) if isinstance(model, str | os.PathLike) else model
    if getattr(model, "tokenizer", None) is None:
        raise MaskLabError("the model has no tokenizer: load it with masklab.load_model, from a folder that has one")
    return model


def _predicting(what: str, model):
    """The model, whose predictions can be read; MaskLabError for a masked autoencoder whose cannot, naming `what`."""
    from masklab.config.autoencoder import prediction_problem

    model = _loaded(model)
    if (made := getattr(model, "made", None)) and (problem := prediction_problem(what, *made)):
        raise MaskLabError(problem)
    return model


def _device(name) -> str:
    """The device that is meant; MaskLabError for none of torch's, and for a GPU where torch finds none."""
    import torch

    if not isinstance(name, str | torch.device):
        raise MaskLabError(f"device: {name!r}: must be auto, cpu or cuda")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise MaskLabError(f"device: {name!r}: must be auto, cpu or cuda") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise MaskLabError(f"device: {name}: torch finds no GPU that it can use here; must be auto or cpu")
    return str(device)


def _device_of(model):
    return next(model.parameters()).device


def _whole(key: str, number) -> int:
    if not isinstance(number, Integral) or isinstance(number, bool):
        raise MaskLabError(f"{key}: must be a whole number (got {number!r})")
    return int(number)


def _check_text(text) -> None:
    if not isinstance(text, str):
        raise MaskLabError(f"text: must be text (got {text!r})")
