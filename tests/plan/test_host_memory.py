"""What memory jobs are said to need."""

import pytest

from masklab.config import read
from masklab.plan import read_assumptions
from masklab.plan.costs import Costs, Device
from masklab.plan.graph import LOCAL, Job, checkout_paths, graph
from masklab.plan.host_memory import Memory


def memory(config, device):
    paths, assumptions = checkout_paths(config), read_assumptions()
    costs = Costs(paths, Device(device, assumptions["devices"][device]), assumptions)
    return paths, Memory(costs, on_gpu=device != "cpu")


@pytest.mark.parametrize(
    ("files", "device", "most"), [(["config.yaml"], "cpu", 6e9), (["presets/paper.yaml"], "h100", 80e9)]
)
def test_every_job_of_a_config_has_a_plausible_need(files, device, most):
    """The default run fits a small machine; the papers' own sizes fit a node of a cluster."""
    paths, need = memory(read(*files), device)
    jobs = [job for job in graph(paths, paths.everything()).values() if job.rule not in LOCAL]
    found = {job.key: need.of(job) for job in jobs}
    assert len(found) > 500
    assert min(found.values()) > 1e9 and max(found.values()) < most, max(found, key=found.get)


def test_a_larger_batch_and_longer_sequences_need_more_on_a_cpu():
    config = read("config.yaml")
    job = Job("pretrain", {"recipe": "strict-mlm", "replicate": "1"})
    _, need = memory(config, "cpu")
    small = need.of(job)
    model = config.models["strict-mlm"].model_copy(update={"batch_size": 4096})
    config.models["strict-mlm"] = model
    assert need.of(job) > 2 * small


def test_a_recipe_that_solves_for_codes_holds_its_teacher():
    config = read("config.yaml")
    job = Job("pretrain", {"recipe": "strict-mlsm", "replicate": "1"})
    _, need = memory(config, "cpu")
    stored = need.of(job)
    config.models["strict-mlsm"] = config.models["strict-mlsm"].model_copy(update={"codes": "on-the-fly"})
    assert need.of(job) > stored
