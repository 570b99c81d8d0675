"""Kinds: what an entry of the config can be, and where each kind is made.

`corpora`, `tasks` and `probes` have a key `kind`; `terms` are the keys of an objective; figures, tables and claims are
named by a study. Ours stand in `OURS`, as strings, so that reading a config imports nothing heavy. A user's file
(`code:` in the config) adds its own with the decorators below:

    @kinds.corpus("shifts", Shifts)            # Shifts: a class of settings, derived from `Entity`
    def generate(config, name, seed): ...

Entries of that kind have the keys of the class, `kind`, and those that every entry of their section has.
"""

import ast
import contextlib
import difflib
import functools
import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from masklab.config.check_kinds import check_function, check_name, check_settings
from masklab.config.located import shown
from masklab.errors import MaskLabError, in_one_line

SECTIONS = ("corpora", "tasks", "probes", "terms", "figures", "tables", "claims")


@dataclass(frozen=True)
class Kind:
    """One kind of entry.

    settings: the class of its keys, or where it is, "module:Class"; None where the config gives it none.
    make: what makes or measures it, or where that is, "module:function".
    modules: modules besides that of `make` whose code its artifacts depend on and no import shows.
    file: the user's file that registered it; None for ours.
    """

    section: str
    name: str
    settings: type | str | None
    make: Callable | str
    modules: tuple[str, ...] = ()
    file: str | None = None

    def function(self) -> Callable:
        """What makes it, imported now."""
        return imported(self.make)

    def refused(self, wanted: str, made, part: str = "") -> MaskLabError:
        """The error where the user's function returned `made`, or has it in the named part of what it returned."""
        said = _described(made)
        where = f"{shown(self.file)}: " if self.file else ""
        got = f"{part}: {said}" if part else said
        return MaskLabError(f"{where}{self.name!r} of {self.section} must return {wanted} (got {got})")

    def entity(self) -> type | None:
        """The class of its settings; of a user's kind with the keys that all kinds of its section have."""
        return imported(self.settings) if isinstance(self.settings, str) else _complete(self)

    def part(self) -> str:
        """What counts of the user's file: what makes the kind, "mine.py:draw", or all of it if that is not of it."""
        make = getattr(self.make, "make", self.make)  # of a figure or a table
        name = getattr(make, "__name__", "")
        is_its = name.isidentifier() and make.__qualname__ == name and _modules.get(make.__module__) == self.file
        return f"{self.file}:{name}" if is_its else self.file

    def code(self) -> tuple[str, ...]:
        """Modules that its artifacts are made by; of a user's kind none: `part` counts."""
        modules = (self.make.partition(":")[0],) if isinstance(self.make, str) else ()
        return (*modules, *self.modules)


def imported(value):
    """What "module:name" names, imported now; anything else is itself."""
    if not isinstance(value, str):
        return value
    module, _, name = value.partition(":")
    return getattr(importlib.import_module(module), name)


def _described(made) -> str:
    """What a user's function returned, in a few words."""
    if (shape := getattr(made, "shape", None)) is not None and (dtype := getattr(made, "dtype", None)) is not None:
        detached = " without a gradient" if getattr(made, "requires_grad", True) is False else ""
        return f"a {type(made).__name__} of shape {tuple(shape)} and type {dtype}{detached}"
    said = repr(made)
    return said if len(said) <= 80 and said.isprintable() else f"an object of the class {type(made).__name__}"


@functools.cache
def _complete(kind: Kind) -> type | None:
    """A user's class of settings, made one of its section: with `kind`, `redraw`, `steps`, ..."""
    from pydantic import create_model

    from masklab.config import schema

    bases = {"corpora": schema.Drawn, "tasks": schema.Drawn, "probes": schema.CorpusProbe}
    if kind.section not in bases:
        return kind.settings
    base = bases[kind.section]
    settings = kind.settings or base
    if kind.section == "probes" and settings is not base and "tasks" in settings.model_fields:
        base = schema.CheckpointProbe
    own = {} if "kind" in settings.model_fields else {"kind": (Literal[kind.name], kind.name)}
    parents = (settings,) if issubclass(settings, base) else (settings, base)
    model = create_model(settings.__name__, __base__=parents, __module__=settings.__module__, **own)
    model.__doc__ = settings.__doc__
    return model


