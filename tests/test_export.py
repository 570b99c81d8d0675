"""Exported models: what transformers loads from them is the model, score for score."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
import transformers

from checked_run import run as measured
from masklab.cli import main
from masklab.config.schema import Dictionary, Encoder, EnglishPairs, MinimalPairsProbe, Objective, entry
from masklab.errors import MaskLabError
from masklab.export import card, export, words_seen
from masklab.files import read_json, read_table, write_table
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import Context
from masklab.scores.schema import rows_to_table
from masklab.tasks import build, write_task
from masklab.training.loop import train

sys.path.append(str(Path(__file__).parent / "training"))
from runs import make_run


@pytest.fixture(scope="module")
def results(english, tiny_encoder, tmp_path_factory):
    """A folder of results: a corpus, phase 1 and a phase that starts from it, r1 of each."""
    root = tmp_path_factory.mktemp("export") / "results"
    write_table(read_table(english / "corpora" / "train.parquet"), root / "corpora" / "c" / "train.parquet")

    def made(name, **changes):
        model = {
            "steps": 40,
            "checkpoints": [20, 40],
            "optimiser": {"lr": 5e-3},
            "init": changes.pop("reference", None),
        }
        one = make_run(english, tiny_encoder, root, name=name, **model)
        one = dataclasses.replace(one, output=root / "models" / name / "r1", state=root / "state" / name, **changes)
        train(one)
        return one

    first = made("phase1")
    made("phase2", reference="phase1@40", init=first.output / "step-40", phase=1)
    return root


@pytest.fixture(scope="module")
def exported(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "model"
    export("phase2@40", folder, results)
    return folder


@pytest.fixture(scope="module")
def blimp(tmp_path_factory):
    """Minimal pairs as BLiMP's files have them, one file a paradigm; the folder of the release."""
    root = tmp_path_factory.mktemp("blimp")
    frame = build(EnglishPairs(kind="english-pairs", pairs=5), "b", 1)[0]["test"]
    (root / "blimp_filtered").mkdir()
    for paradigm, rows in frame.groupby("paradigm"):
        lines = [
            {"sentence_good": row.good, "sentence_bad": row.bad, "field": "syntax", "UID": paradigm,
             "linguistics_term": row.phenomenon}
            for row in rows.itertuples()
        ]  # fmt: skip
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (root / "blimp_filtered" / f"{paradigm}.jsonl").write_text(text)
    return root


def plain_score(model, tokenizer, sentence):
    """As the pipeline of 2025: each token with characters is masked on its own, its log probability taken."""
    encoded = tokenizer(sentence, return_offsets_mapping=True)
    total = 0.0
    for place, (_, end) in enumerate(encoded["offset_mapping"]):
        if end > 0:
            ids = torch.tensor([encoded["input_ids"]])
            ids[0, place] = tokenizer.mask_token_id
            mask = torch.tensor([encoded["attention_mask"]])
            logits = model(input_ids=ids, attention_mask=mask)["logits"][0, place]
            total += logits.log_softmax(-1)[encoded["input_ids"][place]].item()
    return total


def test_blimp_equals_a_plain_loop_over_transformers_paradigm_by_paradigm(exported, results, blimp, tmp_path):
    task = entry("tasks", {"kind": "babylm-pairs", "task": "blimp", "folder": str(blimp), "release": 2025})
    write_task(tmp_path / "blimp", *build(task, "blimp", 1))
    probe = MinimalPairsProbe(kind="minimal_pairs", tasks=["blimp"])
    checkpoint = results / "models" / "phase2" / "r1" / "step-40"
    rows = measured(Context(probe=probe, checkpoint=checkpoint, tasks={"blimp": tmp_path / "blimp"}))
    ours = {row["task"].partition("/")[2]: row["value"] for row in rows if row["metric"] == "accuracy"}
    model = transformers.AutoModelForMaskedLM.from_pretrained(exported).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    theirs = {}
    with torch.no_grad():
        for file in sorted((blimp / "blimp_filtered").iterdir()):
            pairs = [json.loads(line) for line in file.read_text().splitlines()]
            scored = [
                [plain_score(model, tokenizer, pair[f"sentence_{side}"]) for side in ("good", "bad")] for pair in pairs
            ]
            theirs[file.stem] = np.mean([good >= bad for good, bad in scored])
    assert ours == pytest.approx(theirs) and len(theirs) >= 12 and len(set(theirs.values())) > 2


def test_what_the_pipelines_load_is_there(exported):
    names = {path.name for path in exported.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "README.md"} <= names
    classifier = transformers.AutoModelForSequenceClassification.from_pretrained(exported, num_labels=3)
    plain = transformers.AutoModel.from_pretrained(exported)
    tokens = transformers.AutoProcessor.from_pretrained(exported)("The cat sleeps.", return_tensors="pt")
    ids = {key: tokens[key] for key in ("input_ids", "attention_mask")}
    assert classifier(**ids).logits.shape == (1, 3) and plain(**ids)[0].shape[:2] == ids["input_ids"].shape


