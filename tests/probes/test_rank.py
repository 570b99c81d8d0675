"""Effective ranks of hidden states: by the probe, by hand, and of any folder on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
import transformers

from checked_run import run
from masklab import symbols
from masklab.cli import main
from masklab.config.schema import Encoder, HiddenMarkov, HmmCorpus, Masking, RankProbe
from masklab.corpora import generate
from masklab.corpora.laws import law_of
from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.masking import mask_batch
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import Context
from masklab.probes import rank as rank_probe
from masklab.probes.folder import folder_ranks, read_own
from masklab.rng import generator
from masklab.tokenizers import CLS, MASK, SEP
from masklab.tokens import TokenStore, write_symbol_tokens
from test_spectrum import by_svd

SIZES = {"layers": 2, "hidden": 24, "heads": 2, "max_positions": 40, "init_range": 0.3}
FORMS = {"bert": {"positions": "absolute"}, "pre": {"positions": "relative", "norm": "pre", "decoder": {"layers": 1}}}


def folder(english, path, form):
    model = MaskedLM(Encoder(**SIZES | FORMS[form]), 500, generator=torch.Generator().manual_seed(1)).eval()
    save_checkpoint(model, path, tokenizer_folder=english / "tokenizer", metadata={})
    return model


def word_inputs(ids, lengths, shown):
    """The masked sequences with a word from some place of them where each [MASK] is, all drawn at once."""
    inner = (np.arange(ids.shape[1]) > 0) & (np.arange(ids.shape[1]) < lengths[:, None] - 1)
    drawn = shown.copy()
    drawn[shown == MASK] = generator(1, "r", "words").choice(ids[inner], size=int((shown == MASK).sum()))
    return torch.from_numpy(drawn)


def by_projection(rows, of, threshold=0.99):
    """Share of the squared norm of rows outside the first singular vectors of another matrix, the last one in part."""
    _, sigma, directions = np.linalg.svd(of, full_matrices=False)
    sums = np.cumsum(sigma**2) / (sigma**2).sum()
    whole = int(np.argmax(sums >= threshold))
    part = (threshold - (sums[whole - 1] if whole else 0)) / (sums[whole] - (sums[whole - 1] if whole else 0))
    along = ((rows @ directions.T) ** 2).sum(0)
    return 1 - (along[:whole].sum() + part * along[whole]) / (rows**2).sum()


@torch.no_grad()
@pytest.mark.parametrize("form", FORMS)
def test_probe_equals_svd_of_held_states(english, tmp_path, form):
    """Every layer, every split, with and without specials: states held in memory, one sequence at a time."""
    model = folder(english, tmp_path / "m", form)
    store = TokenStore(english / "tokens", "test")
    for specials in (False, True):
        masking = Masking(count="rounded", rate=0.3)
        probe = RankProbe(kind="rank", sequences=40, batch_size=40, specials=specials, masking=masking)
        rows = run(Context(probe, tmp_path / "m", tokens=english / "tokens", name="r"))
        picked = np.linspace(0, len(store) - 1, 40).astype(int)
        picked = picked[np.argsort(store.lengths[picked], kind="stable")]
        ids, lengths = store.batch(picked)
        rng = generator(1, "r", "masks")
        shown, row, _ = mask_batch(ids.numpy(), lengths.numpy(), masking, 500, rng)
        words, held, halves = word_inputs(ids.numpy(), lengths.numpy(), shown), {}, {}
        for i, length in enumerate(lengths.tolist()):
            skip = 0 if specials else 1
            hides = (torch.from_numpy(shown[i]) == MASK)[:length].numpy()[skip : length - skip]
            for split, source in (("unmasked", ids[i]), ("masked", torch.from_numpy(shown[i])),
                                  ("with-words", words[i])):  # fmt: skip
                tokens = source[:length]
                for layer in range(3):
                    states = model.encode(tokens[None], torch.tensor([length]), layer)[0].double().numpy()
                    inner = slice(skip, length - skip)
                    held.setdefault((split, layer), []).append(states[inner])
                    places = {"unmasked": "hidden-words", "masked": "mask-positions", "with-words": "random-words"}
                    halves.setdefault((places[split], layer, i % 2), []).append(states[inner][hides])
                    base = states[inner] if split == "unmasked" else states[inner][~hides]
                    halves.setdefault((split, layer, i % 2), []).append(base)
                    if split == "masked":
                        masked = (tokens == MASK).numpy()[inner]
                        held.setdefault(("mask-positions", layer), []).append(states[inner][masked])
                        held.setdefault(("real-positions", layer), []).append(states[inner][~masked])
                    if split == "with-words":
                        held.setdefault(("beside-words", layer), []).append(states[inner][~hides])
        held = {key: np.concatenate(parts) for key, parts in held.items()}
        halves = {key: np.concatenate(parts) for key, parts in halves.items()}
        assert len(rows) == 6 * 3 * 7 + 3 * 3 * 2 and len(held["mask-positions", 0]) == len(row) > 100
        for found in rows:
            if found["metric"].startswith("outside"):
                base = "unmasked" if found["metric"] == "outside" else "masked"
                layer, split = found["layer"], found["split"]
                truth = np.mean([by_projection(halves[split, layer, h], halves[base, layer, 1 - h]) for h in (0, 1)])
                assert found["value"] == pytest.approx(truth, abs=1e-6) and found["n"] == len(row), found
                continue
            matrix = held[found["split"], found["layer"]]
            assert found["n"] == len(matrix) and found["task"] == english.name
            if found["metric"] == "mean_share":
                truth = len(matrix) * (matrix.mean(0) ** 2).sum() / (matrix**2).sum()
                assert found["value"] == pytest.approx(truth, rel=1e-5)
            else:
                matrix = matrix - matrix.mean(0) if found["metric"].endswith("centred") else matrix
                form = found["metric"].removesuffix("_centred")
                if form == "rank":
                    assert found["value"] == by_svd(matrix), found
                elif form == "rank_interpolated":
                    assert by_svd(matrix) - 1 < found["value"] <= by_svd(matrix), found
                else:
                    shares = np.linalg.svd(matrix, compute_uv=False) ** 2 / (matrix**2).sum()
                    entropy = -(shares * np.log(np.maximum(shares, 1e-300))).sum()
                    assert found["value"] == pytest.approx(np.exp(entropy), rel=1e-4), found


@torch.no_grad()
@pytest.mark.parametrize("form", FORMS)
def test_states_of_all_layers_are_those_of_each(form):
    model = MaskedLM(Encoder(**SIZES | FORMS[form]), 50).eval()
    ids, lengths = torch.randint(5, 50, (3, 9)), torch.tensor([9, 4, 7])
    real = (torch.arange(9) < lengths[:, None]).flatten()
    for layer, states in enumerate(model.states(ids, lengths)):
        truth = model.encode(ids, lengths, layer).flatten(0, 1)
        torch.testing.assert_close(states[real], truth[real], atol=1e-6, rtol=1e-5)
    assert layer == 2


CHAIN = {"symbols": 20, "states": 20, "blocks": 1}
ONE = RankProbe(kind="rank", sequences=150, masking=Masking(count="one"))


def law_folder(path, **law):
    """Tokens of 200 sentences of 6 words of a hidden Markov model, and the checkpoint of some model of them."""
    corpus = HmmCorpus(kind="hmm", hmm=HiddenMarkov(**CHAIN | law), sequences=2, valid=2, test=200, length=6)
    table = generate(corpus, "c", 1)["test"]
    write_table(table, path / "test.parquet")
    write_symbol_tokens(table["symbols"], 25, 8, path / "tokens", "test", symbols.read_header(path / "test.parquet"))
    model = MaskedLM(Encoder(**SIZES | {"positions": "relative", "head": "linear"}), 25).eval()
    save_checkpoint(model, path / "m", metadata={})
    return Context(ONE, path / "m", tokens=path / "tokens", name="r")


@pytest.mark.parametrize("log_rank", [2, 8])
def test_t_is_that_of_the_masks_themselves(tmp_path, log_rank):
    """One [MASK] a sentence, so that T has on the probe's own contexts the rank of the law, 2 r + 2, exactly."""
    context = law_folder(tmp_path, log_rank=log_rank)
    rows = run(context)
    (n,) = {row["n"] for row in rows if row["split"] in ("mask-positions", "law")}
    store = TokenStore(tmp_path / "tokens", "test")
    ids, lengths = store.batch(np.linspace(0, 199, 150).astype(int))
    rng, logs = generator(1, "r", "masks"), []
    conditionals = law_of(symbols.read_header(tmp_path / "test.parquet")).conditionals(ids.numpy()[:, 1:-1] - 5)
    for start in range(0, 150, 64):
        part = slice(start, start + 64)
        shown, row, column = mask_batch(ids.numpy()[part], lengths.numpy()[part], ONE.masking, 25, rng)
        assert ((shown == MASK).sum(1) == 1).all()
        logs.append(np.log(conditionals[part][row, column - 1]))
    logs = np.concatenate(logs)
    assert n == len(logs) == 150
    logs = logs - logs.mean(1, keepdims=True)
    found = {row["metric"]: row["value"] for row in rows if row["split"] == "law"}
    assert found["rank_counted"] == np.linalg.matrix_rank(logs, tol=1e-8 * np.linalg.norm(logs)) == 2 * log_rank + 2
    assert by_svd(logs) - 1 < found["rank_interpolated"] <= by_svd(logs)
    assert set(found) == {"rank_counted", "rank_interpolated", "rank_entropy"}


