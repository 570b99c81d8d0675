"""The command `masklab`: checks, plans, progress and questions about results, beside the workflow."""

import argparse
import os
import sys
import time
from pathlib import Path

from masklab.errors import MaskLabError


def main(arguments=None) -> int:
    options = _parser().parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except MaskLabError as error:
        print(error.said, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # e.g. `masklab check | head`
        sys.stderr.close()
    except (OSError, MemoryError, RuntimeError) as error:
        from masklab.jobs.lacking import lacking

        if (said := lacking(error)) is None:
            raise
        print(MaskLabError(said).said, file=sys.stderr)
        return 1
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="masklab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check a config and say what it declares")
    check.add_argument("files", nargs="*", metavar="FILE", help="as given to snakemake's --configfile (config.yaml)")
    _values(check)
    config = commands.add_parser("config", help="a config as it is read, with the file and line of each key")
    config.add_argument("words", nargs="*", metavar="FILE|PART", help="files as above; `section` or `section.name`")
    config.add_argument("--names", action="store_true", help="what a section declares, by name alone")
    _values(config)
    status = commands.add_parser("status", help="what runs, waits, was interrupted or failed in this folder")
    status.add_argument("--json", action="store_true", help="the same for a program, once")
    status.add_argument("-w", "--watch", nargs="?", type=_seconds, const=2.0, metavar="SECONDS",
                        help="show again every so many seconds (2), until Ctrl-C")  # fmt: skip
    commands.add_parser("tasks", help="recipes of generated labelled tasks, and phenomena of generated minimal pairs")
    rank = commands.add_parser("rank", help="effective rank of an encoder's hidden states, with and without [MASK]")
    rank.add_argument("folder", help="Hugging Face folder of an encoder")
    rank.add_argument("--text", required=True, help="UTF-8 text, one sequence a line (.gz, .xz, .zst too)")
    rank.add_argument("--rate", type=float, default=0.15, help="share of tokens masked (%(default)s)")
    rank.add_argument("--threshold", type=float, default=0.9, help="share of squared norm (%(default)s)")
    rank.add_argument(
        "--length", type=int, default=512, help="cut lines to so many tokens (%(default)s, or all it reads)"
    )
    rank.add_argument("--subspace", type=float, default=0.99, help="share of real tokens' norm in theirs (%(default)s)")
    rank.add_argument("--lines", type=int, help="read so many lines (all)")
    rank.add_argument("--specials", action="store_true", help="count [CLS] and [SEP] too")
    rank.add_argument("--untrained", action="store_true", help="of the same architecture with initial weights: a null")
    rank.add_argument("--output", help="CSV file for the rows")
    rank.add_argument("--plot", help="picture of them by layer (.png, .pdf, .svg)")
    look = commands.add_parser(
        "dictionary", help="latent properties of an encoder's hidden states, as a page to look at"
    )
    look.add_argument("folder", help="Hugging Face folder of an encoder, made here or elsewhere")
    look.add_argument("--text", required=True, help="UTF-8 text, one sequence a line (.gz, .xz, .zst too)")
    look.add_argument("--output", default="dictionary", help="a new folder for index.html and tables (%(default)s)")
    look.add_argument("--layer", type=int, help="hidden layer; 0: the embeddings (the last one)")
    look.add_argument("--atoms", type=int, default=1000, help="k, the number of properties (%(default)s)")
    look.add_argument("--penalty", type=float, default=0.05, help="lambda of the lasso (%(default)s)")
    look.add_argument("--tokens", type=int, default=100_000, help="tokens that are looked at (%(default)s)")
    look.add_argument("--iterations", type=int, default=300, help="mini-batches of 400 vectors (%(default)s)")
    look.add_argument("--wordnet", help="data folder of nltk with a WordNet 3: coherence and synonyms by it, too")
    corpus = commands.add_parser("corpus", help="how a corpus of symbols was drawn: seed, config, entropies")
    corpus.add_argument("file", help="a split of it, e.g. results/corpora/<corpus>/test.parquet")
    plan = commands.add_parser(
        "plan", help="jobs, GPU-hours, tokens, FLOPs, disk and longest chain before anything runs"
    )
    plan.add_argument("studies", nargs="*", help="studies, figures and tables of them, `dictionaries`; all studies")
    plan.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help="as given to snakemake (config.yaml)")
    _values(plan)
    plan.add_argument("--device", help="what computes: h100, a100, cpu, or an entry of --assume (this machine)")
    plan.add_argument("--assume", nargs="*", default=[], metavar="YAML", help="files laid over the assumptions")
    plan.add_argument(
        "--at-once", type=int, metavar="N", help="jobs side by side: adds the time (on this machine's CPU: its cores)"
    )
    plan.add_argument("--actual", action="store_true", help="after a run: seconds planned and used, by rule")
    commands.add_parser("speed", help="how fast this machine's CPU trains, as a file for `plan --assume`")
    why = commands.add_parser("why", help="what changed since an artifact was made, so that it is to be made again")
    why.add_argument("artifact", help="a file of the results, or a target such as mlsm_figure3, mlsm, all")
    why.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help="as given to snakemake (config.yaml)")
    _values(why)
    compare = commands.add_parser("compare", help="what differs between two runs: config, facts, scores, claims")
    compare.add_argument(
        "runs", nargs="+", metavar="RUN", help="two names below results/, or folders (results: unnamed); see --together"
    )
    compare.add_argument("--output", metavar="FOLDER", help="write the tables there as CSV, all rows of them")
    compare.add_argument(
        "--together",
        metavar="STUDY",
        help="test its claims on the replicates of all runs, two or more, which had different seeds",
    )
    compare.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help="which config declares the study")
    _values(compare)
    store = commands.add_parser("store", help="what the store holds, so that runs make nothing twice")
    action = store.add_mutually_exclusive_group()
    action.add_argument("--add", nargs="?", const="results", metavar="FOLDER", help="add what was finished without it")
    action.add_argument("--empty", action="store_true", help="remove all of it; no run loses anything")
    schema = commands.add_parser("schema", help="write the JSON schema and the tables of config keys and of columns")
    schema.add_argument("--root", default=".", help="checkout to write them in")
    grow = commands.add_parser("grow", help="a checkpoint as a larger model that computes the same")
    grow.add_argument("folder", help="checkpoint folder, e.g. results/models/strict-mlm/r1/step-400")
    grow.add_argument("--width", type=int, default=1, help="how many times as wide (1)")
    grow.add_argument("--layers", type=int, help="layers of the larger model (as many as the smaller one has)")
    grow.add_argument("--output", required=True, help="folder to write")
    export = commands.add_parser("export", help="a trained model as a folder that evaluation pipelines load")
    export.add_argument("model", help="recipe@step, recipe/r2@step; recipe: all checkpoints; or a checkpoint's folder")
    export.add_argument("folder", help="a new folder")
    export.add_argument("--run", default="", help="name of the run, below results/ (none)")
    export.add_argument(
        "--full-width", action="store_true", help="latent logits behind the vocabulary's, as Berend (2023) published"
    )
    new = commands.add_parser("new", help="a folder with a study of your own that runs: config, Python file, README")
    new.add_argument("folder", help="a new or an empty folder")
    return parser


