"""A page of a dictionary: by the command, of encoders made here and elsewhere, in a browser where there is one."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import torch

from masklab.cli import main
from masklab.errors import MaskLabError
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.models.initial import initial
from masklab.probes.folder import folder_ranks
from masklab.properties import agreement
from masklab.properties.coded_words import Sample, Words
from masklab.properties.command import make
from masklab.properties.gathering import of_arrays, of_text
from masklab.properties.look import look
from masklab.properties.similarity import WordNet
from masklab.sparse.dictionary import learn
from masklab.sparse.lasso import SOLVERS, lasso
from masklab.sparse.targets import Codes
from masklab.tokenizers import load_tokenizer
from masklab.tokens import TokenStore

HOSTILE = "<b>bold</b> & <script>alert(1)</script>"


@pytest.fixture(scope="module")
def text(english, tmp_path_factory):
    file = tmp_path_factory.mktemp("text") / "lines.txt"
    lines = pd.read_parquet(english / "corpora" / "train.parquet")["text"].head(400).tolist()
    file.write_text("\n".join([*lines, "", HOSTILE] * 2))
    return file


@pytest.fixture(scope="module")
def ours(english, tiny_encoder, tmp_path_factory):
    """A checkpoint of ours, with random weights that are not small."""
    folder = tmp_path_factory.mktemp("model") / "m"
    encoder = tiny_encoder.model_copy(update={"init_range": 0.2})
    save_checkpoint(MaskedLM(encoder, 500, generator=torch.Generator().manual_seed(0)), folder, metadata={})
    shutil.copytree(english / "tokenizer", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def page(ours, text, tmp_path_factory):
    output = tmp_path_factory.mktemp("page") / "look"
    command = ["dictionary", str(ours), "--text", str(text), "--output", str(output), "--atoms", "40"]
    assert main([*command, "--tokens", "2000", "--iterations", "10"]) == 0
    return output


def test_the_command_writes_a_page_and_tables(page):
    table = pd.read_csv(page / "properties.csv")
    assert len(table) == 40 and table["property"].tolist() == list(range(40))
    pd.testing.assert_frame_equal(pd.read_parquet(page / "properties.parquet"), table, check_dtype=False)
    assert (table["active"] > 0).any() and table["words"].notna().any() and table["coherence_neighbours"].notna().any()
    content = (page / "index.html").read_text()
    assert "<script>alert(1)" not in content and "Dictionary of m, layer 2" in content
    assert "<td>this one</td>" in content and "<td>initial weights</td>" in content
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", content)  # it needs no network


def test_every_tag_of_the_page_is_closed(page):
    opened, void = [], ("meta", "img", "br", "link", "input", "hr")

    class Parser(HTMLParser):
        def handle_starttag(self, tag, attrs):
            opened.extend([] if tag in void else [tag])

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Parser().feed((page / "index.html").read_text())
    assert not opened


@pytest.mark.skipif(not shutil.which("chromium"), reason="no browser here")
def test_a_browser_runs_the_page(page):
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    done = subprocess.run([*command, f"file://{page}/index.html"], capture_output=True, text=True, timeout=120)
    found = re.search(r'id="count"[^>]*>(\d+) of (\d+) properties', done.stdout)
    assert found and found[1] == found[2] == str(done.stdout.count('<article class="property"'))


def test_an_encoder_made_elsewhere(english, text, tmp_path):
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    torch.manual_seed(0)
    transformers.RobertaModel(
        transformers.RobertaConfig(vocab_size=500, max_position_embeddings=44, pad_token_id=3, **sizes)
    ).save_pretrained(tmp_path / "m")
    transformers.PreTrainedTokenizerFast.from_pretrained(english / "tokenizer", model_max_length=10**9).save_pretrained(
        tmp_path / "m"
    )
    words, states, layer = of_text(tmp_path / "m", text, None, 2000)
    assert layer == 2 and sum(len(each.of) for each in words) == len(states) == 2000
    model = transformers.AutoModel.from_pretrained(tmp_path / "m").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    lines = [line for line in text.read_text().splitlines() if line]
    at = next(i for i, each in enumerate(words) if len(each.of) > 5)
    line = next(line for line in lines if words[at].words == words_of(line))
    ids = tokenizer(line, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        alone = model(ids).last_hidden_state[0, 1:-1]
    begin = sum(len(each.of) for each in words[:at])
    found = states[begin : begin + len(words[at].of)]
    alike = found @ torch.nn.functional.normalize(alone, dim=1).T  # pieces that are a space alone belong to no word
    assert (alike.max(1).values > 1 - 1e-4).all() and (alike.argmax(1).diff() > 0).all() and len(alone) - len(found) < 5
    same, untrained, _ = of_text(tmp_path / "m", text, None, 2000, untrained=True)
    assert [each.words for each in same] == [each.words for each in words] and untrained.shape == states.shape
    assert abs((untrained * states).sum(1).mean()) < 0.5 and not torch.equal(untrained, states)
    with pytest.raises(MaskLabError, match="no layer 3; it has 0"):
        of_text(tmp_path / "m", text, 3)


def test_what_is_stored_in_half_precision_is_computed_in_single(english, text, tmp_path):
    import transformers

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=500, initializer_range=0.3, **sizes))
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(english / "tokenizer")
    found = []
    for name, dtype in (("half", torch.bfloat16), ("single", torch.float32)):  # the same weights, that fit into both
        model.to(dtype).save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        found.append(of_text(tmp_path / name, text, None, 100)[1])
    torch.testing.assert_close(*found, atol=1e-6, rtol=0)


@pytest.mark.parametrize("tokens", [1, 10, 3000])
def test_no_more_tokens_are_looked_at_than_are_asked_for(ours, text, tokens):
    words, states, _ = of_text(ours, text, None, tokens)
    more, all_states, _ = of_text(ours, text, None, 10**9)
    assert sum(len(each.of) for each in words) == len(states) == tokens < len(all_states)
    assert sum(len(each.of) for each in more) == len(all_states)


def test_a_tokenizer_that_puts_no_special_tokens_around_a_text(english, text, tmp_path):
    """Else the first and the last token would be taken for them."""
    import transformers

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    transformers.BertModel(transformers.BertConfig(vocab_size=500, **sizes)).save_pretrained(tmp_path)
    transformers.PreTrainedTokenizerFast.from_pretrained(english / "tokenizer").save_pretrained(tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(content | {"post_processor": None}), encoding="utf-8")
    for read in (lambda: of_text(tmp_path, text, None, 100), lambda: folder_ranks(tmp_path, text, lines=9)):
        with pytest.raises(MaskLabError, match="its tokenizer puts no special tokens around a text"):
            read()


def words_of(line):
    return re.findall(r"\w+|[^\w\s]", line)


def test_states_of_arrays_stand_by_their_words(english, ours):
    from masklab.models.checkpoint import load_checkpoint

    model, store, tokenizer = load_checkpoint(ours), TokenStore(english / "tokens", "train"), load_tokenizer(ours)
    words, states = of_arrays(model, store, tokenizer, 2, tokens=1500)
    assert sum(len(each.of) for each in words) == len(states) and 1500 <= len(states) < 1600
    lines = {tuple(words_of(line)): line for line in pd.read_parquet(english / "corpora" / "train.parquet")["text"]}
    at = next(i for i, each in enumerate(words) if tuple(each.words) in lines and len(each.of) > 4)
    ids = torch.tensor([tokenizer.encode(lines[tuple(words[at].words)]).ids])
    alone = model.encode(ids, torch.tensor([ids.shape[1]]), layer=2)[0, 1:-1].detach()
    begin = sum(len(each.of) for each in words[:at])
    found = states[begin : begin + len(words[at].of)]
    torch.testing.assert_close(found, torch.nn.functional.normalize(alone, dim=1), atol=1e-4, rtol=0)


# --- WordNet ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wordnet(tmp_path_factory):
    """A WordNet of nouns: thing over animal and food; cat and puss are one, dog is another animal; bread is food."""
    root = tmp_path_factory.mktemp("nltk")
    folder = root / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    parents = {
        "thing": None,
        "animal": "thing",
        "food": "thing",
        "cat puss": "animal",
        "dog": "animal",
        "bread": "food",
    }
    width = 200  # bytes of a line, so that offsets are known
    offsets = {name: width * at for at, name in enumerate(parents)}
    lines, index = [], {}
    for name, parent in parents.items():
        words = name.split()
        said = " ".join(f"{word} 0" for word in words)
        pointer = f"001 @ {offsets[parent]:08d} n 0000" if parent else "000"
        line = f"{offsets[name]:08d} 03 n {len(words):02x} {said} {pointer} | a {words[0]}"
        lines.append(line.ljust(width - 1) + "\n")
        index |= {
            word: f"{word} n 1 {1 if parent else 0}{' @' if parent else ''} 1 0 {offsets[name]:08d}\n" for word in words
        }
    (folder / "data.noun").write_text("".join(lines))
    (folder / "index.noun").write_text("".join(index[word] for word in sorted(index)))
    (folder / "lexnames").write_text("".join(f"{at:02d}\tnoun.x\t1\n" for at in range(4)))
    empty = [f"{kind}.{part}" for kind in ("data", "index") for part in ("verb", "adj", "adv")]
    for name in (*empty, "index.sense", "cntlist.rev", *(f"{part}.exc" for part in ("noun", "verb", "adj", "adv"))):
        (folder / name).write_text("")
    return root


def test_wordnet_says_how_alike_words_are(wordnet):
    found = WordNet(wordnet)
    assert found.knows("cat") and not found.knows("xyz") and not found.knows("cat7")
    words = ["cat", "puss", "dog", "bread"]
    alike = found.between(words)
    assert alike[0].tolist() == pytest.approx([1, 1, 1 / 3, 1 / 5])
    assert found.synonyms([*words, "xyz"]) == [("cat", "puss")]
    assert WordNet(wordnet / "corpora" / "wordnet").knows("dog")
    with pytest.raises(MaskLabError, match="no WordNet database there"):
        WordNet(wordnet / "corpora")


@pytest.mark.parametrize(
    ("often", "pieces", "overlap"),
    [({"dog": 11, "bread": 40}, 1, 0.5), ({"dog": 40, "bread": 11}, 1, 0.0), ({"dog": 11, "bread": 13}, 6, 0.5)],
)
def test_synonyms_beside_words_as_frequent(wordnet, often, pieces, overlap):
    """cat and puss have one code; dog shares half of it, bread nothing; that which is about as frequent is taken.

    However many pieces dog is cut into.
    """
    codes = {"cat": [1.0, 1, 0], "puss": [1.0, 1, 0], "dog": [1.0, 0, 1], "bread": [0.0, 0, 1]}
    order = [word for word in codes for _ in range(often.get(word, 10))]
    sizes = [pieces if word == "dog" else 1 for word in order]
    sequences = [Words([word], [False], np.zeros(size, np.int64)) for word, size in zip(order, sizes, strict=True)]
    dense = [codes[word] for word, size in zip(order, sizes, strict=True) for _ in range(size)]
    sample = Sample.of(sequences, Codes.of_dense(torch.tensor(dense)), 3)
    same, other = agreement.of_synonyms(sample, WordNet(wordnet), np.random.default_rng(0))
    assert same.value == 1 and same.count == 1 and other.value == overlap and other.count == 1


def test_another_form_of_a_word_is_no_other_word(wordnet):
    """cats is the nearest to puss in frequency, and has its sense and that of cat; dog is the next that has not."""
    codes = {"cat": [1.0, 1, 0], "cats": [1.0, 1, 0], "puss": [1.0, 1, 0], "dog": [1.0, 0, 1]}
    often = {"cat": 10, "puss": 10, "cats": 11, "dog": 12}
    order = [word for word, count in often.items() for _ in range(count)]
    sequences = [Words([word], [False], np.zeros(1, np.int64)) for word in order]
    sample = Sample.of(sequences, Codes.of_dense(torch.tensor([codes[word] for word in order])), 3)
    same, other = agreement.of_synonyms(sample, WordNet(wordnet), np.random.default_rng(0))
    assert (same.value, same.count, other.value, other.count) == (1, 2, 0.5, 2)


def test_a_page_with_wordnet(english, ours, wordnet, tmp_path):
    from masklab.models.checkpoint import load_checkpoint

    model, store = load_checkpoint(ours), TokenStore(english / "tokens", "train")
    words, states = of_arrays(model, store, load_tokenizer(ours), 2, tokens=1500)
    dictionary = torch.nn.functional.normalize(states[:80], dim=1).T.contiguous()
    settings = {"penalty": 0.01, "solver": "fista", "iterations": 5, "batch_size": 50}
    about = {"title": HOSTILE, "facts": [("k", 80)], "note": ""}
    _, drawn = of_arrays(initial(model), store, load_tokenizer(ours), 2, tokens=1500)
    said = look(words, states, dictionary, settings, tmp_path, about, (drawn, learn(drawn, 80, 0.01, 5, 50)), wordnet)
    content = (tmp_path / "index.html").read_text()
    weights, words, _, same, other = zip(*said["agreement"], strict=True)
    assert weights == ("this one", "this one", "initial weights", "initial weights") and words[:2] == words[2:]
    assert [(whose, one["name"]) for whose, one in said["compared"]] == [
        (whose, name) for whose in ("this one", "initial weights") for name in ("neighbours", "WordNet")
    ]
    assert said["compared"][0][1]["of"] != said["compared"][2][1]["of"] != {}
    assert same[2].count == same[0].count and same[2].value > other[2].value  # the word is seen without training
    assert same[2].value != same[0].value and "never trained" in content
    assert [row["atoms"] for row in said["sizes"]] == [20, 40, 80, 160] and said["coded"] == len(states) // 2
    entries = {solver: float(lasso(states, dictionary, 0.01, solver).counts.double().mean()) for solver in SOLVERS}
    assert said["here"]["nonzeros"] == pytest.approx(entries["fista"], rel=0.02)
    assert entries["exact"] < 0.96 * entries["fista"]
    assert [each["name"] for each in said["coherent"]] == ["neighbours", "WordNet"]
    assert "two synonyms" in content and HOSTILE not in content and "No WordNet" not in content


# --- mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--atoms", "0"], "--atoms: 0: must be above 0"),
        (["--atoms", "900000", "--tokens", "900000"], "tokens are too few for 900000 atoms"),
        (["--atoms", "1001"], "--tokens: 1000: must be at least --atoms (1001)"),
        (["--layer", "7"], "no layer 7; it has 0 (the embeddings) to 2"),
        (["--wordnet", "nowhere"], "nowhere: no WordNet database there"),
        (["--text", "nowhere.txt"], "nowhere.txt: no such file"),
    ],
)
def test_mistakes_are_one_line(ours, text, tmp_path, capsys, more, said):
    output = tmp_path / "out"
    assert main(["dictionary", str(ours), "--text", str(text), "--output", str(output), "--tokens", "1000", *more]) == 1
    error = [line for line in capsys.readouterr().err.splitlines() if line.startswith("masklab:")]
    assert len(error) == 1 and said in error[0] and not list(output.glob("*"))


def test_a_text_of_one_token_is_too_short(ours, tmp_path):
    (tmp_path / "short.txt").write_text("a\n")
    with pytest.raises(MaskLabError, match=r"short\.txt: 1 token is too few, even for one atom; give more text$"):
        make(ours, tmp_path / "short.txt", tmp_path / "look", None, 1, 0.05, 1000, 2, None)


def test_nothing_is_learned_for_a_page_in_the_folder_that_one_is_in(tmp_path, monkeypatch):
    """It would end in a traceback once all was done: a folder that is written whole takes the place of that one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MaskLabError, match=r"^\.: is the folder that you are in; --output names another one"):
        make("no-model", "no-text", ".", None, 1, 0.05, 1000, 2, None)


def test_what_is_there_is_not_overwritten(ours, text, page, capsys):
    assert main(["dictionary", str(ours), "--text", str(text), "--output", str(page)]) == 1
    assert "exists; --output names a new or an empty folder" in capsys.readouterr().err


def test_what_was_killed_under_way_leaves_nothing_in_the_way(ours, text, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("masklab.properties.command.look", killed)
    with pytest.raises(KeyboardInterrupt):
        make(ours, text, tmp_path / "look", None, 40, 0.05, 1000, 2, None)
    assert not list(tmp_path.iterdir())
