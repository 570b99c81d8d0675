"""Code by its meaning: what changes a fingerprint, and what belongs to a job's code."""

import ast
import json
import pickle
import shutil
from pathlib import Path

import pytest

from masklab.config import kinds
from masklab.jobs.code import NOTHING, Code, Sources, is_of_user, today
from masklab.jobs.syntax import Texts

ROOT = Path(__file__).parents[1]
FILES = {
    "masklab/__init__.py": "",
    "masklab/errors.py": "class MaskLabError(Exception): ...",
    "masklab/jobs/__init__.py": "",
    "masklab/jobs/progress.py": "from masklab.deep import NEVER",
    "masklab/deep.py": "NEVER = 1",
    "masklab/config/__init__.py": "from masklab.config.references import checkpoints, other",
    "masklab/config/references.py": """
import re
STEPS = 5
def checkpoints(model): return helper(STEPS)
def helper(n): return re.sub("a", "b", n)
def other(): return unused
unused = 1
""",
    "masklab/config/kinds.py": "OURS = {}",
    "masklab/config/schema/__init__.py": "from masklab.config.schema.models import Model, Mask, Other",
    "masklab/config/schema/base.py": "Count = int\nShare = float",
    "masklab/config/schema/models.py": '''
"""Models."""
from pydantic import Field
from masklab.config.schema.base import Count, Share
class Mask:
    """How."""
    rate: Share = Field(0.15, description="Share.")
class Model:
    mask: "Mask"
    steps: Count
class Other:
    rate: Share
''',
    "masklab/loop.py": '''
"""The loop."""
from masklab.config import checkpoints, kinds
from masklab.config.schema import Model
from masklab.errors import MaskLabError
from masklab.jobs.progress import Progress
def train(model: Model) -> None:
    """Train."""
    from masklab import lazy  # when it is needed
    return lazy.run(1, "text")
''',
    "masklab/lazy.py": "def run(a, b): return a",
    "masklab/kind.py": "RATE = 1",
    "scripts/train.py": "from _job import job\nfrom masklab.loop import train\ntrain(1)",
    "scripts/_job.py": "import masklab.deep",
    "mine/mine.py": "import helper\nfrom masklab.lazy import run\nimport torch",
    "mine/helper.py": "A = 1",
}


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def code(checkout, *roots):
    return Sources(checkout, checkout / "scripts").of("train.py", *roots)


def edit(checkout, name, before, after):
    path = checkout / name
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))


def test_a_job_s_code_is_what_it_imports_and_of_the_config_what_is_used(checkout):
    assert set(code(checkout).modules) == {
        "workflow/scripts/train.py",
        "masklab.loop",
        "masklab.lazy",
        "masklab.config.references:checkpoints",
        "masklab.config.references:helper",
        "masklab.config.references:STEPS",
        "masklab.config.schema.models:Model",
        "masklab.config.schema.models:Mask",
        "masklab.config.schema.base:Count",
        "masklab.config.schema.base:Share",
    }


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("masklab/loop.py", '"""Train."""', '"""Trains a model."""'),
        ("masklab/loop.py", '"""The loop."""\n', ""),
        ("masklab/loop.py", "  # when it is needed", ""),
        ("masklab/loop.py", "lazy.run(1, ", "lazy.run(\n        1,\n        "),
        ("masklab/config/schema/models.py", '"""How."""', '"""Which tokens."""'),
        ("masklab/config/schema/models.py", 'description="Share."', 'description="Share of tokens."'),
        ("masklab/config/schema/models.py", "class Other:\n    rate: Share", "class Other:\n    rate: int"),
        ("masklab/config/references.py", "unused = 1", "unused = 2"),
        ("masklab/errors.py", "...", "name = 1"),
        ("masklab/jobs/progress.py", "NEVER", "ALWAYS"),
        ("masklab/deep.py", "1", "2"),
        ("masklab/config/kinds.py", "{}", "{1: 2}"),
        ("scripts/_job.py", "deep", "loop"),
    ],
)
def test_what_cannot_change_a_result_counts_for_nothing(checkout, name, before, after):
    was = code(checkout)
    edit(checkout, name, before, after)
    assert code(checkout) == was and code(checkout).modules == was.modules