def _values(parser):
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE", help="as given to snakemake")


def _check(options):
    from masklab.config.show import overview
    from masklab.plan.graph import opened

    print(overview(opened(options.files, options.config).config, options.files))


def _config(options):
    from masklab.config.show import listing, names
    from masklab.plan.graph import opened

    files = [word for word in options.words if word.endswith((".yaml", ".yml", ".json")) or "/" in word]
    parts = [word for word in options.words if word not in files]
    config = opened(files, options.config).config
    print("\n".join((names if options.names else listing)(config, part) for part in parts or [""]))


def _seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 (got {text!r})")
    return seconds


def _status(options):
    from masklab.jobs.status import status, table

    if options.json:
        import json

        return print(json.dumps(status(Path("results")), indent=2))
    if options.watch is None:
        return print(table(Path("results")))
    # in a terminal: once an empty screen, then from its top, each line and what is below wiped as it is written
    terminal = sys.stdout.isatty()
    begin, line, end = ("\x1b[H", "\x1b[K\n", "\x1b[J") if terminal else ("", "\n", "")
    if terminal:
        print("\x1b[2J", end="")
    try:
        while True:
            print(begin + table(Path("results")).replace("\n", line), end=line + end, flush=True)
            time.sleep(options.watch)
    except KeyboardInterrupt:
        return None


