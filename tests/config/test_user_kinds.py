"""Python files that a config names: kinds of one's own are validated like ours."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from masklab import corpora, probes, tasks
from masklab.config import kinds, read
from masklab.config.schema import CheckpointProbe, CorpusProbe, Drawn, entry
from masklab.corpora.own_splits import checked
from masklab.errors import MaskLabError
from masklab.files import write_table
from masklab.plan import make_plan
from masklab.plan.graph import opened
from masklab.texts import TextFile

SINGULAR = {"corpora": "corpus", "tasks": "task", "probes": "probe"}
CODE = '''\
from pydantic import Field
from masklab.config import kinds
from masklab.config.schema import Entity
import beside

class Shifts(Entity):
    """Shifted words."""
    by: int = Field(ge=1)
    words: list[str] = []

class Reading(Entity):
    """Reads."""
    deep: bool = False

class Asking(Entity):
    """Asks."""
    tasks: list[str]

@kinds.corpus("shifts", Shifts)
def generate(config, name, seed):
    return beside.VALUE

kinds.probe("reading", Reading)(len)
kinds.probe("asking", Asking)(len)
kinds.task("empty", None)(len)
'''
CONFIG = """\
code: code/mine.py
corpora:
  new: {kind: shifts, by: 2, redraw: true}
probes:
  read: {kind: reading, deep: true, steps: all}
  ask: {kind: asking, tasks: [blimp]}
tasks:
  none: {kind: empty}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a config and its code; what it registers is forgotten again."""
    monkeypatch.chdir(tmp_path)
    Path("code").mkdir()
    Path("code/mine.py").write_text(CODE)
    Path("code/beside.py").write_text("VALUE = 5\n")
    Path("my.yaml").write_text(CONFIG)
    yield tmp_path
    kinds.load([])


def said() -> str:
    with pytest.raises(MaskLabError) as caught:
        read("my.yaml")
    return str(caught.value)


def test_kinds_of_ones_own(folder):
    config = read("my.yaml")
    assert config.code == [str(folder / "code/mine.py")]
    new = config.corpora["new"]
    assert (new.kind, new.by, new.redraw) == ("shifts", 2, True) and isinstance(new, Drawn)
    assert isinstance(config.probes["read"], CorpusProbe) and config.probes["read"].steps == "all"
    assert not isinstance(config.probes["ask"], CorpusProbe) and isinstance(config.probes["ask"], CheckpointProbe)
    assert config.tasks["none"].kind == "empty"
    found = kinds.find("corpora", "shifts")
    assert found.file == str(folder / "code/mine.py") and found.function()(None, "", 1) == 5 and not found.code()
    assert entry("corpora", {"kind": "shifts", "by": 3}).by == 3
    assert config.model_dump()["corpora"]["new"] == {"redraw": True, "by": 2, "words": [], "kind": "shifts"}
    again = read("my.yaml")
    assert type(again.corpora["new"]) is type(new)


def test_parts_are_named_of_a_task_that_may_hold_pairs(folder):
    """What a task of one's own holds is known from the probes that measure it, if at all."""
    tune = "  tune: {kind: finetune, tasks: [none]}\n"
    study = "studies:\n  s: {panels: {p: [strict-mlm]}, probes: {ask: all}, sets: {x: [none/part]}}\n"
    for more, fine in (("", True), (tune, False), (f"{tune}  pairs: {{kind: minimal_pairs, tasks: [none]}}\n", True)):
        Path("my.yaml").write_text(CONFIG.replace("tasks:\n  none", f"{more}tasks:\n  none") + study)
        if fine:
            assert read("my.yaml").studies["s"].sets == {"x": ["none/part"]}
        else:
            assert (
                "studies.s.sets.x: 'none/part': 'none' holds no minimal pairs, of which a part can be named" in said()
            )


def test_a_file_is_imported_once(folder):
    Path("code/beside.py").write_text("from pathlib import Path\nwith open('count', 'a') as f: f.write('x')\nVALUE = 1")
    read("my.yaml"), read("my.yaml")
    assert Path("count").read_text() == "x"