@pytest.mark.parametrize(
    ("name", "before", "after", "part"),
    [
        ("masklab/loop.py", '"text"', '"word"', "masklab.loop"),
        ("masklab/lazy.py", "return a", "return b", "masklab.lazy"),
        ("masklab/config/schema/models.py", "0.15", "0.2", "masklab.config.schema.models:Mask"),
        ("masklab/config/schema/base.py", "float", "int", "masklab.config.schema.base:Share"),
        ("masklab/config/references.py", "STEPS = 5", "STEPS = 6", "masklab.config.references:STEPS"),
        ("masklab/config/references.py", '"b", n', '"c", n', "masklab.config.references:helper"),
        ("scripts/train.py", "train(1)", "train(2)", "workflow/scripts/train.py"),
    ],
)
def test_what_can_does_and_is_named(checkout, name, before, after, part):
    was = code(checkout)
    edit(checkout, name, before, after)
    now = code(checkout)
    assert now != was and {key for key, mark in now.modules.items() if was.modules[key] != mark} == {part}


def test_roots_are_modules_names_and_user_files_with_what_lies_beside(checkout):
    mine = str(checkout / "mine/mine.py")
    found = code(checkout, "masklab.kind", "masklab.config.schema:Other", mine)
    assert set(found.modules) - set(code(checkout).modules) == {
        "masklab.kind", "masklab.config.schema.models:Other", "mine.py", "helper.py",
    }  # fmt: skip
    edit(checkout, "mine/helper.py", "1", "2")
    assert code(checkout, mine) != found


@pytest.mark.parametrize("line", ["from tools.rates import RATE", "from tools import rates", "import tools.rates"])
def test_a_package_beside_a_users_file_counts(checkout, line):
    (checkout / "mine/tools").mkdir()
    (checkout / "mine/mine.py").write_text(line)
    (checkout / "mine/tools/__init__.py").write_text("ALL = 1")
    (checkout / "mine/tools/rates.py").write_text("RATE = 1")
    mine = str(checkout / "mine/mine.py")
    found = code(checkout, mine)
    assert {"rates.py", "__init__.py"} <= {*found.modules}
    edit(checkout, "mine/tools/rates.py", "1", "2")
    assert code(checkout, mine) != found


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("from .core import RATE", "tools/deep/core.py"),
        ("from . import core", "tools/deep/core.py"),
        ("from ..core import RATE", "tools/core.py"),
        ("from .. import core", "tools/core.py"),
        ("from tools.core import RATE", "tools/core.py"),
        ("import tools.deep.core", "tools/deep/core.py"),
    ],
)
def test_what_a_module_within_a_users_package_imports_counts(checkout, line, read):
    for name in ("tools/__init__.py", "tools/core.py", "tools/deep/__init__.py", "tools/deep/core.py"):
        (checkout / "mine" / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / "mine" / name).write_text("RATE = 1")
    (checkout / "mine/tools/deep/rates.py").write_text(line)
    (checkout / "mine/mine.py").write_text("import tools.deep.rates")
    found = code(checkout, str(checkout / "mine/mine.py"))
    edit(checkout, f"mine/{read}", "1", "2")
    assert code(checkout, str(checkout / "mine/mine.py")) != found


def test_what_a_file_says_is_kept_and_known_again_by_its_text(checkout, monkeypatch):
    sources = Sources(checkout, checkout / "scripts")
    mine = str(checkout / "mine/mine.py")
    found = sources.of("train.py", mine)
    sources.keep()
    kept = checkout / "masklab/__pycache__/syntax.json"
    assert {str(checkout / name) for name in ("masklab/loop.py", "mine/helper.py")} < set(json.loads(kept.read_text()))
    parse, parsed = ast.parse, []

    def counted(text, *file, **how):  # an annotation has no file
        parsed.extend(Path(name).name for name in file)
        return parse(text, *file, **how)

    monkeypatch.setattr(ast, "parse", counted)
    assert code(checkout, mine).modules == found.modules and not parsed
    edit(checkout, "masklab/lazy.py", "return a", "return b")  # of the same length, perhaps in the same instant
    edit(checkout, "masklab/config/references.py", "STEPS = 5", "STEPS = 6")
    again = Sources(checkout, checkout / "scripts")
    changed = again.of("train.py", mine).modules
    assert parsed == ["lazy.py", "references.py"] or parsed == ["references.py", "lazy.py"]
    differing = {part for part in changed if changed[part] != found.modules[part]}
    assert differing == {"masklab.lazy", "masklab.config.references:STEPS"}
    (checkout / "mine/helper.py").unlink()
    again.keep()
    assert not [name for name in json.loads(kept.read_text()) if "helper" in name]
    for broken in ("{", "[]", json.dumps(dict.fromkeys(json.loads(kept.read_text()), 1))):
        kept.write_text(broken)
        assert code(checkout).modules.items() < changed.items()