def test_no_law_is_built_where_no_rank_is_known(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_probe, "law_of", lambda header: pytest.fail("a law was built"))
    rows = run(law_folder(tmp_path))
    assert rows and not [row for row in rows if row["split"] == "law"]


def test_masks_do_not_depend_on_the_model(english, tmp_path):
    """So that models are compared on the same inputs: the embeddings of two models differ, their counts do not."""
    probe = RankProbe(kind="rank", sequences=30)
    counts = []
    for form in FORMS:
        folder(english, tmp_path / form, form)
        rows = run(Context(probe, tmp_path / form, tokens=english / "tokens", name="r"))
        counts.append({(row["split"], row["layer"]): row["n"] for row in rows})
    assert counts[0] == counts[1]


def test_sequences_without_a_token_to_hide_are_refused(english, tmp_path):
    folder(english, tmp_path / "m", "bert")
    probe = RankProbe(kind="rank", masking=Masking(count="floor", rate=0.001))
    with pytest.raises(MaskLabError, match=r"probes\.r: .*tokens: no test sequence has a token to hide"):
        run(Context(probe, tmp_path / "m", tokens=english / "tokens", name="r"))


def test_a_text_that_spells_a_mask_holds_none(english, tmp_path):
    """As in corpora: what is counted as masked is what was masked."""
    folder(english, tmp_path / "m", "bert")
    for row in read_own(tmp_path / "m", 40).encode(["the old cat", "the old [MASK] cat [SEP] sleeps"]):
        assert row[0] == CLS and row.index(SEP) == len(row) - 1 and MASK not in row


