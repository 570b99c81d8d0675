"""What a job costs: seconds of its device, tokens, FLOPs, bytes that stay."""

import contextlib
import functools
import itertools
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from masklab.config import checkpoints, split_reference
from masklab.config.adopted import shape
from masklab.config.autoencoder import READ_PREDICTIONS
from masklab.config.growth import sized
from masklab.config.masks import masks_called
from masklab.config.references import recipe_of_dictionary
from masklab.config.replicates import split_instance, trained_replicates
from masklab.config.schema import Encoder, LabelFiles, Masking
from masklab.config.units import units
from masklab.errors import MaskLabError
from masklab.models.flops import count_parameters, mean_masks, pretraining_flops, training_flops
from masklab.models.flops import forward_flops as encoder_flops
from masklab.models.stacked import in_fp32_alone
from masklab.phrases import LEVELS, WORD
from masklab.plan.sizes import Sizes, count_of
from masklab.sparse.looked import ITERATIONS, SIZES, TOKENS
from masklab.symbols import FIRST
from masklab.training.side_by_side import stacks

FLOAT = 4  # bytes of a stored weight
SIDES = 2  # tokens of a sequence that are never hidden: [CLS] and [SEP]
# Kinds of probes whose cost has a method of its own; a user's kind may be called anything.
MEASURED = ("finetune", "replaced", "paraphrased", "linear_probe", "minimal_pairs", "landscape")
FINETUNED = ("replaced", "paraphrased")  # those that read predictions, but fine-tune the encoder alone most of the time
SUMMED = 8  # sentences of a sum of gradients, as in `curvature.trace`
# Rules whose jobs have the config's `threads`, beside those that pre-train or draw from a causal model.
THREADED = ("tokens", "causal_model", "conditionals", "probe", "codes", "masked_codes", "dictionary", "dictionary_page")
LEARNED = 3  # codes that take as long as one step of learning from one vector, which changes the atoms too


def forward_flops(encoder, *shape, **options) -> float:
    """FLOPs of a forward pass; 0 without a network."""
    return 0.0 if not encoder.network else encoder_flops(encoder, *shape, **options)


@dataclass(frozen=True)
class Cost:
    """seconds: from start to end; gpus: held meanwhile (0: CPU only); tokens: of pre-training; stored: bytes.

    cores: held meanwhile by a job that holds no GPU.
    """

    seconds: float
    gpus: int = 0
    flops: float = 0.0
    tokens: float = 0.0
    stored: float = 0.0
    cores: int = 1


class Device:
    """An entry of `devices` in assumptions.yaml. threads: of a job; on a CPU they share out its products."""

    def __init__(self, name: str, entry: dict, threads: int = 1):
        self.name, self.entry, self.is_gpu = name, entry, bool(entry["gpu"])
        self.threads = 1 if self.is_gpu else threads

    def of(self, encoder, flops: float, layers: float, **more) -> float:
        """Seconds for `flops` in `layers` calls of a layer of this encoder; more: as `seconds`."""
        slower = self.entry.get("positions", {}).get(encoder.positions, 1)
        return slower * self.seconds(flops, layers, encoder.hidden, **more)

    def seconds(self, flops: float, layers: float, width: int, precision: str = "fp32", what: str = "training"):
        """Seconds for `flops` in `layers` calls of a layer (forward and backward together) of this hidden width."""
        entry = self.entry
        rate = self.rate(width, precision) * entry.get("reached", {}).get(what, 1) * self.threads
        return flops / rate + layers * entry["layer_seconds"].get(what, entry["layer_seconds"]["training"])

    def rate(self, width: int, precision: str) -> float:
        """FLOP/s that training at this hidden width reaches, of one thread."""
        return self.entry["peak"][precision] * self.entry["share"][precision] * self.at(width, "wider", precision)

    def at(self, width: int, *keys: str) -> float:
        """A factor of the entry that depends on the hidden width, between those of the widths it says; 1: says none."""
        said = functools.reduce(lambda entry, key: entry.get(key) or {}, keys, self.entry)
        widths, factors = zip(*sorted(said.items()), strict=True) if said else ((1,), (1.0,))
        return float(np.interp(math.log(width), [math.log(each) for each in widths], factors))


