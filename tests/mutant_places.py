"""Where `mutants.py` changes something: the numerical modules, the tests that should notice, and what no test can."""

# ruff: noqa: E501 - lines stand here as the command prints them

# Module below src/masklab -> arguments of pytest: the fastest tests that should notice.
MODULES = {
    "intervals.py": ["test_statistics.py"],
    "spectrum.py": ["test_spectrum.py"],
    "probes/rank.py": ["probes/test_rank.py", "-k", "svd_of_held and bert or progress"],
    "masking.py": ["training/test_masking.py"],
    "config/schema/objectives.py": ["config/test_objectives_config.py", "models/test_flops.py"],
    "optim/flat.py": ["training/test_optim.py", "models/test_direct.py"],
    "optim/direct.py": ["models/test_direct.py"],
    "training/guard.py": ["training/test_guard.py", "-k", "explosion or goes_on or calm"],
    "objectives/cross_entropy.py": ["objectives/test_cross_entropy.py"],
    "objectives/kd.py": ["objectives/test_terms.py", "-k", "not imported"],
    "objectives/divergence.py": ["objectives/test_divergence.py"],
    "objectives/mlsm.py": ["objectives/test_terms.py", "-k", "not imported"],
    "objectives/terms.py": ["objectives/test_terms.py", "objectives/test_own_term.py", "-k", "not imported"],
    "objectives/adversarial.py": ["objectives/test_adversarial.py"],
    "objectives/mae.py": ["objectives/test_terms.py", "-k", "autoencoder_predicts"],
    "scores/metrics.py": ["scores/test_metrics.py", "scores/test_items.py"],
    "scores/estimate.py": ["scores/test_estimate.py", "scores/test_correlations.py"],
    "scores/reading.py": ["scores/test_reading_words.py", "scores/test_results.py", "claims/test_effects.py"],
    "scores/results.py": ["scores/test_results.py", "scores/test_resampled_results.py"],
    "scores/picking.py": ["scores/test_results.py", "claims/test_effects.py"],
    "scores/per_replicate.py": ["scores/test_results.py", "claims/test_effects.py"],
    "scores/resampling.py": ["scores/test_resampled_results.py"],
    "scores/majority.py": ["scores/test_results.py"],
    "claims/verdict.py": [
        "claims/test_decisions.py",
        "claims/test_verdict.py",
        "-k",
        "not thousand and not power and not disk",
    ],
    "claims/effects.py": ["claims/test_effects.py"],
    "claims/effect_words.py": ["claims/test_effects.py", "claims/test_edges.py"],
    "claims/values.py": ["claims/test_effects.py"],
    "claims/power.py": ["claims/test_power.py", "-k", "t_test or given or promised"],
    "scores/items.py": ["scores/test_items.py", "scores/test_resampled_results.py", "probes/test_paraphrased.py"],
    "phrases/distances.py": ["phrases/test_distances.py"],
    "phrases/asked.py": ["phrases/test_asked.py", "probes/test_paraphrased.py"],
    "phrases/replacing.py": ["probes/test_paraphrased.py"],
    "phrases/reader.py": ["probes/test_paraphrased.py"],
    "phrases/queries.py": ["phrases/test_queries.py", "phrases/test_distances.py"],
    "phrases/saliency.py": ["phrases/test_saliency.py"],
    "phrases/others.py": ["phrases/test_others.py"],
    "phrases/synonyms.py": ["phrases/test_synonyms.py"],
    "phrases/examples.py": ["phrases/test_queries.py", "phrases/test_distances.py", "probes/test_paraphrased.py"],
    "phrases/parses.py": ["phrases/test_parses.py"],
    "probes/paraphrased.py": ["probes/test_paraphrased.py"],
    "sparse/lasso.py": ["sparse/test_lasso.py", "-k", "not brute and not optimality and not spams"],
    "sparse/dictionary.py": [
        "sparse/test_dictionary.py",
        "-k",
        "coordinate or accumulate or replaced or draws or permutations or errors or resume or written",
    ],
    "corpora/markov/entropy.py": ["corpora/test_markov.py", "-k", "entropies"],
    "corpora/markov/law.py": ["corpora/test_markov_law.py"],
    "corpora/hmm/law.py": ["corpora/test_hmm.py"],
    "corpora/pcfg/chart.py": ["corpora/test_pcfg_law.py", "-k", "recursive or some_places or refused or memory"],
    "corpora/pcfg/law.py": ["corpora/test_pcfg_law.py", "-k", "recursive or some_places or refused or memory"],
    "curvature/trace.py": ["curvature/test_trace.py", "-k", "hessian and pre or covariance or fair or summed"],
    "curvature/per_example.py": ["curvature/test_per_example.py"],
    "curvature/slices.py": ["curvature/test_slices.py"],
}
# Module -> changed line, as the command prints it -> why it changes no result.
LAST = "+1 is the last axis of a matrix, as -1 is"
MEASURE = "a number drawn from [0, 1) is equal to another with a probability of 2^-53"
SPACE = "a chart has 4 rows or more; memory that is made anew holds the same"
RAISES = "a sentence of which this is said is impossible, and refused"
NAMED = "the exponent follows from the name; the axes are not looked at"
WAYS = "which of two ways is taken; both give the norm"
THREADS = "how many threads share the rows changes no code"
DIVIDED = "a factor of all states, which the division by their sum takes out"
BATCHES = "how many rows are predicted at once"
EQUIVALENT: dict[str, dict[str, str]] = {
    "masking.py": {
        "hidden = _inner(lengths, width, masking) & (draw <= masking.rate)": MEASURE,
        "swapped = (fate > masking.mask) & (fate < masking.mask + masking.random)": MEASURE,
        "swapped = (fate >= masking.mask) & (fate <= masking.mask + masking.random)": MEASURE,
        "return Hidden(all_rows, fate <= masking.mask, swapped, mine, rows, columns)": MEASURE,
        "order = np.argsort(np.where(_inner(own, width, masking), draw, 3.0), axis=1)": "any number above 1 is last",
        "spare = rng.random(batch) if masking.count == 'rounded' else 1.0": "used for that count alone",
        "swapped = np.where(swapped, rng.integers(FIRST_PIECE, vocab_size, len(all_rows)), -2)": "any negative number",
        "shown = np.where(swapped <= 0, ids[self.rows, self.columns], swapped)": "ids shown are 5 or more, none is -1",
        "shown = np.where(swapped < 1, ids[self.rows, self.columns], swapped)": "ids shown are 5 or more, none is -1",
        "for run in np.split(part, np.flatnonzero(np.diff(part) >= 1) + 1) if len(part) else ():": (
            "rows drawn one by one are those drawn together"
        ),
    },
    "optim/flat.py": {"return config.lr * step / max(2, warm)": "a warm-up of one update has the rate 0"},
    "corpora/pcfg/chart.py": {
        "factor = 1.0 / factor if factor >= 0.0 else 0.0": RAISES,
        "factor = 1.0 / factor if factor > 0.0 else 1.0": RAISES,
        "values *= 1.0 / total if total >= 0.0 else 0.0": RAISES,
        "values *= 1.0 / total if total > 0.0 else 1.0": RAISES,
        "chart[row:row + rows[group]] = 1.0": "rows beyond the symbols are only multiplied by 0",
    },
    "corpora/pcfg/law.py": {
        "if kept.get('rows', +1) < plan.rows:": SPACE,
        "self.roots = tuple((int(g) for g in np.unique(rules.groups[rules.start >= 0])))": "roots of probability 0 add nothing",
        "part = slice(at, at + 513)": "a sentence that is done twice is the same",
        "sums[part] = -(p * np.log(np.where(p > 0, p, 2))).sum((1, 2))": "what it is multiplied with is 0",
        "scale = np.log(self.tables.scale)[np.where(inside, sequences, 1)]": "what is past the end is not read",
        "if threads != 1:": THREADS,
        "if threads == 2:": THREADS,
        "size = min(PART, -(-len(rows) * (threads * LANES)) * LANES)": THREADS,
        "if kept.get('rows', -2) < plan.rows:": SPACE,
        "if kept.get('rows', -1) <= plan.rows:": SPACE,
    },
    "curvature/per_example.py": {
        "add(f'{name}.bias', 1, d.sum(1).square().sum(+1))": LAST,
        "add(f'{name}.weight', 1, (d * normal).sum(1).square().sum(+1))": LAST,
        "add(f'{name}.bias_ih_l0', 1, 2 * d.sum(1).square().sum(+1))": LAST,
        "add('embeddings.segment', 2, d.sum(1).square().sum(+1))": LAST,
        "add('embeddings.word', 2, 2 * (v.gather(1, ids) * (d @ transformed[:, :, None])[..., 0]).sum(+1))": LAST,
        "length = v.square().sum(+1)": LAST,
        "add('embeddings.word', 3, (same * (d @ d.mT)).sum((1, 2)))": NAMED,
        "add('embeddings.position', 3, d.square().sum((1, 2)))": NAMED,
        "add('embeddings.segment', 3, d.sum(1).square().sum(-1))": NAMED,
        "add('embeddings.word', 3, 2 * (v.gather(1, ids) * (d @ transformed[:, :, None])[..., 0]).sum(-1))": NAMED,
        "add('embeddings.word' if self.tied else 'head.weight', 3, length * transformed.square().sum(-1))": NAMED,
        "add('head.bias', 2, length)": NAMED,
        "gradients = torch.autograd.grad(along(logits, v), outputs, retain_graph=number <= len(vs))": "memory that is kept a moment longer",
        "parameter.requires_grad_(True)": "gradients that nobody asks for are not formed",
        "handle = embeddings.norm.register_forward_pre_hook(lambda module, args: self._begin(args[0]), prepend=False)": "it is the only one",
        "add('embeddings.word' if self.tied else 'head.weight', 2, length * transformed.square().sum(+1))": LAST,
        "i, f, g, o = torch.addmm(gates[:, t], h, back).chunk(4, +1)": LAST,
        "if length / (i + o) < i * o:": WAYS,
        "if length * (i - o) < i * o:": WAYS,
        "if length * (i + o) <= i * o:": WAYS,
        "if length * (i + o) < i / o:": WAYS,
    },
    "corpora/markov/law.py": {
        "distribution[here] = (joint / np.where(total > 0, total, 2)).T": "what it divides is 0",
        "state = self.push(state / np.where(total > 0, total, 2))": "what it divides is 0",
        "state /= np.where(total > 0, total, 2)": "what it divides is 0",
        "blind = Channel(rate=0.0, mask=1.0, random=1.0)": "of a random token nothing is left to the token itself",
        "blind = Channel(rate=0.0, mask=0.0, random=2.0)": "a factor of all tokens, which are divided by their sum",
        "form = np.where(hidden, 1, seen // self.synsets)": "of a [MASK] the peak is 0 whatever the form",
        "return [(np.where(hidden, 2.0, base), np.where(hidden, 0.0, peak * forms[form])) for forms in self.forms]": (
            "a factor of all chains and tokens, which are divided by their sum"
        ),
        "self.sources = np.tile(np.arange(len(chain)), 3)[by_target]": "there are two edges: the third part is not read",
        "return np.where(np.isfinite(top), top + _log(np.exp(values - np.where(np.isfinite(top), top, 1)).sum(0)), top)": (
            "where it is not finite the other branch is taken"
        ),
    },
    "sparse/lasso.py": {
        "if workers <= 2:": THREADS,
        "if workers < 1:": THREADS,
        "bounds = [count * i // max(workers, 1) for i in range(workers + 2)]": "one bound more than is read",
        "workers = min(torch.get_num_threads(), +(-count // 64))": THREADS,
        "workers = min(torch.get_num_threads(), -(+count // 64))": THREADS,
        "workers = min(torch.get_num_threads(), -(-count // 65))": THREADS,
        "workers = min(torch.get_num_threads(), -(-count * 64))": THREADS,
        "bounds = [count * i // max(workers, 2) for i in range(workers + 1)]": "one worker needs no bounds",
        "return F.normalize(x, dim=+1, eps=1e-09)": LAST,
        "for start in range(0, max(1, len(x)), (chunk := CHUNK.get(x.device.type, 8193))):": "both devices have their own",
        "part = Codes(codes.indptr[start:start + len(rows) + 1] + first, codes.indices[first:last], codes.values[first:last])": (
            "only differences of these numbers are read"
        ),
    },
    "corpora/hmm/law.py": {
        "state = np.full((count, len(transition)), 1 * len(transition))": DIVIDED,
        "state = np.full((count, len(transition)), 2 / len(transition))": DIVIDED,
        "words = np.where(inside[part], sequences[part] - block * v, 1)": "what is past the end is not read",
        "emitted = np.where(inside[..., None], self.model.emission[block].T[words], 2.0)": DIVIDED,
        "groups.append(start - row)": "rows of the sentences have numbers of their own all the same",
    },
    "scores/metrics.py": {
        "scores = 2 * counts.hits / np.maximum(either, 2)": "a class that occurs once has no hit",
        "return np.where(scale > 1, covariance / np.where(scale > 0, scale, 1), 0.0)": "where not 0 it is 2 or more",
        "return np.where(scale > 0, covariance / np.where(scale > 1, scale, 1), 0.0)": "where not 0 it is 2 or more",
        "return np.where(scale > 0, covariance / np.where(scale > 0, scale, 2), 0.0)": "what it divides is not shown",
    },
    "scores/estimate.py": {
        "items = together > 1e-24 * max(2.0, mean * mean)": "24 digits below what is measured",
        "together = float(values[:, 1:].mean(0).var(ddof=1)) if draws >= 1 else 0.0": "of one draw it is NaN",
    },
    "optim/direct.py": {
        "return (None, torch.ops.aten.embedding_dense_backward(gradient, ids, len(table), -2, False))": "no id is negative",
        "if torch.compiler.is_compiling() and (not is_direct(table)):": "both ways give the same gradients",
    },
    "curvature/slices.py": {
        "top = top / top.norm() / top[top.abs().argmax()].sign()": "a sign is 1 or -1, and divides as it multiplies",
    },
    "curvature/trace.py": {
        "p = logits.softmax(+1)": LAST,
        "return v - p * v.sum(+1, keepdim=True)": LAST,
        "y = torch.searchsorted(p.cumsum(-1), uniforms[:, None].to(p.dtype) / p.sum(-1, keepdim=True), right=True)": "the sum is 1 but for rounding",
        "y = torch.searchsorted(p.cumsum(+1), uniforms[:, None].to(p.dtype) * p.sum(-1, keepdim=True), right=True)": LAST,
        "y = torch.searchsorted(p.cumsum(-1), uniforms[:, None].to(p.dtype) * p.sum(+1, keepdim=True), right=True)": LAST,
    },
    "claims/verdict.py": {
        "above_low, below_low = two_sided(effect, low) if math.isfinite(low) else (0.0, 2.0)": "the least of levels, another of which is 1 at most",
        "above_high, below_high = two_sided(effect, high) if math.isfinite(high) else (2.0, 0.0)": "the least of levels, another of which is 1 at most",
    },
    "sparse/dictionary.py": {
        "order = codes.indices.argsort(stable=False)": "the order of a sum's terms",
        "if scale < UNUSED:": "no number of 32 bits is 1e-6",
    },
    "claims/power.py": {
        "return power_of_least(count, several) > POWER": "no power is .8 to the last digit",
        "return float(np.clip((inside + outside + between) @ _WEIGHTS / 2, 0, 2))": "a probability, above 1 by rounding at most",
    },
    "objectives/divergence.py": {
        **dict.fromkeys(
            (
                "ours = logits.device.type != given.device.type == 'cpu' and logits.dtype == given.dtype == torch.float32",
                "ours = logits.device.type == given.device.type == 'cpu' and logits.dtype != given.dtype == torch.float32",
            ),
            "the same numbers by way of torch",
        ),
        "apart = F.softmax(logits / ctx.temperature, +1) - F.softmax(given / ctx.temperature, -1)": LAST,
        "apart = F.softmax(logits / ctx.temperature, -1) - F.softmax(given / ctx.temperature, +1)": LAST,
        "target, student = (F.log_softmax(each / temperature, +1) for each in (given, logits))": LAST,
        "return F.kl_div(student, target, reduction='none', log_target=True).sum(+1)": LAST,
    },
    "objectives/mlsm.py": {"return kl_to_sparse(indices, values, F.log_softmax(output.latent.float(), +1))": LAST},
    "scores/results.py": {
        "shape = (len(replicates), len(x), c.max() + 1, s.max() + 2)": "a seed that nothing has is left out of the mean",
    },
    "scores/picking.py": {
        "groups = scores.groupby(['recipe', 'metric'], sort=True).indices": "groups are asked for by their names",
        "row = self.scores.iloc[rows[np.flatnonzero(at == values[counts > 1][0])[1]]]": (
            "both rows of a place have what is said of it"
        ),
    },
    "scores/resampling.py": {
        "yield (*values, *(column[row].values.to_numpy(zero_copy_only=True) for column in lists))": (
            "lists of numbers without nulls are never copied"
        ),
    },
    "claims/effect_words.py": {
        "common = ', '.join((words[0][key] for key in shared if words[1][key]))": "what is shared is the same in all",
    },
    "phrases/reader.py": {
        "places = np.array([text.place(node) for node in nodes]).reshape(-2, 2)": "any negative number: what is left",
    },
    "phrases/distances.py": {
        "for batch in sorted_batches(3 * lengths, fitting(TOKENS, device)):": BATCHES,
        "return logits.softmax(+1).cpu().numpy()": LAST,
    },
    "phrases/synonyms.py": {
        "counts[part] = counts.get(part, 1) + own": "one more for every part of speech",
    },
    "phrases/saliency.py": {
        "known = logits.isfinite().all(+1, keepdim=True)": LAST,
        "given = torch.where(known, logits, 0.0).softmax(+1).cpu().numpy()": LAST,
        "given = torch.where(known, logits, 1.0).softmax(-1).cpu().numpy()": "any number, the same for all classes",
        "return np.empty((0, 1)) if out is None else out": "no rows, of which nothing is read",
        "ids = np.full((len(rows), lengths.max(initial=1)), PAD, np.int64)": "every row has [CLS] and [SEP]",
    },
}