def test_all_checkpoints_are_named_by_millions_of_words_or_by_steps(results, tmp_path, monkeypatch):
    table = read_table(results / "corpora" / "c" / "train.parquet")
    words = sum(len(text.split()) for text in table["text"].to_pylist()) / len(table)
    config = read_json(results / "models" / "phase2" / "r1" / "step-20" / "masklab.json")["config"]
    assert words_seen(config, 20, results) == pytest.approx(words * 32 * (40 + 20)), "phase 1 counts"
    assert words_seen(config, 20, tmp_path) is None
    monkeypatch.setattr("masklab.export.TextFile", None)  # the corpus is read once, however many checkpoints ask
    assert words_seen(config, 40, results) == pytest.approx(words * 32 * (40 + 40))
    monkeypatch.undo()
    found = export("phase2", tmp_path / "small", results)
    assert [path.name for path in found] == ["small", "step-20", "step-40"]
    monkeypatch.setattr("masklab.export.MILLION", 1_000)
    found = export("phase2/r1", tmp_path / "large", results)
    assert [path.name for path in found] == [
        "large",
        f"chck_{round(words * 1.92)}M",
        f"chck_{round(words * 2.56)}M",
    ]
    same = [(tmp_path / "large" / name / "model.safetensors").read_bytes() for name in ("", found[-1].name)]
    assert same[0] == same[1]
    transformers.AutoModelForMaskedLM.from_pretrained(found[1])


def test_sequences_that_are_too_short_to_be_read_count_for_nothing(tmp_path):
    """Under `count: floor` a line under 7 tokens is in no batch: most lines of speech to children are."""
    texts = ["oh look", "", "a line of a book that goes on", "a longer line of a book that goes on and on"]
    write_table(pa.table({"text": texts}), tmp_path / "corpora/c/r2/train.parquet")
    config = {"replicate": 2, "model": {"corpus": "c", "tokenizer": "t", "batch_size": 10, "masking": {}}}
    assert words_seen(config, 3, tmp_path) == 30 * (2 + 0 + 8 + 11) / 4, "all that is known without their tokens"
    (tokens := tmp_path / "tokens/c/r2/t").mkdir(parents=True)
    np.save(tokens / "train.offsets.npy", np.cumsum([0, 2, 0, 9, 13]))
    assert words_seen(config, 3, tmp_path) == 30 * (8 + 11) / 2
    config["model"]["masking"] = {"count": "rounded"}
    assert words_seen(config, 3, tmp_path) == 30 * (2 + 8 + 11) / 3


def test_the_card_is_the_runs_own_record(results, tmp_path):
    shared = {"probe": "pairs", "task": "blimp/binding", "split": "test", "n": 9}
    rows = [
        {**shared, "recipe": recipe, "replicate": 1, "step": 40, "metric": "accuracy", "value": value}
        for recipe, value in (("phase2", 0.625), ("phase1", 0.1))
    ]
    tuned = shared | {"task": "cola", "recipe": "phase2", "replicate": 1, "step": 40, "metric": "mcc"}
    rows += [
        tuned | {"probe": probe, "train_size": size, "seed": seed, "value": value}
        for probe, size, seed, value in (
            ("tuned", 50, 1, 0.1), ("tuned", 50, 2, 0.2), ("tuned", 1000, 1, 0.5), ("linear", 1000, 1, 0.3),
        )
    ]  # fmt: skip
    mnli = tuned | {"probe": "tuned", "task": "mnli", "train_size": 90, "metric": "accuracy", "seed": 1}
    splits = {"matched": 0.75, "mismatched": 0.7, "valid": 0.1}
    rows += [mnli | {"split": split, "value": value} for split, value in splits.items()]
    table = rows_to_table(rows)
    write_table(table, tmp_path / "with" / "scores.parquet")
    for name in ("models", "corpora"):
        (tmp_path / "with" / name).symlink_to(results / name)
    export("phase2@40", tmp_path / "out", tmp_path / "with")
    text = (tmp_path / "out" / "README.md").read_text()
    manifest = read_json(results / "models" / "phase2" / "r1" / "manifest.json")
    for said in (
        "| objective | 1 mlm |", "| starts from | phase1@40 |", "| updates | 40 of 40, 32 sequences each |",
        f"| parameters | {manifest['facts']['parameters']:,} |", "| seed | 1 |",
        "| blimp | pairs |  | accuracy | 0.6250 |",
        f"| validation loss | {manifest['facts']['valid_loss']['40']:.4f} nats a masked token |",
        "| cola | tuned | 50 | mcc | 0.1500 |", "| cola | tuned | 1,000 | mcc | 0.5000 |",
        "| cola | linear | 1,000 | mcc | 0.3000 |", "| mnli, matched | tuned | 90 | accuracy | 0.7500 |",
        "| mnli, mismatched | tuned | 90 | accuracy | 0.7000 |",
    ):  # fmt: skip
        assert said in text
    assert "0.1000" not in text and "| learns from" not in text
    assert "pipeline_tag: fill-mask" in text and "decoder" not in text