def _ours(section: str, **kinds) -> dict[str, Kind]:
    made = {}
    for name, (settings, make, *modules) in kinds.items():
        name = name.replace("_", "-") if section in ("tasks",) else name
        made[name] = Kind(section, name, f"masklab.config.schema:{settings}", make, tuple(modules))
    return made


OURS: dict[str, dict[str, Kind]] = {
    "corpora": _ours(
        "corpora",
        text=("TextCorpus", "masklab.corpora.text:generate"),
        english=("EnglishCorpus", "masklab.corpora.english:generate"),
        markov=("MarkovCorpus", "masklab.corpora.markov:generate", "masklab.corpora.markov.law"),
        hmm=("HmmCorpus", "masklab.corpora.hmm:generate", "masklab.corpora.hmm.law"),
        pcfg=("PcfgCorpus", "masklab.corpora.pcfg:generate", "masklab.corpora.pcfg.law"),
        causal=("CausalCorpus", "masklab.corpora.causal:generate", "masklab.corpora.causal.law"),
    ),
    "tasks": _ours(
        "tasks",
        english_pairs=("EnglishPairs", "masklab.tasks.generated:english_pairs"),
        pair_files=("PairFiles", "masklab.tasks.pair_files:pair_files"),
        english_labels=("EnglishLabels", "masklab.tasks.generated:english_labels"),
        label_files=("LabelFiles", "masklab.tasks.label_files:label_files"),
        babylm_pairs=("BabylmPairs", "masklab.tasks.pair_files:babylm_pairs"),
        babylm_labels=("BabylmLabels", "masklab.tasks.label_files:babylm_labels"),
        english_ratings=("EnglishRatings", "masklab.tasks.generated:english_ratings"),
        english_spans=("EnglishSpans", "masklab.tasks.squad:english_spans"),
        glue=("GlueTask", "masklab.tasks.glue:glue"),
        squad=("SquadTask", "masklab.tasks.squad:squad"),
        patterns=("PatternsTask", "masklab.tasks.patterns:patterns"),
        hmm=("HmmTask", "masklab.tasks.hidden:hidden_states"),
        pcfg=("PcfgTask", "masklab.tasks.nonterminals:nonterminals"),
        next_word=("NextWord", "masklab.tasks.next_word:next_words"),
        restricted_labels=("RestrictedLabels", "masklab.tasks.restricted_labels:restricted_labels"),
    ),
    "probes": _ours(
        "probes",
        minimal_pairs=("MinimalPairsProbe", "masklab.probes.minimal_pairs:measure"),
        finetune=("FinetuneProbe", "masklab.probes.finetune:measure"),
        prediction=("PredictionProbe", "masklab.probes.prediction:measure"),
        loss=("LossProbe", "masklab.probes.loss:measure"),
        curvature=("CurvatureProbe", "masklab.probes.curvature:measure"),
        landscape=("LandscapeProbe", "masklab.probes.landscape:measure"),
        linear_probe=("LinearProbe", "masklab.probes.linear_probe:measure"),
        rank=("RankProbe", "masklab.probes.rank:measure"),
        cost=("CostProbe", "masklab.probes.cost:measure"),
        replaced=("ReplacedProbe", "masklab.probes.replaced:measure"),
        paraphrased=("ParaphrasedProbe", "masklab.probes.paraphrased:measure"),
    ),
    "terms": _ours(
        "terms",
        mlm=("Mlm", "masklab.objectives.mlm:Mlm"),
        kd=("Kd", "masklab.objectives.kd:Kd"),
        mlsm=("Mlsm", "masklab.objectives.mlsm:Mlsm"),
        mae=("Mae", "masklab.objectives.mae:Mae"),
        adversarial=("Adversarial", "masklab.objectives.adversarial:Adversarial"),
        sharpness=("Sharpness", "masklab.objectives.sharpness:Sharpness"),
    ),
    "figures": {},
    "tables": {},
    "claims": {},
}
_yours: dict[str, dict[str, Kind]] = {section: {} for section in SECTIONS}
_read: dict[str, list[Kind]] = {}  # a user's file that was imported -> what it registered
_reading: str | None = None  # the one that is being imported
_modules: dict[str, str] = {}  # name of a module that a user's files were imported as -> its file
_marks: dict[str, str | None] = {}  # each of these files -> the hash of what was imported
_folders: list[str] = []  # that were added to sys.path for them


