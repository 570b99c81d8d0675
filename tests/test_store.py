"""The shared store, file by file."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from masklab.jobs.store import RULES, VARIABLE, Entry, entry


class Named(dict):
    """Stands for Snakemake's named lists: attributes, items and positions."""

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)


def job(root: Path, rule="tokens", name="a", config=None, code="1f", content="rows"):
    """A job as a script sees it, with real files."""
    corpus = root / "corpora/c"
    corpus.mkdir(parents=True, exist_ok=True)
    (corpus / "train.parquet").write_text(content)
    output = root / "tokens" / name / "meta.json"
    return SimpleNamespace(
        rule=rule, wildcards={"name": name}, params=Named(config=config or {"max_length": 4}, code=code),
        input=Named(train=str(corpus / "train.parquet")), output=Named(meta=str(output)),
    )  # fmt: skip


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "store"))
    return tmp_path / "store"


def test_the_key_covers_rule_name_config_code_and_inputs_and_no_more(tmp_path, store):
    first = entry(job(tmp_path / "one")).path
    assert first.parent == store / "tokens" and entry(job(tmp_path / "two")).path == first
    others = [{"rule": "codes"}, {"name": "b"}, {"config": {"max_length": 5}}, {"code": "2f"}, {"content": "more"}]
    found = {entry(job(tmp_path / f"other-{number}", **keys)).path for number, keys in enumerate(others)}
    assert len(found) == len(others) and first not in found


def test_a_file_beside_an_input_counts(tmp_path, store):
    first = entry(job(tmp_path)).path
    (tmp_path / "corpora/c/valid.parquet").write_text("other")
    assert entry(job(tmp_path)).path != first


def test_without_a_store_and_for_other_rules_there_is_no_entry(tmp_path, store, monkeypatch):
    assert "probe" not in RULES and entry(job(tmp_path, rule="probe")) is None
    monkeypatch.delenv(VARIABLE)
    assert entry(job(tmp_path)) is None


def test_files_enter_read_only_and_leave_as_links(tmp_path):
    made = tmp_path / "made"
    (made / "step-5").mkdir(parents=True)
    (made / "step-5/model").write_text("weights")
    (made / "manifest.json").write_text("{}")
    (made / ".hidden.tmp").write_text("half")
    (made / "r2").mkdir()
    (made / "r2/manifest.json").write_text("an artifact of its own")
    kept = Entry(tmp_path / "store/key", made)
    assert not kept.fetch()
    kept.add()
    assert (made / "manifest.json").read_text() == "{}"
    taker = Entry(tmp_path / "store/key", tmp_path / "taken")
    (tmp_path / "taken/step-9").mkdir(parents=True)
    assert taker.fetch()
    found = {path.relative_to(tmp_path / "taken").as_posix() for path in (tmp_path / "taken").rglob("*")}
    assert found == {"step-5", "step-5/model", "manifest.json"}
    link = tmp_path / "taken/step-5/model"
    assert link.is_symlink() and link.read_text() == "weights" and not link.stat().st_mode & 0o222
    assert taker.fetch(), "a second time too"
    (made / "manifest.json").unlink()
    (made / "manifest.json").write_text("other")
    kept.add()
    assert (tmp_path / "taken/manifest.json").read_text() == "{}", "what is there stays"
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["key"]
