"""`import masklab`: what a notebook asks of models and results, on checkpoints made here and elsewhere."""

import json
import re
import shutil
import subprocess
import sys

import pandas as pd
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

import masklab
from masklab.claims.verdict import COLUMNS as CLAIMS
from masklab.config.schema import Decoder, Encoder, Mae
from masklab.errors import MaskLabError
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import minimal_pairs
from masklab.scores.facts import COLUMNS as FACTS
from masklab.scores.schema import COLUMNS, GATHERED, rows_to_frame
from masklab.tasks import encoding

SIZES = {"layers": 2, "hidden": 24, "heads": 2, "max_positions": 64, "init_range": 0.3}
FORMS = {"bert": {"positions": "absolute"}, "relative": {"positions": "relative", "norm": "pre"}}


@pytest.fixture(scope="module")
def ours(english, tmp_path_factory):
    """Form -> checkpoint folder, as a run leaves it."""
    root = tmp_path_factory.mktemp("models")
    masking = {"config": {"replicate": 3, "model": {"masking": {"rate": 0.2}}}, "model": "mlm", "step": 400}
    for form, keys in FORMS.items():
        model = MaskedLM(Encoder(**SIZES | keys), 500, generator=torch.Generator().manual_seed(1))
        save_checkpoint(model, root / form / "r3/step-400", tokenizer_folder=english / "tokenizer", metadata=masking)
    return {form: root / form / "r3/step-400" for form in FORMS}


@pytest.fixture(scope="module")
def bert(english, tmp_path_factory):
    """The folder of a BERT made by transformers, with special tokens where BERT has them."""
    folder = tmp_path_factory.mktemp("elsewhere") / "bert"
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=specials, show_progress=False)
    lines = pd.read_parquet(english / "corpora/train.parquet")["text"].tolist()
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    roles = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), specials, strict=True))
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles)
    sizes = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=len(fast), max_position_embeddings=40, initializer_range=0.3, **sizes)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("load", "columns"), [(masklab.load_scores, GATHERED), (masklab.load_facts, FACTS), (masklab.load_claims, CLAIMS)]
)
def test_help_says_what_the_columns_are(load, columns):
    """As the notebook promises."""
    stated = re.findall(r"\w+", " ".join(line.partition(": ")[0] for line in load.__doc__.splitlines()))
    assert [column for column in columns if column not in stated] == []


def test_the_import_is_light_until_something_is_used():
    code = "import masklab, sys; print([m for m in ('torch', 'pandas', 'numpy', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert {"load_model", "measure", "read_config"} <= {*dir(masklab)} and masklab.__version__
    with pytest.raises(AttributeError, match="no attribute 'load_modle'"):
        _ = masklab.load_modle


@pytest.mark.parametrize("form", FORMS)
def test_a_checkpoint_of_ours_fills_masks_and_shows_its_states(form, ours):
    model = masklab.load_model(ours[form])
    text = "She picked a delicious [MASK]."
    filled = masklab.fill_mask(model, text, top=7)
    assert list(filled.columns) == ["token", "probability"] and len(filled) == 7
    assert filled["probability"].is_monotonic_decreasing and filled["probability"].between(0, 1).all()
    pd.testing.assert_frame_equal(filled, masklab.fill_mask(ours[form], text, top=7))
    assert masklab.fill_mask(model, text, top=500)["probability"].sum() == pytest.approx(1)
    states = masklab.hidden_states(model, "The dogs see a cat.")
    ids = masklab.load_tokenizer(ours[form]).encode("The dogs see a cat.").ids
    assert states.shape == (3, len(ids), 24) and not states.requires_grad
    last = model.encode(torch.tensor([ids]), torch.tensor([len(ids)]))[0]
    torch.testing.assert_close(states[2], last.detach())
    torch.testing.assert_close(masklab.hidden_states(model, "The dogs see a cat.", layer=1), states[1])