class Costs:
    """Costs of the jobs of one configuration on one device."""

    def __init__(self, paths, device: Device, assumptions: dict):
        self.paths, self.config, self.device, self.assumed = paths, paths.config, device, assumptions
        self.sizes = Sizes(paths, assumptions)
        self.start = device.entry["start_seconds"]
        entries = [(name, entry) for name, entry in assumptions["devices"].items() if not entry["gpu"]]
        # of jobs that ask for no GPU
        self.host = Device(*entries[0], self.config.threads) if device.is_gpu and entries else device
        self.threads = self.host.threads
        self.parameters, self.replicates = {}, trained_replicates(self.config)

    def of(self, job) -> Cost:
        """Cost of a job; `_<rule>` knows it, a rule without one only starts."""
        known = getattr(self, f"_{job.rule}", None)
        if known is None:
            return Cost(self.assumed["local_seconds"])
        cost, names = known(**self.entries(job)), self.entries(job)
        return cost if cost.gpus else replace(cost, cores=self._cores(job.rule, **names))

    def _cores(self, rule, recipe=None, corpus=None, **names) -> int:
        """Cores that a job asks for that asks for no GPU, as the workflow's rules say them."""
        if rule == "pretrain":
            return self.threads * self.config.models[recipe].processes
        if rule == "corpus":
            return self.threads if self.config.corpora[corpus].kind == "causal" else 1
        return self.threads if rule in THREADED else 1

    def entries(self, job) -> dict[str, str]:
        """The names of a job without its replicate: those of entries of the config."""
        return {key: split_instance(name)[0] for key, name in job.names.items() if key != "replicate"}

    def tokens_of(self, corpus: str, tokenizer: str) -> float:
        """Tokens of the training split."""
        return self.sizes.sequences(corpus, tokenizer) * self.sizes.length(corpus, tokenizer)

    def tokenizer_of(self, corpus):
        """A tokenizer that reads a corpus."""
        entries = self.config.models.values()
        return next(
            (entry.tokenizer for entry in entries if entry.corpus == corpus), next(iter(self.config.tokenizers))
        )

    def _read(self, tokens, stored=0.0):
        return Cost(self.assumed["start_seconds"] + tokens / self.assumed["tokens_per_second"], stored=stored)

    def _corpus(self, corpus):
        tokens = self.tokens_of(corpus, self.tokenizer_of(corpus))
        if self.config.corpora[corpus].kind == "causal":
            return self._sampled(corpus, tokens)
        return self._read(tokens, 2 * tokens)

    def _sampled(self, corpus, tokens):
        """Sentences of a causal model, which is called for the next word of a batch of them, and again, to the end."""
        entry = self.config.corpora[corpus]
        encoder, vocab = self.causal(corpus)
        drawn = {entry.vocabulary: entry.sequences + entry.valid + entry.test}  # words that are scored -> sentences
        if entry.frequency == "sampled":
            drawn[vocab] = drawn.get(vocab, 0) + entry.counted
        length, calls = entry.length, sum(math.ceil(count / entry.batch_size) for count in drawn.values())
        flops = sum(count * forward_flops(encoder, words, 1, length, length) for words, count in drawn.items())
        layers = calls * length * encoder.layers / 3
        seconds = self.device.seconds(flops, layers, encoder.hidden, what="forward")
        seconds += tokens / self.assumed["tokens_per_second"]
        return Cost(self.start + seconds, int(self.device.is_gpu), flops, stored=2 * tokens)

    def causal(self, corpus) -> tuple[Encoder, int]:
        """The causal model that a corpus is drawn from, as an encoder of its size, and its vocabulary."""
        named = self.config.corpora[corpus].causal
        if (model := self.config.causal_models.get(named)) is not None:
            sizes = {key: getattr(model, key) for key in ("layers", "hidden", "heads")}
            vocab = self.sizes.vocabulary(model.tokenizer)
        else:
            sizes, vocab = self.assumed["causal_model"], self.assumed["folder_vocabulary"]
            with contextlib.suppress(MaskLabError):  # an id of the hub, or a folder that does not say how large it is
                found = shape(Path(named).expanduser())
                sizes = {key: found[key] for key in sizes}
        return Encoder(positions="absolute", norm="pre", **sizes), vocab

    def _tokenizer(self, tokenizer):
        entry = self.config.tokenizers[tokenizer]
        if entry.kind in ("folder", "symbols"):  # read and numbered anew, or named
            return Cost(self.assumed["start_seconds"])
        tokens = self.tokens_of(entry.corpus, tokenizer)
        if (sample := getattr(entry, "sample", None)) is not None:
            tokens *= min(1.0, sample / self.sizes.sequences(entry.corpus, tokenizer))
        if self.config.corpora[entry.corpus].kind == "text":
            return Cost(self.assumed["start_seconds"] + tokens / self.assumed["unigram_tokens_per_second"])
        return self._read(tokens)

    def _tokens(self, corpus, tokenizer):
        tokens = self.tokens_of(corpus, tokenizer)
        return self._read(tokens, 2 * tokens)

    def _task(self, task):
        return self._read(sum(self.sizes.rows(task)) * self.assumed["task_tokens"])

    def _conditionals(self, corpus, tokenizer, sequences, positions):
        """A pass over each test sequence; under a causal model one for each word that might stand there, to the end."""
        entry, words = self.config.corpora[corpus], max(1, round(self.sizes.length(corpus, tokenizer)) - SIDES)
        asked = min(int(sequences), count_of(entry, "test") or math.inf)
        pairs, symbols = asked * (words if positions == "all" else 1), self.sizes.vocabulary(tokenizer) - FIRST
        stored = FLOAT * pairs * symbols
        seconds = (
            asked * words / self.assumed["read_by_law_per_second"] + pairs / self.assumed["conditionals_per_second"]
        )
        if entry.kind != "causal":
            return Cost(self.assumed["start_seconds"] + seconds / self.threads, stored=stored)
        encoder, _ = self.causal(corpus)
        rest = sum(forward_flops(encoder, symbols, 1, n, n) for n in range(1, words + 1)) / words
        flops = pairs * (symbols * rest + forward_flops(encoder, symbols, 1, words, 1))
        seconds += self.device.seconds(flops, 0, encoder.hidden, what="forward")
        return Cost(self.start + seconds, int(self.device.is_gpu), flops, stored=stored)

    def _embeddings(self, embeddings):
        entry = self.config.embeddings[embeddings]
        tokens = self.tokens_of(entry.corpus, entry.tokenizer) * entry.epochs
        flops = tokens * 6 * entry.size * (entry.window + 1 + entry.negative)
        return Cost(self.assumed["start_seconds"] + flops / self.assumed["cbow_flops"], flops=flops)

    # --- training ---------------------------------------------------------------

    def latent(self, model) -> int:
        """Width of a recipe's softmax over atoms; 0 without one."""
        needed = self.config.objectives[model.objective].needs("codes")
        return self.config.dictionaries[model.dictionary].atoms if needed else 0

    def solves(self, model) -> bool:
        """Whether a recipe runs its teacher on each batch and solves for the codes of what is hidden."""
        return self.config.objectives[model.objective].needs("codes") and model.codes == "on-the-fly"

    def parameters_of(self, encoder: str, vocab: int, latent: int) -> int:
        """Trainable parameters of an encoder with its heads."""
        key = (encoder, vocab, latent)
        if key not in self.parameters:
            self.parameters[key] = count_parameters(self.config.encoders[encoder], vocab, latent)
        return self.parameters[key]

    def teacher(self, model) -> str:
        """Encoder of the model that a recipe learns from: that of `teacher`, else its own, with which it starts."""
        if model.teacher is None:
            return model.encoder
        return self.config.models[split_reference(model.teacher, "teacher")[0]].encoder

    def _pretrain(self, recipe):
        entry = self.config.models[recipe]
        encoder, objective = self.config.encoders[entry.encoder], self.config.objectives[entry.objective]
        if not encoder.network:
            return Cost(self.assumed["start_seconds"])
        vocab, latent = self.sizes.vocabulary(entry.tokenizer), self.latent(entry)
        length = max(1, round(self.sizes.length(entry.corpus, entry.tokenizer)))
        flops = pretraining_flops(encoder, objective, entry.masking, vocab, entry.batch_size, length, latent)
        passes = 1.0
        if objective.needs("teacher") or self.solves(entry):  # on each batch
            teacher = self.config.encoders[self.teacher(entry)]
            flops += forward_flops(teacher, vocab, entry.batch_size, length, mean_masks(entry.masking, length))
            passes += teacher.layers / encoder.layers / 3
        for rows, every in (term.besides() for term in objective.terms.values()):
            if rows:  # read whole, now and then
                flops += training_flops(encoder, 0, rows, length, length) / every
                passes += 1 / every
        layers = passes * encoder.layers * math.ceil(entry.batch_size / entry.micro)
        step = self.device.of(encoder, flops, layers, precision=self._precision(entry, encoder)) / entry.processes
        if self.replicates.get(recipe, 1) > 1 and stacks(entry, encoder, objective):
            step *= self.device.at(encoder.hidden, "side_by_side")  # the job of one does the work of all: their mean
        if self.solves(entry):
            hidden = entry.batch_size * mean_masks(entry.masking, length) / entry.processes
            step += hidden / self._coded_per_second(self.config.dictionaries[entry.dictionary])
        stored = len(checkpoints(entry)) * FLOAT * self.parameters_of(entry.encoder, vocab, latent)
        return Cost(
            self.start + entry.steps * step,
            entry.processes if self.device.is_gpu else 0,
            entry.steps * flops,
            entry.steps * entry.batch_size * length,
            stored,
        )

    def _precision(self, entry, encoder) -> str:
        """That of a recipe or a probe; where it is left to the machine, the faster one for this encoder."""
        asked = getattr(entry, "precision", "fp32")
        if asked != "auto":
            return asked
        if not self.device.is_gpu and (encoder.kind != "transformer" or in_fp32_alone(encoder)):
            return "fp32"
        return max(("fp32", "bf16"), key=lambda precision: self.device.rate(encoder.hidden, precision))

    def _causal_model(self, causal):
        entry = self.config.causal_models[causal]
        shape = {"positions": "absolute", "norm": "pre", "layers": entry.layers, "hidden": entry.hidden}
        length = max(1, round(self.sizes.length(entry.corpus, entry.tokenizer)))
        vocab, tokens = self.sizes.vocabulary(entry.tokenizer), entry.steps * entry.batch_size * length
        encoder = Encoder(**shape, heads=entry.heads)  # of its size; every token is predicted
        flops = entry.steps * training_flops(encoder, vocab, entry.batch_size, length, length)
        seconds = self.device.seconds(flops, entry.steps * entry.layers, entry.hidden)
        stored = FLOAT * count_parameters(encoder, vocab)
        return Cost(self.start + seconds, int(self.device.is_gpu), flops, tokens, stored)

    def source(self, dictionary: str) -> tuple[Encoder, float, int]:
        """Encoder, vocabulary, tokens of the corpus and mean length behind a dictionary."""
        source = self.config.models[recipe_of_dictionary(self.config, dictionary)]
        length = max(1, round(self.sizes.length(source.corpus, source.tokenizer)))
        return self.config.encoders[source.encoder], self.tokens_of(source.corpus, source.tokenizer), length

    def _states(self, encoder, tokens, length, device=None):
        """Seconds and FLOPs of hidden states of so many tokens. device: None: that of the plan."""
        flops = forward_flops(encoder, 0, 1, length, length) / length * tokens
        device = device or self.device
        return device.of(encoder, flops, encoder.layers / 3 * tokens / 4096, what="forward"), flops

    def _dictionary(self, dictionary):
        entry = self.config.dictionaries[dictionary]
        encoder, _, length = self.source(dictionary)
        seconds, flops = self._states(encoder, entry.sample, length)
        seconds += LEARNED * entry.iterations * entry.batch_size / self._coded_per_second(entry)
        stored = FLOAT * entry.atoms * encoder.hidden
        return Cost(self.start + seconds, int(self.device.is_gpu), flops, stored=stored)

    def _codes(self, dictionary):
        entry = self.config.dictionaries[dictionary]
        encoder, tokens, length = self.source(dictionary)
        seconds, flops = self._states(encoder, tokens, length)
        seconds += tokens / self._coded_per_second(entry)
        return Cost(
            self.start + seconds, int(self.device.is_gpu), flops, stored=6 * self.assumed["code_entries"] * tokens
        )

    def _masked_codes(self, dictionary, masks):
        """As `_codes`, of the tokens that are hidden; every sequence of a batch is read."""
        entry, masks = self.config.dictionaries[dictionary], masks_called(self.config, dictionary, masks)
        encoder, tokens, length = self.source(dictionary)
        epochs = masks["steps"] * masks["batch_size"] * length / max(tokens, 1)
        share = 1 - (1 - mean_masks(Masking(**masks["masking"]), length) / length) ** epochs
        seconds, flops = self._states(encoder, tokens, length)
        seconds += share * tokens / self._coded_per_second(entry)
        stored = 6 * self.assumed["code_entries"] * share * tokens
        return Cost(self.start + seconds, int(self.device.is_gpu), flops, stored=stored)

    def _dictionary_page(self, dictionary):
        """States and codes of the tokens that are looked at, once more for an encoder with initial weights, whose
        dictionary is learned for the page, and dictionaries of other sizes; then words, similarities and a figure.
        All on CPUs: the job asks for no GPU.
        """
        entry = self.config.dictionaries[dictionary]
        encoder, tokens, length = self.source(dictionary)
        looked = min(tokens, TOKENS)
        seconds, flops = self._states(encoder, 2 * looked, length, self.host)
        learned = LEARNED * entry.batch_size * (sum(SIZES) * min(entry.iterations, ITERATIONS) + entry.iterations)
        seconds += (2 * looked + learned) / self._coded_per_second(entry, self.host)
        seconds += looked / self.assumed["words_per_second"]
        return Cost(self.assumed["start_seconds"] + seconds, flops=2 * flops)

    def _coded_per_second(self, entry, device=None):
        """Vectors coded per second; the work of a lasso grows with the atoms, and is stated for 1000."""
        device = device or self.device
        slower = device.entry.get("fista", 1) if entry.solver == "fista" else 1
        return device.threads * device.entry["codes_per_second"] * 1000 / entry.atoms / slower

    # --- measuring --------------------------------------------------------------

    def _probe(self, probe, recipe, unit):
        entry, trained = self.config.probes[probe], self.config.models[recipe]
        steps, tasks = units(entry, trained)[unit]
        encoder = self.config.encoders[trained.encoder]
        if entry.kind not in READ_PREDICTIONS or entry.kind in FINETUNED:  # the others read the encoder alone
            encoder = encoder.model_copy(update={"decoder": None})
        if encoder.kind == "words":
            fits = len(tasks) * len(getattr(entry, "sizes", None) or [1])
            return Cost(self.assumed["start_seconds"] + fits * self.assumed["regression_seconds"])
        measure = getattr(self, f"_{entry.kind}") if entry.kind in MEASURED else self._passes
        seconds, flops = measure(entry, trained, encoder, tasks)
        return Cost(self.start + len(steps) * seconds, int(self.device.is_gpu), len(steps) * flops)

    def _finetune(self, probe, model, encoder, tasks):
        """With every combination of the values of a grid."""
        grid = getattr(probe, "grid", {})
        searched = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
        costs = [self._tuned(probe.model_copy(update=values), model, encoder, tasks) for values in searched]
        return tuple(map(sum, zip(*costs, strict=True)))

    def _tuned(self, probe, model, encoder, tasks):
        seconds = flops = 0.0
        for task in tasks:
            train, valid, test = self.sizes.rows(task)
            longest = min(probe.max_length, encoder.max_positions)
            length = round(self.sizes.task_length(task, longest, model.tokenizer))
            uneven = probe.batches == "random" and isinstance(self.config.tasks[task], LabelFiles)
            padded = min(longest, round(length * self.assumed["padded"])) if uneven else length
            update, row = (
                forward_flops(encoder, 0, 1, each, each if probe.pooling == "mean" else 1) for each in (padded, length)
            )
            for size in probe.sizes or [train]:
                epoch = math.ceil(size / probe.batch_size)
                every = epoch if probe.evaluate_every == "epoch" else probe.evaluate_every
                updates = self._updates(probe, epoch, every)
                measured = updates / every * valid + test
                each = 3 * update * probe.batch_size * updates + row * measured
                layers = encoder.layers * (updates + measured / probe.batch_size / 3)
                flops += each * len(probe.seeds)
                how = {"precision": self._precision(probe, encoder), "what": "finetune"}
                seconds += self.device.of(encoder, each, layers, **how) * len(probe.seeds)
        return seconds, flops

    def _replaced(self, probe, model, encoder, tasks):
        """Fine-tunings, and predictions for the examples with each feature hidden and with one replaced."""
        seconds, flops = self._finetune(probe, model, encoder, tasks)
        length = round(
            max((self.sizes.task_length(task, probe.max_length, model.tokenizer) for task in tasks), default=0)
        )
        levels = len(getattr(probe, "spans", LEVELS))
        replaced = levels + probe.drawn * len(getattr(probe, "spans", (WORD,)))  # of text words alone are drawn
        passes = levels * length + 2 * replaced * len(probe.sizes or [1]) * (1 + len(probe.updates))
        rows = len(tasks) * len(probe.seeds) * probe.examples * passes
        each = forward_flops(encoder, 0, 1, length, length if probe.pooling == "mean" else 1) * rows
        return seconds + self.device.of(encoder, each, encoder.layers / 3 * rows / 64), flops + each

    def _paraphrased(self, probe, model, encoder, tasks):
        """The same, and once more of initial weights on the largest size. What translations take depends on models that
        nobody knows here."""
        initial = probe.model_copy(update={"sizes": probe.sizes and [max(probe.sizes)], "updates": []})
        measured = [self._replaced(each, model, encoder, tasks) for each in (probe, initial)]
        return tuple(map(sum, zip(*measured, strict=True)))

    def _updates(self, probe, epoch, every):
        """Updates of a fine-tuning, until it stops early."""
        most = probe.max_steps or probe.epochs * epoch
        if math.ceil(most / every) <= probe.patience + 1:  # evaluations, the first of which always gains
            return most
        if probe.schedule == "constant":  # how long it may last decides nothing
            improves = self.assumed["improves_for"]
            waits = (improves["evaluations"] + probe.patience) * every
            return min(most, (probe.warmup_steps or 0) + improves["updates"] + waits)
        updates = self.assumed["stopped_at"] * most
        return updates if probe.max_steps else min(updates, self.assumed["most_updates"])

    def _linear_probe(self, probe, model, encoder, tasks):
        seconds = flops = 0.0
        for task in tasks:
            train, valid, test = self.sizes.rows(task)
            length = round(self.sizes.task_length(task, model_length(self.config, model), model.tokenizer))
            sizes = probe.sizes or [train]
            read = train if probe.examples == "drawn" else max(sizes)
            each = forward_flops(encoder, 0, 1, length, length) * (read + valid + test)
            updates = len(probe.seeds) * probe.epochs * sum(math.ceil(size / probe.batch_size) for size in sizes)
            flops += each
            seconds += self.device.of(encoder, each, encoder.layers * read / 64 / 3)
            seconds += updates * self.device.entry["linear_seconds"]
        return seconds, flops

    def _minimal_pairs(self, probe, model, encoder, tasks):
        """Each token of each sentence is masked in turn."""
        flops = layers = 0.0
        for task in tasks:
            generated = self.config.tasks[task].kind == "english-pairs"
            tokens = self.assumed["english_pair_tokens" if generated else "pair_tokens"]
            length = round(min(tokens, model_length(self.config, model)))
            sequences = 2 * self.sizes.pairs(task) * (length - SIDES)
            flops += sequences * forward_flops(encoder, self.sizes.vocabulary(model.tokenizer), 1, length, 1)
            layers += encoder.layers / 3 * sequences * length / probe.batch_tokens
        return self.device.of(encoder, flops, layers, what="forward"), flops

    def _landscape(self, probe, model, encoder, tasks):
        """A pass for every point of every slice, and the gradients of the first one, in the model as it has grown."""
        times, layers = sized(encoder, probe.width, probe.layers)
        grown = {"hidden": encoder.hidden * times, "heads": encoder.heads * times, "layers": layers}
        if encoder.intermediate is not None:
            grown["intermediate"] = encoder.intermediate * times
        encoder, points = encoder.model_copy(update=grown), (probe.directions + 1) * probe.points
        length = max(1, round(self.sizes.length(model.corpus, model.tokenizer)))
        sentences = points * probe.sentences + 3 * probe.gradients * SUMMED
        flops = sentences * forward_flops(encoder, self.sizes.vocabulary(model.tokenizer), 1, length, 1)
        calls = points * math.ceil(probe.sentences / probe.batch_size) / 3 + probe.gradients
        return self.device.of(encoder, flops, encoder.layers * calls), flops

    def _passes(self, probe, model, encoder, tasks):
        """Some forward passes over test sequences."""
        length = max(1, round(self.sizes.length(model.corpus, model.tokenizer)))
        sequences = count_of(probe, "sequences") or count_of(probe, "sentences") or 1
        sequences *= count_of(probe, "repeats") or 1
        if getattr(probe, "positions", "one") == "all" and getattr(probe, "masks", None) == "one":
            sequences *= length
        passes = {"curvature": 3, "rank": 2 + (getattr(probe, "subspace", None) is not None)}.get(probe.kind, 1)
        flops = passes * sequences * forward_flops(encoder, self.sizes.vocabulary(model.tokenizer), 1, length, length)
        layers = passes * encoder.layers / 3 * sequences / 32
        return self.device.of(encoder, flops, layers), flops


def model_length(config, model) -> int:
    """Longest sequence of a model's tokenizer."""
    return config.tokenizers[model.tokenizer].max_length
