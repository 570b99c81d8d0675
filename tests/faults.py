"""Faults done to a small workflow: `python tests/faults.py kill --times 100`, or `all` of them.

`python tests/faults.py kill --default --times 100` kills jobs of the default run instead (`--config`: of another one).

Each fault is done in a new folder while the workflow runs; then the same command runs again until all is made, and
`scores.parquet` must be that of a run that nothing disturbed, byte for byte. What stops a job is said in one line. The
workflow goes from text over tokens, a model, its dictionary and codes to a second phase, fine-tuning, minimal
pairs, a table and a figure. `disk` and `readonly` mount a small tmpfs and need the right to (root, or
`unshare --map-root-user --mount`). Ends with status 1 if a fault left a mark.
"""

import argparse
import contextlib
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

ROOT = Path(__file__).parents[1]
START = {"corpus": "text", "tokenizer": "text", "encoder": "tiny", "batch_size": 32, "save_minutes": 0.01}
WORDS = ("red", "big", "old", "sad", "new", "shy", "wet", "odd")
CONFIG = {
    "extends": [],
    "corpora": {"text": {"kind": "text", "files": ["words.txt"], "min_words": 1, "valid": 20, "test": 20}},
    "tokenizers": {"text": {"corpus": "text", "vocab_size": 70, "max_length": 16}},
    "encoders": {"tiny": {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 16}},
    "objectives": {"mlm": {"mlm": 1}, "mlsm": {"mlsm": 1}},
    "models": {
        "first": START | {"objective": "mlm", "steps": 300, "checkpoints": [150, 300]},
        "second": START | {"objective": "mlsm", "steps": 60, "init": "first@300", "dictionary": "d", "codes": "stored"},
    },
    "dictionaries": {"d": {"model": "first@300", "layer": 1, "atoms": 32, "sample": 2000, "iterations": 30,
                           "batch_size": 100}},
    "tasks": {"t": {"kind": "label-files", "train": "t.jsonl", "valid": "t.jsonl"},
              "p": {"kind": "pair-files", "files": ["p.jsonl"]}},
    "probes": {"tune": {"kind": "finetune", "tasks": ["t"], "seeds": [1, 2], "epochs": 2, "max_length": 12},
               "pairs": {"kind": "minimal_pairs", "tasks": ["p"]}},
    "studies": {"s": {"panels": {"all": ["first", "second"]}, "probes": {"tune": "all", "pairs": "all"},
                      "replicates": 2, "tables": ["comparison"], "figures": ["bars"]}},
}  # fmt: skip
SCORES = "results/scores.parquet"
# A file of each rule, in the order in which they are made.
FILES = ["corpora/text/train.parquet", "tokenizers/text/tokenizer.json", "tokens/text/text/meta.json",
         "tasks/t/task.json", "models/first/r1/manifest.json", "dictionaries/d/r1/dictionary.safetensors",
         "codes/d/r1/codes.json", "models/second/r1/manifest.json", "scores/tune/first/r1/all.parquet",
         "scores.parquet", "facts.parquet", "tables/s/comparison.csv", "figures/s/bars.pdf", "report.html"]  # fmt: skip
NOISE = ("Traceback", 'File "')


def lay_down(folder: Path, like: Path | None = None) -> Path:
    """The workflow's config and data in a new folder; like: a folder whose config file is used if it names another."""
    folder.mkdir(parents=True)
    if like and (like / "other").exists():
        shutil.copy(like / "other", folder)
        return folder
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG))
    lines = [f"the {a} cat sees a {b} dog near the {c} house" for a in WORDS for b in WORDS for c in WORDS]
    (folder / "words.txt").write_text("\n".join(lines) + "\n")
    rows = [{"sentence": line, "label": number % 2} for number, line in enumerate(lines[:48])]
    pairs = [{"sentence_good": line, "sentence_bad": " ".join(line.split()[::-1])} for line in lines[:20]]
    for name, listed in (("t", rows), ("p", pairs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in listed))
    return folder


def start(folder: Path, *arguments, output=None, environment=(), **how):
    """Snakemake on the folder's workflow, or on that of the config file it names, in a session of its own."""
    other = folder / "other"
    config = other.read_text() if other.exists() else str(folder / "config.yaml")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "2", *arguments]
    command += ["--rerun-incomplete", "--directory", str(folder), "--configfile", config]
    own = {name: value for name, value in os.environ.items() if name != "MASKLAB_STORE"}  # else nothing were made here
    environment = own | {"PYTHONPATH": str(ROOT / "src"), **dict(environment)}
    with open(output or os.devnull, "a") as file:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True, **how
        )


