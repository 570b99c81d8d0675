import json

import pytest

from masklab.errors import MaskLabError
from masklab.phrases.parses import ADJECTIVE, NOUN, VERB, fitting, key_of, keyed, parse, places, read_trees

FILM = """(ROOT (S (NP (DT The) (NN film)) (VP (VBZ is) (ADJP (RB very) (JJ powerful) (CC and) (JJ funny)))
  (. .)))"""
PARIS = "(NP (NNP Paris) (-LRB- -LRB-) (NNP France) (-RRB- -RRB-))"
SHE = f"(ROOT (S (NP (PRP She)) (VP (VBD saw) (NP (PRP it)) (PP (IN in) {PARIS}))))"
SENTIMENT = "(3 (2 A) (4 (3 (3 warm) (2 ,)) (2 (2 small) (2 film))))"


def said(tree, nodes):
    return [" ".join(tree.words[node.begin : node.end]) for node in nodes]


def test_words_and_constituents_of_a_parse():
    tree = parse(FILM)
    assert tree.words == ("The", "film", "is", "very", "powerful", "and", "funny", ".")
    assert said(tree, tree.candidates) == [
        "The film", "film", "is", "is very powerful and funny", "very powerful and funny", "powerful", "funny",
    ]  # fmt: skip
    kinds = {text: tree.category(node) for text, node in zip(said(tree, tree.candidates), tree.candidates, strict=True)}
    assert kinds["The film"] == NOUN and kinds["is very powerful and funny"] == VERB
    assert kinds["very powerful and funny"] == kinds["funny"] == ADJECTIVE
    assert said(tree, [tree.longest()]) == ["is very powerful and funny"]
    assert {node.label for node in tree.candidates if len(node) == 1} == {"NN", "VBZ", "JJ"}  # the innermost


def test_pronouns_and_brackets():
    tree = parse(SHE)
    assert tree.words[-4:] == ("Paris", "(", "France", ")")
    assert "She" not in said(tree, tree.candidates) and "it" not in said(tree, tree.candidates)
    assert said(tree, [tree.longest()]) == ["saw it in Paris ( France )"]


def test_trees_without_categories_have_phrases_too():
    tree = parse(SENTIMENT)
    assert not tree.labelled and parse(FILM).labelled
    assert said(tree, tree.candidates) == [
        "A", "warm", "warm ,", "warm , small film", "small", "small film", "film",
    ]  # fmt: skip
    assert not parse("(-1 (1 a) (0 b))").labelled


def test_files_of_parses(tmp_path):
    text, rows = tmp_path / "parses.txt", tmp_path / "mnli.jsonl"
    text.write_text(f"{FILM}\n\n{SHE}\n{SENTIMENT}\n")
    assert [len(tree.words) for tree in read_trees(text)] == [8, 8, 5]
    given = {
        "sentence1_parse": FILM,
        "sentence1_binary_parse": "( The film )",
        "sentence2_parse": SHE,
        "sentence1": "x",
    }
    rows.write_text(json.dumps(given) + "\n")
    assert [tree.words[0] for tree in read_trees(rows)] == ["The", "She"]
    table = tmp_path / "mnli.tsv"
    table.write_text(
        "".join("\t".join(row) + "\n" for row in ([*given], [" ".join(v.split()) for v in given.values()]))
    )
    assert [tree.words[0] for tree in read_trees(table)] == ["The", "She"]
    for broken, message in {
        "(S (NN a)": "line 1: a parse is not closed",
        "(S a))\n(S b)": "line 1: a bracket is closed that was not opened",
        "word": "line 1: 'word' stands outside of any bracket",
        "(S ())": "line 1: a constituent has no word",
    }.items():
        text.write_text(broken)
        with pytest.raises(MaskLabError, match=f"parses.txt: {message}"):
            list(read_trees(text))
    rows.write_text('{"sentence1": "x"}\n')
    with pytest.raises(MaskLabError, match=r"mnli\.jsonl: line 1: no field whose name ends in `parse`"):
        list(read_trees(rows))