def test_a_file_is_imported_anew_where_it_or_what_it_imports_has_changed(folder):
    first = read("my.yaml")
    Path("code/beside.py").write_text("VALUE = 55\n")
    read("my.yaml")
    assert kinds.find("corpora", "shifts").function()(None, "", 1) == 55
    Path("code/mine.py").write_text(CODE.replace("ge=1", "ge=10").replace('kinds.task("empty", None)(len)', ""))
    assert "my.yaml:3: corpora.new.by: must be at least 10 (got 2)" in said()
    assert "my.yaml:8: tasks.none.kind: no kind 'empty' among tasks" in said()
    Path("code/mine.py").write_text(CODE)
    assert read("my.yaml").model_dump() == first.model_dump()


def test_kinds_of_one_config_are_not_those_of_the_next(folder):
    """A notebook reads several; each has the kinds that its own files register, and what these import."""
    Path("more").mkdir()
    Path("more/mine.py").write_text(CODE.replace('"shifts"', '"moves"'))
    Path("more/beside.py").write_text("VALUE = 6\n")
    Path("more/my.yaml").write_text(CONFIG.replace("code/", "").replace("shifts", "moves"))
    Path("bare.yaml").write_text(CONFIG.partition("\n")[2])
    first = read("my.yaml")
    assert read("more/my.yaml").corpora["new"].by == 2 and "shifts" not in kinds.known("corpora")
    assert kinds.find("corpora", "moves").function()(None, "", 1) == 6, "of its own folder"
    with pytest.raises(MaskLabError, match=r"bare.yaml:2: corpora.new.kind: no kind 'shifts' among corpora"):
        read("bare.yaml")
    assert make_plan(first, "cpu").costs and "shifts" in kinds.known("corpora"), "a plan is of its own config's kinds"


def test_a_kind_of_no_file_stays_known(folder):
    kinds.task("by-hand", None)(len)
    read("my.yaml")
    assert {"by-hand", "empty"} <= kinds.known("tasks").keys()
    del kinds._yours["tasks"]["by-hand"]


def test_files_of_several_layers_add_up(folder):
    Path("more").mkdir()
    Path("more/mine.py").write_text("from masklab.config import kinds\nkinds.task('other', None)(len)\n")
    Path("more/top.yaml").write_text("extends: ../my.yaml\ncode: [mine.py, ../code/mine.py]\ntasks: {o: {kind: other}}")
    config = read("more/top.yaml")
    assert config.code == [str(folder / "code/mine.py"), str(folder / "more/mine.py")]
    assert config.tasks["o"].kind == "other"
    sys.modules["mine"].Shifts  # noqa: B018 - the first file of that name has it


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("by: 2", "by: 0"), "my.yaml:3: corpora.new.by: must be at least 1 (got 0)"),
        (("by: 2, ", ""), "my.yaml:3: corpora.new.by: required, but missing"),
        (("by: 2", "by: 2, word: [x]"), "my.yaml:3: corpora.new.word: unknown key for kind 'shifts'; did you mean "),
        (("kind: shifts", "kind: shift"), "my.yaml:3: corpora.new.kind: no kind 'shift' among corpora; kinds: text, "),
        (("[blimp]", "[blimb]"), "my.yaml:6: probes.ask.tasks: 'blimb' is not declared; did you mean 'blimp'?"),
        (("steps: all", "tasks: [blimp]"), "my.yaml:5: probes.read.tasks: must stay empty"),
        (("code/mine.py", "code/yours.py"), "my.yaml:1: code: no such file: code/yours.py"),
    ],
)  # fmt: skip
def test_entries_are_checked_like_ours(change, line):
    Path("my.yaml").write_text(CONFIG.replace(*change))
    assert said().startswith(line)


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        ("mine.py", "import masklab\nx = y\n", "code/mine.py:2: NameError: name 'y' is not defined"),
        ("mine.py", "def f(:\n", "code/mine.py:1: invalid syntax"),
        ("mine.py", "\nimport nothing_there\n", "code/mine.py:2: ModuleNotFoundError: No module named 'nothing_there'"),
        ("beside.py", "1 / 0", "code/beside.py:1: ZeroDivisionError: division by zero"),
        ("beside.py", "VALUE = (", "code/beside.py:1: '(' was never closed"),
        ("mine.py", "from masklab.config import kinds\nkinds.corpus('text', None)(len)\n",
         "code/mine.py:2: 'text' is already a kind among corpora; choose another name"),
        ("mine.py", "raise ValueError('two\\nlines')", "code/mine.py:1: ValueError: two lines"),
        ("mine.py", "import sys\nsys.exit(3)", "code/mine.py:2: SystemExit: 3"),
        ("mine.py", "x = 1\0", "code/mine.py: source code string cannot contain null bytes"),
    ],
)  # fmt: skip
def test_errors_in_the_code_are_one_line_with_its_own(file, text, line):
    (Path("code") / file).write_text(text)
    assert said() == line
    assert "shifts" not in kinds.known("corpora")
    Path("code/mine.py").write_text(CODE)
    Path("code/beside.py").write_text("VALUE = 5\n")
    assert read("my.yaml").corpora["new"].by == 2  # put right, it is read again


