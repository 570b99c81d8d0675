"""Replicates of one recipe train side by side, in the job of one of them, where Snakemake itself runs the jobs.

Each replicate keeps a job of its own, whose params and inputs know nothing of the others. What is changed is the order
in which Snakemake's scheduler starts them: of the replicates of a recipe that are ready, one; the others when it has
ended, and then they find their work done. It is told which ones these are (`masklab.jobs.stacks`). A recipe waits for
replicates whose inputs are not yet made, as long as anything else is to be done. Of the recipes that are ready those
with the most work start first: begun last, a long one would leave the other cores idle.
"""

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import inside_snakemake
from masklab.jobs import stacks
from masklab.training.side_by_side import stacks as may_stack

RULE = "pretrain"


def install(workflow, config, pending) -> None:
    """Have the scheduler of `workflow` start replicates so; pending: the jobs that this run needs."""
    scheduler = workflow.scheduler
    if config.device != "cpu" and _has_gpu(config):
        return
    if not inside_snakemake.able("beside", workflow=workflow, scheduler=scheduler, dag=workflow.dag):
        return
    recipes = {}
    for job in pending:
        if job.rule.name == RULE and _may_stack(config, job.wildcards.recipe):
            recipes.setdefault(job.wildcards.recipe, []).append(job)
    groups = _groups(recipes, workflow.cores)
    if groups:
        stacks.begin()
        work = {recipe: _work(config, recipe) * len(jobs) for recipe, jobs in recipes.items()}
        inside_snakemake.select_jobs(
            workflow, lambda choose: Selector(workflow, scheduler, groups, work, choose).select
        )


def _has_gpu(config) -> bool:
    return config.device == "cuda" or shutil.which("nvidia-smi") is not None


def _may_stack(config, recipe) -> bool:
    model = config.models[recipe]
    return may_stack(model, config.encoders[model.encoder], config.objectives[model.objective])


def _work(config, recipe) -> float:
    """What an update costs, products with weights and what goes number by number, times their number: an order.

    The plan of the run (`masklab.jobs.remaining`) knows more, and comes seconds after the first choice.
    """
    model = config.models[recipe]
    encoder = config.encoders[model.encoder]
    return model.steps * model.batch_size * encoder.layers * encoder.hidden * (encoder.hidden + 32)


def _groups(recipes, cores: int) -> dict:
    """Job -> the jobs that are to train side by side, itself among them.

    Where there are more cores than recipes, the replicates of a recipe are shared out, so that no core is idle: one
    group of several, and others alone, since what several leave lies in one place (`training.together`). Those that an
    earlier run was stopped in the middle of go on as they began, on any number of cores: several in the one state that
    they have, each of the others in its own. So does one whose part of such a state was put aside (`training.apart`).
    """
    parts = max(1, cores // max(1, len(recipes)))
    groups = {}
    for jobs in recipes.values():
        jobs = sorted(jobs, key=lambda job: int(job.wildcards.replicate))
        together = Path(jobs[0].params.state).parent / stacks.TOGETHER
        begun = stacks.replicates(together / stacks.STATE)
        alone = [job for job in jobs if _goes_on_alone(together, job)]
        group = [job for job in jobs if int(job.wildcards.replicate) in begun and job not in alone]
        if not group:
            fresh = [job for job in jobs if job not in alone]
            shares = min(max(1, parts - len(jobs) + len(fresh)), len(fresh))
            group = fresh[: -(-len(fresh) // shares)] if fresh else []
        if len(group) > 1:
            groups |= dict.fromkeys(group, group)
    return groups


def _goes_on_alone(together: Path, job) -> bool:
    own = Path(job.params.state) / stacks.STATE
    return stacks.has_begun(own) or stacks.aside(together, int(job.wildcards.replicate)).is_file()


class Selector:
    """The scheduler's choice of jobs to start, which lets one job of a group through at a time.

    groups: job -> the jobs of its group; work: of each recipe's group; choose: Snakemake's own choice.
    """

    def __init__(self, workflow, scheduler, groups, work, choose):
        self.dag, self.scheduler, self.cores = workflow.dag, scheduler, workflow.cores
        self.groups, self.work, self.choose = groups, work, choose
        self.warned = False

    def select(self, jobs):
        """Jobs to start now, of those that are ready."""
        trained = [job for job in jobs if any(map(self.dag.finished, self.groups.get(job, ())))]
        for job in trained:  # nothing is left to be done but to take it, or to train alone what left its siblings
            self._tell(job, [])
        first = list(self.choose(trained)) if trained else []
        return first + list(self._select([job for job in jobs if job not in trained], bool(first)))

    def _select(self, jobs, others: bool):
        """Of jobs none of whose group has ended; others: whether jobs are starting."""
        free = [job for job in jobs if job not in self.groups]
        ready = {id(self.groups[job]): self.groups[job] for job in jobs if job in self.groups}
        ready = [group for group in ready.values() if not any(job in self.scheduler.running for job in group)]
        whole = [group for group in ready if all(job in jobs or job in self.scheduler.failed for job in group)]
        whole.sort(key=lambda group: -self.work[group[0].wildcards.recipe])
        candidates = [*free, *(self._first(group, jobs) for group in whole[: self.cores])]
        chosen = self.choose(candidates) if candidates else []
        if not (chosen or others or self.scheduler.running) and len(whole) < len(ready):  # nothing else is to be done
            chosen = self.choose([self._first(group, jobs) for group in ready])
        return chosen

    def _first(self, group, jobs):
        """The job that trains those of its group that are ready."""
        first, *others = [job for job in group if job in jobs]
        self._tell(first, [_described(job) for job in others])
        return first

    def _tell(self, job, siblings):
        """`stacks.tell`; where nothing can be written the job knows of no sibling, and trains alone."""
        names = job.wildcards.recipe, int(job.wildcards.replicate)
        try:
            stacks.tell(*names, siblings)
        except OSError as error:
            with suppress(OSError):  # what it was told before is out of date
                Path(stacks.run(), names[0], f"r{names[1]}.json").unlink(missing_ok=True)
            if not self.warned:
                self.warned = True
                print(
                    f"masklab: warning: the folder of temporary files cannot be written to ({error.strerror}):"
                    " replicates train one by one",
                    file=sys.stderr,
                )


def _described(job) -> dict:
    """What the script of one job needs to know to do the work of another."""
    return {
        "replicate": int(job.wildcards.replicate),
        "config": job.params.config,
        "input": {name: file if isinstance(file, str) else list(map(str, file)) for name, file in job.input.items()},
        "manifest": str(job.output.manifest),
        "state": job.params.state,
    }
