"""From text to a causal model to its corpus and tasks in its words, through Hugging Face folders."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from masklab import symbols
from masklab.config import load
from masklab.config.schema import CausalCorpus, CausalModel, RestrictedLabels
from masklab.corpora import generate, laws
from masklab.corpora.causal.loading import load as load_causal
from masklab.corpora.causal.training import train
from masklab.errors import MaskLabError
from masklab.files import read_json, write_table
from masklab.tasks import build, write_task
from masklab.tokens import TokenStore

MODEL = CausalModel(corpus="c", tokenizer="t", layers=1, hidden=32, steps=80, batch_size=32, optimiser={"lr": 1e-2})

PAIRS = {"kind": "labels", "labels": 2, "names": [0, 1], "pair": True, "metric": "f1"}


def corpus(**keys):
    keys = {"vocabulary": 60, "length": 10, "sequences": 300, "valid": 20, "test": 200, "batch_size": 64, **keys}
    return CausalCorpus(kind="causal", causal="lm", **keys)


def trained(english, folder, config=MODEL):
    return train(config, "lm", 1, english / "tokens", english / "tokenizer", folder / "model", folder / "state")


@pytest.fixture(scope="module")
def causal(english, tmp_path_factory):
    """(folder of a trained model, what train returned)."""
    folder = tmp_path_factory.mktemp("causal")
    return folder / "model", trained(english, folder)


@pytest.fixture(scope="module")
def tables(causal):
    return generate(corpus(), "c", 1, model=causal[0])


def test_training_learns_and_leaves_a_hugging_face_folder(english, causal):
    """The validation loss is transformers' own, and below that of the unigram distribution."""
    folder, facts = causal
    model, tokenizer = load_causal(folder)
    store = TokenStore(english / "tokens", "valid")
    total = count = 0
    for row in range(len(store)):
        ids = store.batch([row])[0]
        with torch.no_grad():
            total += float(model(input_ids=ids, labels=ids).loss) * (ids.shape[1] - 1)
        count += ids.shape[1] - 1
    assert total / count == pytest.approx(facts["valid_loss"], abs=1e-4)
    shares = np.bincount(TokenStore(english / "tokens", "train").ids) / len(TokenStore(english / "tokens", "train").ids)
    assert facts["valid_loss"] < -(shares[shares > 0] * np.log(shares[shares > 0])).sum() - 0.3
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("[CLS]", "[SEP]")


def test_a_killed_run_goes_on_to_the_same_weights(english, causal, tmp_path, monkeypatch):
    from masklab.optim.flat import FlatParameters

    config = MODEL.model_copy(update={"save_minutes": 1e-9})
    step, calls = FlatParameters.step, []

    def dies(self, *args, **keys):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return step(self, *args, **keys)

    monkeypatch.setattr(FlatParameters, "step", dies)
    with pytest.raises(KeyboardInterrupt):
        trained(english, tmp_path, config)
    facts = trained(english, tmp_path, config)
    assert facts["weights"] == causal[1]["weights"] and len(calls) == 12 + MODEL.steps - 11
    assert not (tmp_path / "state/state.safetensors").exists()


def test_a_last_update_that_spoils_the_weights_is_an_error(english, tmp_path, monkeypatch):
    """Each loss is that of the weights before its update."""
    from masklab.optim.flat import FlatParameters

    step, calls = FlatParameters.step, []

    def spoils(self, *args, **keys):
        calls.append(1)
        if len(calls) == 3:
            self.gradient[5] = torch.inf
        return step(self, *args, **keys)

    monkeypatch.setattr(FlatParameters, "step", spoils)
    with pytest.raises(MaskLabError, match=r"causal_models\.lm: the validation loss is nan at the end"):
        trained(english, tmp_path, MODEL.model_copy(update={"steps": 3}))
    assert not (tmp_path / "model").exists()


def test_a_corpus_knows_its_law(causal, tables, tmp_path):
    """-log p(x) of the test sentences is the entropy in the facts; E[-log q(x_t)] = E[H(q)] on one word of each."""
    write_table(tables["test"], tmp_path / "t.parquet")
    facts = symbols.read_header(tmp_path / "t.parquet")
    values, lengths = symbols.rows(pq.read_table(tmp_path / "t.parquet")["symbols"])
    words = np.zeros((200, 10), np.int64)
    words[np.arange(10) < lengths[:, None]] = values
    law = laws.law_of(facts)
    assert law.symbols == 60 and len(set(facts["names"])) == 60 and 2 < facts["mean_length"] < 10
    assert -law.log_probability(words, lengths).mean() == pytest.approx(facts["sentence_entropy"], abs=1e-4)
    columns = np.random.default_rng(1).integers(lengths)
    found = law.conditionals_at(words, lengths, np.arange(200), columns)
    entropy = -(found * np.log(found)).sum(1)
    difference = -np.log(found[np.arange(200), words[np.arange(200), columns]]) - entropy
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(200)
    assert entropy.mean() < 0.9 * np.log(60)
    assert len(facts["examples"]) == 8 and all(facts["examples"])


