"""What a store holds, and what leaves it: entries that no run links any more, some days after they were last of use."""

import contextlib
import os
import shutil
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from masklab.errors import MaskLabError
from masklab.jobs.store import ASIDE, LISTING, VARIABLE, aside

DAYS = 14  # an entry that no run links stays so long after it entered or was last taken
BYTES = 20_000_000_000  # of such entries all together; beyond it the oldest leave first
LOOKED = ".looked"  # a file whose time says when somebody last looked
EVERY = 3600.0  # seconds between two looks


@dataclass
class Kept:
    """One entry of a store. used: when it entered or was last taken; linked: whether a run holds a large file of it.

    size: bytes that leave with it; what an entry that stays longer holds too (an artifact under two keys) is its own.
    """

    path: Path
    size: int
    used: float
    linked: bool


def entries(store: Path) -> list[Kept]:
    """Everything in a store, the least recently used first."""
    found, here = [], Counter()
    for listing in store.glob(f"*/*/{LISTING}"):
        try:
            states = [file.stat() for file in (listing.parent / "files").rglob("*") if file.is_file()]
            used = listing.stat().st_mtime
        except OSError:  # it leaves just now
            continue
        found.append((used, listing.parent, states))
        here.update(map(_file, states))
    kept, counted = [], set()
    for used, path, states in sorted(found, key=lambda entry: entry[0], reverse=True):
        size = sum(state.st_size for state in states if _file(state) not in counted)
        counted.update(map(_file, states))
        kept.append(Kept(path, size, used, any(state.st_nlink > here[_file(state)] for state in states)))
    return kept[::-1]


def _file(state) -> tuple[int, int]:
    """What the links to one file have in common."""
    return state.st_dev, state.st_ino


def tidy(store: Path, now: float | None = None, most: int = BYTES) -> list[Path]:
    """Remove what nobody links and nobody took for some days, or what is too much of it; the entries removed.

    It looks once in an hour at most. Nothing that goes wrong is an error: a store is never needed.
    """
    now, looked, removed = time.time() if now is None else now, store / LOOKED, []
    try:
        if not store.is_dir() or (looked.exists() and now - looked.stat().st_mtime < EVERY):
            return []
        looked.touch()
        loose = [kept for kept in entries(store) if not kept.linked]
        size = sum(kept.size for kept in loose)
        for kept in loose:
            if now - kept.used > DAYS * 86400 or size > most:
                with contextlib.suppress(OSError):  # another person's, or it leaves just now
                    remove(kept.path)
                    removed.append(kept.path)
                    size -= kept.size
        for half in store.glob(f"*/{ASIDE}/.*.tmp"):  # of processes that were killed
            if now - half.stat().st_mtime > 86400:
                shutil.rmtree(half, ignore_errors=True)
    except OSError:
        pass
    return removed


def remove(path: Path) -> None:
    """Take an entry out of its store at once, and then delete it: whoever is just taking it finds it whole or not."""
    away = aside(path)
    os.rename(path, away)
    shutil.rmtree(away, ignore_errors=True)


def empty(store: Path | None) -> str:
    """Remove every entry of a store; what that was, in words. Other files in the folder stay, and so does what cannot
    be removed, such as another person's."""
    if store is None:
        return described(store)
    removed, left = [], []
    for one in _looked_into(store):
        try:
            remove(one.path)
            removed.append(one)
        except OSError as error:
            left.append(error)
    freed = sum(one.size for one in removed if not one.linked)
    said = f"{store}: {_count(removed)} removed, {_size(freed)} freed"
    return f"{said}\n  {_count(left)} left, which cannot be removed: {left[0].strerror}" if left else said


def described(store: Path | None) -> str:
    """What a store holds, in words."""
    if store is None:
        return "there is no store (MASKLAB_STORE=off)"
    kept = _looked_into(store)
    if not kept:
        return f"{store}: empty"
    lines = [f"{store}: {_count(kept)}, {_size(sum(one.size for one in kept))}"]
    loose = sum(one.size for one in kept if not one.linked)
    lines.append(f"  linked by runs, at no cost: {_size(sum(one.size for one in kept) - loose)}")
    leave = f"these leave {DAYS} days after they were last of use"
    if os.environ.get(VARIABLE):
        leave = f"these stay, since {VARIABLE} names the store"
    lines.append(f"  by none: {_size(loose)}; {leave}")
    rules: dict[str, list[int]] = {}
    for one in kept:
        rules.setdefault(one.path.parent.name, []).append(one.size)
    lines += [f"  {rule:14}{len(sizes):6,}  {_size(sum(sizes))}" for rule, sizes in sorted(rules.items())]
    return "\n".join(lines)


def _looked_into(store: Path) -> list[Kept]:
    """`entries` of a store that somebody asked for. MaskLabError where a file lies in its place."""
    if store.exists() and not store.is_dir():
        raise MaskLabError(f"{store}: is a file, not a folder; {VARIABLE} names the folder of the store")
    return entries(store)


def _count(kept) -> str:
    return f"{len(kept):,} artifact{'s' * (len(kept) != 1)}"


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