def test_a_card_has_what_the_probes_of_a_single_study_wrote(results, tmp_path):
    """`snakemake <study>` makes no scores.parquet; one that is older than its probes' files is not asked."""
    run = tmp_path / "run"
    for name in ("models", "corpora"):
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).symlink_to(results / name)
    shared = {"recipe": "phase2", "replicate": 1, "step": 40, "split": "test", "metric": "accuracy", "n": 9}

    def measured(file, probe, value, **more):
        write_table(rows_to_table([shared | {"probe": probe, "task": "t", "value": value, **more}]), run / file)

    measured("scores.parquet", "pairs", 0.1)
    measured("scores/pairs/phase2/r1/all.parquet", "pairs", 0.7)
    measured("scores/pairs/phase2/r2/all.parquet", "pairs", 0.2, replicate=2)
    measured("scores/tuned/phase2/r1/step-20.parquet", "tuned", 0.3, step=20)
    measured("scores/tuned/phase2/r1/step-40.parquet", "tuned", 0.6)
    write_table(rows_to_table([]), run / "scores/tuned/phase2/r1/step-40.items.parquet")
    text = card(run / "models" / "phase2" / "r1" / "step-40", run)
    rows = [line for line in text.splitlines() if "| accuracy |" in line]
    assert rows == ["| t | pairs |  | accuracy | 0.7000 |", "| t | tuned |  | accuracy | 0.6000 |"]


def test_a_card_says_nothing_that_a_model_does_not_have(english, tmp_path):
    """An LSTM has no heads, and where one token of a sequence is hidden its rate counts for nothing."""
    encoder = Encoder(kind="lstm", positions="none", norm="pre", layers=1, hidden=16, max_positions=40)
    one = make_run(english, encoder, tmp_path, steps=4, masking={"count": "one", "rate": 0.3})
    metadata = {"model": "m", "step": 4, "config": one.resolved()}
    folder = tmp_path / "step-4"
    save_checkpoint(MaskedLM(encoder, 500), folder, tokenizer_folder=english / "tokenizer", metadata=metadata)
    text = card(folder, None)
    assert "| encoder | lstm, 1 layers of 16, none positions, pre-norm, up to 40 tokens |" in text
    assert "| masking | one token of a sequence, 1 [MASK], 0 random |" in text


def test_a_card_says_that_a_masked_autoencoder_predicts_through_its_decoder(english, tmp_path):
    """Which no folder hands on to transformers: loaded there it predicts nothing that it was trained to."""
    encoder = Encoder(layers=1, hidden=16, heads=2, max_positions=40, decoder={"layers": 1})
    one = make_run(english, encoder, tmp_path, objective=Objective(mae=1), steps=4)
    metadata = {"model": "m", "step": 4, "config": one.resolved()}
    for keeps, said in ((True, "which lies in decoder.safetensors; transformers"), (False, "which is left out; trans")):
        model = MaskedLM(encoder, 500)
        save_checkpoint(model, tmp_path / "m", tokenizer_folder=None, metadata=metadata, keep_decoder=keeps)
        text = card(tmp_path / "m", None)
        assert said in text and "pipeline_tag: feature-extraction" in text and "fill-mask" not in text


def test_a_card_of_the_full_width_names_no_decoder_that_is_not_beside_it(english, tmp_path):
    """The head of the decoder has no row for the latent properties, so that it is not written with them."""
    encoder = Encoder(layers=1, hidden=16, heads=2, max_positions=40, decoder={"layers": 1})
    one = make_run(english, encoder, tmp_path, objective=Objective(mae=1, mlsm=1), steps=4)
    one = dataclasses.replace(one, dictionary_config=Dictionary(model="m@4", layer=1, atoms=16))
    step, metadata = tmp_path / "step-4", {"model": "m", "step": 4, "config": one.resolved()}
    model = MaskedLM(encoder, 500, 16)
    save_checkpoint(model, step, tokenizer_folder=english / "tokenizer", metadata=metadata, keep_decoder=True)
    for full_width, said in ((False, "which lies in decoder.safetensors;"), (True, "which is left out;")):
        folder = tmp_path / f"out-{full_width}"
        export(str(step), folder, full_width=full_width)
        assert (folder / "decoder.safetensors").is_file() is not full_width
        assert said in (folder / "README.md").read_text()