def test_what_is_read_with_its_places_is_what_is_encoded(english, tmp_path):
    """Cut as well: [SEP] stays, and what spells a special token is <unk>."""
    folder(english, tmp_path / "m", "bert")
    reader, texts = read_own(tmp_path / "m", 12), ["the old [MASK] cat [SEP] sleeps", "the old cat sleeps " * 10]
    rows = list(reader.spans(texts))
    assert [ids for ids, _ in rows] == list(reader.encode(texts)) and len(rows[1][0]) == 12
    for text, (ids, spans) in zip(texts, rows, strict=True):
        assert len(spans) == len(ids) and spans[0] == spans[-1] == (0, 0)
        inner = spans[1:-1]
        assert inner[0][0] == 0 and inner == sorted(inner) and 0 < inner[-1][1] <= len(text)


def test_command_line_on_our_folder_and_on_anyone_elses(english, tmp_path, capsys):
    """The same BERT read by our encoder and, without our note in the folder, by transformers: the same ranks."""
    folder(english, tmp_path / "m", "bert")
    texts = pd.read_parquet(english / "corpora" / "test.parquet")["text"].tolist()
    (tmp_path / "text.txt").write_text("\n".join(["", *texts[:60], "long " * 80]), encoding="utf-8")
    command = ["rank", str(tmp_path / "m"), "--text", str(tmp_path / "text.txt"), "--length", "30"]
    found = []
    for name in ("ours.csv", "theirs.csv"):
        assert main([*command, "--output", str(tmp_path / name), "--plot", str(tmp_path / "ranks.png")]) == 0
        printed = capsys.readouterr().out.splitlines()
        assert len(printed) == 10 and printed[0].split()[:2] == ["layer", "unmasked"]
        assert printed[5].split() == ["layer", "mask-positions", "random-words", "hidden-words"]
        found.append(pd.read_csv(tmp_path / name))
        assert (tmp_path / "ranks.png").stat().st_size > 10_000
        (tmp_path / "ranks.png").unlink()
        (tmp_path / "m" / "masklab.json").unlink(missing_ok=True)
    ours, theirs = found
    whole = ours["metric"].isin(["rank", "rank_centred"])
    assert (ours[["split", "layer", "metric", "n"]] == theirs[["split", "layer", "metric", "n"]]).all().all()
    assert (ours["value"] == theirs["value"])[whole].all()
    np.testing.assert_allclose(ours["value"], theirs["value"], rtol=1e-4)
    assert main([*command, "--untrained", "--output", str(tmp_path / "null.csv")]) == 0
    null = pd.read_csv(tmp_path / "null.csv")
    assert (null["n"] == ours["n"]).all() and (null["value"] != ours["value"]).mean() > 0.5
    capsys.readouterr()
    assert main([*command, "--lines", "0"]) == 1 and "no text" in capsys.readouterr().err
    (tmp_path / "m" / "config.json").unlink()
    assert main(command) == 1 and "transformers cannot read it" in capsys.readouterr().err
    assert main(["rank", "nope", *command[2:]]) == 1 and capsys.readouterr().err == "masklab: nope: no such folder\n"
    assert main([*command, "--plot", "x.doc"]) == 1 and "--plot: x.doc: must end in .png" in capsys.readouterr().err
    assert main([*command, "--rate", "2"]) == 1 and "--rate: 2.0" in capsys.readouterr().err


