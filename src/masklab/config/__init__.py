"""Reading and checking the configuration: files laid over each other -> typed, cross-checked `Config`.

`read` is the only way in: the workflow, `masklab check`, `plan` and `config` all use it.
"""

import os

from pydantic import ValidationError

from masklab.config import kinds
from masklab.config.adopted import with_adopted
from masklab.config.checks import check_names, check_references
from masklab.config.exact import is_exact
from masklab.config.expand import expand_models
from masklab.config.faults import Faults, together
from masklab.config.hints import keys_of, kind_of_keys, unknown_at_top
from masklab.config.inherit import meant
from masklab.config.layers import DEFAULT, complete, layered
from masklab.config.located import Mapping, as_written, find, overlay, place_of, plain, shown, spelt, wrong
from masklab.config.names import name_problem, run_problem, twins
from masklab.config.nulls import with_nulls
from masklab.config.places import Fault, located
from masklab.config.problems import MISSING, Problem, got, mistaken, problems
from masklab.config.references import checkpoints, probe_steps, resolved, split_reference, study_models
from masklab.config.schema import SECTIONS, Config, Read, Settings, entry_class
from masklab.config.sources import below
from masklab.errors import MaskLabError
from masklab.files import tells_case

__all__ = [
    "DEFAULT",
    "Config",
    "checkpoints",
    "is_exact",
    "layered",
    "load",
    "located",
    "overlay",
    "plain",
    "probe_steps",
    "read",
    "resolved",
    "split_reference",
    "study_models",
]


def read(*files, values=(), also=()) -> Config:
    """The checked configuration of config files laid over each other; of none: of the checkout's config.yaml.

    A file is laid over those that its `extends` names, and without any over config.yaml. values: `key=value` strings
    that come on top, as snakemake's `--config` takes them. also: further checks of a study (config, name, study), whose
    errors are said together with those of its names. Raises MaskLabError: mistakes with file, line and key, one a line.
    """
    return _checked(layered(files, values), also)


def load(raw: dict) -> Config:
    """The checked configuration of a mapping that stands alone, such as `plain(config.raw)`."""
    return _checked(complete(raw))


def _checked(raw, also=()) -> Config:
    """The configuration that the layers add up to, its types, names and references checked."""
    code = raw.get("code") or []
    for at, file in enumerate(code):
        if not os.path.isfile(file):
            raise wrong(place_of(code, at), "code", f"no such file: {shown(file)}")
    kinds.load(code)
    raw = with_adopted(raw)
    config = _typed(raw)
    config._read = Read(raw)
    with located(raw):
        names = list(config.models), list(config.tasks)
        studies = {name: expand_models(study, *names) for name, study in config.studies.items()}
        config = config.model_copy(update={"studies": {name: study for name, study in studies.items() if study}})
        check_references(config, Faults(raw), also)
        config = with_nulls(config)
        check_names(config)
        config._read = Read(raw)
        return config


def _typed(raw) -> Config:
    """Every key and entry as its type says; MaskLabError with the first few of all problems."""
    faults = [
        Problem((key,), unknown_at_top(key, value)) for key, value in raw.items() if key not in Config.model_fields
    ]
    stated = {key: value for key, value in raw.items() if key in Settings.model_fields and value is not None}
    stated = Mapping(stated, getattr(raw, "places", {}))
    settings = _made(Settings, stated, (), faults)
    sections, cased = {}, tells_case(".")  # results lie in the current folder
    for section in SECTIONS:
        sections[section] = {}
        for name, (other, but) in twins(raw.get(section) or {}, cased).items():
            line = getattr(place_of(raw[section], other), "line", None)
            like = f"the one in line {line}" if line else repr(other)
            faults.append(Problem((section, name), f"the same name as {like}, but {but}"))
        for name in raw.get(section) or {}:
            entity = _entry(section, name, raw[section], faults)
            if entity is not None:
                sections[section][name] = entity
    if settings is not None and (message := run_problem(settings.run, cased)):
        faults.append(Problem(("run",), message))
    if faults:
        raise _said(raw, faults)
    return below(Config.model_construct(**settings.__dict__, **sections))


def _entry(section, name, entries, faults):
    """The typed entry; None, with its problems added to `faults`, if it is not valid."""
    entry, path = entries[name], (section, name)
    if message := name_problem(name):
        faults.append(Problem(path, message))
        return None
    if not isinstance(entry, dict):
        faults.append(Problem(path, keys_of(section) + got(entry)))
        return None
    mine = []
    try:
        made_of = entry_class(section, entry)
    except MaskLabError as error:
        message = str(error)
        if entry.get("kind") is None:
            message = f"{MISSING}; {kind_of_keys(section, entry) or message.partition('; ')[2]}"
        entity, mine = None, [Problem((*path, "kind"), message)]
    else:
        entity = _made(made_of, entry, path, mine)
    for problem in mine:  # so much is missing where the name of an entry of a file below is misspelt
        lacking = MISSING in problem.message and (problem.path == path or problem.path[2:] == ("kind",))
        hint = meant(name, [other for other in entries if other != name]) if lacking else ""
        if lacking and not hint and section == "models":
            others = [other for other in entries if other != name and isinstance(entries[other], dict)]
            hint = (
                f"; or take them from another model: like: {'strict-mlm' if 'strict-mlm' in others else others[0]}"
                if others
                else ""
            )
        faults.append(Problem(problem.path, problem.message + hint.replace("did", "or did")))
    return entity


def _made(entity, value, path, faults):
    try:
        with kinds.blamed():
            made, found = entity.model_validate(value), []
    except ValidationError as error:
        made, found = None, problems(error, entity, value, path)
    except MaskLabError as error:  # of a check of a user's own
        made, found = None, [Problem(path, str(error))]
    wrong_type = mistaken(entity, value, path)
    said = {problem.path for problem in wrong_type}
    found = [problem for problem in found if problem.path not in said] + wrong_type
    faults += found
    return None if found else made


def _said(raw, faults: list[Problem]) -> MaskLabError:
    """The problems as an error. A problem that a family shares, or entries that are like one, counts once."""
    lines = {}
    for path, message in faults:
        place, value = find(raw, path)
        keys = [part for part in as_written(place, path) if not isinstance(part, int)]
        if place is not None and place.empty and value is None and message.endswith(got(None)):
            message = f"is empty; it {message.removesuffix(got(None))}"
        elif value is None and message.startswith("must map ") and message.endswith(got(None)):
            message += "; to remove one of its names, write {name: null}"
        items = "".join(f"item {part + 1}: " for part in path if isinstance(part, int))
        same = (place, keys[-1], message) if place else (*keys, message)
        lines.setdefault(same, Fault(place, ".".join(map(spelt, keys)), items + message))
    return together(lines.values())