def _tasks(options):
    from masklab.corpora.english.labelled_tasks import RECIPES
    from masklab.corpora.english.pairs import PHENOMENA

    wide = 2 + max(map(len, RECIPES))
    for name, recipe in RECIPES.items():
        print(f"{name:{wide}}{recipe.group:16}{recipe.description}")
    print(f"\nminimal pairs: {', '.join(PHENOMENA)}")


def _corpus(options):
    import json

    from masklab.corpora.markov.told import told
    from masklab.symbols import read_header

    if (file := Path(options.file)).is_dir():
        raise MaskLabError(f"{file}: is a folder; name a split of a corpus in it, such as {file / 'test.parquet'}")
    header = read_header(options.file)
    if header is None:
        raise MaskLabError(f"{options.file}: no corpus of symbols")
    header = told(header) if header.get("kind") == "markov" else header
    # the words one by one and the rules of a grammar's file are long; how many words there are is enough
    header["words"] = len(header.pop("names"))
    header.pop("rules", None)
    print(json.dumps(header, indent=2))


def _plan(options):
    from masklab.plan import make_plan, read_assumptions
    from masklab.plan.graph import opened
    from masklab.plan.table import actual, table

    if options.at_once is not None and options.at_once < 1:
        raise MaskLabError(f"--at-once: {options.at_once}: must be at least 1")
    config = opened(options.configfile, options.config).config
    plan = make_plan(config, options.device, options.studies, read_assumptions(*options.assume))
    at_once = options.at_once
    if at_once is None and plan.stands and not plan.device.is_gpu:
        at_once = max(1, (os.cpu_count() or 1) // config.threads)
    print(actual(plan, config) if options.actual else table(plan, at_once))


def _speed(options):
    from masklab.plan import read_assumptions
    from masklab.plan.speed import told

    devices = read_assumptions()["devices"]
    print(told(next(name for name, entry in devices.items() if not entry["gpu"]), devices), end="")


def _why(options):
    from masklab.plan.graph import opened
    from masklab.plan.why import why

    print(why(opened(options.configfile, options.config), options.artifact))


def _compare(options):
    from masklab.compare import compare, write
    from masklab.compare.printed import told

    if len(options.runs) < 2 or (len(options.runs) > 2 and not options.together):
        raise MaskLabError(
            f"compare: {len(options.runs)} {'run' if len(options.runs) == 1 else 'runs'}: takes two, and with"
            " --together <study> two or more"
        )
    if options.output:
        _check_output(Path(options.output, "config.csv"))
    tables, said = {}, []
    if len(options.runs) == 2:
        comparison = compare(*options.runs)
        tables, said = comparison.tables(), [told(comparison)]
    if options.together:
        tables["together"], together = _together(options)
        said.append(together)
    print("\n\n".join(said))
    if options.output:
        print(f"\nwritten: {', '.join(map(str, write(tables, options.output)))}")


def _together(options):
    """(claims of a study on the replicates of all runs, what is to be said of them)."""
    from masklab.compare import claims_of_run, run_folder, several_runs
    from masklab.plan.graph import opened

    config, study = opened(options.configfile, options.config).config, options.together
    roots = [run_folder(run) for run in options.runs]
    frame = several_runs.together(config, study, roots)
    notes = (
        several_runs.shares_data(config, study),
        several_runs.leaves_out(config, study, roots),
        several_runs.takes_on_trust(config, study, roots),
    )
    said = [several_runs.told(frame, [claims_of_run(root) for root in roots]), *filter(None, notes)]
    return frame, "\n".join(said)


def _store(options):
    from masklab.jobs import backfill, housekeeping, store

    if options.add:
        print(backfill.add(Path(options.add)))
    elif options.empty:
        print(housekeeping.empty(store.folder()))
    else:
        print(housekeeping.described(store.folder()))


def _schema(options):
    from masklab.config import DEFAULT, read
    from masklab.config.document import write
    from masklab.pages import columns
    from masklab.studies.listing import names

    if not Path(options.root, "workflow").is_dir():
        raise MaskLabError(f"--root: {options.root}: no checkout: there is no {Path(options.root, 'workflow')}")
    write(Path(options.root), names(read(DEFAULT)))
    columns.write(Path(options.root))


def _rank(options):
    _check_rank(options)
    import pandas as pd
    import torch

    from masklab.files import atomic, write_csv
    from masklab.jobs.progress import Progress, configure
    from masklab.probes.folder import folder_ranks, table

    configure()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    keys = ("rate", "threshold", "subspace", "length", "lines", "specials", "untrained")
    keys = {key: getattr(options, key) for key in keys}
    rows = folder_ranks(options.folder, options.text, device=device, progress=Progress("rank", "lines"), **keys)
    print(table(rows))
    if options.output:
        write_csv(pd.DataFrame(rows), options.output)
    if options.plot:
        from masklab.report.folder_ranks import picture

        with atomic(options.plot) as temporary:
            picture(rows).savefig(temporary, format=Path(options.plot).suffix[1:])


def _check_output(path):
    """Say that nothing can be written at a path before the work, which may take long."""
    there = next(above for above in Path(path).absolute().parents if above.exists())
    if not there.is_dir():
        raise MaskLabError(f"{path}: {there} is a file, not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise MaskLabError(f"{path}: nothing may be written in {there}")


def _check_rank(options):
    """Say what is wrong with the options of `rank` before the work, which may take long."""
    for key in ("rate", "threshold", "subspace"):
        if not 0 < getattr(options, key) < 1:
            raise MaskLabError(f"--{key}: {getattr(options, key)}: must be between 0 and 1")
    for key, least, why in (("length", 3, "[CLS], a token and [SEP]"), ("lines", 1, "else there is no text")):
        if (value := getattr(options, key)) is not None and value < least:
            raise MaskLabError(f"--{key}: {value}: must be at least {least}: {why}")
    if options.plot and not options.plot.endswith((".png", ".pdf", ".svg")):
        raise MaskLabError(f"--plot: {options.plot}: must end in .png, .pdf or .svg")
    for key in ("output", "plot"):
        file = getattr(options, key)
        if file and not Path(file).parent.is_dir():
            raise MaskLabError(f"--{key}: {file}: there is no folder {Path(file).parent}")
        if file and Path(file).is_dir():
            raise MaskLabError(f"--{key}: {file}: is a folder; name a file")
        if file:
            _check_output(file)


def _dictionary(options):
    _check_output(options.output)
    from masklab.jobs.progress import configure
    from masklab.properties.command import make

    configure()
    print(make(**{key: value for key, value in vars(options).items() if key != "command"}))


def _grow(options):
    from masklab.models.grow import grow_folder

    if Path(options.output).exists():
        raise MaskLabError(f"{options.output}: exists; --output names a new folder")
    _check_output(options.output)
    grow_folder(options.folder, options.output, options.width, options.layers)


def _export(options):
    from masklab.export import export

    _check_output(options.folder)
    for folder in export(options.model, options.folder, Path("results") / options.run, options.full_width):
        print(folder)


def _new(options):
    from masklab.new import new

    _check_output(options.folder)
    print(new(options.folder))


COMMANDS = {
    "check": _check,
    "config": _config,
    "export": _export,
    "grow": _grow,
    "new": _new,
    "status": _status,
    "tasks": _tasks,
    "corpus": _corpus,
    "rank": _rank,
    "dictionary": _dictionary,
    "plan": _plan,
    "speed": _speed,
    "why": _why,
    "compare": _compare,
    "store": _store,
    "schema": _schema,
}

if __name__ == "__main__":
    sys.exit(main())
