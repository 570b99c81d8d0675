"""The code that an artifact is made by, known by what it means and not by how it is written.

A job's code is its script, every masklab module that this imports, directly or not, and the modules of the kinds that
the job uses, which no import shows. Each is known by its syntax tree, without comments, docstrings, positions and the
`description` of a config key; so only an edit that can change what Python does changes the fingerprint. Of
`masklab.config` only what is used counts, not whole files: a class of the schema, a function, and what these refer to.
So it is in a user's file: the function or class that makes a kind, what it mentions, and what the file does when it is
imported; an edit to a figure trains nothing again.

Light, since the workflow asks while it is parsed.
"""

import contextlib
import os
import time
from pathlib import Path

from masklab.files import fingerprint
from masklab.jobs.syntax import DIGITS, MODULE, Texts

# What cannot change a result: it reports (progress, errors), keeps the books (provenance, store, this module), starts
# jobs (`_job`, warm), plans or is asked by hand (plan, cli, status, document), or says where code lies that counts
# itself (kinds). It counts for nothing, and so does what it alone imports.
NOTHING = ("_job", "masklab.cli", "masklab.compare", "masklab.config.check_kinds", "masklab.config.document",
           "masklab.config.kinds", "masklab.errors", "masklab.jobs.backfill", "masklab.jobs.code",
           "masklab.jobs.housekeeping", "masklab.jobs.lacking",
           "masklab.jobs.locks", "masklab.jobs.progress", "masklab.jobs.provenance",
           "masklab.jobs.queued", "masklab.jobs.remaining",
           "masklab.jobs.run_log", "masklab.jobs.status", "masklab.jobs.store", "masklab.jobs.syntax",
           "masklab.jobs.underway",
           "masklab.jobs.warm", "masklab.plan")  # fmt: skip
BY_NAME = "masklab.config"  # the package of which only what is used counts
SCRIPTS = "workflow/scripts/"  # before the name of a script in a record
BESIDE = f"{SCRIPTS}_"  # ... and of what scripts import from beside themselves
CHECKOUT = Path(__file__).parents[3]
BEGAN = "MASKLAB_BEGAN"  # in the environment of a run: when its Snakemake began to read the code


class Code(str):
    """Fingerprint of the code of a job, hexadecimal.

    modules: name of each part of it -> that part's fingerprint. changed: parts that have changed since submission.
    files: a user's files, which the job imports so that it knows their kinds.
    """

    modules: dict[str, str]
    changed: list[str]
    files: list[str]

    @classmethod
    def of(cls, modules: dict[str, str]) -> "Code":
        code = cls(fingerprint(modules)[:DIGITS])
        code.modules, code.changed, code.files = dict(sorted(modules.items())), [], []
        return code


