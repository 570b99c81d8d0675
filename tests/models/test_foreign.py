"""Models of transformers that have no place in our encoder: read as they are, measured by every probe."""

import json

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import transformers
from test_adopt import NAMES, ROLES, TEXTS, trained

from masklab import notebook
from masklab.config import load
from masklab.corpora.causal.loading import load as load_causal
from masklab.corpora.causal.loading import load_tokenizer as load_causal_tokenizer
from masklab.errors import MaskLabError
from masklab.files import read_json
from masklab.foreign_tokenizers import renumbered
from masklab.models.adopt import adopt
from masklab.models.checkpoint import load_checkpoint
from masklab.models.foreign import ForeignMaskedLM
from masklab.phrases.translation import Translator
from masklab.probes.folder import read_foreign
from masklab.probes.minimal_pairs import pseudo_log_likelihood
from masklab.tokenizers import load_tokenizer

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
LINES = [f"the old cat number {n} sees dogs far from here, today a teacher runs" for n in range(50)]
MODELS = {
    "Roberta": {},
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
                  "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True, "type_vocab_size": 0,
                  "max_position_embeddings": 64},
    "ModernBert": {"max_position_embeddings": 64, "global_attn_every_n_layers": 2, "local_attention": 8},
    "Electra": {"embedding_size": 8, "max_position_embeddings": 64},
    "Longformer": {"attention_window": 4},
    "DistilBert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 64},
    "XLM": {"emb_dim": 16, "n_layers": 2, "n_heads": 2, "max_position_embeddings": 64, "embed_init_std": 0.5,
            "init_std": 0.3},
}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def foreign(request, tmp_path_factory):
    """(folder, model, tokenizer) of a random model with spread-out logits."""
    tokenizer = trained("byte pairs" if request.param == "Roberta" else "word pieces", LINES)
    sizes = {} if request.param in ("DistilBert", "XLM") else SIZES
    tokens = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id") for role in ("pad", "cls", "sep")}
    more = dict(MODELS[request.param])
    if request.param in ("Roberta", "Longformer"):  # whose positions begin after the number of padding
        more["max_position_embeddings"] = 64 + tokens["pad_token_id"] + 1
    config = getattr(transformers, f"{request.param}Config")(
        vocab_size=len(tokenizer) + 3, initializer_range=0.3, **tokens, **sizes, **more
    )
    torch.manual_seed(1)
    model = transformers.AutoModelForMaskedLM.from_config(config).eval()
    folder = tmp_path_factory.mktemp("foreign") / request.param.lower()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model, tokenizer


@pytest.fixture(scope="module")
def adopted(foreign, tmp_path_factory):
    output = tmp_path_factory.mktemp("adopted") / "step-0"
    adopt(foreign[0], output)
    return output


def numbering(tokenizer, read):
    """The model's own ids, and ours, of every token."""
    new = {old: read.token_to_id(text) for text, old in tokenizer.get_vocab().items() if text not in NAMES.values()}
    new |= {tokenizer.convert_tokens_to_ids(NAMES[role]): at for at, role in enumerate(ROLES)}
    return map(list, zip(*new.items(), strict=True))