ENTITY, NULLS = "class S(own.Entity):\n    n: int = 3\n", "untrained, shuffled, one-hot, bag-of-words, bag-of-units"


@pytest.mark.parametrize(
    ("code", "line"),
    [
        (f"{ENTITY}own.corpus(S, 'e')(lambda config, name, seed: 0)",
         "4: the first argument must be the name of a kind of corpora, a text (got <class 'mine.S'>)"),
        ("@own.claims\ndef c(view): 0", "2: the first argument must be the name of a kind of claims, a text (got <..."),
        ("own.task('e', dict)(len)", "2: 'e' of tasks: its settings must be a class derived from own.Entity (got <..."),
        (f"{ENTITY}own.term('t', S)(own.Term)",
         "4: 't' of terms: its settings must be a class derived from own.Weight (got <class 'mine.S'>)"),
        ("own.term('t', own.Weight)(len)",
         "2: 't' of terms must be a class derived from own.Term (got <built-in function len>)"),
        ("@own.term('t', own.Weight)\nclass T(own.Term):\n    def corrupt(self): 0",
         "2: 't' of terms: it has corrupt of its own; its settings must say `reads: own.ClassVar = True`"),
        ("@own.corpus('e', None)\ndef g(config): 0",
         "2: 'e' of corpora must be a function of (config, name, seed) (got g(config))"),
        ("own.probe('p', None)(3)", "2: 'p' of probes must be a function of (context) (got 3)"),
        ("own.figure('f', lambda: {})(len)",
         "2: what 'f' of figures chooses by must be a function of (view) (got <lambda>())"),
        ("class S(own.Entity):\n    redraw: str = 'x'\nown.task('e', S)(len)",
         "4: 'e' of tasks: redraw means the same in all tasks, and cannot be 'x' by default; call another..."),
        ("class S(own.Entity):\n    tasks: list | None = None\nown.probe('p', S)(len)",
         "4: 'p' of probes: tasks means the same in all probes, and cannot be None by default; call another..."),
        ("class S(own.Entity):\n    x: own.Count = 5.5\nown.probe('p', S)(len)",
         "4: 'p' of probes: x must be a whole number of at least 1, and cannot be 5.5 by default"),
        ("class S(own.Entity):\n    x: own.Share = 3.0\nown.task('e', S)(len)",
         "4: 'e' of tasks: x must be a number from 0 to 1, and cannot be 3.0 by default"),
        ("class S(own.Entity):\n    ranges: own.ClassVar = {'a': (1, 0)}\nown.probe('p', S)(len)",
         "4: 'p' of probes: its settings must say `ranges: own.ClassVar = {'metric': (least, most), ...}`"),
        ("class S(own.Entity):\n    lower: own.ClassVar = 'a'\nown.probe('p', S)(len)",
         "4: 'p' of probes: its settings must say `lower: own.ClassVar = ('metric', ...)`, metrics of which less is"
         " better"),
        ("class S(own.Entity):\n    lower: tuple = ('a',)\nown.probe('p', S)(len)",
         "4: 'p' of probes: its settings must say `lower: own.ClassVar = ('metric', ...)`, metrics of..."),
        ("class S(own.Entity):\n    ranges: own.ClassVar = {'error': (0, 1)}\n    lower: own.ClassVar = ('eror',)\n"
         "own.probe('p', S)(len)",
         "5: 'p' of probes: its settings must say `lower: own.ClassVar = ('metric', ...)`, with some of error,..."),
        ("class S(own.Entity):\n    nulls: own.ClassVar = ('untrain',)\nown.probe('p', S)(len)",
         f"4: 'p' of probes: its settings must say `nulls: own.ClassVar = (...)`, with some of {NULLS}, majority"),
        ("class S(own.Entity):\n    n: 'Foo' = 3\nown.task('e', S)(len)",
         " the settings of 'e' of tasks: name 'Foo' is not defined"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_kind_is_refused_where_it_is_registered(code, line):
    Path("code/mine.py").write_text(f"from masklab import own\n{code}\n")
    message, wanted = said(), f"code/mine.py:{line}"
    assert message.startswith(wanted.removesuffix("...")) if line.endswith("...") else message == wanted


@pytest.mark.parametrize(
    ("check", "line"),
    [
        ("raise ValueError('no\\nprime')", "my.yaml:3: corpora.new.by: no prime"),
        (
            "return by + 'x'",
            "my.yaml:3: corpora.new: code/mine.py:14: TypeError: unsupported operand",
        ),
        ("raise MaskLabError('no prime')", "my.yaml:3: corpora.new: no prime"),
    ],
)
def test_a_check_of_ones_own_settings_is_said_with_their_place(check, line):
    checked = f"    @field_validator('by')\n    @classmethod\n    def prime(cls, by):\n        {check}\n"
    code = CODE.replace("    words: list[str] = []\n", f"    words: list[str] = []\n{checked}")
    code = code.replace("import Field", "import Field, field_validator\nfrom masklab.errors import MaskLabError")
    Path("code/mine.py").write_text(code)
    assert said().startswith(line) and "\n" not in said()


def test_a_notebook_is_no_file_of_code():
    Path("code/mine.ipynb").write_text("{}")
    Path("my.yaml").write_text(CONFIG.replace("mine.py", "mine.ipynb"))
    assert said() == "code/mine.ipynb: must be a Python file (.py)"


def test_two_files_cannot_register_one_name():
    Path("more.py").write_text("from masklab.config import kinds\nkinds.corpus('shifts', None)(len)\n")
    Path("my.yaml").write_text(CONFIG.replace("code/mine.py", "[code/mine.py, more.py]"))
    assert said() == "more.py: 'shifts' is already a kind among corpora, from code/mine.py"


def test_neighbours_of_two_files_cannot_have_one_name():
    """The second file would get the neighbour of the first."""
    Path("more").mkdir()
    Path("more/beside.py").write_text("VALUE = 6\n")
    Path("more/more.py").write_text("import beside\n")
    Path("my.yaml").write_text(CONFIG.replace("code/mine.py", "[code/mine.py, more/more.py]"))
    assert said() == "more/more.py: imports beside, a name that code/beside.py has taken already; rename one of them"
    Path("more/more.py").write_text("import random\n")
    assert read("my.yaml").corpora["new"].by == 2


def test_a_file_may_have_the_name_of_a_module():
    Path("code/mine.py").rename("code/random.py")
    Path("my.yaml").write_text(CONFIG.replace("mine.py", "random.py"))
    import random

    assert read("my.yaml").corpora["new"].by == 2 and hasattr(random, "shuffle")
    import secrets  # which imports random

    assert secrets


READINGS = '[own.Reading(name, "deep", probe="reading") for name in view.members]'
OWN = f"""
from masklab import own

for name in ("My-figure.2", "my figure", "comparison"):
    own.figure(name, lambda view: {READINGS})(len)


@own.claims("odd")
def claims(view):
    if "strict-phase1" not in view.recipes:
        return []
    return [own.Claim("odd", "", "", "one is above the other", own.difference(*{READINGS}))]
"""


def a_study(**keys) -> str:
    """What is said of the config with a study of these keys, whose figures and claims are a user's; "" if nothing."""
    Path("code/mine.py").write_text(CODE + OWN)
    study = {"panels": {"p": ["strict-mlm", "strict-kd"]}, "probes": {"read": "all", "minimal-pairs": "all"}} | keys
    Path("my.yaml").write_text(CONFIG + yaml.safe_dump({"studies": {"*": None, "s": study}}))
    try:
        opened(["my.yaml"])
    except MaskLabError as error:
        return str(error)
    return ""


def test_a_figure_of_ones_own_may_have_any_name_but_that_of_a_table():
    """It is a target and a file; two of one name would be one target, and one of them never made."""
    assert a_study(figures=["My-figure.2"], tables=["comparison"]) == ""
    assert "studies.s.figures: 'my figure': a name may contain only" in a_study(figures=["my figure"])
    said = a_study(figures=["comparison"], tables=["comparison"])
    assert "studies.s.tables: 'comparison' is the name of its figures too, and s_comparison would be both" in said


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("own.figure('f', lambda view: {}['x'])(len)", "figures: f: code/mine.py:38: KeyError: 'x' (or leave f out of"),
        (
            "own.figure('f', lambda view: [own.Reading('strict-mlm', 'acuracy', ('blimp',))])(len)",
            "my.yaml:13: studies.s.figures: f: no minimal_pairs probe, by which strict-mlm is read, gives a metric"
            " 'acuracy' (did you mean 'accuracy'?)",
        ),
        (
            "own.claims('c')(lambda view: [own.Claim('d', '', '', '', own.Reading('strict-mlm', 'acc', ('blimp',)))])",
            "my.yaml:12: studies.s.claims: d: no minimal_pairs probe, by which strict-mlm is read, gives a metric"
            " 'acc'; there are accuracy, accuracy_full_width, majority",
        ),
        ("own.figure('f', lambda view: None)(len)", "figures: f: chooses no reading of the study (or leave f out of"),
        ("own.claims('c')(lambda view: 1 / 0)", "code/mine.py:38: ZeroDivisionError: division by zero"),
        (
            "own.claims('c')(lambda view: ['x'])",
            "code/mine.py: 'c' of claims must return a list of own.Claim (got ['x'])",
        ),
    ],
)
def test_what_fails_in_a_users_file_is_said_with_its_line(code, message, monkeypatch):
    monkeypatch.setitem(globals(), "OWN", f"{OWN}{code}\n")
    assert message in a_study(figures=["f"] if "figure" in code else [], claims="all" if "claims" in code else [])


TABLES = "a dictionary of train, valid, test: Arrow tables with a column text, or symbols (got "
TASK = "two dictionaries: pandas or Arrow tables by split, and facts, `kind` among them (got "
ROWS = "a list of rows, each a dictionary of task, split, metric, value, n, ... (got "
ADDED = "rows without the keys recipe, replicate, step, probe, which are added to them (got "


@pytest.mark.parametrize(
    ("section", "returned", "message"),
    [
        ("corpora", "None", f"'k' of corpora must return {TABLES}None)"),
        ("corpora", "[t, t, t]", f"'k' of corpora must return {TABLES}an object of the class list)"),
        ("corpora", "dict(train=t, test=t)", f"{TABLES}its keys: ['train', 'test'])"),
        ("corpora", "dict(train=t, valid=t, test=t.to_pandas())", f"{TABLES}test: an object of the class DataFrame)"),
        ("corpora", "dict(train=t, valid=t, test=t.rename_columns(['words']))", f"{TABLES}columns of test: ['words'])"),
        (
            "corpora",
            "dict(train=t, valid=t, test=u)",
            "a text in every row of text (got test: row 2: None)",
        ),
        (
            "corpora",
            "dict(train=t, valid=t, test=n)",
            "texts in the column text (got test: row 1: 3)",
        ),
        ("tasks", "dict(train=t)", f"'k' of tasks must return {TASK}an object of the class dict)"),
        ("tasks", "(dict(test=[1]), dict(kind='labels'))", f"{TASK}test: [1])"),
        ("tasks", "(dict(train=t), dict(kind='labels'))", "the splits train, valid, test (got splits: ['train'])"),
        ("tasks", "(dict(test=t), dict(labels=2))", f"{TASK}facts: {{'labels': 2}})"),
        ("probes", "None", f"'k' of probes must return {ROWS}None)"),
        ("probes", "dict(value=1.0)", f"'k' of probes must return {ROWS}{{'value': 1.0}})"),
        ("probes", "[dict(value=1.0), 'value']", f"{ROWS}a row: 'value')"),
        ("probes", "[dict(metric='share', value=1.5)]", "share of 0 to 1, as its settings say (got value: 1.5)"),
        (
            "probes",
            "[dict(metric='majority', value=0.5), dict(metric='shares', value=0.5)]",
            "'k' of probes must return metrics that the `ranges` of its settings name, share (got metric: 'shares')",
        ),
        ("probes", "[dict(recipe='other', step=9)]", f"'k' of probes must return {ADDED}keys: ['recipe', 'step'])"),
    ],
)
def test_what_a_function_of_ones_own_returns_is_checked(section, returned, message):
    Path("code/mine.py").write_text(
        "import pyarrow as pa\nfrom masklab.config import kinds\n\n\n"
        "texts = lambda *each: pa.table({'text': each})\n"
        f"def made(*_, t=texts('a'), u=texts('a', None), n=texts(3)):\n    return {returned}\n\n\n"
        f"kinds.{SINGULAR[section]}('k', None)(made)\n"
    )
    kinds.load(["code/mine.py"])
    entry = SimpleNamespace(kind="k", ranges={"share": (0, 1)})
    ask = {
        "corpora": lambda: corpora.generate(entry, "c", 1),
        "tasks": lambda: tasks.build(entry, "t", 1),
        "probes": lambda: probes.run(SimpleNamespace(probe=entry)),
    }
    with pytest.raises(MaskLabError) as caught:
        ask[section]()
    assert str(caught.value).startswith("code/mine.py: ") and str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("valid", "message"),
    [
        ("texts[:0]", "at least one row in each of its tables (got rows of valid: 0)"),
        (
            "pa.table({'symbols': [3, 4]})",
            "symbols as `masklab.symbols.column` and `with_header` make them, lists of uint16 (got valid: symbols:"
            " 'int64')",
        ),
        (
            "pa.table({'symbols': column([0, 1], [2])})",
            "symbols with their names, by `masklab.symbols.column` and `with_header` (got valid: names: 'none')",
        ),
        (
            "with_header(pa.table({'symbols': column([0, 1, 2], [1, 2])}), ['a', 'b'])",
            "symbols that have a name, 0 to 1 (got valid: row 2: 2)",
        ),
        (  # whose token id had wrapped around to that of [MASK]
            "with_header(pa.table({'symbols': column([0, 65535], [1, 1])}), ['a', 'b'])",
            "symbols that have a name, 0 to 1 (got valid: row 2: 65535)",
        ),
        (
            "with_header(pa.table({'symbols': pa.array([[0], None], pa.list_(pa.uint16()))}), ['a', 'b'])",
            "symbols that have a name, 0 to 1 (got valid: row 2: None)",
        ),
    ],
)
def test_what_a_corpus_of_ones_own_holds_is_looked_at(valid, message):
    """What reads it fails later, and says nothing of the file that made it."""
    Path("code/mine.py").write_text(
        "import pyarrow as pa\nfrom masklab.config import kinds\n"
        "from masklab.symbols import column, with_header\n\n\n"
        "texts = pa.table({'text': ['a']})\n"
        "symbols = with_header(pa.table({'symbols': column([0, 1], [2])}), ['a', 'b'])\n"
        f"def made(config, name, seed):\n    return dict(train=texts, valid={valid}, test=symbols)\n\n\n"
        "kinds.corpus('k', None)(made)\n"
    )
    kinds.load(["code/mine.py"])
    made = corpora.generate(SimpleNamespace(kind="k"), "c", 1)
    with pytest.raises(MaskLabError) as caught:
        checked("k", made)
    assert str(caught.value) == f"code/mine.py: 'k' of corpora must return {message}"
    right = made | {"valid": made["train"]}
    assert checked("k", right) is right and checked("text", empty := {"test": made["train"][:0]}) is empty