@torch.no_grad()
def test_a_checkpoint_made_elsewhere_predicts_what_transformers_does(bert):
    text = "the old cat sees a [MASK] today"
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(bert).eval()
    batch = tokenizer(text, return_tensors="pt")
    output = theirs(**batch, output_hidden_states=True)
    at = batch["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    best = output.logits[0, at].double().softmax(-1).topk(5)
    found = masklab.fill_mask(bert, text)
    assert found["token"].tolist() == tokenizer.convert_ids_to_tokens(best.indices)
    assert found["probability"].tolist() == pytest.approx(best.values.tolist(), rel=1e-4)
    states = masklab.hidden_states(bert, text)
    torch.testing.assert_close(states, torch.cat(output.hidden_states), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_sentence_is_as_likely_as_its_tokens_hidden_in_turn_are(bert):
    """Against transformers, a masked copy at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bert)
    theirs = transformers.AutoModelForMaskedLM.from_pretrained(bert).eval()
    sentences = ["the old cat sees a dog today", "cat", "the old cat sees a dog today", ""]
    wanted = []
    for text in sentences:
        (ids,) = tokenizer(text, return_tensors="pt")["input_ids"]
        total = 0.0
        for at in range(1, len(ids) - 1):
            hidden = ids.clone()
            hidden[at] = tokenizer.mask_token_id
            total += float(theirs(hidden[None]).logits[0, at].double().log_softmax(-1)[ids[at]])
        wanted.append((len(ids) - 2, total))
    found = masklab.pseudo_log_likelihood(bert, sentences)
    assert list(found.columns) == ["sentence", "tokens", "score"] and found["sentence"].tolist() == sentences
    assert found["tokens"].tolist() == [tokens for tokens, _ in wanted]
    assert found["score"].tolist() == pytest.approx([score for _, score in wanted], rel=1e-4, abs=1e-9)
    assert len(masklab.pseudo_log_likelihood(masklab.load_model(bert), [])) == 0
    with pytest.raises(MaskLabError, match=r"'the the .*'\.\.\. has 52 tokens; the model takes 40"):
        masklab.pseudo_log_likelihood(bert, ["the " * 50])


def test_sentences_are_tokenised_once(bert, monkeypatch):
    asked, content_ids = [], minimal_pairs.content_ids
    monkeypatch.setattr(encoding, "content_ids", lambda _, texts: pytest.fail(f"tokenised beside the probe: {texts}"))
    monkeypatch.setattr(minimal_pairs, "content_ids", lambda *given: asked.append(given[1]) or content_ids(*given))
    found = masklab.pseudo_log_likelihood(bert, ["the cat", "a dog sees the cat"])
    assert asked == [["the cat", "a dog sees the cat"]] and len(found) == 2


@pytest.mark.parametrize("where", ["ours", "elsewhere"])
def test_probes_measure_any_checkpoint(where, ours, bert, english, tmp_path, monkeypatch):
    folder = ours["bert"] if where == "ours" else bert
    named = ("mlm", 3, 400) if where == "ours" else ("bert", 1, 0)
    called = dict(zip(("recipe", "replicate", "step"), named, strict=True))
    good = [f"the cat {verb}s a dog" for verb in ("see", "like", "follow")]
    pairs = [{"sentence_good": text, "sentence_bad": text.replace("s a", " a"), "linguistics_term": "agreement"}
             for text in good]  # fmt: skip
    (tmp_path / "agreement.jsonl").write_text("\n".join(map(json.dumps, pairs)))
    rows = "sentence\tlabel\n" + "the good cat sees a dog\t1\nthe bad cats see dogs\t0\n" * 20
    for split in ("train", "dev"):
        (tmp_path / f"{split}.tsv").write_text(rows)
    (tmp_path / "lines.txt").write_text("\n".join(pd.read_parquet(english / "corpora/test.parquet")["text"][:50]))

    blimp = {"blimp": {"kind": "pair-files", "files": [str(tmp_path / "*.jsonl")]}}
    frame = masklab.measure(folder, "minimal_pairs", task=blimp)
    assert list(frame.columns) == list(COLUMNS) and frame["task"].unique().tolist() == ["blimp/agreement"]
    assert (frame[list(called)] == pd.Series(called)).all().all() and frame["n"].eq(3).all()
    monkeypatch.setenv("HOME", str(tmp_path))
    glue = {"sst": {"kind": "glue", "task": "sst2", "folder": "~"}}
    frame = masklab.measure(folder, "finetune", task=glue, seeds=[1, 2], max_steps=20, lr=1e-3)
    scores = frame[frame["metric"] == "accuracy"]
    assert scores["seed"].tolist() == [1, 2] and scores["value"].between(0, 1).all() and scores["n"].eq(40).all()
    rank = masklab.measure(folder, "rank", text=tmp_path / "lines.txt")
    assert rank["task"].unique().tolist() == ["lines"] and set(rank["layer"]) == {0, 1, 2}
    loss = masklab.measure(folder, "loss", text=tmp_path / "lines.txt")
    assert 3 < loss.loc[loss["metric"] == "loss", "value"].item() < 30


@pytest.fixture
def autoencoder(english, tmp_path):
    """Writes a checkpoint of a masked autoencoder, as a run leaves it; returns its folder."""

    def write(kept=True, decoder=True, mask=1.0, **how):
        encoder = Encoder(**SIZES, positions="absolute", decoder=Decoder(layers=1))
        model = MaskedLM(encoder, 500, generator=torch.Generator().manual_seed(1))
        config = {
            "replicate": 1,
            "model": {"masking": {"mask": mask, "random": 0.1 if mask < 1 else 0}},
            "encoder": encoder.model_dump(mode="json", exclude=None if decoder else {"decoder"}),
            "objective": {"mae": Mae(**how).model_dump(mode="json")},
        }
        metadata, folder = {"model": "mae", "step": 4, "config": config}, tmp_path / "mae/r1/step-4"
        save_checkpoint(model, folder, tokenizer_folder=english / "tokenizer", metadata=metadata, keep_decoder=kept)
        return folder

    return write


@pytest.mark.parametrize(
    "made",
    [
        {"kept": False, "delta": 0, "aligned": True},
        {"delta": 0.5, "aligned": True},
        {"delta": 0, "aligned": False},
        {"kept": False, "decoder": False, "delta": 0, "aligned": True},  # grown without the decoder
    ],
)
def test_predictions_that_a_decoder_makes_are_refused_as_a_run_refuses_them(made, autoencoder, tmp_path):
    folder = autoencoder(**made)
    (tmp_path / "lines.txt").write_text("the cat sees a dog\n" * 5)
    pairs = {"kind": "english-pairs", "pairs": 2}
    through = (
        "reads predictions, which 'mae' makes through its decoder: set models.mae.keep_decoder, and this only with"
    )
    for probe, given in {
        "minimal_pairs": {"task": pairs},
        "loss": {"text": tmp_path / "lines.txt"},
        "prediction": {"sentence": "the cat [MASK] ."},
    }.items():
        with pytest.raises(MaskLabError, match=re.escape(f"{folder}: a {probe} probe {through}")):
            masklab.measure(folder, probe, **given)
    for model in (folder, masklab.load_model(folder)):
        with pytest.raises(MaskLabError, match=re.escape(f"fill_mask {through}")):
            masklab.fill_mask(model, "the cat [MASK] .")
        with pytest.raises(MaskLabError, match=re.escape(f"pseudo_log_likelihood {through}")):
            masklab.pseudo_log_likelihood(model, ["the cat ."])
    assert len(masklab.measure(folder, "rank", text=tmp_path / "lines.txt"))  # which reads hidden states


def test_predictions_that_a_kept_decoder_makes_are_measured(autoencoder, tmp_path):
    folder = autoencoder(delta=0, aligned=True, reset=True, mask=0.8)
    assert len(masklab.measure(folder, "minimal_pairs", task={"kind": "english-pairs", "pairs": 2}))
    assert len(masklab.fill_mask(folder, "the cat [MASK] .")) == 5
    (tmp_path / "lines.txt").write_text("the cat sees a dog\n" * 5)
    with pytest.raises(MaskLabError, match=r"a loss probe does not reset; set probes\.loss\.masks: one"):
        masklab.measure(folder, "loss", text=tmp_path / "lines.txt")
    assert len(masklab.measure(folder, "loss", text=tmp_path / "lines.txt", masks="one"))


def test_what_a_checkpoint_cost_is_known_without_a_text(ours, tmp_path):
    from masklab.files import write_json, write_parquet

    folder = tmp_path / "mlm" / "r1" / "step-400"
    shutil.copytree(ours["bert"], folder)
    config = {"replicate": 1, "model": {"corpus": "strict"}}
    write_json({"model": "mlm", "step": 400, "config": config}, folder / "masklab.json")
    columns = {"step": [200, 400], "seconds": [1.0, 2.5], "tokens": [10.0, 15.0], "valid_loss": [float("nan"), 3.0]}
    write_parquet(pd.DataFrame(columns), folder.parent / "metrics.parquet")
    write_json({"facts": {"flops": 100.0, "tokens": 50.0}}, folder.parent / "manifest.json")
    found = masklab.measure(folder, "cost").set_index("metric")
    assert found["value"].to_dict() == {"seconds": 2.5, "tokens": 25, "flops": 50, "valid_loss": 3}
    assert set(found["task"]) == {"strict"} and set(found["recipe"]) == {"mlm"} and set(found["step"]) == {400}
    write_json({"model": "mlm", "step": 400, "config": {}}, folder / "masklab.json")
    with pytest.raises(MaskLabError, match=r"masklab\.json: no 'model': not a model of this workbench"):
        masklab.measure(folder, "cost")
    shutil.copytree(folder, tmp_path / "mine")
    with pytest.raises(MaskLabError, match="mine: no folder step-<n> of a run"):
        masklab.measure(tmp_path / "mine", "cost")


def test_a_task_of_a_run_is_measured_by_its_folder(ours, tmp_path):
    from masklab.config.schema import EnglishPairs
    from masklab.tasks import build, write_task

    write_task(tmp_path / "blimp", *build(EnglishPairs(kind="english-pairs", pairs=3), "blimp", 1))
    frame = masklab.measure(ours["bert"], "minimal_pairs", task=tmp_path / "blimp")
    assert frame["task"].str.startswith("blimp/").all() and frame["n"].eq(3).all()


def test_settings_of_a_task_need_no_name(ours):
    settings = {"kind": "english-pairs", "pairs": 3}
    named = masklab.measure(ours["bert"], "minimal_pairs", task={"english-pairs": settings})
    assert named["task"].str.startswith("english-pairs/").all()
    pd.testing.assert_frame_equal(masklab.measure(ours["bert"], "minimal_pairs", task=settings), named)


def test_results_are_frames_of_fixed_types(tmp_path):
    from masklab.files import write_parquet
    from masklab.scores import facts

    row = {"recipe": "a", "replicate": 1, "step": 4, "probe": "p", "task": "t", "split": "test", "metric": "accuracy"}
    write_parquet(rows_to_frame([row | {"value": 0.5, "n": 4}], "first"), tmp_path / "scores.parquet")
    write_parquet(pd.DataFrame(facts.rows("recipe", "a", {"steps": 4, "objective": {"terms": ["mlm"]}}),
                               columns=facts.COLUMNS), tmp_path / "facts.parquet")  # fmt: skip
    write_parquet(pd.DataFrame(columns=list(CLAIMS)).astype(CLAIMS), tmp_path / "claims.parquet")
    scores, known, claims = (getattr(masklab, f"load_{name}")(tmp_path) for name in ("scores", "facts", "claims"))
    assert list(scores.columns) == list(GATHERED) and scores["value"].tolist() == [0.5]
    assert known.set_index("key")["value"].to_dict() == {"steps": 4, "objective.terms": ["mlm"]}
    assert list(claims.columns) == list(CLAIMS) and claims.dtypes.astype(str)["value"] == "float64" and claims.empty


def test_a_config_is_read_as_the_workflow_reads_it(tmp_path):
    (tmp_path / "mine.yaml").write_text("models: {strict-mlm: {batch_size: 16}}")
    assert masklab.read_config(tmp_path / "mine.yaml").models["strict-mlm"].batch_size == 16


MISTAKES = {
    "nope: no such folder": lambda folder, path: masklab.load_model("nope"),
    "no config.json; it has step-400": lambda folder, path: masklab.load_model(folder.parent),
    "scores.parquet: no such file; `snakemake scores` makes it": lambda folder, path: masklab.load_scores(path),
    "give text=, a file of one sequence a line": lambda folder, path: masklab.measure(folder, "rank"),
    "no kind 'finetun' among probes": lambda folder, path: masklab.measure(folder, "finetun", task=path),
    "no task: a task is a folder with task.json": lambda folder, path: masklab.measure(folder, "finetune", task=path),
    "probes.rank.sequencs: unknown key": lambda folder, path: masklab.measure(folder, "rank", text="x", sequencs=3),
    "tasks.a.file: unknown key": lambda folder, path: masklab.measure(
        folder, "minimal_pairs", task={"a": {"kind": "pair-files", "file": "x"}}
    ),
    "tasks.pair-files.file: unknown key": lambda folder, path: masklab.measure(
        folder, "minimal_pairs", task={"kind": "pair-files", "file": "x"}
    ),
    "tasks.a.hmm: 'mine' names an entry of a config": lambda folder, path: masklab.measure(
        folder, "finetune", task={"a": {"kind": "hmm", "hmm": "mine", "position": 2}}
    ),
    "give the task's folder of a run": lambda folder, path: masklab.measure(
        folder, "finetune", task={"a": {"kind": "restricted-labels", "task": "t", "corpus": "c"}}
    ),
    "x.txt: no such file": lambda folder, path: masklab.measure(folder, "rank", text="x.txt"),
    "device: 'gpu': must be auto, cpu or cuda": lambda folder, path: masklab.load_model(folder, device="gpu"),
    "device: 'tpu': must be auto, cpu or cuda": lambda folder, path: masklab.measure(folder, "cost", device="tpu"),
    "top: -1: must be at least 1": lambda folder, path: masklab.fill_mask(folder, "a [MASK]", top=-1),
    "must hold exactly one [MASK]": lambda folder, path: masklab.fill_mask(folder, "no hole"),
    "max_positions is 64": lambda folder, path: masklab.hidden_states(folder, "the cat " * 90),
    "layer 7: the encoder has layers 0 to 2": lambda folder, path: masklab.hidden_states(folder, "a", layer=7),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_a_mistake_is_one_line(message, ours, tmp_path):
    with pytest.raises(MaskLabError) as caught:
        MISTAKES[message](ours["bert"], tmp_path)
    assert message in str(caught.value) and "\n" not in str(caught.value)
