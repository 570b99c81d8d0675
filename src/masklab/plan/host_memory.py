"""What memory a job needs on its host, from the config alone: parameters, optimiser, batch, positions, vocabulary.

Meant as an upper bound that is within a few times of the truth; the sizes of corpora and tasks are the plan's.
"""

from masklab.config.units import units
from masklab.models.flops import mean_masks
from masklab.plan.costs import Costs, model_length

FLOAT = 4  # bytes
START = 1.2e9  # Python with torch, pandas and matplotlib
CONTEXT = 3.0e9  # host memory of a CUDA context and its libraries
WEIGHTS = 4  # copies of every weight in training: itself, its gradient, two moments of Adam
SAVED = 3  # copies of every weight while a state is written
WORD = 60  # bytes per token of text in memory, as Python's strings and as columns
BLOCKS = 6.0e9  # what reads a corpus reads it in blocks beyond some size
ROW = 20  # bytes per token of a task's examples, encoded and padded
STACK = 5  # fine-tunings at once (`models.stacked`)
EXACT = 3.0e9  # exact conditionals of a batch of sequences
MARGIN = 1.3


class Memory:
    """Bytes that jobs of one configuration need. costs: of that configuration; on_gpu: whether networks lie on GPUs."""

    def __init__(self, costs: Costs, on_gpu: bool):
        self.costs, self.sizes, self.config, self.on_gpu = costs, costs.sizes, costs.config, on_gpu

    def of(self, job) -> float:
        """Bytes of a `masklab.plan.graph.Job`."""
        names = self.costs.entries(job)
        known = getattr(self, f"_{job.rule}", None)
        return START + MARGIN * (known(**names) if known else 0.0)

    # --- data ---------------------------------------------------------------------------

    def _tokens(self, corpus, tokenizer):
        return min(BLOCKS, WORD * self.costs.tokens_of(corpus, tokenizer))

    def _corpus(self, corpus):
        text, entry = self._tokens(corpus, self.costs.tokenizer_of(corpus)), self.config.corpora[corpus]
        if entry.kind != "causal":
            return text
        encoder, _ = self.costs.causal(corpus)
        keys = 2 * FLOAT * entry.batch_size * entry.length * encoder.layers * encoder.hidden  # of words already drawn
        return text + 2 * self._causal_weights(corpus) + (CONTEXT if self.on_gpu else keys)

    def _causal_weights(self, corpus):
        encoder, vocab = self.costs.causal(corpus)
        return FLOAT * (vocab * encoder.hidden + 12 * encoder.layers * encoder.hidden**2)

    def _tokenizer(self, tokenizer):
        entry = self.config.tokenizers[tokenizer]
        return 0.0 if entry.kind == "folder" else self._tokens(entry.corpus, tokenizer)

    def _task(self, task):
        return WORD * sum(self.sizes.rows(task)) * self.costs.assumed["task_tokens"]

    def _embeddings(self, embeddings):
        entry = self.config.embeddings[embeddings]
        table = FLOAT * self.sizes.vocabulary(entry.tokenizer) * entry.size
        return WEIGHTS * table + FLOAT * self.costs.tokens_of(entry.corpus, entry.tokenizer)

    def _conditionals(self, corpus, tokenizer, sequences, positions):
        entry = self.config.corpora[corpus]
        if entry.kind != "causal":
            return EXACT
        return EXACT + 2 * self._causal_weights(corpus) + (CONTEXT if self.on_gpu else 0)

    # --- what computes ------------------------------------------------------------------

    def _network(self, encoder, vocab, latent, size, length, read, processes=1):
        """A network that is trained on `size` sequences of `length` tokens by each process, `read` of each predicted.

        One of the processes saves the state.
        """
        weights = FLOAT * self.costs.parameters_of(encoder, vocab, latent)
        others = (processes - 1) * START
        if self.on_gpu:
            return others + processes * (CONTEXT + weights) + SAVED * weights
        of = self.config.encoders[encoder]
        logits = 3 * FLOAT * size * read * (vocab + latent)
        return others + processes * (WEIGHTS * weights + size * activations(of, length) + logits) + SAVED * weights

    def _pretrain(self, recipe):
        entry = self.config.models[recipe]
        if not self.config.encoders[entry.encoder].network:
            return 0.0
        length, vocab = model_length(self.config, entry), self.sizes.vocabulary(entry.tokenizer)
        latent, read = self.costs.latent(entry), mean_masks(entry.masking, length)
        size = min(entry.micro, entry.batch_size)
        needed = self._network(entry.encoder, vocab, latent, size, length, read, entry.here)
        if self.config.objectives[entry.objective].needs("teacher") or self.costs.solves(entry):
            needed += entry.here * FLOAT * self.costs.parameters_of(self.costs.teacher(entry), vocab, 0)
        return needed

    def _causal_model(self, causal):
        entry = self.config.causal_models[causal]
        length, vocab = self.config.tokenizers[entry.tokenizer].max_length, self.sizes.vocabulary(entry.tokenizer)
        weights = FLOAT * (vocab * entry.hidden + 12 * entry.layers * entry.hidden**2)
        if self.on_gpu:
            return CONTEXT + (1 + SAVED) * weights
        logits = 3 * FLOAT * entry.batch_size * length * vocab
        return (WEIGHTS + SAVED) * weights + entry.batch_size * activations(entry, length) + logits

    def _dictionary(self, dictionary):
        entry = self.config.dictionaries[dictionary]
        encoder, _, length = self.costs.source(dictionary)
        vectors = 3 * FLOAT * (entry.sample * encoder.hidden + entry.batch_size * entry.atoms)
        return vectors + entry.atoms**2 * FLOAT + (CONTEXT if self.on_gpu else 32 * activations(encoder, length) / 3)

    def _codes(self, dictionary):
        entry = self.config.dictionaries[dictionary]
        encoder, _, length = self.costs.source(dictionary)
        block = 3 * FLOAT * entry.batch_size * entry.atoms + entry.atoms**2 * FLOAT
        return block + (CONTEXT if self.on_gpu else 32 * activations(encoder, length) / 3)

    def _masked_codes(self, dictionary, masks):
        return self._codes(dictionary)

    def _probe(self, probe, recipe, unit):
        entry, model = self.config.probes[probe], self.config.models[recipe]
        encoder = self.config.encoders[model.encoder]
        if not encoder.network:
            return 0.0
        vocab, length = self.sizes.vocabulary(model.tokenizer), model_length(self.config, model)
        rows = sum(sum(self.sizes.rows(task)) for task in units(entry, model)[unit][1] if self._is_labelled(task))
        data = ROW * rows * length
        if entry.kind in ("finetune", "replaced", "paraphrased"):
            length = min(length, entry.max_length)
            copies = 1 if self.on_gpu else min(STACK, len(entry.seeds))
            return data + copies * self._network(model.encoder, vocab, 0, entry.batch_size, length, 1)
        if entry.kind == "linear_probe":
            data += FLOAT * rows * encoder.hidden
        return data + self._network(model.encoder, vocab, 0, 64, length, min(length, 32))

    def _is_labelled(self, task):
        return "pairs" not in self.config.tasks[task].kind


def activations(encoder, length: int) -> float:
    """Bytes that one sequence leaves for the backward pass, in single precision.

    s h (34 + 5 a s / h) bytes a layer in half precision, for s tokens, width h and a heads (Korthikanti et al. 2022,
    *Reducing Activation Recomputation in Large Transformer Models*, equation 2).
    """
    heads = getattr(encoder, "heads", 0) or 0
    return 2 * encoder.layers * length * (34 * encoder.hidden + 5 * heads * length)