def test_a_folder_is_of_the_run_that_it_lies_in(results, tmp_path):
    """Whatever run was named, or none: its recipes may have the same names."""
    unnamed, mine = tmp_path / "results", tmp_path / "results" / "mine"
    shared = {"probe": "pairs", "task": "blimp", "split": "test", "metric": "accuracy", "n": 9}
    for run, value in ((unnamed, 0.1), (mine, 0.9)):
        row = shared | {"recipe": "phase2", "replicate": 1, "step": 40, "value": value}
        write_table(rows_to_table([row]), run / "scores.parquet")
        (run / "models").symlink_to(results / "models")
    (mine / "corpora").symlink_to(results / "corpora")
    step = mine / "models" / "phase2" / "r1" / "step-40"
    export(str(step), tmp_path / "out", unnamed)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| accuracy | 0.9000 |" in card and "0.1000" not in card and "| words read |" in card
    shutil.copytree(step, tmp_path / "elsewhere")
    export(str(tmp_path / "elsewhere"), tmp_path / "again", mine)
    card = (tmp_path / "again" / "README.md").read_text()
    assert "| accuracy |" not in card and "| words read |" not in card and "| seed | 1 |" in card


def test_latent_logits_stand_behind_the_vocabulary_where_asked_for(english, tiny_encoder, results, tmp_path):
    model = MaskedLM(tiny_encoder, 500, 16, generator=torch.Generator().manual_seed(1))
    one = make_run(english, tiny_encoder, tmp_path, objective=Objective(mlsm=1, mlm=1), steps=4)
    one = dataclasses.replace(one, dictionary_config=Dictionary(model="m@4", layer=1, atoms=16))
    metadata = {"model": "m", "step": 4, "config": one.resolved()}
    save_checkpoint(model, tmp_path / "step-4", tokenizer_folder=english / "tokenizer", metadata=metadata)
    export(str(tmp_path / "step-4"), tmp_path / "wide", results, full_width=True)
    export(str(tmp_path / "step-4"), tmp_path / "plain", results)
    wide, plain = (
        transformers.AutoModelForMaskedLM.from_pretrained(tmp_path / name).eval() for name in ("wide", "plain")
    )
    ids = torch.tensor([[0, 9, 4, 12, 1]])
    with torch.no_grad():
        output = load_checkpoint(tmp_path / "step-4").eval()(ids, torch.tensor([5]))
        torch.testing.assert_close(plain(ids).logits[0], output.logits, atol=1e-4, rtol=1e-4)
        whole = torch.cat([output.logits, output.latent], 1)
        torch.testing.assert_close(wide(ids).logits[0], whole, atol=1e-4, rtol=1e-4)
    assert "those of the latent properties" in (tmp_path / "wide" / "README.md").read_text()
    assert "1 mlm + 1 mlsm" in (tmp_path / "plain" / "README.md").read_text()


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("nosuch@40", "nosuch@40: no finished model in .*; recipes there: phase1, phase2"),
        ("phase2@30", "phase2@30: no step '30'; phase2 keeps 20, 40"),
        ("phase2@", "phase2@: no step ''; phase2 keeps 20, 40"),
        ("phase2/r2@40", "phase2/r2@40: no finished replicate r2; there are r1"),
    ],
)
def test_what_cannot_be_exported_is_a_line(reference, said, results, tmp_path):
    with pytest.raises(MaskLabError, match=said):
        export(reference, tmp_path / "out", results)
    assert not (tmp_path / "out").exists()


def test_the_folder_that_one_is_in_is_no_new_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MaskLabError, match=r"^\.: exists; name a new folder$"):
        export("nosuch", ".")


def test_a_model_that_does_not_say_how_it_was_trained_is_not_exported(tmp_path):
    """As one that was grown from a folder made elsewhere."""
    (tmp_path / "big").mkdir()
    for name, said in (("config.json", "{}"), ("model.safetensors", ""), ("masklab.json", '{"grown": {"width": 2}}')):
        (tmp_path / "big" / name).write_text(said)
    with pytest.raises(MaskLabError, match="big: was made elsewhere; export is of models that were trained here"):
        export(str(tmp_path / "big"), tmp_path / "out")


def test_what_has_no_latent_logits_is_not_exported_with_them(results, tmp_path):
    with pytest.raises(MaskLabError, match="step-40: has no latent logits"):
        export("phase2@40", tmp_path / "out", results, full_width=True)
    assert not (tmp_path / "out").exists()


def test_the_command_says_what_it_wrote_and_overwrites_nothing(results, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(results.parent)
    assert main(["export", "phase2@20", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"
    assert main(["export", "phase2@20", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"masklab: {tmp_path / 'out'}: exists; name a new folder\n"