def test_words_are_the_most_frequent_tokens(causal, tables):
    tokenizer = load_causal(causal[0])[1]
    named = tokenizer.convert_tokens_to_ids(symbols_of(tables)["names"])
    assert named == list(range(5, 65)) and symbols_of(tables)["law"]["end"] == 1
    counted = symbols_of(generate(corpus(frequency="sampled", counted=300), "c", 1, model=causal[0]))["law"]["ids"]
    assert len(set(counted)) == 60 and set(counted) != set(named) and min(counted) >= 5
    stop = tokenizer.convert_ids_to_tokens(int(counted[0]))
    ends = generate(corpus(stop=stop, frequency="sampled", counted=300), "c", 1, model=causal[0])["test"]
    for row in ends["symbols"].to_pylist():
        assert 0 not in row[:-1] and (row[-1] == 0 or len(row) == 10)
    with pytest.raises(MaskLabError, match=r"corpora.c.vocabulary: 5000 words, but lm has \d+"):
        generate(corpus(vocabulary=5000), "c", 1, model=causal[0])
    with pytest.raises(MaskLabError, match=r"corpora.c.stop: 'zzz' is not among the 60 words"):
        generate(corpus(stop="zzz"), "c", 1, model=causal[0])
    with pytest.raises(MaskLabError, match="no causal language model"):
        generate(corpus(), "c", 1, model=causal[0].parent / "nothing")