OWN = """
import functools
import helper
import painted
from masklab import own
SIZE = 3
TABLE = {"a": 1}
class Shifts(own.Entity):
    rate: float = 1
@own.corpus("shifts", Shifts)
def generate(config, name, seed):
    return used(SIZE) + helper.A
@functools.cache
def used(n):
    return n
def choose(view):
    return LABEL
LABEL = "MRR"
@own.figure("drawn", choose)
def draw(results, chosen):
    return painted, other()
def other():
    return TABLE
"""


@pytest.fixture
def own(checkout):
    for name, text in (("own", OWN), ("painted", "COLOUR = 1"), ("registry", "def rule(f): return f")):
        (checkout / f"mine/{name}.py").write_text(text)
    return checkout


def of_own(checkout, name):
    return code(checkout, f"{checkout}/mine/own.py:{name}").modules


def test_of_a_users_file_what_makes_a_kind_counts_and_what_it_uses(own):
    of_users = {part for part in of_own(own, "generate") if not part.startswith(("masklab", "workflow"))}
    names = {f"own.py:{name}" for name in ("generate", "used", "SIZE", "Shifts", "<module>")}
    assert of_users == {*names, "helper.py"}
    of_users = {part for part in of_own(own, "draw") if not part.startswith(("masklab", "workflow"))}
    assert of_users == {
        *(f"own.py:{name}" for name in ("draw", "choose", "LABEL", "other", "TABLE", "<module>")),
        "painted.py",
    }


BOTH = {"generate", "draw"}


@pytest.mark.parametrize(
    ("file", "before", "after", "differs"),
    [
        ("own", '"MRR"', '"MRR of the last word"', {"draw"}),
        ("own", "return painted, other()", "return other(), painted", {"draw"}),
        ("own", "{'a': 1}".replace("'", '"'), "{}", {"draw"}),
        ("own", "def other():", "def more():\n    pass\ndef other():", set()),
        ("painted", "1", "2", {"draw"}),
        ("own", "SIZE = 3", "SIZE = 4", {"generate"}),
        ("own", "return n", "return -n", {"generate"}),
        ("own", "rate: float = 1", "rate: float = 2", {"generate"}),
        ("own", "+ helper.A", "- helper.A", {"generate"}),
        ("own", "import painted", "import painted, registry", BOTH),
        ("own", "def other():", "helper.A = 2\ndef other():", BOTH),
        ("own", "def other():", "TABLE[1] = 2\ndef other():", BOTH),
        ("own", "def other():", "MADE = used(2)\ndef other():", BOTH),
        ("own", "def other():", "for _ in range(2):\n    pass\ndef other():", BOTH),
        ("own", "SIZE = 3", "if used:\n    SIZE = 3", BOTH),
        ("own", "def other():", "from registry import rule\n@rule\ndef more(): pass\ndef other():", BOTH),
        ("own", "def other():", "import torch\n@torch.no_grad()\ndef more(): pass\ndef other():", set()),
        ("own", "def other():", "from torch import library\n@library.f('a')\ndef more(): pass\ndef other():", BOTH),
        ("own", "def other():", "import torch\n@torch.library.f('a')\ndef more(): pass\ndef other():", BOTH),
        ("own", "def other():", "import registry\nclass More(registry.Base): pass\ndef other():", BOTH),
        ("own", "def other():", "class More:\n    print(1)\ndef other():", BOTH),
        ("own", "return painted, other()", "return globals()", BOTH),
    ],
)  # fmt: skip
def test_an_edit_of_a_users_file_changes_what_it_can_change(own, file, before, after, differs):
    names = ("generate", "draw")
    found = {name: of_own(own, name) for name in names}
    edit(own, f"mine/{file}.py", before, after)
    assert {name for name in names if of_own(own, name) != found[name]} == differs


def test_a_file_that_may_reach_all_that_it_holds_counts_as_a_whole(own):
    whole = {"own.py", "helper.py", "painted.py"}
    assert whole < of_own(own, "made_at_run_time").keys() and not whole < of_own(own, "generate").keys()
    before = "n"
    for after in ("n.eval()", "n.modules()", "sys.modules", "n.__dict__", "eval(n)", "sorted(n, metaclass=n)"):
        edit(own, "mine/own.py", f"return {before}\n", f"return {after}\n")
        before, methods = after, after in ("n.eval()", "n.modules()")
        assert (whole < of_own(own, "generate").keys()) != methods, after