class Sources:
    """The source files of a checkout. library: the folder that holds `masklab/`; scripts: that of the scripts.

    broken: the fingerprint of what is no Python; None: that is an error.
    """

    def __init__(self, library, scripts, broken: str | None = None):
        self.library, self.scripts, self.broken = Path(library), Path(scripts), broken
        self._texts, self._parts, self._codes = Texts(self.library / "masklab/__pycache__/syntax.json"), {}, {}

    def of(self, script: str, *roots: str, files=()) -> Code:
        """The code of a job.

        roots: what it uses beside its script: "module", "module:name", or a user's file by its absolute path, alone or
        with a name of it ("/home/me/mine.py:draw").
        files: all files of the user's that the config names, among which those of the roots are told apart by name.
        """
        key = (script, tuple(files), *sorted(set(roots)))
        if key not in self._codes:
            self._codes[key] = Code.of(self._closure([script, *roots], files))
        return self._codes[key]

    def keep(self) -> None:
        """Leave what was found of the files for the next command."""
        self._texts.keep()

    def _closure(self, roots, files=()):
        waiting = [part for root in roots for part in self._start(root)]
        seen, meanings = set(waiting), {}
        while waiting:
            part = waiting.pop()
            meaning, used = self._part(part)
            if meaning is not None:
                meanings[part] = meaning
            for other in used:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        own = list(dict.fromkeys([*files, *(cut(root)[0] for root in roots if os.path.isabs(root))]))
        called = self._names(own) if any(map(os.path.isabs, meanings)) else {}
        return {self._called(part, called): meaning for part, meaning in meanings.items()}

    def _names(self, files) -> dict[str, str]:
        """What a user's files, and those that they import from beside themselves, are called in a record.

        The names of `files` depend on these alone, so that they are the same when the imports have changed.
        """
        found, waiting = dict.fromkeys(files), list(files)
        while waiting:
            for part in self._part(waiting.pop())[1]:
                if os.path.isabs(part) and part not in found:
                    found[part] = None
                    waiting.append(part)
        return told_apart(found) | told_apart(files)

    def _start(self, root):
        of, name = cut(root)
        if not of.endswith(".py"):
            return self._named(of, name)
        known = self._texts.names(self._file(of)) if name else {}
        return [root, f"{of}:{MODULE}"] if {name, MODULE} <= known.keys() else [of]

    def _called(self, part, called):
        """What a part is called in a record, the same in every checkout; called: of a user's files."""
        of, name = cut(part)
        if not of.endswith(".py"):
            return part
        own = not Path(of).is_absolute() or Path(of).parent == self.scripts  # a script, or what one imports
        return (called.get(of) or (SCRIPTS if own else "") + Path(of).name) + (f":{name}" if name else "")

    # --- parts: a whole file, or "module:name", what one name of a module stands for ---

    def _part(self, part):
        """(fingerprint or None, the parts that it uses)."""
        if part not in self._parts:
            of, name = cut(part)
            try:
                self._parts[part] = self._one(of, name) if name else self._whole(part)
            except (SyntaxError, ValueError):  # of a null byte, or of bytes that are no UTF-8
                if self.broken is None:
                    raise
                self._parts[part] = self.broken, []
        return self._parts[part]

    def _of_user(self, file, name) -> str | None:
        """Fingerprint of a user's file, or of a name of it; None: it has no such name."""
        with contextlib.suppress(SyntaxError, ValueError):
            if name and name not in self._texts.names(self._file(file)):
                return None
        return self._part(f"{file}:{name}" if name else file)[0]

    def _whole(self, part):
        file = self._file(part)
        found = self._texts.whole(file)
        return found.mark, self._imported(found.imports, file if part.endswith(".py") else None)

    def _one(self, of, name):
        file = self._file(of)
        found = self._texts.names(file).get(name)
        if found is None:  # made at run time
            return self._whole(of)
        used = self._imported(found.imports, file if of.endswith(".py") else None)
        return found.mark, used + [f"{of}:{other}" for other in found.mentioned]

    def _imported(self, imports, file=None):
        """Parts that imports stand for; file: the user's file that they are in, whose neighbours count."""
        parts = []
        for module, name, level in imports:
            if not level:
                parts += self._named(module, name, file)
            elif file is not None:
                parts += _relative(module, name, file, level)
        return parts

    def _named(self, module, name=None, file=None):
        """Parts that `module`, or `name` imported from it, stands for; none if it is not ours or counts for nothing.

        file: the user's file that imports it.
        """
        if name is not None and self._file(f"{module}.{name}"):
            module, name = f"{module}.{name}", None
        if any(module == other or module.startswith(f"{other}.") for other in NOTHING):
            return []
        if not self._file(module):
            return _helpers(module, name, file) if file else []
        if name not in (None, "*") and (module == BY_NAME or module.startswith(f"{BY_NAME}.")):
            return [f"{module}:{name}"]
        return [module]

    # --- files ---

    def _file(self, part) -> Path | None:
        if part.endswith(".py"):
            return self.scripts / part  # a user's file is absolute, and stays so
        if part.partition(".")[0] != "masklab":
            return None
        base = self.library / Path(*part.split("."))
        return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def today(noted: dict[str, str], files, root: str) -> dict[str, str]:
    """Fingerprints, today, of the parts of a job's code that were `noted`; where none were, of `root` and its imports.

    files: a user's files, which are noted by their names, as is what they import from beside themselves. Scripts, which
    Snakemake keeps as they were when a run began, are taken as they were noted, but for what they import from beside
    themselves; what is gone has no fingerprint.
    """
    sources = Sources(Path(__file__).parents[2], Path(), broken="")
    files = [str(Path(file).absolute()) for file in files]
    if not noted:
        return sources._closure([root, *files], files)
    there = [file for file in files if os.path.isfile(file)]
    places = {name: file for file, name in sources._names(there).items()}
    now = {}
    for part, then in noted.items():
        (of, name), ours = cut(part), part.partition(".")[0] == "masklab"
        if of in places:
            now[part] = sources._of_user(places[of], name)
        elif ours and sources._file(of):
            now[part] = sources._part(part)[0]
        elif part.startswith(BESIDE):
            if (file := CHECKOUT / part).is_file():
                now[part] = sources._part(str(file))[0]
        elif not (ours or is_of_user(part)):
            now[part] = then
    return now