@torch.no_grad()
def test_it_predicts_what_transformers_does_in_a_padded_batch(foreign, adopted):
    _, model, tokenizer = foreign
    ours, read = load_checkpoint(adopted).eval(), load_tokenizer(adopted)
    assert isinstance(ours, ForeignMaskedLM)
    encoded = [read.encode(text).ids for text in TEXTS]
    width = max(map(len, encoded))
    ids = torch.tensor([[*row, *[3] * (width - len(row))] for row in encoded])
    lengths = torch.tensor([len(row) for row in encoded])
    at = torch.tensor([row * width + place for row, place in ((0, 1), (0, 3), (1, 2), (2, 3))])
    found, whole = ours(ids, lengths, at=at, hidden=1), ours(ids, lengths)
    before = tokenizer(TEXTS, return_tensors="pt", padding=True)
    theirs = model(input_ids=before["input_ids"], attention_mask=before["attention_mask"], output_hidden_states=True)
    old, new = numbering(tokenizer, read)
    wanted = theirs.logits.flatten(0, 1)
    assert wanted.std() > 0.2
    torch.testing.assert_close(found.logits[:, new], wanted[at][:, old], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(whole.logits[at], found.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.hidden, theirs.hidden_states[1].flatten(0, 1)[at], atol=1e-4, rtol=1e-4)
    last = list(ours.states(ids, lengths))
    assert len(last) == 3
    torch.testing.assert_close(ours.encode(ids, lengths, at=at), last[-1][at])
    torch.testing.assert_close(ours.encode(ids, lengths, layer=1).flatten(0, 1), last[1])


@torch.no_grad()
def test_it_reads_as_many_tokens_as_it_has_positions(adopted):
    ours = load_checkpoint(adopted).eval()
    assert ours.config.max_positions == 64
    found = ours(torch.full((1, 64), 9), torch.tensor([64]), at=torch.tensor([0, 63]))
    assert found.logits.isfinite().all()


@torch.no_grad()
def test_pseudo_log_likelihoods_equal_a_plain_loop(foreign, adopted):
    _, model, tokenizer = foreign
    texts = [*LINES[:4], "a teacher sees the old cat", "zzz far"]
    ours = pseudo_log_likelihood(load_checkpoint(adopted), load_tokenizer(adopted), texts)
    theirs = []
    for text in texts:
        ids, total = tokenizer(text)["input_ids"], 0.0
        for place in range(1, len(ids) - 1):
            masked = torch.tensor([ids])
            masked[0, place] = tokenizer.mask_token_id
            total += model(input_ids=masked).logits[0, place].log_softmax(-1)[ids[place]].item()
        theirs.append(total)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_every_probe_measures_it(foreign, tmp_path):
    folder = foreign[0]
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    rows = [{"sentence": line, "label": n % 2} for n, line in enumerate(LINES)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pairs = [{"sentence_good": line, "sentence_bad": line.replace("sees", "see")} for line in LINES[:6]]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
    file = str(tmp_path / "rows.jsonl")
    labels = {"t": {"kind": "label-files", "train": file, "valid": file}}
    quick = {"epochs": 1, "seeds": [1]}
    text = {"text": tmp_path / "lines.txt"}
    asked = {
        "minimal_pairs": {"task": {"p": {"kind": "pair-files", "files": [str(tmp_path / "pairs.jsonl")]}}},
        "finetune": {"task": labels, "lr": 1e-3, "evaluate_every": 2, **quick},
        "linear_probe": {"task": labels, **quick},
        "prediction": {"sentence": "the old [MASK] sees dogs"},
        "loss": text,
        "rank": text,
        "curvature": {**text, "sentences": 16, "repeats": 1},
        "landscape": {**text, "sentences": 8, "directions": 1, "gradients": 2, "points": 3},
    }
    for probe, settings in asked.items():
        found = notebook.measure(folder, probe, device="cpu", **settings)
        assert len(found) and set(found["recipe"]) == {folder.name}, probe
        assert np.isfinite(found["value"]).all(), probe


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        ("curvature", "only an encoder of ours without a decoder is known in a larger width"),
        ("landscape", "grow: a model of an architecture that is not ours does not grow"),
    ],
)
def test_nothing_is_said_of_it_in_another_width(foreign, tmp_path, probe, said):
    """How its parameters would have to be written is not known."""
    (tmp_path / "lines.txt").write_text("\n".join(LINES))
    with pytest.raises(MaskLabError, match=said):
        notebook.measure(foreign[0], probe, device="cpu", text=tmp_path / "lines.txt", sentences=8, width=32)


