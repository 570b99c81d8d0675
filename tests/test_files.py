"""Files at the edge: nothing by halves, names of their own, rights as the umask says."""

import errno
import os
import stat
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from masklab import files
from masklab.files import atomic, atomic_folder, tells_case, temporary_name


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_have_the_rights_that_the_umask_says(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with atomic(tmp_path / "a.safetensors") as temporary:
            save_file({"a": torch.zeros(2)}, temporary)
        with atomic_folder(tmp_path / "folder") as folder:
            (folder / "inside").mkdir()
            save_file({"a": torch.zeros(2)}, folder / "inside/model.safetensors")
    finally:
        os.umask(before)
    for file in ("a.safetensors", "folder/inside/model.safetensors"):
        assert stat.S_IMODE((tmp_path / file).stat().st_mode) == mode


def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path):
    (tmp_path / "a").write_text("before")
    with pytest.raises(ValueError), atomic(tmp_path / "a") as temporary:
        temporary.write_text("half")
        raise ValueError
    assert (tmp_path / "a").read_text() == "before" and [path.name for path in tmp_path.iterdir()] == ["a"]


def test_temporary_names_differ_between_hosts_processes_and_calls(monkeypatch):
    names = {temporary_name(Path("a/b.json")) for _ in range(2)}
    for module, function, value in (("os", "getpid", 1), ("socket", "gethostname", "other")):
        monkeypatch.setattr(f"masklab.files.{module}.{function}", lambda value=value: value)
        names.add(temporary_name(Path("a/b.json")))
    assert len(names) == 4 and all(name.name.startswith(".b.json.") and name.parent == Path("a") for name in names)


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path):
    import subprocess
    import sys

    command = f"""
import os, signal
from masklab.files import atomic, atomic_folder
with atomic("{tmp_path}/a") as one, atomic_folder("{tmp_path}/b") as two:
    (two / "file").touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", command])
    assert len(list(tmp_path.iterdir())) == 2
    with atomic(tmp_path / "a") as mine, atomic(tmp_path / "a"), atomic_folder(tmp_path / "b"):
        assert mine.exists()  # of a process that lives
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize("there", [True, False], ids=["to-an-empty-folder", "to-nothing"])
def test_a_folder_is_written_where_a_link_leads(there, tmp_path):
    """As to a larger disk: what took long must not be lost when it gets its name."""
    far, link = tmp_path / "disk/far", tmp_path / "near"
    far.parent.mkdir()
    if there:
        far.mkdir()
    link.symlink_to(far)
    with atomic_folder(link) as made:
        (made / "file").write_text("whole")
    assert link.is_symlink() and (far / "file").read_text() == "whole"
    assert [path.name for path in far.parent.iterdir()] == ["far"]


def test_what_another_host_writes_is_left_alone(tmp_path, monkeypatch):
    """Whether its process lives cannot be known here; the names of hosts may begin alike."""
    monkeypatch.setattr("masklab.files._lives", lambda process: False)
    monkeypatch.setattr("masklab.files.socket.gethostname", lambda: "node-of-a-long-name-1")
    temporary_name(tmp_path / "a").touch()
    monkeypatch.setattr("masklab.files.socket.gethostname", lambda: "node-of-a-long-name-2")
    temporary_name(tmp_path / "a").touch()
    assert len(list(tmp_path.iterdir())) == 2


def recording(opened):
    """`os.open` that keeps which path each number stands for."""
    really = os.open

    def open_(path, *how, **more):
        number = really(path, *how, **more)
        opened[number] = Path(path) if "dir_fd" not in more else path
        return number

    return open_


def test_what_gets_its_name_was_written_through_to_the_disk(tmp_path, monkeypatch):
    """File before name, name before anybody goes on; a folder with all that is in it."""
    done, opened, fsync, replace = [], {}, os.fsync, os.replace
    monkeypatch.setattr(os, "open", recording(opened))
    monkeypatch.setattr(os, "fsync", lambda n: (done.append(opened[n]), fsync(n)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(b), replace(a, b)))
    with atomic(tmp_path / "a") as file:
        file.write_text("a")
    assert done == [file, tmp_path / "a", tmp_path]
    done.clear()
    with atomic_folder(tmp_path / "b") as folder:
        (folder / "file").write_text("b")
    assert done == [folder / "file", folder, tmp_path / "b", tmp_path]


def test_the_disk_itself_is_asked_where_fsync_does_not_ask_it(tmp_path, monkeypatch):
    """As on macOS, once for all files of a folder, and again for its name; a file system may not know of it."""
    opened, asked = {}, []

    def ask(number, what):
        asked.append((opened[number], what))
        raise OSError(errno.ENOTTY, "not here")

    monkeypatch.setattr(os, "open", recording(opened))
    monkeypatch.setattr(files.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(files.fcntl, "fcntl", ask)
    with atomic_folder(tmp_path / "b") as folder:
        for name in "cd":
            (folder / name).write_text(name)
    assert asked == [(folder, 51), (tmp_path, 51)]


def test_whether_a_file_system_tells_capitals(tmp_path):
    """Here a link stands for one that does not."""
    folder = tmp_path / "Study"
    folder.mkdir()
    if (tmp_path / "sTUDY").exists():
        assert not tells_case(folder)
        return
    assert tells_case(folder) and tells_case(tmp_path) and tells_case("/")
    (tmp_path / "sTUDY").symlink_to(folder)
    assert not tells_case(folder) and tells_case(tmp_path)