def known(section: str) -> dict[str, Kind]:
    """Every kind of a section by name, ours first."""
    return OURS[section] | _yours[section]


def find(section: str, name: str) -> Kind:
    """The kind of that name; MaskLabError says which there are."""
    kinds = known(section)
    if not isinstance(name, str) or name not in kinds:
        close = difflib.get_close_matches(str(name), kinds, n=1, cutoff=0.65)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise MaskLabError(f"no kind {name!r} among {section}; kinds: {', '.join(kinds) or 'none'}{hint}")
    return kinds[name]


def term_with_file(name: str) -> str:
    """A term of an objective as messages name it: with its file, if it is a user's."""
    file = find("terms", name).file
    return f"{name} of {shown(file)}" if file else name


def load(files) -> None:
    """Import a user's files by their paths, and know the kinds that they register in place of those of other files.

    A file may import others of its own folder. They are imported once in a process, and anew where one of them has
    changed or other files were loaded in between. Raises MaskLabError, with file and line, for what is wrong in one: an
    error while it is imported, a name that is taken by a kind of ours or of another of these files.
    """
    global _reading
    files, mine = list(map(str, files)), {}
    if not _read.keys() <= {*files} or any(_mark(file) != mark for file, mark in _marks.items()):
        _forget()
    for file in files:
        if file not in _read:
            _reading, _read[file] = file, []
            try:
                _import(Path(file))
                for kind in _read[file]:
                    _build(kind)
            except BaseException:
                _forget()
                raise
            finally:
                _reading = None
        for kind in _read[file]:
            other = mine.setdefault((kind.section, kind.name), kind)
            if other.file != file:
                message = f"{kind.name!r} is already a kind among {kind.section}, from {shown(other.file)}"
                raise MaskLabError(f"{shown(file)}: {message}")
    for section, known in _yours.items():
        for name in [name for name, kind in known.items() if kind.file is not None]:
            del known[name]
        known |= {kind.name: kind for kind in mine.values() if kind.section == section}


def _build(kind: Kind) -> None:
    """MaskLabError where pydantic can make nothing of a class of settings, which it reads when it is first used."""
    from pydantic import PydanticUndefinedAnnotation, PydanticUserError

    try:
        if (entity := kind.entity()) is not None:
            entity.model_rebuild()
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        said = str(error).splitlines()[0]
        raise MaskLabError(f"{shown(kind.file)}: the settings of {kind.name!r} of {kind.section}: {said}") from None


def _forget() -> None:
    """Let no module of a user's files be imported any more."""
    for name in _modules:
        sys.modules.pop(name, None)
    sys.path[:] = [folder for folder in sys.path if folder not in _folders]
    for known in (_read, _modules, _marks, _folders):
        known.clear()


