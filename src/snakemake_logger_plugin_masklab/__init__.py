"""What Snakemake says of a run, handed on to `masklab.jobs.run_log`: `--logger masklab`, which profiles/default sets.

Snakemake finds a logger by the name of its package. Dry runs, `--verbose` and what is said before a run starts are
said as Snakemake says them, but for a config file that cannot be read. `masklab` is imported only when it is needed:
the checkout that runs decides which one.
"""

import logging
import os
import re
import sys

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

SUBMITTED = re.compile(r"Job (\d+) has been submitted with SLURM jobid (\S+) ")
AGAIN = re.compile(r"Trying to restart job (\d+)\.")
EXIT = "returned non-zero exit status"  # of a script: the job itself says why
LAST = ("At least one job did not complete successfully.", "Exiting because a job execution failed")
HARMLESS = ("No SLURM account given", "No account was given", "Unable to guess SLURM account")  # sbatch would refuse
NOTHING = "Nothing to be done"
CHATTER = ("Using profile", "Using workflow specific profile", "Building DAG of jobs", "Assuming unrestricted shared")


def wrong_config(folder: str) -> str | None:
    """What `masklab` says of the files of --configfile, which Snakemake reads before any code of ours; None: nothing.

    It is said in place of Snakemake's own message, a traceback where a file is missing. Whether it is YAML counts here;
    what it says is checked when the workflow has begun. folder: where Snakemake was started, before any --directory.
    """
    try:
        from masklab.config.layers import stack
        from masklab.errors import MaskLabError

        stack([os.path.join(folder, file) for file in configfiles(sys.argv[1:])])
    except MaskLabError as error:
        return error.said
    except ImportError:
        pass
    return None


def configfiles(words: list[str]) -> list[str]:
    """The files of `--configfile` on a command line of Snakemake: every word up to the next option."""
    files, takes = [], False
    for word in words:
        if word.startswith("-"):
            option, equals, file = word.partition("=")
            takes = option in ("--configfile", "--configfiles") and not equals
            files += [file] if equals and option.startswith("--configfile") else []
        elif takes:
            files.append(word)
    return files


def as_snakemake(common, stream) -> logging.Handler:
    """What writes as Snakemake does. No interface promises these classes of its; without them messages stand alone."""
    try:
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

        return ColorizingTextHandler(
            nocolor=common.nocolor,
            stream=stream,
            formatter=DefaultFormatter(common.quiet, common.show_failed_logs),
            filter=DefaultFilter(common.quiet, common.debug_dag, common.verbose, common.dryrun, common.printshellcmds),
        )
    except (ImportError, TypeError, AttributeError):
        return logging.StreamHandler(stream)


class LogHandler(LogHandlerBase):
    """Log of a run for a person."""

    def __post_init__(self):
        common = self.common_settings
        self.quiet = {kind.name.lower() for kind in common.quiet or ()}
        stream = sys.stdout if common.stdout else sys.stderr
        self.stream, self.run, self.started, self.seen = stream, None, False, set()
        self.folder = os.getcwd()
        self.plain = as_snakemake(common, stream)
        self.passes = common.dryrun or common.verbose or common.debug_dag or "all" in self.quiet

    def emit(self, record):
        try:
            self._emit(record)
        except Exception:
            self.handleError(record)

    def _emit(self, record):
        event, text = getattr(record, "event", None), record.getMessage()
        early = event == LogEvent.ERROR and not (self.started or self.common_settings.verbose)
        if early and (said := wrong_config(self.folder)):
            sys.stderr.write(f"{said}\n")
        elif self.passes or event in (LogEvent.SHELLCMD, LogEvent.DEBUG_DAG):
            self.plain.handle(record)
        elif event == LogEvent.WORKFLOW_STARTED:
            self.started = True
            os.environ["MASKLAB_QUIET"] = os.environ.get("SLURM_JOB_ID", "")
        elif event == LogEvent.RUN_INFO:
            self._run().starts(record.stats)
        elif event == LogEvent.JOB_INFO:
            name = record.rule_msg or " ".join([record.rule_name, *map(str, dict(record.wildcards).values())])
            self._run().begins(record.jobid, name, record.rule_name, next(iter(record.log), None))
        elif event == LogEvent.JOB_FINISHED:
            self._run().ends(record.job_id)
        elif event == LogEvent.JOB_ERROR:
            self._run().fails(record.jobid, record.rule_msg or "", list(record.log))
        elif event is None and (found := SUBMITTED.match(text)):
            self._run().submitted(int(found[1]), found[2])
        elif event is None and (found := AGAIN.match(text)):
            self._run().again(int(found[1]))
        elif event in (None, LogEvent.ERROR) and self._matters(record, text):
            self._say(record, text)

    def _run(self):
        if self.run is None:
            from masklab.jobs.run_log import RunLog

            terminal = self.stream.isatty() and os.environ.get("TERM") != "dumb"
            quiet = self.quiet
            self.run = RunLog(self.stream, terminal, os.getpid(), "rules" not in quiet, "progress" not in quiet)
        return self.run

    def _matters(self, record, text) -> bool:
        """Warnings and errors once each; before a run starts, and where there is nothing to do, all but chatter."""
        if EXIT in text or any(last in text for last in LAST) or text in self.seen:
            return False
        self.seen.add(text)
        if text.startswith(HARMLESS):
            return False
        if record.levelname in ("WARNING", "ERROR", "CRITICAL"):
            return True
        return text.startswith(NOTHING) or not (self.started or text.startswith(CHATTER))

    def _say(self, record, text):
        if self.run is None:
            self.plain.handle(record)
        elif not self.run.over.is_set():
            self.run.say(text.strip())

    def close(self):
        if self.run is not None:
            self.run.closes()
            self.run = None
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        return True

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True

    @property
    def has_formatter(self) -> bool:
        return True

    @property
    def needs_rulegraph(self) -> bool:
        return False