def test_fine_tuning_leaves_the_head_of_the_language_model_out(adopted):
    from masklab.probes.classifier import Classifier

    model = load_checkpoint(adopted)
    names = Classifier(model, 2).used_parameters()
    assert not [name for name in names if ".head." in name] and len(names) > 15
    assert sum(p.numel() for p in names.values()) < sum(p.numel() for p in model.parameters()) + 2000


def test_its_classifiers_have_the_activation_of_their_architecture(foreign, adopted):
    """In transformers, too: ELECTRA, DeBERTa and ModernBERT a gelu where BERT and RoBERTa have a tanh."""
    from masklab.probes.classifier import Classifier

    kind = foreign[1].config.model_type
    gelu = kind in ("deberta-v2", "electra", "modernbert")
    assert Classifier(load_checkpoint(adopted), 2).activation is (F.gelu if gelu else torch.tanh)
    encoder = load(config_of(foreign[0])).encoders["adopted.theirs"]
    assert encoder.positions == ("disentangled" if kind == "deberta-v2" else "absolute")


# --- in a config ----------------------------------------------------------------


def config_of(folder, **more):
    corpora = {"c": {"kind": "text", "files": ["lines.txt"]}}
    models = {"theirs": {"folder": str(folder), "corpus": "c", **more}}
    return {"corpora": corpora, "models": models}


def test_a_recipe_is_a_folder(foreign):
    folder = foreign[0]
    config = load(config_of(folder))
    model = config.models["theirs"]
    assert (model.steps, model.tokenizer, model.encoder) == (0, "adopted.theirs", "adopted.theirs")
    encoder, tokenizer = config.encoders["adopted.theirs"], config.tokenizers["adopted.theirs"]
    assert (encoder.kind, encoder.hidden, encoder.layers, encoder.max_positions) == ("folder", 16, 2, 64)
    assert tokenizer.kind == "folder" and tokenizer.max_length == 64
    assert load(config_of(folder, tokenizer="own") | {"tokenizers": {"own": {"corpus": "c", "max_length": 60}}})


def test_the_run_of_a_folder_leaves_what_any_run_leaves(foreign, tmp_path):
    from masklab.config.schema import EnglishCorpus
    from masklab.corpora import generate
    from masklab.foreign_tokenizers import renumbered
    from masklab.tokenizers import save_tokenizer
    from masklab.tokens import write_tokens
    from masklab.training.launch import launch
    from masklab.training.run import Run

    config = load(config_of(foreign[0]))
    model = config.models["theirs"]
    tokenizer, _ = renumbered(foreign[0])
    save_tokenizer(tokenizer, tmp_path / "tokenizer", 64)
    for split, table in generate(EnglishCorpus(kind="english", sentences=50, valid=20, test=20), "c", 1).items():
        write_tokens(table["text"], tokenizer, 64, tmp_path / "tokens", split)
    run = Run(
        name="theirs", seed=1, model=model, encoder=config.encoders[model.encoder],
        objective=config.objectives[model.objective], tokens=tmp_path / "tokens", tokenizer=tmp_path / "tokenizer",
        output=tmp_path / "models", state=tmp_path / "state",
    )  # fmt: skip
    launch(run)
    made = read_json(tmp_path / "models" / "step-0" / "masklab.json")
    assert made["model"] == "theirs" and made["step"] == 0 and made["adopted"] == str(foreign[0].resolve())
    manifest, left = read_json(tmp_path / "models" / "manifest.json"), load_checkpoint(tmp_path / "models" / "step-0")
    assert list(manifest["steps"]) == ["0"] and isinstance(left, ForeignMaskedLM)
    assert manifest["facts"]["parameters"] == sum(parameter.numel() for parameter in left.parameters()) > 0