def test_a_record_of_parts_of_a_users_file_is_compared_with_the_file_of_today(own):
    file = str(own / "mine/own.py")
    noted = {part: mark for part, mark in of_own(own, "generate").items() if is_of_user(part)}
    assert today(noted, [file], "") == noted
    edit(own, "mine/own.py", "return n", "return -n")
    edit(own, "mine/own.py", "painted, other()", "painted")
    edit(own, "mine/own.py", "SIZE = 3", "")
    now = today(noted, [file], "")
    assert {part for part in noted if now.get(part) != noted[part]} == {"own.py:used", "own.py:SIZE"}


def test_users_files_of_one_name_are_told_apart(checkout):
    files = [str(checkout / folder / "probe.py") for folder in ("one", "two")]
    for file in files:
        Path(file).parent.mkdir()
        Path(file).write_text("import helper")
        Path(file).with_name("helper.py").write_text(f"A = {file!r}")
    sources = Sources(checkout, checkout / "scripts")
    first, second = (set(sources.of("train.py", file, files=files).modules) for file in files)
    assert {"one/probe.py", "one/helper.py"} == first - second and {"two/probe.py", "two/helper.py"} == second - first
    assert {"probe.py", "helper.py"} < set(sources.of("train.py", files[0], files=files[:1]).modules)
    Path(files[0]).write_text("from folder import probe")  # another file of its name, which it comes to import
    (checkout / "one/folder").mkdir()
    (checkout / "one/folder/probe.py").write_text("")
    alone = Sources(checkout, checkout / "scripts").of("train.py", files[0], files=files[:1])
    assert {"probe.py", "folder/probe.py"} < set(alone.modules)


def test_the_description_of_a_key_of_a_users_kind_counts_for_nothing(checkout):
    mine = checkout / "mine/mine.py"
    mine.write_text(
        'from masklab import own\nclass Mine(own.Entity):\n    rate: float = own.Field(1, description="Rate.")'
    )
    found = code(checkout, str(mine))
    edit(checkout, "mine/mine.py", "Rate.", "Share.")
    assert code(checkout, str(mine)) == found
    edit(checkout, "mine/mine.py", "Field(1", "Field(2")
    assert code(checkout, str(mine)) != found


def test_it_does_not_depend_on_where_the_checkout_lies(checkout, tmp_path):
    other = tmp_path / "elsewhere"
    shutil.copytree(checkout, other, ignore=shutil.ignore_patterns("elsewhere"))
    mine = "mine/mine.py"
    assert code(checkout, str(checkout / mine)) == code(other, str(other / mine))


def test_a_fingerprint_travels_with_its_parts(checkout):
    found = code(checkout)
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.modules == found.modules and repr(again) == repr(str(found))
    assert Code.of(dict(reversed(found.modules.items()))) == found


def test_of_the_real_checkout_nothing_that_reports_counts(tmp_path):
    sources = Sources(ROOT / "src", ROOT / "workflow/scripts")
    for script in sorted((ROOT / "workflow/scripts").glob("[a-z]*.py")):
        found = sources.of(script.name)
        assert not [name for name in found.modules if name.startswith(NOTHING)]
        if script.stem not in ("claims", "all_claims", "figure", "table", "pages"):
            assert "masklab.config.schema:Config" not in found.modules, f"{script.name} reads the whole schema"
    (tmp_path / "mine.py").write_text("from masklab import own\n")  # which checks what is registered
    found = sources.of("corpus.py", str(tmp_path / "mine.py"))
    assert "masklab.own" in found.modules and not [name for name in found.modules if "kinds" in name]
    tune = kinds.find("probes", "finetune")
    names = sources.of("probe.py", *tune.code(), tune.settings).modules
    assert "masklab.config.schema.probes:FinetuneProbe" in names and "masklab.probes.finetune" in names
    assert "masklab.config.schema.probes:LossProbe" not in names and "masklab.probes.loss" not in names
    assert not [name for name in names if name.startswith("masklab.training")]  # settings of pre-training do not count


def test_a_string_mentions_a_name_in_annotations_alone(tmp_path):
    """A figure and a claim that are called like a term's function do not hang on it."""
    (tmp_path / "own.py").write_text("""
def span(): ...
class Kind: ...
def figure(): return "span"
def typed(a: "Kind | None", *, b: "list[Kind]") -> "span": ...
held: "Kind" = None
""")
    names = Texts(tmp_path / "kept.json").names(tmp_path / "own.py")
    found = {name: meaning.mentioned for name, meaning in names.items()}
    assert (found["figure"], found["typed"], found["held"]) == ([], ["Kind", "span"], ["Kind"])