def _mark(file: str) -> str | None:
    """The hash of a file; None: it is not there."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def _import(path: Path) -> None:
    if not os.path.isfile(path):
        raise MaskLabError(f"{shown(path)}: no such file")
    if path.suffix != ".py":
        raise MaskLabError(f"{shown(path)}: must be a Python file (.py)")
    if (folder := str(path.parent)) not in sys.path:
        sys.path.append(folder)  # for what it imports from beside itself, now and later
        _folders.append(folder)
    importlib.invalidate_caches()
    name = path.stem  # by which it can be pickled, unless another module has it
    if "." in name or name in sys.modules or importlib.util.find_spec(name).origin != str(path):
        name = f"{name.replace('.', '_')}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    module, before = importlib.util.module_from_spec(spec), {*sys.modules}
    sys.modules[name] = module
    try:
        _check_neighbours(path)
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, MaskLabError):
            raise MaskLabError(f"{_line(error, path)}: {error}") from None
        if isinstance(error, SyntaxError):
            line = f":{error.lineno}" if error.lineno else ""
            raise MaskLabError(f"{shown(error.filename or path)}{line}: {error.msg}") from None
        if isinstance(error, Exception | SystemExit):
            raise MaskLabError(f"{_line(error, path)}: {_told(error)}") from error
        raise
    finally:
        _marks[str(path)] = _mark(str(path))
        for other in sys.modules.keys() - before:
            _note(other, path.parent)


def _check_neighbours(path: Path) -> None:
    """MaskLabError where a file imports a neighbour whose name a module of another folder has taken already."""
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
        for name in (name.partition(".")[0] for name in names):
            own = [path.parent / f"{name}.py", path.parent / name / "__init__.py"]
            if (other := _modules.get(name)) and any(file.is_file() and str(file) != other for file in own):
                raise MaskLabError(f"imports {name}, a name that {shown(other)} has taken already; rename one of them")


def _note(name: str, folder: Path) -> None:
    """Keep in mind a module that a user's file has imported, if it lies beside it and is no library."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None or not Path(file).is_relative_to(folder) or Path(file).is_relative_to(sys.prefix):
        return
    if name.partition(".")[0] != "masklab":
        _modules[name], _marks[file] = file, _mark(file)


@contextlib.contextmanager
def blamed():
    """Errors within that a user's file raises are MaskLabErrors with its file and line; any other is a bug of ours."""
    try:
        yield
    except MaskLabError:
        raise
    except (Exception, SystemExit) as error:
        if said := blame(error):
            raise MaskLabError(said) from error
        raise


def blame(error: BaseException) -> str | None:
    """File and line of a user's own that an error went through last, and the error, in one line; None: it is ours."""
    files, frames = {*_read, *_modules.values()}, traceback.extract_tb(error.__traceback__)
    lines = [f"{shown(frame.filename)}:{frame.lineno}" for frame in frames if frame.filename in files]
    return f"{lines[-1]}: {_told(error)}" if lines else None


def _told(error: BaseException) -> str:
    """The name of an error and what it says, in one line."""
    said = in_one_line(error) if str(error) else ""
    return f"{type(error).__name__}{': ' if said else ''}{said}"


def _line(error, path) -> str:
    """`file:line` of the user's own that an error went through last."""
    frames = traceback.extract_tb(error.__traceback__)
    frames_of_user = [frame for frame in frames if Path(frame.filename).is_relative_to(path.parent)]
    return f"{shown(frames_of_user[-1].filename)}:{frames_of_user[-1].lineno}" if frames_of_user else shown(path)


def register(section: str, name: str, settings=None, modules=(), wrap=None):
    """Decorator that adds a kind of a user's file. wrap: what is kept in place of the decorated function."""

    check_name(section, name)

    def decorate(make):
        mine = _read.get(_reading, [])
        if name in OURS[section] or any((k.section, k.name) == (section, name) for k in mine):
            raise MaskLabError(f"{name!r} is already a kind among {section}; choose another name")
        check_settings(section, name, settings)
        check_function(section, name, make)
        kept = make if wrap is None else wrap(make)
        kind = Kind(section, name, settings, kept, tuple(modules), _reading)
        if _reading is None:  # by hand, as in a notebook
            _yours[section][name] = kind
        mine.append(kind)
        return make

    return decorate


def corpus(name: str, settings: type, *modules: str):
    """Register `generate(config, name, seed) -> {split: pyarrow.Table}` as a kind of corpus."""
    return register("corpora", name, settings, modules)


def task(name: str, settings: type, *modules: str):
    """Register `build(config, name, seed) -> ({split: table}, facts)` as a kind of task."""
    return register("tasks", name, settings, modules)


def probe(name: str, settings: type, *modules: str):
    """Register `measure(context) -> rows` as a kind of probe."""
    return register("probes", name, settings, modules)


def term(name: str, settings: type, *modules: str):
    """Register a class of `masklab.objectives.Term` as a term that objectives can have."""
    return register("terms", name, settings, modules)