def test_names_are_looked_up_in_the_cache(foreign, tmp_path, monkeypatch):
    from huggingface_hub import constants

    cache = tmp_path / "models--someone--small"
    (cache / "snapshots").mkdir(parents=True)
    (cache / "refs").mkdir()
    (cache / "refs" / "main").write_text("abc")
    (cache / "snapshots" / "abc").symlink_to(foreign[0])
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    config = load(config_of("someone/small"))
    assert config.encoders["adopted.theirs"].folder.endswith("snapshots/abc")
    with pytest.raises(MaskLabError, match=r"models.theirs.folder: 'someone/other' is no folder and not in Hugging"):
        load(config_of("someone/other"))


def test_what_is_no_masked_language_model_is_said_in_a_line(foreign, tmp_path):
    _, model, tokenizer = foreign
    plain = type(model.base_model)(model.config)
    plain.save_pretrained(tmp_path / "plain")
    tokenizer.save_pretrained(tmp_path / "plain")
    with pytest.raises(MaskLabError, match="is no masked language model: it has no weights for"):
        adopt(tmp_path / "plain", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    with pytest.raises(MaskLabError, match=r"models.theirs.folder: .* holds no config.json"):
        load(config_of(tmp_path / "empty"))
    (tmp_path / "empty" / "config.json").write_text("{}")
    with pytest.raises(MaskLabError, match=r"config.json: has no hidden_size; it must be an encoder's"):
        load(config_of(tmp_path / "empty"))
    assert not (tmp_path / "out").exists()


READERS = {
    "a masked language model": lambda folder: adopt(folder, folder.parent / "out"),
    "its tokenizer": renumbered,
    "any encoder": lambda folder: read_foreign(folder, 64),
    "a translator": Translator,
    "a causal model": load_causal,
    "its own tokenizer": load_causal_tokenizer,
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_code_of_a_folder_runs_whatever_is_answered(read, tmp_path, monkeypatch):
    """transformers asks whoever sits at the terminal, and waits: nobody is to be asked."""
    (folder := tmp_path / "odd").mkdir()
    classes = ("AutoConfig", "AutoModel", "AutoModelForMaskedLM", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM")
    config = {"model_type": "odd", "auto_map": dict.fromkeys(classes, "odd.Odd")}
    (folder / "config.json").write_text(json.dumps(config))
    words = {"tokenizer_class": "Odd", "auto_map": {"AutoTokenizer": ["odd.Odd", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    (folder / "odd.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (folder / "model.safetensors").touch()
    asked = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "y")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    with pytest.raises(MaskLabError, match="custom code"):
        read(folder)
    assert not asked and not (tmp_path / "ran").exists()


def test_it_is_not_trained(foreign):
    for more, said in (({"steps": 5}, "steps: a model made elsewhere is not trained"),
                       ({"init": "theirs@0"}, "init: a model made elsewhere takes none")):  # fmt: skip
        with pytest.raises(MaskLabError, match=said):
            load(config_of(foreign[0], **more))


def test_it_teaches(adopted):
    """Its predictions, and codes of its states, for a recipe with its tokenizer."""
    from types import SimpleNamespace

    from masklab.objectives.teacher import Teacher

    model, read = load_checkpoint(adopted), load_tokenizer(adopted)
    ids = torch.tensor([read.encode(LINES[0]).ids])
    lengths, at = torch.tensor([ids.shape[1]]), torch.tensor([2, 5])
    batch = SimpleNamespace(original=ids, ids=ids, lengths=lengths, at=at, extra={})
    dictionary = torch.nn.functional.normalize(torch.randn(16, 24, generator=torch.Generator().manual_seed(0)), dim=0)
    teacher = Teacher(model, dictionary, layer=1, penalty=0.05)
    wanted = model.eval()(ids, lengths)
    torch.testing.assert_close(teacher.logits(batch), wanted.logits[at], atol=1e-4, rtol=1e-4)
    indices, values = teacher.codes(batch)
    assert len(indices) == 2 and torch.allclose(values.sum(-1), torch.ones(2), atol=1e-5)