def cut_short(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def a_layer_more(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"num_hidden_layers": config["num_hidden_layers"] + 1}))


def a_wider_one(folder):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"intermediate_size": 999}))


def a_token_more(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["zork"])
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut_short, "transformers cannot read it (Error while deserializing header"),
        (a_layer_more, "has no weights for encoder.layer.2.attention"),
        (a_wider_one, "transformers cannot read it (You set `ignore_mismatched_sizes`"),
        (a_token_more, "its tokenizer gives 'zork' the id 500; its model knows 0 to 499"),
    ],
)
def test_a_damaged_encoder_of_others_is_one_line(english, tmp_path, capsys, harm, said):
    folder(english, tmp_path / "m", "bert")
    (tmp_path / "m" / "masklab.json").unlink()
    (tmp_path / "text.txt").write_text("the cat zork\n")
    harm(tmp_path / "m")
    assert main(["rank", str(tmp_path / "m"), "--text", str(tmp_path / "text.txt")]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"masklab: {tmp_path / 'm'}: {said}") and printed.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["Bert", "Roberta", "Esm", "DebertaV2", "DistilBert", "ModernBert", "IBert", "RoFormer", "Yoso"]
)
def test_lines_are_cut_to_the_positions_of_any_encoder(english, tmp_path, name):
    """No tokenizer says here how much a model reads: its own embeddings of positions do, if it has any.

    Every measure is made of each: of six splits six ranks and the mean's share, of three places two shares.
    """
    sizes = {"hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    if name == "DistilBert":
        sizes = {"dim": 24, "n_layers": 1, "n_heads": 2, "hidden_dim": 24}
    config = getattr(transformers, f"{name}Config")(
        vocab_size=500, max_position_embeddings=20, pad_token_id=3, mask_token_id=4, **sizes
    )
    model = getattr(transformers, f"{name}Model")(config)
    transformers.PreTrainedTokenizerFast.from_pretrained(english / "tokenizer", model_max_length=10**9).save_pretrained(
        tmp_path / "m"
    )
    model.save_pretrained(tmp_path / "m")
    first = pd.read_parquet(english / "corpora" / "test.parquet")["text"].tolist()[:20]
    (tmp_path / "text.txt").write_text("\n".join([*first, "long " * 80]), encoding="utf-8")
    rows = folder_ranks(tmp_path / "m", tmp_path / "text.txt")
    cut = {"Roberta": 16, "Esm": 16, "IBert": 16, "ModernBert": 512}.get(name, 20)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    counts = [min(len(tokenizer(text)["input_ids"]), cut) - 2 for text in [*first, "long " * 80]]
    assert {row["n"] for row in rows if row["split"] == "unmasked"} == {sum(counts)}
    assert len(rows) == 2 * (6 * 7 + 3 * 2) and np.isfinite([row["value"] for row in rows]).all()


def test_progress_is_said_in_sequences_and_batches_do_not_matter(english, tmp_path):
    folder(english, tmp_path / "m", "bert")
    found = []
    for size in (7, 40):
        said = []
        probe = RankProbe(kind="rank", sequences=20, batch_size=size)
        context = Context(
            probe,
            tmp_path / "m",
            tokens=english / "tokens",
            name="r",
            progress=lambda *done, said=said: said.append(done),
        )
        found.append(pd.DataFrame(run(context)))
        assert said == [(done, 20) for done in ([7, 14, 20] if size == 7 else [20])]
    own = found[0][found[0]["split"] == "unmasked"]
    other = found[1][found[1]["split"] == "unmasked"]
    assert own["n"].tolist() == other["n"].tolist() and own["value"].to_numpy() == pytest.approx(
        other["value"].to_numpy()
    )