@pytest.mark.parametrize("reader", ["", ".to_reader()"])
def test_texts_of_ones_own_may_be_categories(reader, tmp_path):
    """As a column of pandas that holds categories; what reads the corpus reads texts."""
    Path("code/mine.py").write_text(
        "import pyarrow as pa\nfrom masklab.config import kinds\n\n\n"
        "def made(config, name, seed):\n"
        "    table = pa.table({'text': pa.array(['a b', 'c', 'a b']).dictionary_encode(), 'n': [1, 2, 3]})\n"
        f"    return {{split: table{reader} for split in ('train', 'valid', 'test')}}\n\n\n"
        "kinds.corpus('k', None)(made)\n"
    )
    kinds.load(["code/mine.py"])
    made = checked("k", corpora.generate(SimpleNamespace(kind="k"), "c", 1))
    write_table(made["train"], tmp_path / "train.parquet")
    assert list(TextFile(tmp_path / "train.parquet")) == ["a b", "c", "a b"]


def test_what_a_function_of_ones_own_returns_may_come_one_by_one():
    Path("code/mine.py").write_text(
        "from masklab.config import kinds\nkinds.probe('k', None)(lambda context: ({'n': n} for n in (1, 2)))\n"
    )
    kinds.load(["code/mine.py"])
    assert probes.run(SimpleNamespace(probe=SimpleNamespace(kind="k"))) == [{"n": 1}, {"n": 2}]


