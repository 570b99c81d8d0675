"""What a file of Python says, as far as the code of a job goes: the fingerprint of its meaning, and what it imports.

All of this depends on the file's text alone. To parse some 300 files takes seconds, which every command and every job
of a cluster would spend again: what was found is kept by the hash of the text, beside Python's own compiled files.
"""

import ast
import contextlib
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from masklab.files import sha256, write_json

DIGITS = 16
MODULE = "<module>"  # in the place of a name: what a file does when it is imported, whatever is then asked of it
# Modules whose decorators do nothing but to what they decorate, or register it where MaskLab asks for it by name.
SAFE = {"abc", "contextlib", "dataclasses", "functools", "masklab", "numba", "numpy", "pydantic", "torch", "typing"}
REGISTERING = {"extending", "library"}  # parts of them that register for others: torch.library, numba.extending
# By these a file may come to what it does not mention: names, attributes of anything (not `model.eval`), definitions.
DYNAMIC = {"__import__", "builtins", "dir", "eval", "exec", "globals", "import_module", "inspect", "locals", "vars"}
DYNAMIC_ATTRIBUTES = {"__dict__", "__subclasses__", "import_module"}
DYNAMIC_DEFINITIONS = {"__getattr__", "__init_subclass__", "import_module", "inspect", "modules"}


class Import(NamedTuple):
    """`import module` (name None) or `from module import name`, with `level` dots before the module."""

    module: str | None
    name: str | None
    level: int


class Meaning(NamedTuple):
    """mark: fingerprint of statements, None of imports alone. mentioned: names of the file's own that they mention."""

    mark: str | None
    imports: list[Import]
    mentioned: list[str]


class Texts:
    """What files say; each text is parsed once, and not again while `kept`, a JSON file, knows it."""

    def __init__(self, kept):
        self._place, self._known, self._said, self._trees = Path(kept), None, {}, {}
        self._is_new = False

    def whole(self, file: Path) -> Meaning:
        """All that a file says; nothing of it is `mentioned`."""
        said = self._of(file)
        if "whole" not in said:
            tree = self._tree(file)
            self._note(said, "whole", [mark(tree), _imports(tree), []])
        return _meaning(said["whole"])

    def names(self, file: Path) -> dict[str, Meaning]:
        """What each name says that a file binds; `MODULE`: what else it does, absent where that may be anything."""
        said = self._of(file)
        if "names" not in said:
            self._note(said, "names", _names(self._tree(file)))
        return {name: _meaning(found) for name, found in said["names"].items()}

    def keep(self) -> None:
        """Leave what was found for the next command, where the folder may be written to; not of files that are gone."""
        if self._is_new:
            known = self._read() | self._said
            with contextlib.suppress(OSError):
                write_json({n: said for n, said in known.items() if Path(n).is_file()}, self._place, lasting=False)
            self._is_new = False

    def _of(self, file) -> dict:
        """What is known of a file as it is now."""
        name = str(file)
        if name not in self._said:
            self._known = self._read() if self._known is None else self._known
            text, found = sha256(file) + READER, self._known.get(name)
            is_it = isinstance(found, dict) and found.get("text") == text
            self._said[name] = found if is_it else {"text": text}
        return self._said[name]

    def _note(self, said, key, value) -> None:
        said[key], self._is_new = value, True

    def _read(self) -> dict:
        with contextlib.suppress(OSError, ValueError):
            found = json.loads(self._place.read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
        return {}

    def _tree(self, file):
        if file not in self._trees:
            self._trees[file] = ast.parse(file.read_text(encoding="utf-8"), str(file))
        return self._trees[file]


READER = sha256(__file__)[:DIGITS]  # what was found by other code than this is found anew


def mark(tree: ast.AST) -> str:
    """Fingerprint of what a syntax tree means. It does not depend on Python's version as `ast.dump` does."""
    return hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()[:DIGITS]


def _meaning(found) -> Meaning:
    own, imports, mentioned = found
    return Meaning(own, [Import(*one) for one in imports], mentioned)


def _names(tree) -> dict[str, list]:
    """Name -> what the statements say that bind it, as the fields of a `Meaning`."""
    bindings = {}
    for statement in _statements(tree.body):
        for name in _bound(statement):
            bindings.setdefault(name, []).append(statement)
    found = {}
    for name, statements in bindings.items():
        kept = [statement for statement in statements if not _is_import(statement)]
        imports = [one for statement in statements for one in _imports(statement, statement not in kept and name)]
        mentioned = {other for statement in kept for other in _mentioned(statement) if other in bindings}
        own = mark(ast.Module(kept, [])) if kept else None
        found[name] = [own, imports, sorted(mentioned - {name})]
    if not _is_dynamic(tree):
        found[MODULE] = _rest(tree, bindings)
    return found


def _rest(tree, bindings) -> list:
    """What a file does when it is imported, besides giving names to what only says what it does when it is used."""
    called = {name for statement in tree.body if not _is_import(statement) for name in _mentioned(statement)}
    rest = [statement for statement in _statements(tree.body, tests=True) if _does(statement, bindings, called)]
    kept = [statement for statement in rest if not _is_import(statement)]
    unused = [(each, name) for each in rest if _is_import(each) for name in _bound(each) if name not in called]
    imports = [one for statement, name in unused for one in _imports(statement, name)]
    mentioned = {name for statement in kept for name in _mentioned(statement) if name in bindings}
    return [mark(ast.Module(kept, [])), [*imports, *(i for each in kept for i in _imports(each))], sorted(mentioned)]


def _does(statement, bindings, called) -> bool:
    """Whether a statement of a file may do something that those do not show who mention the names that it binds."""
    bound = _bound(statement)
    if _is_import(statement):
        return not called.issuperset(bound)  # a star is no name
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        decorators = [d for node in ast.walk(statement) for d in getattr(node, "decorator_list", ())]
        bases = [base for base in getattr(statement, "bases", ()) if not _is_class(base, bindings)]
        inside = statement.body if isinstance(statement, ast.ClassDef) else []
        runs = any(isinstance(each, ast.Expr) and not _is_text(each) for each in inside)
        return runs or not all(_is_safe(each, bindings) for each in decorators + bases)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        return not _is_text(statement)
    written = (ast.Store, ast.Del)
    return any(
        isinstance(node, ast.Call | ast.Await)
        or (isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, written))
        for node in ast.walk(statement)
    )


