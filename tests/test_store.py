"""The store, file by file: keys, what enters, what leaves, and that nothing that happens to it harms a job."""

import errno
import os
import time
from pathlib import Path

import pytest

from masklab.errors import MaskLabError
from masklab.jobs import housekeeping, store
from masklab.jobs.store import ANEW, ASIDE, COPIED, LISTING, OFF, RULES, VARIABLE, Entry, entry, files_of, publish, take

LARGE = b"0" * COPIED


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


def of_job(root: Path, rule="tokens", name="a", config=None, code="1f", content="rows", packages=None):
    """The entry of a job that reads one file."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "train.parquet").write_text(content)
    return entry(rule, {"name": name}, config or {"max_length": 4}, code, [str(root / "train.parquet")], packages)


@pytest.fixture
def made(tmp_path):
    """A folder as a model's job leaves it, with a half-written file and folder and another replicate."""
    folder = tmp_path / "made"
    for path in ("step-5/model", ".step-9.tmp/model", "r2/manifest.json", "manifest.json", ".hidden.tmp"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(LARGE if path == "step-5/model" else b"{}")
    return folder


def keep(made, path) -> Entry:
    kept = Entry(path)
    publish(kept, "pretrain", [made / "manifest.json"])
    return kept


def inside(folder) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_key_covers_rule_name_config_code_versions_and_inputs_and_no_more(tmp_path, place):
    first = of_job(tmp_path / "one").path
    assert first.parent == place / "tokens" and of_job(tmp_path / "two").path == first
    others = [{"rule": "codes"}, {"name": "b"}, {"config": {"max_length": 5}}, {"code": "2f"}, {"content": "more"},
              {"packages": {"torch": "1.0"}}]  # fmt: skip
    found = {of_job(tmp_path / f"other-{number}", **keys).path for number, keys in enumerate(others)}
    assert len(found) == len(others) and first not in found


def test_the_key_covers_the_names_of_files_and_not_where_they_lie(tmp_path, place):
    """A paradigm is called as its file, and a suffix says how a file is read."""

    def of(*names):
        for name, content in zip(names, ("rows", "more"), strict=False):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(content)
        return entry("task", {"task": "t"}, {}, "1f", [tmp_path / name for name in names]).path

    assert of("here/a.jsonl") == of("there/a.jsonl") != of("here/b.jsonl")
    assert of("train/z.txt", "valid/a.txt") != of("valid/aa.txt", "valid/ab.txt")


def test_shards_of_another_config_do_not_stay(tmp_path, place):
    folder = tmp_path / "tokens"
    for name in ("train.ids.0.npy", "meta.json"):
        (tmp_path / "made" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "made" / name).write_bytes(b"now")
    kept = of_job(tmp_path / "input")
    publish(kept, "tokens", [tmp_path / "made/meta.json"])
    folder.mkdir()
    for name in ("train.ids.0.npy", "train.ids.1.npy", "notes.txt"):
        (folder / name).write_bytes(b"before")
    assert take(kept, [folder / "meta.json"], [])
    assert inside(folder) == {"train.ids.0.npy", "meta.json", "notes.txt"}
    assert (folder / "train.ids.0.npy").read_bytes() == b"now"


def test_it_lies_beside_the_results_unless_turned_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert of_job(tmp_path).path.parent == tmp_path / ".masklab/store/tokens"
    assert "scores" not in RULES and of_job(tmp_path, rule="scores") is None
    monkeypatch.setenv(VARIABLE, OFF)
    assert of_job(tmp_path) is None


def test_large_files_are_linked_and_small_ones_are_the_runs_own(tmp_path, made):
    kept = keep(made, tmp_path / "store/pretrain/key")
    assert inside(kept.path / "files") == {"step-5/model", "manifest.json"}, "half-written ones never enter"
    taken = tmp_path / "taken"
    (taken / "step-9").mkdir(parents=True)
    assert take(kept, [taken / "manifest.json"], [])
    assert inside(taken) == {"step-5/model", "manifest.json"}, "checkpoints of another config are gone"
    assert (taken / "step-5/model").samefile(made / "step-5/model")
    assert not (taken / "manifest.json").samefile(made / "manifest.json")
    assert (taken / "manifest.json").stat().st_mtime_ns == (made / "manifest.json").stat().st_mtime_ns
    assert take(kept, [taken / "manifest.json"], []), "a second time too"


def test_what_was_here_before_is_replaced_by_newer_files(tmp_path, made):
    kept = keep(made, tmp_path / "store/pretrain/key")
    for path in made.rglob("*"):
        os.utime(path, (1, 1))
    kept.path.joinpath(LISTING).unlink()
    kept = keep(made, tmp_path / "store/pretrain/key")
    assert take(kept, [tmp_path / "a/manifest.json"], []) and (tmp_path / "a/manifest.json").stat().st_mtime == 1
    assert take(kept, [tmp_path / "b/manifest.json"], [], again=True)
    assert (tmp_path / "b/manifest.json").stat().st_mtime > time.time() - 60
    source = tmp_path / "large"
    source.write_bytes(b"0" * 1_000_000)
    assert take(kept, [tmp_path / "c/manifest.json"], [source])
    assert (tmp_path / "c/manifest.json").stat().st_mtime > source.stat().st_mtime, "newer than a large input"


def test_an_entry_that_somebody_wrote_into_is_not_handed_out(tmp_path, made):
    kept = keep(made, tmp_path / "store/pretrain/key")
    os.utime(made / "step-5/model", (7, 7))
    assert take(kept, [tmp_path / "a/manifest.json"], []), "another time with the same content is as good"
    (made / "step-5/model").write_bytes(b"1" * COPIED)
    assert not take(kept, [tmp_path / "b/manifest.json"], []) and not kept.there


def test_work_that_is_to_be_done_anew_is_not_taken(tmp_path, made, monkeypatch):
    kept = keep(made, tmp_path / "store/pretrain/key")
    monkeypatch.setenv(ANEW, "1")
    assert not take(kept, [tmp_path / "a/manifest.json"], [])


def test_a_score_is_the_files_of_its_job_alone(tmp_path):
    for name in ("a.parquet", "a.items.parquet", "b.parquet"):
        (tmp_path / name).touch()
    folder, files = files_of("probe", [tmp_path / "a.parquet", tmp_path / "a.items.parquet"])
    assert folder == tmp_path and [file.name for file in files] == ["a.parquet", "a.items.parquet"]


def test_a_store_that_cannot_be_written_is_a_warning(tmp_path, made, caplog):
    (tmp_path / "store").write_text("a file where the folder should be")
    kept = keep(made, tmp_path / "store/pretrain/key")
    assert "not kept in the store" in caplog.text and inside(made) >= {"manifest.json", "step-5/model"}
    assert not kept.there and not take(kept, [tmp_path / "a/manifest.json"], [])


def test_a_store_that_cannot_be_looked_into_has_nothing(tmp_path, made, monkeypatch):
    """Of another user with umask 077, or on a server that is gone: `Path.is_file` raises there."""
    kept, stat = keep(made, tmp_path / "store/pretrain/key"), os.stat

    def refuse(path, *arguments, **named):
        if str(path).startswith(str(tmp_path / "store")):
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, *arguments, **named)

    assert kept.there
    monkeypatch.setattr(os, "stat", refuse)
    assert not kept.there and take(kept, [tmp_path / "a/manifest.json"], []) == []


