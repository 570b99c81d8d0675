"""Every command and every YAML block of README and docs: run, dry-run, or listed here with the reason why not."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT
from small_data import TEXT, lay_down

from masklab import cli
from masklab.config import read

sys.path.append(str(ROOT / "benchmarks"))

import on_gpu

pytestmark = pytest.mark.workflow
PAGES = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
# Pages whose links must lead somewhere: those of results that are kept here, too.
RESULTS = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs/results").rglob("README.md")))
LINKED = (*PAGES, "ARCHITECTURE.md", "CHANGELOG.md", *RESULTS)
# What a first block that does not say its own name (`# name.yaml`) is called on its page.
CALLED = {"docs/first-question.md": "first.yaml", "docs/real-text.md": "mine.yaml"}
# Programs that are not ours: what a block does with them cannot be tried here.
FOREIGN = {
    "git": "clones from where the reader has it",
    "make": "sets up an environment and runs the whole default run: the CI calls it",
    "source": "an environment that `make setup` makes",
    "mkdir": "a folder of the reader's",
    "$EDITOR": "opens an editor",
    "export": "a variable of the reader's shell",
    "squeue": "asks a Slurm that is not here (tests/slurm has one)",
}
# Commands of ours that are not run here, and why.
NOT_RUN = {
    "snakemake --cores all --touch": "vouches for what a whole run made (tests/workflow/test_code_counts.py)",
    "python": "benchmarks take minutes, some of them a GPU: that they have these options is checked",
}
# Commands that look into results: in a folder without any they must say so in one line (others run them on results).
WITHOUT_RESULTS = ("why", "corpus", "rank", "dictionary", "grow", "compare", "export")  # and `plan --actual`


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of the fenced blocks of a page."""
    return re.findall(r"^```([\w-]*)\n(.*?)^```", (ROOT / page).read_text(), flags=re.S | re.M)


def commands() -> list[str]:
    """Every line of a block that is for a shell, and every command of `masklab` that begins a row of a table."""
    found = []
    for page in PAGES:
        lines = [line for language, text in blocks(page) if language in ("", "sh") for line in text.splitlines()]
        found += [part for line in lines for part in re.sub(r"  +#.*", "", line).strip().split(" && ") if part]
        found += re.findall(r"^\| `(masklab [^`]+)`", (ROOT / page).read_text(), flags=re.M)
    return sorted(set(found))


COMMANDS = commands()
OURS = ("snakemake", "masklab", "python")
SETS = re.compile(r"^(\w+=\S* +)+")  # variables before a command: `NAME=value snakemake …`
DRY = [line for line in COMMANDS if SETS.sub("", line).startswith("snakemake ") and line not in NOT_RUN]
ASKED = [command for command in COMMANDS if command.startswith("masklab ")]
BENCHMARKS = [command for command in COMMANDS if "python benchmarks/" in command]
BENCHMARKS += [
    f"python {arguments}" for *_, arguments in on_gpu.COMMANDS.values() if arguments.startswith("benchmarks/")
]
YAML = [(page, number) for page in PAGES for number in range(sum(kind == "yaml" for kind, _ in blocks(page)))]


def yaml_block(page: str, number: int) -> tuple[str, str]:
    """(name, text) of the n-th YAML block of a page."""
    text = [text for kind, text in blocks(page) if kind == "yaml"][number]
    said = re.match(r"# ([\w-]+\.yaml)", text)
    name = said[1] if said else CALLED.get(page, f"{Path(page).stem}.yaml") if number == 0 else None
    return name or f"{Path(page).stem}-{number}.yaml", text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the pages speak of: configs and code as printed, a few lines of text under data/."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "presets").symlink_to(ROOT / "presets")
    (folder / "data" / "text").mkdir(parents=True)
    (folder / "data" / "text" / "lines.txt").write_text(TEXT * 50)
    for page, number in YAML:
        name, text = yaml_block(page, number)
        assert not (folder / name).exists(), f"{name}: two pages have a file of that name"
        (folder / name).write_text(lay_down(text, folder))
        if code := re.search(r"^code: (\S+)$", text, re.M):
            (folder / code[1]).write_text("".join(text for kind, text in blocks(page) if kind == "python"))
    for text in (text for page in PAGES for kind, text in blocks(page) if kind == "snakemake"):
        (folder / re.match(r"# (\S+)", text)[1]).write_text(text.replace("/home/you/masklab", str(ROOT)))
    return folder


def program(line: str) -> str:
    """The program that a line calls."""
    return SETS.sub("", line).split()[0]


def words_of(command: str, folder: Path) -> list[str]:
    """The words of a command, the pages' own configs being those of `folder`; where its output goes is left out."""
    command = SETS.sub("", command).partition(" > ")[0]
    words = [word.replace("~/masklab", str(ROOT)) for word in shlex.split(command)]
    return [str(folder / word) if (folder / word).is_file() and "presets" not in word else word for word in words]


def test_every_command_is_tried_or_listed():
    unknown = [line for line in COMMANDS if program(line) not in (*FOREIGN, *OURS, "cd")]
    assert not unknown and len(DRY) >= 14 and len(ASKED) >= 15 and len(BENCHMARKS) >= 10
    programs = {program(line) for line in COMMANDS}
    assert {*FOREIGN} <= programs and all(name in (*COMMANDS, *programs) for name in NOT_RUN)


@pytest.mark.parametrize(("page", "number"), YAML, ids=lambda value: str(value).removeprefix("docs/"))
def test_a_config_is_one(page, number, folder, monkeypatch):
    monkeypatch.chdir(folder)
    name, _ = yaml_block(page, number)
    assert read(name).studies


@pytest.mark.parametrize("command", DRY)
def test_a_command_of_snakemake_would_run(command, folder):
    words = [sys.executable, "-m", *words_of(command, folder), "--dry-run", "--quiet", "rules"]
    done = subprocess.run([*words, "--directory", str(folder)], cwd=ROOT, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert done.returncode == 0 and "Building DAG of jobs" in said and "dry-run" in said, f"{command}\n{said[-4000:]}"


@pytest.mark.parametrize("command", ASKED)
def test_a_command_of_masklab_answers(command, folder, tmp_path, monkeypatch, capsys):
    """In a folder with the pages' configs and presets; `status -w`, which goes on until Ctrl-C, without `-w`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "presets").symlink_to(ROOT / "presets")
    words = [word for word in words_of(command, folder)[1:] if word != "-w"]
    status = cli.main(words)
    said = capsys.readouterr()
    if words[0] in WITHOUT_RESULTS or "--actual" in words:
        faults = re.sub(r"^masklab: note: .*\n", "", said.err, flags=re.M)
        assert status == 0 or re.fullmatch(r"masklab: .*\n", faults), said.err
    else:
        assert status == 0 and said.out, said.err


@pytest.mark.parametrize("command", BENCHMARKS)
def test_a_benchmark_has_these_options(command):
    script, *options = shlex.split(command.partition("python ")[2])
    source = (ROOT / script).read_text()
    assert all(f'"{option}"' in source for option in options if option.startswith("--")), command


def test_what_is_run_on_a_gpu_is_there():
    for most, least, arguments in on_gpu.COMMANDS.values():
        files = [word for word in shlex.split(arguments) if word.endswith(".py")]
        assert 0 < least < most and files and all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize("page", LINKED)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (ROOT / page).parent / name if name else ROOT / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{page}: {target}"
