"""Features replaced on a pseudo-language: on a model to which both forms are one, and under laws that agree or not."""

import numpy as np
import pyarrow as pa
import pytest
import torch

import masklab
from checked_run import items, run
from masklab import probes, symbols
from masklab.config.schema import Chains, Encoder, MarkovCorpus, PatternsTask, ReplacedProbe
from masklab.corpora import generate
from masklab.errors import MaskLabError
from masklab.files import read_table, write_json, write_table
from masklab.models.checkpoint import load_checkpoint, save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.phrases import COURSE, LAW, OTHERS, SYNONYMS, level, split
from masklab.phrases.distances import total_variation
from masklab.probes import Context
from masklab.probes.replaced import read_examples, template
from masklab.symbols import FIRST
from masklab.tasks import build, write_task
from masklab.tokenizers import CLS, MASK, SEP

SYNSETS, LENGTH = 8, 6
CHAINS = Chains(synsets=SYNSETS, copies=1)
PROBE = ReplacedProbe(
    kind="replaced", tasks=["t"], seeds=[1], sizes=[20, 40], pooling="mean", select="accuracy", lr=3e-3, batch_size=20,
    evaluate_every="epoch", patience=50, epochs=20, examples=60, spans=[1, 2], updates=[4, 16],
)  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """(task folder, model folder, token folders w/ DH and w/o); to the model both forms of a synset are one."""
    root = tmp_path_factory.mktemp("replaced")
    task = PatternsTask(
        kind="patterns",
        chains=CHAINS,
        length=LENGTH,
        patterns=3,
        set_size=2,
        balanced=True,
        train=40,
        valid=20,
        test=80,
    )
    write_task(root / "t", *build(task, "t", 1))
    tokens = {}
    for share in (1.0, 0.0):
        config = MarkovCorpus(
            kind="markov", chains=CHAINS, distributional=share, sequences=4, valid=2, test=2, length=LENGTH
        )
        table = generate(config, "c", 1)["test"]
        write_table(table, root / "test.parquet")
        tokens[share] = root / "tokens" / f"c{share}" / "symbols"
        write_json({"corpus": symbols.read_header(root / "test.parquet")}, tokens[share] / "meta.json")
    encoder = Encoder(positions="absolute", layers=2, hidden=32, heads=2, max_positions=16, init_range=0.3, dropout=0.0)
    model = MaskedLM(encoder, FIRST + 2 * SYNSETS, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        word = model.embeddings.word
        word[FIRST + SYNSETS :] = word[FIRST : FIRST + SYNSETS]
    save_checkpoint(model, root / "model" / "step-0", metadata={})
    return root / "t", root / "model" / "step-0", tokens


def context(world, share=1.0, **changes):
    folder, model, tokens = world
    given = {"probe": PROBE, "checkpoint": model, "tasks": {"t": folder}, "name": "p", "tokens": tokens[share]}
    return Context(**(given | changes))


def values(rows):
    return {
        (row["split"], row["metric"], row["train_size"], row.get("at")): row["value"] for row in rows if "value" in row
    }


@pytest.fixture(scope="module")
def rows(world):
    return probes.run(context(world))


def test_a_model_to_which_both_forms_are_one_minds_no_synonym(world):
    frozen = PROBE.model_copy(update={"lr": 1e-12})
    found = values(run(context(world, probe=frozen)))
    for count in (1, 2):
        for size in (20, 40):
            near, far = (split(level(count), part) for part in (SYNONYMS, OTHERS))
            for metric in ("tv_pretrained", "tv_finetuned"):
                assert found[near, metric, size, None] == pytest.approx(0, abs=1e-5)
                assert found[far, metric, size, None] > 0.005, metric
            assert found[level(count), "pearson", size, None] > 0.3
    assert found["A-D1", "accuracy", 40, None] == found["B-D1", "accuracy", 40, None]


def test_a_classifier_that_diverged_is_a_result_with_a_warning(world, caplog):
    probe = PROBE.model_copy(update={"lr": 1e30, "epochs": 2, "updates": [], "sizes": [20], "spans": [1]})
    found = values(run(context(world, probe=probe)))
    assert found[level(1), "tv_finetuned", 20, None] == found[level(1), "pearson", 20, None] == 0
    assert found["A-D1", "accuracy", 20, None] == found["A-D1", "majority", 20, None], "one answer to all"
    assert found[level(1), "tv_pretrained", 20, None] > 0
    assert any("logits that are no numbers: training has diverged" in line for line in caplog.messages)


def test_distances_are_those_of_the_template_and_of_the_law(world, rows):
    found, model = values(rows), load_checkpoint(world[1]).eval()

    def predicted(feature):
        ids = template(feature)
        assert ids == [CLS, *feature, MASK, SEP]
        logits = model(torch.tensor([ids]), torch.tensor([len(ids)])).logits[ids.index(MASK)]
        return logits.detach().double().softmax(-1).numpy()

    forms = [range(FIRST, FIRST + SYNSETS), range(FIRST + SYNSETS, FIRST + 2 * SYNSETS)]
    alone = np.array([[total_variation(predicted([a]), predicted([b])) for b in forms[1]] for a in forms[0]]).ravel()
    records = {row["split"]: row for row in items(rows) if row["train_size"] == 40}
    targets = np.array(records[level(1)]["targets"])
    assert np.abs(targets[:, None] - alone).min(1).max() < 1e-5 and len(set(targets)) > 10
    law = split(level(1), LAW)
    assert 0 < found[law, "tv_pretrained", 40, None] < 1 and 0 < found[level(1), "tv_from_law", 40, None] < 1
    # every row of a level is of the same replacements: under the law of w/ DH exactly the synonyms are 0 apart
    exact = np.array(records[law]["targets"])
    assert (exact == 0).sum() >= len(records[split(level(1), SYNONYMS)]["targets"])
    assert sorted(np.array(records[level(1)]["targets"])[exact == 0])[-1] < 1e-5


def test_without_the_property_the_law_keeps_both_forms_apart(world):
    found = values(run(context(world, share=0.0)))
    assert found[split(level(1), LAW), "tv_pretrained", 40, None] == 1
    assert (split(level(2), LAW), "pearson", 40, None) not in found  # stretches that its chain does not make


def test_a_checkpoint_by_itself_is_measured_without_a_law(world):
    settings = {"seeds": [1], "sizes": [20], "pooling": "mean", "batch_size": 20, "evaluate_every": "epoch"}
    found = masklab.measure(world[1], "replaced", task=world[0], epochs=1, examples=60, spans=[1], **settings)
    assert {level(1), split(level(1), SYNONYMS)} <= set(found["split"])
    assert split(level(1), LAW) not in set(found["split"]) and "tv_from_law" not in set(found["metric"])


def test_drawn_features_are_the_same_whatever_the_model(world, tmp_path):
    """The law's distance tells what was replaced by what, and knows no model."""
    encoder = load_checkpoint(world[1]).config
    other = MaskedLM(encoder, FIRST + 2 * SYNSETS, generator=torch.Generator().manual_seed(2))
    save_checkpoint(other, tmp_path / "other" / "step-0", metadata={})
    probe = PROBE.model_copy(update={"drawn": True, "sizes": [40], "updates": []})
    models = world[1], tmp_path / "other" / "step-0"
    found = [probes.run(context(world, probe=probe, checkpoint=model)) for model in models]
    one, two = ({row["split"]: row["targets"] for row in items(rows)} for rows in found)
    law, drawn = split(level(1), LAW), split(level(1, drawn=True), LAW)
    assert one[drawn] == two[drawn] and one[law] != two[law] and one[drawn] != one[law]
    plain = values(run(context(world, probe=probe.model_copy(update={"drawn": False}))))
    assert plain == {key: value for key, value in values(found[0]).items() if "drawn" not in key[0]}


def test_the_course_is_measured_where_it_was_asked(rows):
    found = values(rows)
    for size in (20, 40):
        at = {key[3] for key in found if key[0] == split(level(1), COURSE) and key[2] == size}
        assert at == {4.0, 16.0}
    course, last = (
        found[split(level(1), COURSE), "tv_finetuned", 40, 4.0], found[level(1), "tv_finetuned", 40, None],
    )  # fmt: skip
    assert course != last
    low, r, high = (found[level(1), metric, 40, None] for metric in ("pearson_low", "pearson", "pearson_high"))
    assert low < r < high


def test_resumes_with_what_was_kept(world, rows, tmp_path):
    state = tmp_path / "state"
    first = run(context(world, state_folder=state))
    (record,) = state.iterdir()
    before = record.stat().st_mtime_ns
    assert run(context(world, state_folder=state)) == first == [row for row in rows if "predictions" not in row]
    assert record.stat().st_mtime_ns == before


def test_a_fine_tuning_that_was_killed_midway_goes_on_where_it_was(world, rows, tmp_path, monkeypatch):
    """In the last size, after the others had been fine-tuned: their weights, and those on the way, are as they were."""
    monkeypatch.setattr("masklab.jobs.midway.EVERY", 0.0)
    state, told = tmp_path / "state", []

    def kill(done, total, note):
        told.append(done)
        if done > 0.9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(context(world, state_folder=state, progress=kill))
    assert len([*state.glob("*.safetensors")]) >= len(PROBE.sizes)
    done, told[:] = told[-1], []
    again = run(context(world, state_folder=state, progress=lambda *said: told.append(said[0])))
    assert again == [row for row in rows if "predictions" not in row]
    assert next(share for share in told if 0.8 < share < 1) == pytest.approx(done, abs=0.02)
    assert {file.suffix for file in state.iterdir()} == {".json"}


def test_examples_are_refused_in_a_line(world, tmp_path):
    test = world[0] / "test.parquet"
    texts = read_examples(test, PROBE)
    assert len(texts.ids) == 60 and all(len(row) == LENGTH for row in texts.ids)
    for own, other, synsets in zip(texts.ids, texts.other, texts.synsets, strict=True):
        assert [i - FIRST for i in own] == synsets and [i - FIRST - SYNSETS for i in other] == synsets
    with pytest.raises(MaskLabError, match="no row of domain 'C-D1'; domains: A-D1, B-D1, A-D2, B-D2"):
        read_examples(test, PROBE.model_copy(update={"domain": "C-D1"}))
    with pytest.raises(MaskLabError, match="A-D1 and A-D2 do not spell the same synsets"):
        read_examples(test, PROBE.model_copy(update={"synonyms": "A-D2"}))
    table = read_table(test)
    write_table(table.drop_columns(["units"]), tmp_path / "units.parquet")
    with pytest.raises(MaskLabError, match=r"units.parquet: has no column 'units'.*kind patterns"):
        read_examples(tmp_path / "units.parquet", PROBE)
    longer = pa.array([[*row, 1] for row in table["symbols"].to_pylist()], pa.list_(pa.uint16()))
    write_table(table.set_column(0, "symbols", longer), tmp_path / "several.parquet")
    with pytest.raises(MaskLabError, match="features of several tokens"):
        read_examples(tmp_path / "several.parquet", PROBE)
    with pytest.raises(MaskLabError, match=r"probes.p.spans: 7 is more synsets than a test sequence has"):
        run(context(world, probe=PROBE.model_copy(update={"spans": [7]})))