@pytest.mark.parametrize("text", ["(", "(S (NN a) (", "(S (NN a"])
def test_a_parse_that_ends_in_its_midst_is_refused(text):
    """As a field of a table may; `read_trees` counts the brackets of a file of text itself."""
    with pytest.raises(MaskLabError, match=r"^parse: a bracket is not closed$"):
        parse(text)


def test_words_are_found_in_the_text_they_were_parsed_from():
    tree = parse(FILM)
    text = "The film  is very powerful and funny."
    found, at = places(tree, text)
    assert found == text and [text[begin:end] for begin, end in at] == list(tree.words)
    assert key_of(text) == key_of(" ".join(tree.words))
    lost = parse("(S (NN its) (JJ odd))")  # an apostrophe was lost: the words stand for the text
    assert places(lost, "it's odd") == ("its odd", [(0, 3), (4, 7)]) and key_of("it's odd") == key_of("its odd")


def test_capitals_are_those_of_the_text():
    """SST-2 has none; the treebank that its parses come from does, and a model would read words it never met."""
    tree = parse("(3 (2 Mr.) (3 (2 Bean) (3 (2 's) (3 (2 İzmir) (2 Ü)))))")
    for text in ("mr. bean 's İzmir ü", "MR. Bean's İzmir Ü"):
        said, at = places(tree, text)
        assert said == text and [said[begin:end].lower() for begin, end in at] == ["mr.", "bean", "'s", "i̇zmir", "ü"]
    assert places(tree, "( mr. ) bean 's İzmir ü")[0] == "Mr. Bean 's İzmir Ü"  # the text has a capital
    assert places(parse("(S (A It) (B (C is) (D Odd)))"), "it ( is ) odd") == ("it is odd", [(0, 2), (3, 5), (6, 9)])


def test_of_several_parses_the_one_whose_words_lie_in_the_text_is_taken():
    its, it_s = "(S (PRP$ its) (JJ odd))", "(S (PRP it) (VBZ 's) (JJ odd))"
    trees = keyed(map(parse, ["(S (UH Yes) (. .))", "(S (UH Yes) (. ?))", its, it_s, "(S (: --))"]))
    wanted = {"Yes.": "Yes .", "Yes?": "Yes ?", "its odd": "its odd", "it's odd": "it 's odd"}
    for text, words in wanted.items():
        tree, said, at = fitting(trees[key_of(text)], text)
        assert said == text and [text[begin:end] for begin, end in at] == list(tree.words) == words.split()
    tree, said, _ = fitting(trees[key_of("Yes!")], "Yes!")  # none of them: the first
    assert tree.words == ("Yes", ".") and said == "Yes ."


def test_what_has_no_letter_finds_no_parse():
    assert keyed([parse("(S (: --))"), parse("(S (. \N{BLACK HEART SUIT}\N{VARIATION SELECTOR-16}))")]) == {}
    assert key_of("...") == key_of("\N{BLACK HEART SUIT}\N{VARIATION SELECTOR-16}") == ""


def test_marks_on_letters_count_however_they_are_written():
    assert key_of("re\u0301sume\u0301") == key_of("R\u00c9SUM\u00c9") != key_of("resume")
    assert key_of("\u0915\u093f") != key_of("\u0915\u093e")  # two syllables of one consonant


def test_equal_words_are_kept_once():
    (trees,) = keyed([parse(FILM), parse(FILM), parse(FILM.replace("ADJP", "XP"))]).values()
    assert trees == [parse(FILM)]


def test_a_blank_line_of_a_table_is_passed_over(tmp_path):
    """As one of json lines is: editors leave them at the end."""
    table = tmp_path / "a.tsv"
    table.write_text("sentence\tsentence_parse\nA cat\t(NP (DT A) (NN cat))\n\n \n", encoding="utf-8")
    assert [tree.words for tree in read_trees(table)] == [("A", "cat")]
