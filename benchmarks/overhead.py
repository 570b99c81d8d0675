"""Share of a run's processor time that does not compute: starts of processes, imports, Snakemake's work, idle cores.

    python benchmarks/overhead.py                     # the default run, as it is
    python benchmarks/overhead.py --cold mae          # every job starts a Python of its own
    python benchmarks/overhead.py mlsm_figure2 --configfile presets/evening.yaml

Runs the workflow in a temporary folder. Every job notes the processor time that it used and how much of that went by
within imports; the rest is what computes, reading and writing files included as far as they keep a processor busy.
The last line is 1 - computing / (cores x seconds on the clock).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Python runs a module of this name when it starts; a fork of the warm process begins to count anew.
NOTES = """
import atexit, builtins, json, os, sys, time
spent = {"imports": 0.0, "depth": 0}
plain = builtins.__import__

def timed(*given, **named):
    if spent["depth"]:
        return plain(*given, **named)
    spent["depth"], began = 1, time.process_time()
    try:
        return plain(*given, **named)
    finally:
        spent["depth"] = 0
        spent["imports"] += time.process_time() - began

def note():
    if f"{os.sep}.snakemake{os.sep}scripts{os.sep}" in sys.argv[0]:
        times = os.times()
        with open(os.path.join(os.environ["MASKLAB_NOTES"], f"{os.getpid()}.json"), "w") as file:
            json.dump({"cpu": times.user + times.system, "imports": spent["imports"]}, file)

builtins.__import__ = timed
atexit.register(note)
os.register_at_fork(after_in_child=lambda: spent.update(imports=0.0, depth=0))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="what to make (default: everything)")
    parser.add_argument("--configfile", type=Path, help="laid over config.yaml")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--cold", action="store_true", help="no warm process")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, notes = Path(temporary, "run"), Path(temporary, "notes")
        folder.mkdir()
        notes.mkdir()
        (notes / "sitecustomize.py").write_text(NOTES)
        environment = os.environ | {"MASKLAB_NOTES": str(notes), "PYTHONPATH": f"{notes}{os.pathsep}{ROOT / 'src'}"}
        if args.cold:
            environment["MASKLAB_WARM"] = "0"
        command = [sys.executable, "-m", "snakemake", *args.targets, "--cores", str(args.cores), "--quiet", "all"]
        command += ["--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)]
        if args.configfile:
            command += ["--configfile", str(args.configfile.resolve())]
        began = time.perf_counter()
        subprocess.run(command, cwd=ROOT, env=environment, check=True, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        jobs = [json.loads(file.read_text()) for file in notes.glob("*.json")]
    used, imports = (sum(job[key] for job in jobs) for key in ("cpu", "imports"))
    print(f"{len(jobs)} jobs, {args.cores} cores, {seconds:.0f} s: of {args.cores * seconds:.0f} s of processor time")
    print(f"jobs used {used:.0f} s, {imports:.0f} s of them within imports")
    print(f"ratio: {1 - (used - imports) / (args.cores * seconds):.3f}")


if __name__ == "__main__":
    main()