def finish(folder: Path, *arguments, tries: int = 6, **how) -> list[int]:
    """Run until it succeeds; the exit statuses. The next run takes away the lock that a killed Snakemake leaves."""
    statuses = []
    while len(statuses) < tries:
        statuses.append(start(folder, *arguments, output=folder / "output", **how).wait())
        if statuses[-1] == 0:
            return statuses
    raise AssertionError(f"{folder}: did not finish: {(folder / 'output').read_text()[-3000:]}")


def kill_all(process) -> None:
    """SIGKILL to a Snakemake and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def jobs(folder: Path) -> dict[str, int]:
    """Place of each job under way -> its process."""
    found = {}
    for path in (folder / "results/state/jobs").glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            said = json.loads(path.read_text())
            if "failed" not in said and Path(f"/proc/{said['pid']}").exists():
                found[path.stem] = said["pid"]
    return found


def same(folder: Path, whole: Path) -> None:
    """The scores are those of the undisturbed run, byte for byte, but for seconds, where a study measures them."""
    if (folder / SCORES).read_bytes() == (whole / SCORES).read_bytes():
        return
    ours, theirs = (pq.read_table(place / SCORES) for place in (folder, whole))
    timed = pc.equal(theirs["metric"], "seconds")
    ours, theirs = (table.filter(pc.not_equal(table["metric"], "seconds")) for table in (ours, theirs))
    assert pc.any(timed).as_py() and ours.equals(theirs), f"{folder}: other scores"


def quiet(folder: Path) -> None:
    """No job and no Snakemake has left a traceback."""
    for path in [folder / "output", *(folder / "results/logs").rglob("*.log")]:
        text = path.read_text(errors="replace") if path.exists() else ""
        assert not any(noise in text for noise in NOISE), f"{path}:\n{text[-2500:]}"


def resumptions(folder: Path) -> int:
    """Jobs whose last try went on from a state."""
    logs = [path.read_text(errors="replace") for path in (folder / "results/logs").rglob("*.log")]
    return sum("resuming at" in text or "going on after" in text for text in logs)


# --- the faults ------------------------------------------------------------------------------------------------------


def kill(place: Path, whole: Path, rng, times: int) -> str:
    """SIGKILL to random jobs, and in one case of ten to Snakemake with all it has started, at random moments.

    Of the jobs under way one is killed whose rule was killed least often, and a job of a rule that was not killed yet
    soon after it has begun, so that all rules have their turn. No job is killed more than three times in one run.
    """
    folder = lay_down(place / "kill", whole)
    gap = 8.0 if (folder / "other").exists() else 1.5  # seconds between kills, on average
    killed, turns, seen, resumed, runs, lost = Counter(), Counter(), set(), 0, 1, 0
    process = start(folder, "--retries", "1000", output=folder / "output")
    moment = time.monotonic() + rng.expovariate(1 / gap)
    while killed.total() < times:
        time.sleep(0.05)
        there = jobs(folder)
        seen |= {kind_of(name) for name in there}
        fresh = [name for name in there if not killed[kind_of(name)]]
        if process.poll() is not None:
            lost += process.returncode != 0
            if process.returncode == 0:  # all is made, and once more
                same(folder, whole)
                turns.clear()
                runs += 1
                resumed += resumptions(folder)
                shutil.rmtree(folder / "results")
                shutil.rmtree(folder / ".masklab", ignore_errors=True)
            process = start(folder, "--retries", "1000", output=folder / "output")
        elif fresh:
            time.sleep(rng.uniform(0, 0.5))
            strike(rng.choice(sorted(fresh)), there, killed, turns)
        elif time.monotonic() >= moment:
            moment = time.monotonic() + rng.expovariate(1 / gap)
            if rng.random() < 0.1:
                kill_all(process)
                killed["snakemake"] += 1
            elif free := [name for name in there if turns[name] < 3]:
                least = min(killed[kind_of(name)] for name in free)
                strike(rng.choice(sorted(n for n in free if killed[kind_of(n)] == least)), there, killed, turns)
    kill_all(process)
    finish(folder)
    resumed += resumptions(folder)
    same(folder, whole)
    left = [path for path in (folder / "results/state").rglob("*") if path.suffix in (".safetensors", ".tmp")]
    assert not left, left
    each = ", ".join(f"{count} {name}" for name, count in sorted(killed.items()))
    spared = ", ".join(sorted(seen - set(killed))) or "none"
    return (
        f"{killed.total()} kills ({each}) in {runs} runs of the workflow; rules seen and never hit: {spared};"
        f" Snakemake gave up by itself: {lost - killed['snakemake']};"
        f" {resumed} of the jobs went on from a state in their last try"
    )


def kind_of(name: str) -> str:
    """The rule of a job, from its place."""
    return name.partition("~")[0]


def strike(name: str, there: dict[str, int], killed: Counter, turns: Counter) -> None:
    """SIGKILL to the job of that name."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(there[name], signal.SIGKILL)
        killed[kind_of(name)] += 1
        turns[name] += 1


