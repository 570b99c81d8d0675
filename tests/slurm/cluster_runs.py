"""Small runs of the workflow, with and without Slurm."""

import copy
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import yaml
from safetensors import safe_open

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/workflow"))
from test_workflow import small  # noqa: E402

MODEL = {"corpus": "words", "tokenizer": "symbols", "encoder": "tiny", "objective": "mlm", "steps": 40,
         "batch_size": 16, "checkpoints": [40], "optimiser": {"lr": 2.0e-3, "warmup": 0.1}}  # fmt: skip
CONFIG = {
    "seed": 1,
    "device": "auto",  # no GPU here: jobs ask for one all the same
    "chains": {"words": {"synsets": 20}},
    "corpora": {"words": {"kind": "markov", "chains": "words", "distributional": True, "sequences": 200, "valid": 20,
                          "test": 20, "length": 20}},
    "tokenizers": {"symbols": {"kind": "symbols", "corpus": "words", "max_length": 22}},
    "encoders": {"tiny": {"positions": "absolute", "layers": 1, "hidden": 32, "heads": 2, "max_positions": 24}},
    "objectives": {"mlm": {"mlm": 1}},
    "models": {"long": MODEL, "one": MODEL, "two": MODEL, "other": MODEL},
    "studies": {},
}  # fmt: skip
SHARED = ("results/tokens/words/symbols/meta.json", "results/tokenizers/symbols/tokenizer.json")
STARTED: list[subprocess.Popen] = []


__all__ = [
    "CONFIG",
    "SHARED",
    "STARTED",
    "Folder",
    "job_of",
    "manifest",
    "processes",
    "slurm_says",
    "small",
    "wait_for",
]


def manifest(model: str) -> str:
    return f"results/models/{model}/r1/manifest.json"


class Folder:
    """A working folder with a config of its own."""

    def __init__(self, path, config):
        self.path, self.config = Path(path), copy.deepcopy(config)
        self.write()

    def write(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        config = {"extends": []} | self.config
        (self.path / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))

    def beside(self, name, models: dict | None = None) -> "Folder":
        """A copy of the artifacts, with keys of models laid over the config."""
        path = self.path.with_name(f"{self.path.name}-{name}")
        shutil.copytree(self.path, path, ignore=shutil.ignore_patterns(".snakemake"))
        config = copy.deepcopy(self.config)
        for model, keys in (models or {}).items():
            config["models"][model] = config["models"][model] | keys
        return Folder(path, config)

    def command(self, *arguments, slurm=False) -> list[str]:
        how = ["--profile", str(ROOT / "slurm"), "--slurm-init-seconds-before-status-checks", "1"] if slurm else []
        return [sys.executable, "-m", "snakemake", *arguments, "--cores", "all", *how, "--directory", str(self.path),
                "--snakefile", str(ROOT / "Snakefile"), "--configfile", str(self.path / "config.yaml")]  # fmt: skip

    def start(self, *arguments, slurm=False, **environment) -> subprocess.Popen:
        """The workflow in the background; its output goes to the file `output`."""
        output = open(self.path / "output", "w")  # noqa: SIM115
        started = subprocess.Popen(
            self.command(*arguments, slurm=slurm), stdout=output, stderr=subprocess.STDOUT, cwd=self.path,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        )  # fmt: skip
        STARTED.append(started)
        return started

    def run(self, *arguments, slurm=False, check=True, **environment) -> str:
        status = self.start(*arguments, slurm=slurm, **environment).wait()
        assert not check or status == 0, self.output
        return self.output

    @property
    def output(self) -> str:
        return (self.path / "output").read_text()

    def read(self, path: str) -> dict:
        return json.loads((self.path / path).read_text())

    def log(self, model) -> str:
        path = self.path / f"results/logs/models/{model}/r1.log"
        return path.read_text() if path.exists() else ""

    def logs(self) -> list[Path]:
        """Logs of jobs, and those that Slurm keeps of them."""
        return [*self.path.glob("results/logs/models/**/*.log"), *self.path.glob(".snakemake/slurm_logs/**/*.log")]

    def saved(self, model) -> int:
        """Step of the saved state, 0 without one."""
        try:
            with safe_open(self.path / f"results/state/models/{model}/r1/state.safetensors", "pt") as file:
                return json.loads(file.metadata()["facts"])["step"]
        except (OSError, RuntimeError):  # not there, or replaced while it is read
            return 0


def slurm_says(*command) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def processes(command: str) -> list[int]:
    """Numbers of the processes whose command line begins so."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has just ended
            continue
        if line.startswith(command):
            found.append(int(path.parent.name))
    return found


def job_of(folder, model) -> dict | None:
    """Id, state and node of the latest job that trains `model` from `folder`."""
    for line in reversed(slurm_says("squeue", "-h", "-t", "all", "-S", "i", "-o", "%i|%T|%N|%Z|%k").splitlines()):
        number, state, node, where, comment = line.split("|", 4)
        if Path(where) == folder.path and f"wildcards_{model}" in comment:
            return {"id": number, "state": state, "node": node}
    return None


def wait_for(condition, what: str, seconds: float = 400, folder: "Folder | None" = None):
    """The first true value of `condition`; folder: whose log is told where it does not come true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            queue = slurm_says("squeue", "-t", "all", "-o", "%i %T %r %N %S %Z %k")
            logs = [folder.output, *(f.read_text()[-3000:] for f in folder.logs())] if folder else []
            raise AssertionError("\n".join([f"waited {seconds} s for: {what}", queue, *logs]))
        time.sleep(0.2)
    return found
