"""Start one pre-training run without the workflow: `python -m masklab.training run.json`.

The file is a serialised `masklab.training.run.Run`; the workflow leaves the one of every unfinished run at
`results/state/models/<recipe>/r<k>/run.json`. Killed, the same command resumes; a replicate that the
workflow was training beside others goes on from its part of their common state. Where the run's model
says `processes: n`, n processes of this same command are started by torchrun; under torchrun (or
anything else that sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT) this one is one of them.
"""

import argparse
import logging
import os
import sys

from masklab.config import kinds
from masklab.errors import MaskLabError
from masklab.inside_libc import keep_freed_memory
from masklab.jobs.lacking import lacking
from masklab.jobs.progress import configure


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m masklab.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="JSON file of the run")
    parser.add_argument("log", nargs="?", help="file that log lines are added to")
    options = parser.parse_args(arguments)
    configure(options.log, "a")
    keep_freed_memory()
    recipe = ""
    try:
        from masklab.training.launch import launch
        from masklab.training.run import read_run

        run = read_run(options.run)
        recipe = run.name
        if os.environ.get("RANK", "0") == "0":
            _begin(run)
        launch(run, log=options.log)
    except (Exception, SystemExit) as error:
        said = error if isinstance(error, MaskLabError) else lacking(error, "pretrain", recipe=recipe)
        if not (said := said or kinds.blame(error)):
            raise
        logging.getLogger("masklab").error("error: %s", said)
        return 1
    return 0


def _begin(run) -> None:
    """Begin the run's state folder by the code of today: its parts are those that the workflow noted there."""
    from masklab.jobs import state
    from masklab.jobs.code import Code, today

    noted = (state.made_by(run.state) or {}).get("code", {})
    state.begin(run.state, Code.of(today(noted, run.code, "masklab.training.launch")))


if __name__ == "__main__":
    sys.exit(main())