def term(place: Path, whole: Path, rng, times: int) -> str:
    """SIGTERM to Snakemake and its jobs, as a terminal or a cluster sends it, at random moments."""
    folder = lay_down(place / "term")
    for _ in range(times):
        process = start(folder, output=folder / "output")
        time.sleep(rng.uniform(4, 14))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
    finish(folder)
    same(folder, whole)
    return f"{times} times SIGTERM"


def two(place: Path, whole: Path, rng, times: int) -> str:
    """Two Snakemakes in one folder: one is refused; two folders that share a store at once: both make the same."""
    folder = lay_down(place / "one")
    first = start(folder, output=folder / "output")
    while not (folder / ".snakemake/locks").is_dir() or not any((folder / ".snakemake/locks").iterdir()):
        time.sleep(0.05)
    second = start(folder, output=folder / "second").wait()
    assert second != 0 and "lock" in (folder / "second").read_text().lower()
    assert first.wait() == 0
    same(folder, whole)
    folders = [lay_down(place / name) for name in ("left", "right")]
    shared = {"MASKLAB_STORE": str(place / "shared")}
    running = [start(folder, output=folder / "output", environment=shared) for folder in folders]
    assert [process.wait() for process in running] == [0, 0]
    for folder in folders:
        same(folder, whole)
        quiet(folder)
    return "the second was refused; two with one store agree"


