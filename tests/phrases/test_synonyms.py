import pytest

import small_wordnet
from masklab.errors import MaskLabError
from masklab.phrases.synonyms import Synonyms

SENSES = [
    ("n", "film movie picture"), ("n", "child kid"), ("n", "story tale motion_picture"), ("n", "woman lady"),
    ("n", "church chapel"), ("n", "watch"), ("v", "see watch"), ("v", "see understand"), ("v", "run scat"),
    ("v", "begin start commence"), ("v", "watch guard"), ("a", "big large"), ("a", "strange odd funny"),
    ("a", "dear beloved"), ("v", "wash bath"), ("v", "swim bathe"), ("v", "own have"), ("v", "exist be"),
    ("v", "act do"), ("v", "travel go"), ("v", "prejudice bias"), ("v", "transmit radio"), ("n", "snapshot photo"),
    ("v", "place put"), ("n", "cop policeman"), ("n", "person human"), ("n", "age years"), ("n", "age years year"),
    ("v", "happen come"), ("v", "display show"), ("n", "ways means"), ("v", "batter beat"), ("n", "inch in"),
    ("a", "humble modest"),
]  # fmt: skip
VERBS = (
    "saw seen see, understood understand, began begun beginning begin, ran running run, scatted scatting scat,"
    " had has having have, am are been being is was were be, did does doing done do, gone went go,"
    " biased biases biasing biassed biasses biassing bias, came come, shown show, beaten beat"
)
IRREGULAR = {
    "noun": "children child\nwomen woman\n",
    "verb": "".join(f"{form} {lemma}\n" for *forms, lemma in map(str.split, VERBS.split(", ")) for form in forms),
    "adj": "bigger big\nbiggest big\nodder odd\noddest odd\nfunnier funny\nfunniest funny\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_wordnet.write(tmp_path_factory.mktemp("nltk"), SENSES, IRREGULAR)


@pytest.fixture(scope="module")
def synonyms(folder):
    return Synonyms(folder)


@pytest.mark.parametrize(
    ("word", "tag", "wanted"),
    [
        ("film", "NN", ["movie", "picture"]),
        ("movies", "NNS", ["films", "pictures"]),
        ("kids", "NNS", ["children"]),  # irregular
        ("ladies", "NNS", ["women"]),
        ("women", "NNS", ["ladies"]),  # y after a consonant
        ("chapels", "NNS", ["churches"]),
        ("tale", "NN", ["story"]),  # of one word alone: no motion_picture
        ("started", "VBD", ["commenced"]),  # began or begun: nobody knows
        ("starting", "VBG", ["beginning", "commencing"]),
        ("starts", "VBZ", ["begins", "commences"]),
        ("scatting", "VBG", ["running"]),
        ("washing", "VBG", []),  # `bathing` leads back to `bathe`, and not to `bath`
        ("washes", "VBZ", ["baths"]),
        ("owns", "VBZ", ["has"]),  # of the list of irregular forms
        ("exists", "VBZ", ["is"]),
        ("acts", "VBZ", ["does"]),
        ("travels", "VBZ", ["goes"]),  # by rule
        ("transmits", "VBZ", ["radios"]),
        ("snapshots", "NNS", ["photos"]),
        ("prejudices", "VBZ", []),  # biases or biasses: nobody knows
        ("has", "VBZ", ["owns"]),
        ("is", "VBZ", ["exists"]),
        ("is", None, []),  # of a closed class
        ("saw", "VBD", ["watched", "understood"]),  # a sense after the other
        ("watch", "NN", []),  # of another part of speech
        ("watch", "VB", ["see", "guard"]),
        ("funniest", "JJS", ["oddest"]),  # `strange` gives `strangest`, which no list has
        ("larger", "JJR", ["bigger"]),
        ("Movie", "NN", ["Film", "Picture"]),
        ("KIDS", "NNS", ["CHILDREN"]),
        ("Film", "NNP", []),
        ("placed", "VBD", ["put"]),  # which no list has
        ("placed", "VBN", ["put"]),
        ("cops", "NNS", ["policemen"]),
        ("persons", "NNS", ["humans"]),
        ("happened", "VBD", ["came"]),
        ("happened", "VBN", ["come"]),
        ("displayed", "VBD", ["showed"]),  # the list has the participle alone
        ("displayed", "VBN", ["shown"]),
        ("displaying", "VBG", ["showing"]),  # by rule: none of the list ends in -ing
        ("ways", "NNS", []),  # of `means` there is no other plural
        ("humbler", "JJR", []),  # `modest` has a vowel too many for -er
        ("dearer", "JJR", []),  # `beloved` is too long for -er
        ("battered", "VBD", ["beat"]),
        ("battered", "VBN", ["beaten"]),
        ("exist", "VBP", []),  # am or are
        ("years", None, ["age", "age"]),  # `years` is a word of WordNet's, and `year` no synonym of it
        ("year", "NN", ["age"]),
        ("in", None, []),
        ("film", "DT", []),
        ("2nd", "JJ", []),
        ("unheard", "JJ", []),
        ("movies", None, ["films", "pictures"]),  # what WordNet says of it first
        ("starts", None, ["begins", "commences"]),
    ],
)
def test_synonyms_have_the_part_of_speech_and_the_inflection_of_the_word(synonyms, word, tag, wanted):
    found = synonyms.of(word, tag)
    assert [form for form in found if form.lower() != "strangest"] == wanted


def test_what_is_missing_is_one_line(folder, tmp_path):
    with pytest.raises(
        MaskLabError, match=r"no WordNet database there; it must hold corpora/wordnet/data.noun"
    ) as said:
        Synonyms(tmp_path)
    assert "\n" not in str(said.value)
    small_wordnet.write(tmp_path / "broken", SENSES)
    (tmp_path / "broken" / "corpora" / "wordnet" / "verb.exc").unlink()
    with pytest.raises(MaskLabError, match=r"not a WordNet database that nltk reads .*verb\.exc"):
        Synonyms(tmp_path / "broken")
