"""A real Slurm on this machine, started for these tests and removed after them."""

import os
import subprocess
from pathlib import Path

import pytest
from cluster_runs import CONFIG, SHARED, STARTED, Folder, processes, small

HERE = Path(__file__).parent
MISSING = 77  # exit status of start.sh where there is no Slurm and none can be installed
DAEMONS = ("slurmctld", "slurmd", "slurmstepd", "/usr/sbin/slurm")


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    """Two nodes with two stand-in GPUs each. MASKLAB_SLURM=1 installs Slurm where it is missing.

    Then tests are skipped only where Debian's packages cannot be had; a Slurm that does not start is a failure.
    """
    if os.environ.get("MASKLAB_SLURM") != "1":
        pytest.skip("no Slurm: MASKLAB_SLURM=1 (as root on Debian) installs one from packages and runs these tests")
    state = tmp_path_factory.mktemp("slurm") / "state"
    try:
        started = subprocess.run([HERE / "start.sh", state, "2"])
        if started.returncode == MISSING:
            pytest.skip("no Slurm: its packages cannot be installed here (no apt-get, or no way to Debian's mirrors)")
        started.check_returncode()
        yield state
    finally:
        for process in STARTED:
            if process.poll() is None:
                process.kill()
        subprocess.run([HERE / "stop.sh", state], check=True)
    assert not Path("/etc/slurm/slurm.conf").exists() and not state.exists()
    assert not [number for daemon in DAEMONS for number in processes(daemon)], "a daemon still runs"


@pytest.fixture(scope="session")
def whole(slurm, tmp_path_factory):
    """The workflow up to one figure, started through Slurm in the background: (folder, process)."""
    folder = Folder(tmp_path_factory.mktemp("whole"), small())
    return folder, folder.start("mlsm_figure2", slurm=True)


@pytest.fixture(scope="session", autouse=True)
def _early(request):
    """The longest run begins first, if it is wanted at all."""
    if any("whole" in item.fixturenames for item in request.session.items) and os.environ.get("MASKLAB_SLURM") == "1":
        request.getfixturevalue("whole")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A folder with everything before pre-training, made without Slurm."""
    folder = Folder(tmp_path_factory.mktemp("prepared"), CONFIG)
    folder.run(*SHARED)
    return folder