def test_weights_that_are_missing_or_broken_are_one_line(tmp_path):
    """transformers draws at random what a file lacks, and only warns: the words would be those of nothing."""
    from safetensors.torch import load_file, save_file
    from transformers import OPTConfig, OPTForCausalLM

    sizes = {"hidden_size": 8, "ffn_dim": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = OPTConfig(vocab_size=20, max_position_embeddings=16, word_embed_proj_dim=8, **sizes)
    OPTForCausalLM(config).save_pretrained(tmp_path)
    assert load_causal(tmp_path)[0].lm_head.weight.shape == (20, 8)  # tied, and so in no file
    file, name = tmp_path / "model.safetensors", "model.decoder.layers.0.fc1.weight"
    save_file({key: tensor for key, tensor in load_file(file).items() if key != name}, file, {"format": "pt"})
    with pytest.raises(MaskLabError, match=f"{tmp_path.name}: has no weights for {name} of its OPTForCausalLM$"):
        load_causal(tmp_path)
    file.write_bytes(b"broken")
    with pytest.raises(MaskLabError, match=f"{tmp_path.name}: no causal language model"):
        load_causal(tmp_path)


def test_any_hugging_face_folder_will_do(english, tmp_path):
    """A GPT-2 with byte-level BPE, whose words know of the space before them; sentences end in a full stop."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    texts = pq.read_table(english / "corpora/train.parquet")["text"].to_pylist()
    bytes_ = ByteLevelBPETokenizer()
    bytes_.train_from_iterator(texts, 400, special_tokens=["<|endoftext|>"])
    roles = dict.fromkeys(("bos_token", "eos_token"), "<|endoftext|>")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytes_._tokenizer, **roles)
    tokenizer.save_pretrained(tmp_path / "gpt2")
    sizes = {"vocab_size": 410, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16}
    GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)).save_pretrained(tmp_path / "gpt2")
    config = CausalCorpus(kind="causal", causal=str(tmp_path / "gpt2"), vocabulary=300, stop=".", length=12,
                          sequences=20, valid=5, test=20)  # fmt: skip
    facts = symbols_of(made := generate(config, "c", 1))
    assert facts["law"]["ids"] == list(range(1, 301)) and facts["law"]["start"] == 0
    write_table(made["test"], tmp_path / "c.parquet")
    numbers = {token: symbol for symbol, token in enumerate(facts["law"]["ids"])}
    task = RestrictedLabels(kind="restricted-labels", task="t", corpus="c")
    frame = pd.DataFrame({"text_a": texts[:9], "text_b": texts[9:18], "label": [0, 1, 0] * 3})
    write_task(tmp_path / "t", dict.fromkeys(("train", "valid", "test"), frame), PAIRS)
    splits, _ = build(
        task.model_copy(update={"length": 99}), "r", 1, task=tmp_path / "t", corpus=tmp_path / "c.parquet"
    )
    for row, a, b in zip(splits["test"]["symbols"].to_pylist(), frame["text_a"], frame["text_b"], strict=True):
        assert row == [numbers[token] for token in tokenizer(f"{a} {b}")["input_ids"] if token in numbers]


def symbols_of(tables):
    import json

    return json.loads(tables["train"].schema.metadata[b"masklab"])


def test_a_killed_corpus_goes_on(causal, tables, tmp_path, monkeypatch):
    """Parts that were drawn are read, not drawn again; the corpus is the same; nothing is left."""
    import masklab.corpora.causal as module

    monkeypatch.setattr(module, "CHUNK", 128)
    whole = generate(corpus(), "c", 1, model=causal[0])
    draw, calls = module._draw, []

    def dies(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return draw(*args)

    monkeypatch.setattr(module, "_draw", dies)
    with pytest.raises(KeyboardInterrupt):
        generate(corpus(), "c", 1, model=causal[0], state_folder=tmp_path)
    assert len(list(tmp_path.glob("*.npz"))) == 2
    again = generate(corpus(), "c", 1, model=causal[0], state_folder=tmp_path)
    assert all(again[split].equals(whole[split]) for split in whole) and len(calls) == 7  # of six parts one died
    (tmp_path / "test-128.npz").write_bytes((tmp_path / "test-128.npz").read_bytes()[:-99])
    once_more = generate(corpus(), "c", 1, model=causal[0], state_folder=tmp_path)
    assert all(once_more[split].equals(whole[split]) for split in whole) and len(calls) == 8  # one was broken
    assert whole["valid"].equals(tables["valid"])  # one part of each split, at its own address


def test_other_weights_are_another_law(english, causal, tables, tmp_path):
    facts = symbols_of(tables)
    trained(english, tmp_path, MODEL.model_copy(update={"seed": 2, "steps": 1}))
    moved = facts | {"law": facts["law"] | {"model": str(tmp_path / "model")}}
    with pytest.raises(MaskLabError, match="its weights are not those that the corpus was drawn from"):
        laws.law_of(moved)
    with pytest.raises(MaskLabError, match="/gone: no such folder"):
        laws.law_of(facts | {"law": facts["law"] | {"model": str(tmp_path / "gone")}})


@pytest.fixture
def texts(tmp_path):
    """Folder of a task of pairs."""
    frame = pd.DataFrame({"text_a": ["the dog sleeps", "zzqx"], "text_b": ["a cat ran zzqx often", "qqzx"]})
    frame["label"] = [1, 0]
    write_task(tmp_path / "task", dict.fromkeys(("train", "valid", "test"), frame), PAIRS)
    return tmp_path / "task"


@pytest.mark.parametrize("unknown", ["drop", "unk"])
def test_tasks_in_the_words_of_a_corpus(causal, tables, tmp_path, texts, unknown):
    """Against tokenising the joined text by hand; a row of unknown tokens alone is left out where they are dropped."""
    write_table(tables["test"], tmp_path / "c.parquet")
    config = RestrictedLabels(kind="restricted-labels", task="t", corpus="c", unknown=unknown)
    splits, facts = build(config, "r", 1, task=texts, corpus=tmp_path / "c.parquet")
    tokenizer = load_causal(causal[0])[1]
    ids = tokenizer("the dog sleeps a cat ran zzqx often", add_special_tokens=False)["input_ids"]
    named = [token - 5 if 5 <= token < 65 else symbols.UNKNOWN for token in ids]
    wanted = named if unknown == "unk" else [symbol for symbol in named if symbol != symbols.UNKNOWN]
    found = splits["train"]["symbols"].to_pylist()[0]
    assert len(found) <= 10 and (found == wanted or (len(wanted) > 10 and set(found) <= set(wanted)))
    assert facts["metric"] == "f1" and not facts["pair"] and 0 < facts["kept"]["train"] < 1
    assert splits["train"]["label"].to_pylist() == ([1, 0] if facts["empty"]["train"] == 0 else [1])
    short = config.model_copy(update={"length": 3})
    assert len(build(short, "r", 1, task=texts, corpus=tmp_path / "c.parquet")[0]["test"]["symbols"][0]) == 3
    write_task(tmp_path / "r", splits, facts)
    from masklab.tasks.encoding import encode_split

    split = encode_split(tmp_path / "r/train.parquet", None, 20, vocab_size=65)
    assert split.ids[0, 1 : 1 + len(found)].tolist() == [2 if s == symbols.UNKNOWN else s + 5 for s in found]


def test_domains_stay(causal, tables, tmp_path):
    """Of MNLI's test split, whose two development sets are measured apart; rows without a known word go."""
    write_table(tables["test"], tmp_path / "c.parquet")
    frame = pd.DataFrame({"text_a": ["the dog", "zzqx", "a cat"], "text_b": ["a cat", "qqzx", "the dog"]})
    frame["label"], frame["domain"] = [1, 0, 0], ["matched", "matched", "mismatched"]
    write_task(tmp_path / "task", {"train": frame.drop(columns="domain"), "valid": frame, "test": frame}, PAIRS)
    config = RestrictedLabels(kind="restricted-labels", task="t", corpus="c")
    splits, facts = build(config, "r", 1, task=tmp_path / "task", corpus=tmp_path / "c.parquet")
    kept = [domain for at, domain in enumerate(frame["domain"]) if at != 1 or not facts["empty"]["test"]]
    assert splits["test"]["domain"].to_pylist() == kept and "domain" not in splits["train"].column_names


def test_names_and_kinds_are_checked_first():
    base = {
        "corpora": {
            "text": {"kind": "english", "sentences": 10},
            "one": {"kind": "causal", "causal": "lm", "vocabulary": 50},
            "two": {"kind": "causal", "causal": "lm", "vocabulary": 60},
            "opt": {"kind": "causal", "causal": "facebook/opt-125m"},
        },
        "tokenizers": {"text": {"corpus": "text"}, "one": {"kind": "symbols", "corpus": "one"}},
        "causal_models": {"lm": {"corpus": "text", "tokenizer": "text", "steps": 1}},
        "encoders": {
            "tiny": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 600},
            "table": {"kind": "lookup", "max_positions": 600},
        },
        "objectives": {"mlm": {"mlm": 1}},
        "models": {
            "m": {"corpus": "one", "tokenizer": "one", "encoder": "tiny", "objective": "mlm", "steps": 1},
            "known": {"corpus": "one", "tokenizer": "one", "encoder": "table", "objective": "mlm", "steps": 0},
        },
        "tasks": {
            "text": {"kind": "english-labels", "recipe": "sentiment"},
            "one": {"kind": "restricted-labels", "task": "text", "corpus": "one"},
            "two": {"kind": "restricted-labels", "task": "text", "corpus": "two"},
        },
        "probes": {"p": {"kind": "finetune", "tasks": ["one"]}, "linear": {"kind": "linear_probe", "tasks": ["one"]}},
        "studies": {"s": {"panels": {"all": ["m", "known"]}, "probes": {"p": ["m"], "linear": "all"}}},
    }
    assert load(base).corpora["opt"].vocabulary == 2000
    for task in ("sst2", "mnli", "stsb"):
        base["tasks"][task] = {"kind": "glue", "task": task}
        base["tasks"]["rating" if task == "stsb" else f"{task}-one"] = base["tasks"]["one"] | {"task": task}
    with pytest.raises(MaskLabError, match=r"^config: tasks\.rating\.task: 'stsb' is not a labelled task of texts"):
        load(base)
    del base["tasks"]["rating"]
    assert load(base).tasks["mnli-one"].task == "mnli"

    def fault(section, name, **keys):
        return load(base | {section: base[section] | {name: base[section][name] | keys}})

    for change, match in [
        (("corpora", "one", {"causal": "ml"}), r"corpora\.one\.causal: 'ml' is not declared"),
        (("corpora", "one", {"length": 3, "shortest": 4}), r"shortest: 4 is above length \(3\)"),
        (("causal_models", "lm", {"corpus": "two"}), r"causal_models\.lm\.corpus: 'two' has no text"),
        (("causal_models", "lm", {"hidden": 65}), r"hidden: 65 is not a multiple of heads"),
        (("tasks", "one", {"corpus": "text"}), r"tasks\.one\.corpus: 'text' is not of kind 'causal'"),
        (("tasks", "one", {"task": "two"}), r"tasks\.one\.task: 'two' is not a labelled task of texts"),
        (("tasks", "one", {"unknown": "unk"}), "lookup table 'known' knows nothing of <unk>, which 'one' holds"),
        (("probes", "p", {"tasks": ["two"]}), "task 'two' is of another law than model 'm' reads"),
        (("models", "m", {"corpus": "two"}), "'one' names the symbols of another law than 'two' has"),
    ]:
        with pytest.raises(MaskLabError, match=match):
            fault(change[0], change[1], **change[2])
    # words that are counted in what each replicate draws for itself are others than those that all share
    words = {"kind": "causal", "causal": "lm", "vocabulary": 50, "frequency": "sampled"}
    alike = base | {"probes": base["probes"] | {"p": {"kind": "finetune", "tasks": ["two"]}}}
    load(alike | {"corpora": base["corpora"] | {"one": words, "two": words}})
    with pytest.raises(MaskLabError, match="task 'two' is of another law than model 'm' reads"):
        load(alike | {"corpora": base["corpora"] | {"one": words, "two": words | {"redraw": True}}})


def test_manifest_facts_are_plain(causal, tmp_path):
    from masklab.files import write_json

    write_json(causal[1], tmp_path / "m.json")
    assert read_json(tmp_path / "m.json")["config"]["steps"] == 80
