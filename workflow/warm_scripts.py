"""Scripts run in the warm process (`masklab.jobs.warm`), where Snakemake would start a shell and a Python for each.

All that knows how Snakemake starts a script. Where a release of it does that otherwise, scripts start cold.
"""

import subprocess
import sys

from snakemake import script

from masklab.jobs import warm

HOOK = "execute_script"
ELSEWHERE = ("conda_env", "container_img", "env_modules", "bench_record", "shadow_dir")  # not as this process


def install() -> None:
    """Have Snakemake's Python scripts run so from now on in this process."""
    kind = getattr(script, "PythonScript", None)
    start = getattr(kind, HOOK, None)
    if start is None or getattr(start, "warm", False):
        return

    def execute_script(self, fname, edit=False):
        status = None
        if not edit and not any(getattr(self, name, None) for name in ELSEWHERE):
            status = warm.run(fname, self.threads, _temporary(self.resources))
        if status is None:
            start(self, fname, edit)
        elif status:
            raise subprocess.CalledProcessError(status, f"{sys.executable} {fname}")

    execute_script.warm = True
    setattr(kind, HOOK, execute_script)


def _temporary(resources) -> dict[str, str]:
    """What Snakemake sets for a job's folder of temporary files."""
    folder = resources.get("tmpdir")
    return dict.fromkeys(("TMPDIR", "TMP", "TEMPDIR", "TEMP"), folder) if folder else {}