def test_of_a_probe_without_ranges_the_schema_of_scores_judges():
    """Any metric is taken, and of what is no number no range of our own making is said."""
    Path("code/mine.py").write_text(
        "from masklab.config import kinds\n"
        "kinds.probe('k', None)(lambda context: [{'metric': 'free', 'value': float('nan')}])\n"
    )
    kinds.load(["code/mine.py"])
    assert probes.run(SimpleNamespace(probe=SimpleNamespace(kind="k")))[0]["metric"] == "free"


def test_claims_are_made_of_what_they_read():
    """The job that tests them gets no other recipe than these and those of panels."""
    assert a_study(claims="all", panels={"p": ["strict-mlm", "strict-phase1"]}) == ""
    said = a_study(claims="all", extra=["strict-phase1"], probes={"read": ["strict-mlm", "strict-kd"]})
    assert "studies.s.claims: 'odd' is another claim, or none, where the study has the recipes and probes alone" in said


ODD = """
from masklab import own


class Odd(own.Entity):
    \"\"\"Settings that are called as some of ours, and are something else.\"\"\"

    files: str
    chains: int = 3
    length: list[int] = [3, 9]


class States(own.Entity):
    sentences: list[str] = ["a b"]
    repeats: str = "never"
    replicates: str = "some"


class Rows(own.Entity):
    train: own.Count = 40


own.corpus("odd", Odd)(len)
own.probe("states", States)(len)
own.task("rows", Rows)(len)
"""
ODD_CONFIG = """\
code: odd.py
corpora: {odd: {kind: odd, files: lines.txt}}
tokenizers: {odd: {corpus: odd, vocab_size: 50, max_length: 64}}
models: {odd: {like: strict-phase1, corpus: odd, tokenizer: odd}}
tasks: {rows: {kind: rows}}
probes: {states: {kind: states}, tune: {like: finetune, tasks: [rows]}}
studies: {"*": null, s: {panels: {p: [odd]}, probes: {states: all, tune: all}}}
"""


def test_settings_and_kinds_may_be_called_anything():
    """As keys of ours, or as what the plan calls its own parts."""
    Path("odd.py").write_text(ODD)
    Path("lines.txt").write_text("a line of some words\n")
    Path("my.yaml").write_text(ODD_CONFIG)
    paths = opened(["my.yaml"])
    assert paths.notices == [] and paths.inputs("corpus", corpus="odd") == {"sources": ["lines.txt"]}
    plan = make_plan(paths.config, "cpu")
    assert plan.guessed == {"odd"} and plan.costs["probe", "states", "odd", "1", "all"].seconds > 0