def _is_safe(decorator, bindings) -> bool:
    """Whether a decorator is one of Python's own or of a module in `SAFE`."""
    attributes = {node.attr for node in ast.walk(decorator) if isinstance(node, ast.Attribute)}
    while isinstance(decorator, ast.Attribute | ast.Call):
        decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
    name = getattr(decorator, "id", None)
    if name not in bindings:
        return name in ("classmethod", "property", "staticmethod")
    imported = [one for statement in bindings[name] if _is_import(statement) for one in _imports(statement, name)]
    modules = [[*(one.module or "").split("."), one.name] for one in imported]
    if not modules or not all(map(_is_import, bindings[name])) or attributes & REGISTERING:
        return False
    return all(parts[0] in SAFE and REGISTERING.isdisjoint(parts) for parts in modules)


def _is_class(base, bindings) -> bool:
    """Whether a class that another is derived from is one of the same file, or of Python's own."""
    name = getattr(base, "id", None)
    return isinstance(base, ast.Name) and all(isinstance(each, ast.ClassDef) for each in bindings.get(name, ()))


def _is_dynamic(tree) -> bool:
    """Whether a file has means to come to names that it does not mention."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in DYNAMIC:
            return True
        if isinstance(node, ast.Attribute):
            of_sys = node.attr == "modules" and getattr(node.value, "id", None) == "sys"
            if of_sys or node.attr in DYNAMIC_ATTRIBUTES:
                return True
        if isinstance(node, ast.FunctionDef | ast.alias) and node.name in DYNAMIC_DEFINITIONS:
            return True
        if isinstance(node, ast.keyword) and node.arg == "metaclass":
            return True
    return False


def _is_import(statement) -> bool:
    return isinstance(statement, ast.Import | ast.ImportFrom)


def _imports(tree, only=None) -> list[Import]:
    """The imports in a tree; only: of what is then called so."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [Import(alias.name, None, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names if not only or (alias.asname or alias.name) == only]
            found += [Import(node.module, name, node.level) for name in names]
    return found


def _mentioned(statement):
    """Names that a statement mentions, in annotations that are strings too; any other string names nothing."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        for annotation in filter(None, (getattr(node, "annotation", None), getattr(node, "returns", None))):
            for part in ast.walk(annotation):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    with contextlib.suppress(SyntaxError, ValueError):
                        yield from _mentioned(ast.parse(part.value, mode="eval"))


def _plain(node):
    """A tree as nested tuples, without the fields that are empty or mean nothing."""
    if isinstance(node, list):
        return [_plain(part) for part in node if not _is_text(part)]
    if not isinstance(node, ast.AST):
        return node
    fields = [type(node).__name__]
    for name, value in ast.iter_fields(node):
        if name == "keywords" and _is_field(node):
            value = [keyword for keyword in value if keyword.arg != "description"]
        if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
            fields += (name, _plain(value))
    return tuple(fields)


def _is_field(node):
    """A call of `Field`, or of `own.Field` as in a user's file."""
    called = node.func if isinstance(node, ast.Call) else None
    return (getattr(called, "id", None) or getattr(called, "attr", None)) == "Field"


def _is_text(node):
    """A docstring, or any other string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _statements(body, tests=False):
    """Statements of a module, those within its `if` and `try` too; tests: what the former ask as well."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try):
            if tests and isinstance(statement, ast.If):
                yield ast.Expr(statement.test)
            handlers = [handler.body for handler in getattr(statement, "handlers", ())]
            for part in (statement.body, statement.orelse, *handlers, getattr(statement, "finalbody", [])):
                yield from _statements(part, tests)
        else:
            yield statement


def _bound(statement):
    """Names that a statement binds."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
    return [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