def leave_time() -> None:
    """Leave for the jobs of this Snakemake when it began to read the code."""
    os.environ[BEGAN] = str(time.time())


def written_since(parts) -> bool:
    """Whether a file of MaskLab's that one of these parts is of was written to, or removed, since the run began.

    One that keeps the time of its own writing (`rsync -a`, `mv`) has been put there later than that.
    """
    began = float(os.environ.get(BEGAN, "inf"))
    sources = Sources(Path(__file__).parents[2], Path())
    modules = {cut(part)[0] for part in parts if part.partition(".")[0] == "masklab"}
    files = [sources._file(module) for module in modules]
    for file in [*files, *(CHECKOUT / part for part in parts if part.startswith(BESIDE))]:
        if file is None or not file.is_file() or max(file.stat().st_mtime, file.stat().st_ctime) >= began:
            return began < float("inf")
    return False


def is_of_user(part: str) -> bool:
    """Whether a part, by its name in a record, is a file of a user's or of one."""
    return cut(part)[0].endswith(".py") and not part.startswith(SCRIPTS)


def cut(part: str) -> tuple[str, str | None]:
    """(module or file, name of it or None) of a part."""
    if part.endswith(".py"):
        return part, None
    if ".py:" in part:
        file, _, name = part.rpartition(".py:")
        return f"{file}.py", name
    module, _, name = part.partition(":")
    return module, name or None


def told_apart(files) -> dict[str, str]:
    """File -> what it is called in a record: the shortest end of its path that is no other's, mostly its name."""
    parts = {str(file): Path(file).parts for file in files}
    ends = {}
    for file, own in parts.items():
        others = [other for other in parts.values() if other != own]
        length = 1
        while length < len(own) and any(other[-length:] == own[-length:] for other in others):
            length += 1
        ends[file] = Path(*own[-length:]).as_posix()
    return ends


def _helpers(module, name, file) -> list[str]:
    """Files beside a user's file, or beside the package that it lies in, that an import of it reads."""
    parts = module.split(".") + ([name] if name else [])
    above = file.parent
    while (above / "__init__.py").is_file() and above != above.parent:
        above = above.parent
    return [path for folder in dict.fromkeys((file.parent, above)) for path in _below(folder, parts)]


def _relative(module, name, file, level) -> list[str]:
    """Files that `from .module import name` in a user's file reads, with as many dots as `level`."""
    if level > len(file.parents):
        return []
    folder = file.parents[level - 1]
    package = folder / "__init__.py"
    found = _below(folder, [*(module.split(".") if module else []), name])
    return [str(package), *found] if package.is_file() else found


def _below(folder, parts) -> list[str]:
    """The modules that names below a folder stand for, one within the other, and the packages that they lie in."""
    found = []
    for depth in range(1, len(parts) + 1):
        base = folder / Path(*parts[:depth])
        found += [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()][:1]
    return list(map(str, found))