def test_a_full_store_keeps_nothing_by_halves(tmp_path, made, caplog, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_json", full)
    kept = keep(made, tmp_path / "store/pretrain/key")
    assert "No space left on device" in caplog.text and not kept.there
    assert [*(tmp_path / "store/pretrain").rglob("*")] == [tmp_path / "store/pretrain" / ASIDE], (
        "nothing is left behind"
    )


def test_a_store_that_vanishes_while_it_is_read_is_a_warning(tmp_path, made, caplog, monkeypatch):
    kept = keep(made, tmp_path / "store/pretrain/key")
    monkeypatch.setattr(store, "share", lambda *_, **__: os.stat(tmp_path / "gone"))
    assert not take(kept, [tmp_path / "a/manifest.json"], []) and "could not be taken" in caplog.text


def test_two_who_add_the_same_do_not_harm_each_other(tmp_path, made, monkeypatch):
    """The second is told of the same process id, as on another host: names hold host and a random part too."""
    monkeypatch.setattr(os, "getpid", lambda: 1)
    first, second = Entry(tmp_path / "store/pretrain/key"), Entry(tmp_path / "store/pretrain/key")
    share, met = store.share, []

    def meanwhile(file, place, *arguments, **named):
        share(file, place, *arguments, **named)
        if not met:
            met.append(place)
            second.add(*files_of("pretrain", [made / "manifest.json"]))

    monkeypatch.setattr(store, "share", meanwhile)
    first.add(*files_of("pretrain", [made / "manifest.json"]))
    assert first.there and inside(first.path) == {LISTING, "files/manifest.json", "files/step-5/model"}
    assert {path.name for path in (tmp_path / "store/pretrain").iterdir()} == {"key", ASIDE}


def test_what_nobody_links_leaves_in_time(tmp_path, made):
    root = tmp_path / "store"
    kept, now = keep(made, root / "pretrain/linked"), time.time()
    loose = keep(made, root / "pretrain/loose")
    for file in (loose.path / "files").rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            file.unlink()
            file.write_bytes(content)
    assert housekeeping.tidy(root, now) == [], "not yet"
    assert housekeeping.tidy(root, now + 120 * 86400) == [loose.path] and kept.there and not loose.there
    assert "1 artifact, " in housekeeping.described(root) and "by none: 0 B" in housekeeping.described(root)


def test_no_entry_is_looked_for_among_all_others(tmp_path, made, monkeypatch):
    """A temporary name is looked for in its folder: among 20,000 entries each of them took .1 s to enter or leave."""
    looked, temporary_name = [], store.temporary_name

    def name(path):
        looked.append(len(os.listdir(path.parent)))
        return temporary_name(path)

    monkeypatch.setattr(store, "temporary_name", name)
    for number in range(9):
        assert keep(made, tmp_path / f"store/pretrain/{number}").there
    assert housekeeping.empty(tmp_path / "store").startswith(f"{tmp_path}/store: 9 artifacts removed")
    assert len(looked) >= 18 and max(looked) <= 1 and housekeeping.entries(tmp_path / "store") == []
    half = tmp_path / "store/pretrain" / ASIDE / ".key.host.1.tmp"
    half.mkdir()
    os.utime(half, (1, 1))
    housekeeping.tidy(tmp_path / "store")
    assert not half.exists()


def test_an_entry_that_cannot_be_removed_keeps_no_other(tmp_path, monkeypatch):
    """In a folder that people share: it is the oldest, and so would be the first each time."""
    file = tmp_path / "made/manifest.json"
    file.parent.mkdir()
    kept = {}
    for number, name in enumerate(("theirs", "ours")):
        file.write_bytes(LARGE)
        kept[name] = keep(file.parent, tmp_path / "store/pretrain" / name)
        os.utime(kept[name].path / LISTING, (number + 1, number + 1))
        file.unlink()
    rename = os.rename

    def denied(old, new):
        if Path(old).name == "theirs":
            raise PermissionError(errno.EACCES, "Permission denied", str(old))
        rename(old, new)

    monkeypatch.setattr(os, "rename", denied)
    assert housekeeping.tidy(tmp_path / "store") == [kept["ours"].path] and kept["theirs"].there
    kept["ours"] = keep(kept["theirs"].path / "files", tmp_path / "store/pretrain/ours")
    said = housekeeping.empty(tmp_path / "store")
    assert kept["theirs"].there and not kept["ours"].there
    assert said.startswith(f"{tmp_path}/store: 1 artifact removed, ")
    assert said.endswith("\n  1 artifact left, which cannot be removed: Permission denied")


def test_entries_of_one_artifact_are_no_run_that_links_it(tmp_path):
    """It entered under two keys, as before and after somebody vouched for it; then the run was removed."""
    root, file = tmp_path / "store", tmp_path / "made/manifest.json"
    file.parent.mkdir()
    file.write_bytes(LARGE)
    one, two = (keep(file.parent, root / "pretrain" / name) for name in ("one", "two"))
    os.utime(one.path / LISTING, (1, 1))
    assert [kept.linked for kept in housekeeping.entries(root)] == [True, True]
    file.unlink()
    found = housekeeping.entries(root)
    assert [(kept.path, kept.size, kept.linked) for kept in found] == [
        (one.path, 0, False),
        (two.path, len(LARGE), False),
    ]
    assert "2 artifacts, 65.5 kB" in housekeeping.described(root) and "none: 65.5 kB" in housekeeping.described(root)
    assert housekeeping.tidy(root, time.time() + 120 * 86400) == [one.path, two.path]


def test_a_file_in_the_place_of_a_store_is_no_empty_store(tmp_path):
    (tmp_path / "store").write_text("x", encoding="utf-8")
    for ask in (housekeeping.described, housekeeping.empty):
        with pytest.raises(MaskLabError, match="store: is a file, not a folder; MASKLAB_STORE names the folder"):
            ask(tmp_path / "store")


def test_what_is_said_to_leave_is_what_leaves(tmp_path, monkeypatch):
    """Nothing is ever removed from a store that somebody names."""
    file = tmp_path / "made/manifest.json"
    file.parent.mkdir()
    file.write_bytes(LARGE)
    keep(file.parent, tmp_path / "store/pretrain/a")
    kept = tmp_path / "store"
    monkeypatch.delenv(VARIABLE, raising=False)
    assert "these leave 14 days after" in housekeeping.described(kept)
    monkeypatch.setenv(VARIABLE, str(kept))
    assert "days after" not in housekeeping.described(kept) and "stay, since MASKLAB_STORE" in housekeeping.described(
        kept
    )


def test_too_much_that_nobody_links_leaves_the_oldest_first(tmp_path):
    for number, name in enumerate(("old", "new")):
        file = tmp_path / "made" / name / "manifest.json"
        file.parent.mkdir(parents=True)
        file.write_bytes(LARGE)
        kept = keep(file.parent, tmp_path / "store/pretrain" / name)
        os.utime(kept.path / LISTING, (number + 1, number + 1))
        file.unlink()
    removed = housekeeping.tidy(tmp_path / "store", now=3.0, most=COPIED + 10)
    assert [path.name for path in removed] == ["old"]
