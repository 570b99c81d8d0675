"""Files that were to be linked from the store: which of them are taken away again, and when."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from running import ROOT

from masklab.errors import MaskLabError
from masklab.jobs import store
from masklab.plan.reuse import Reused

sys.path.insert(0, str(ROOT / "workflow"))
import shared_work


@pytest.fixture
def look(tmp_path, monkeypatch):
    """look(walk): what a run does before its graph is built, `walk` being what looks through the store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(store.VARIABLE, raising=False)
    Path(store.DEFAULT).mkdir(parents=True)
    monkeypatch.setattr(shared_work, "_files", lambda workflow, paths: [])
    monkeypatch.setattr(os, "sync", lambda: None)  # of all file systems, which may take long

    def look(walk=lambda note: Reused()):
        monkeypatch.setattr(shared_work, "reuse", lambda paths, files, dry, note: walk(note))
        return shared_work._look(None, None, dry=False)

    return look


def linked(note):
    note(["linked"])
    Path("linked").write_text("from the store")
    return Reused(files=["linked"])


def test_what_could_not_be_taken_and_was_made_stays(look):
    def fails(note):
        note(["made"])
        return Reused()

    look(fails)
    assert not shared_work.PENDING.exists()
    Path("made").write_text("by its job")
    look()
    assert Path("made").exists()


def test_what_was_linked_stays_until_it_is_known_whether_it_was_noted(look):
    look(linked)
    assert Path("linked").exists() and shared_work.PENDING.read_text() == "linked\n"
    look()
    assert not Path("linked").exists() and not shared_work.PENDING.exists()
    Path("linked").write_text("by its job")
    look()
    assert Path("linked").exists()


def test_where_the_walk_fails_what_it_linked_is_taken_away_at_once(look, capsys):
    def fails(note):
        linked(note)
        raise MaskLabError("config: no")

    assert look(fails).files == [] and "nothing is taken from the store: config: no" in capsys.readouterr().err
    assert not Path("linked").exists() and not shared_work.PENDING.exists()


def test_a_store_that_is_gone_leaves_nothing_to_take_away_later(look):
    look(linked)
    shutil.rmtree(store.DEFAULT)
    look()
    assert not Path("linked").exists() and not shared_work.PENDING.exists()