@contextlib.contextmanager
def mounted(folder: Path, size: str):
    """A tmpfs of a size at `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path, left: int) -> Path:
    """Fill a file system up to `left` bytes."""
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    os.truncate(filler, max(0, filler.stat().st_size - left))
    return filler


def disk(place: Path, whole: Path, rng, times: int) -> str:
    """Before each rule the disk of the results is full but for some kB; then there is room again."""
    folder, refused = lay_down(place / "disk"), 0
    with mounted(folder / "results", "64m"):
        for file in FILES:
            for left in (0, 8192):
                filler = fill(folder / "results", left)
                status = start(folder, f"results/{file}", output=folder / "output").wait()
                refused += status != 0
                quiet(folder)
                filler.unlink()
                start(folder, "--unlock").wait()
            if refused:
                text = (folder / "output").read_text()
                assert "No space left" in text or "full" in text, text[-2500:]
            finish(folder, f"results/{file}")
        finish(folder)
        quiet(folder)
        same(folder, whole)
    return f"{2 * len(FILES)} runs of {len(FILES)} rules on a full disk, {refused} refused in a line"


def readonly(place: Path, whole: Path, rng, times: int) -> str:
    """The results can be read and not written."""
    folder = lay_down(place / "readonly")
    with mounted(folder / "results", "64m") as results:
        finish(folder, "results/tokens/text/text/meta.json")
        subprocess.run(["mount", "-o", "remount,ro", str(results)], check=True)
        status = start(folder, output=folder / "output").wait()
        text = (folder / "output").read_text()
        assert status != 0 and "Read-only file system" in text, text[-2500:]
        subprocess.run(["mount", "-o", "remount,rw", str(results)], check=True)
        finish(folder)
        same(folder, whole)
    return "refused, and made when it could be written again"


HOOK = """
import hashlib, os, stat, time
fsync = os.fsync
def logged(number):
    fsync(number)
    number = number if isinstance(number, int) else number.fileno()
    found = os.fstat(number)
    if stat.S_ISREG(found.st_mode):
        with open(f"/proc/self/fd/{{number}}", "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        with open({log!r}, "a") as file:
            file.write(f"{{found.st_ino}} {{digest}}\\n")
os.fsync = logged
sync = os.sync
def all_logged():
    sync()
    with open({log!r}, "a") as file:
        file.write(f"all {{time.time_ns()}}\\n")
os.sync = all_logged
"""


def power(place: Path, whole: Path, rng, times: int) -> str:
    """The power fails: all processes end, and what was written and not fsynced is cut or gone.

    Each file of the results, of the store and of Snakemake whose bytes have changed since it was last fsynced is as
    before (one in three), cut at a block (one in three), or empty. A time that was changed loses no byte.
    """
    folder, lost = lay_down(place / "power"), 0
    hook = place / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(HOOK.format(log=str(place / "synced")))
    path = {"PYTHONPATH": f"{hook}:{ROOT / 'src'}"}
    for _ in range(times):
        process = start(folder, output=folder / "output", environment=path)
        time.sleep(rng.uniform(4, 25))
        kill_all(process)
        time.sleep(0.5)
        log = place / "synced"
        synced = set(log.read_text().splitlines()) if log.exists() else set()
        until = max((int(line.split()[1]) for line in synced if line.startswith("all ")), default=0)
        for file in [path for top in ("results", ".masklab", ".snakemake") for path in (folder / top).rglob("*")]:
            with contextlib.suppress(OSError):
                found = file.stat()
                if file.is_symlink() or not file.is_file() or found.st_ctime_ns < until:
                    continue
                if f"{found.st_ino} {hashlib.sha256(file.read_bytes()).hexdigest()}" in synced:
                    continue
                how = rng.randrange(3)
                if how:
                    os.truncate(file, 0 if how == 1 else found.st_size // 2 // 4096 * 4096)
                    lost += 1
    finish(folder)
    same(folder, whole)
    return f"{times} times, {lost} files cut"


def memory(place: Path, whole: Path, rng, times: int) -> str:
    """A batch that is larger than the memory that a job may have."""
    folder = lay_down(place / "memory")
    large = json.loads(json.dumps(CONFIG))
    large["corpora"]["text"] |= {"valid": 5, "test": 5}
    large["encoders"]["tiny"] |= {"hidden": 4096, "heads": 4}
    large["models"]["first"] |= {"batch_size": 480}
    (folder / "config.yaml").write_text(yaml.safe_dump(large))
    target = "results/models/first/r1/manifest.json"
    finish(folder, "results/tokens/text/text/meta.json")

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    status = start(
        folder, target, output=folder / "output", environment={"MASKLAB_WARM": "0"}, preexec_fn=little
    ).wait()
    text = (folder / "results/logs/models/first/r1.log").read_text()
    assert status != 0 and "out of memory" in text and "lower models.first.micro_batch" in text, text
    quiet(folder)
    return next(line for line in text.splitlines() if "out of memory" in line)[:160]


FAULTS = {"kill": (kill, 100), "term": (term, 3), "two": (two, 1), "disk": (disk, 1), "readonly": (readonly, 1),
          "power": (power, 5), "memory": (memory, 1)}  # fmt: skip


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="+", choices=[*FAULTS, "all"])
    parser.add_argument("--times", type=int, help="how often (kill 100, power 5, term 3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--default", action="store_true", help="kill jobs of the default run in place of the small one")
    parser.add_argument("--config", type=Path, help="or of the run of this config file")
    parser.add_argument("--whole", type=Path, help="folder of an undisturbed run, made if it is not there")
    parser.add_argument("--keep", action="store_true", help="leave the folders where they are")
    options = parser.parse_args(arguments)
    place, failed = Path(tempfile.mkdtemp(prefix="faults-")), 0
    print(f"in {place}", flush=True)
    began = time.monotonic()
    whole = options.whole or place / "whole"
    config = ROOT / "config.yaml" if options.default else options.config
    if config and options.faults != ["kill"]:
        parser.error("--default and --config are for `kill` alone; the other faults know the small workflow's files")
    if not whole.exists():
        if config:
            whole.mkdir(parents=True)
            (whole / "other").write_text(str(config.resolve()))
        else:
            lay_down(whole)
        finish(whole)
        quiet(whole)
    elif config:  # it may have been made by hand
        (whole / "other").write_text(str(config.resolve()))
    print(f"undisturbed: {time.monotonic() - began:.0f} s", flush=True)
    for name in FAULTS if "all" in options.faults else options.faults:
        fault, times = FAULTS[name]
        began = time.monotonic()
        try:
            said = fault(place, whole, random.Random(options.seed), options.times or times)
        except (AssertionError, subprocess.CalledProcessError) as error:
            failed, said = failed + 1, f"FAILED: {error}"
        print(f"{name}: {said} ({time.monotonic() - began:.0f} s)", flush=True)
    if not options.keep and not failed:
        shutil.rmtree(place, ignore_errors=True)
    print(f"faults that left a mark: {failed}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
