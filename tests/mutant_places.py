"""Where `mutants.py` changes something: the numerical modules, the tests that should notice, and what no test can."""

# Module below src/masklab -> arguments of pytest: the fastest tests that should notice.
MODULES = {
    "intervals.py": ["test_statistics.py"],
    "spectrum.py": ["test_spectrum.py"],
    "probes/rank.py": ["probes/test_rank.py", "-k", "svd_of_held and bert or progress"],
    "masking.py": ["training/test_masking.py"],
    "config/schema/objectives.py": ["config/test_objectives_config.py", "models/test_flops.py"],
    "inside_torch.py": ["test_inside_torch.py"],
    "optim/flat.py": ["training/test_optim.py", "models/test_direct.py"],
    "optim/direct.py": ["models/test_direct.py"],
    "training/guard.py": ["training/test_guard.py", "-k", "explosion or goes_on or calm"],
    "objectives/cross_entropy.py": ["objectives/test_cross_entropy.py"],
    "objectives/kd.py": ["objectives/test_terms.py", "-k", "not imported"],
    "objectives/mlsm.py": ["objectives/test_terms.py", "-k", "not imported"],
    "objectives/terms.py": ["objectives/test_terms.py", "objectives/test_own_term.py", "-k", "not imported"],
    "objectives/adversarial.py": ["objectives/test_adversarial.py"],
    "objectives/mae.py": ["objectives/test_terms.py", "-k", "autoencoder_predicts"],
    "scores/metrics.py": ["scores/test_metrics.py", "scores/test_items.py"],
    "scores/estimate.py": ["scores/test_estimate.py", "scores/test_correlations.py"],
    "scores/reading.py": ["scores/test_reading_words.py", "scores/test_results.py", "claims/test_effects.py"],
    "scores/results.py": ["scores/test_results.py", "scores/test_resampled_results.py"],
    "claims/verdict.py": [
        "claims/test_decisions.py",
        "claims/test_verdict.py",
        "-k",
        "not thousand and not power and not disk",
    ],
    "claims/effects.py": ["claims/test_effects.py"],
    "claims/values.py": ["claims/test_effects.py"],
    "claims/power.py": ["claims/test_power.py", "-k", "t_test or given or promised"],
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
    "corpora/pcfg/batched_law.py": ["corpora/test_pcfg_batched.py"],
    "curvature/trace.py": ["curvature/test_trace.py", "-k", "hessian and pre or covariance or fair or summed"],
    "curvature/per_example.py": ["curvature/test_per_example.py"],
    "curvature/slices.py": ["curvature/test_slices.py"],
}
# Module -> changed line, as the command prints it -> why it changes no result.
LAST = "+1 is the last axis of a matrix, as -1 is"
EQUIVALENT: dict[str, dict[str, str]] = {
    "corpora/markov/law.py": {
        "distribution[here] = (joint / np.where(total > 0, total, 2)).T": "what it divides is 0",
    },
    "sparse/lasso.py": {"if workers <= 2:": "how many threads share the rows changes no code"},
    "scores/metrics.py": {
        "return np.where(scale > 1, covariance / np.where(scale > 0, scale, 1), 0.0)": "where not 0 it is 2 or more",
        "return np.where(scale > 0, covariance / np.where(scale > 1, scale, 1), 0.0)": "where not 0 it is 2 or more",
        "return np.where(scale > 0, covariance / np.where(scale > 0, scale, 2), 0.0)": "what it divides is not shown",
    },
    "scores/estimate.py": {
        "if over_items > 1e-24 * max(2.0, mean * mean):": "24 digits below what is measured",
    },
    "optim/direct.py": {
        "if torch.compiler.is_compiling() and (not is_direct(table)):": "both ways give the same gradients",
    },
    "curvature/trace.py": {"p = logits.softmax(+1)": LAST},
    "claims/power.py": {
        "return float(np.clip((inside + outside) @ _WEIGHTS / 2, 0, 2))": "a probability, above 1 by rounding at most",
    },
    "objectives/cross_entropy.py": {
        "tiny = (chosen <= TINY).nonzero()[:, 0]": "at the limit both ways of computing agree",
    },
    "objectives/kd.py": {
        "target = F.log_softmax(teacher.logits(batch).float() / temperature, +1)": LAST,
        "student = F.log_softmax(output.logits.float() / temperature, +1)": LAST,
        "return F.kl_div(student, target, reduction='none', log_target=True).sum(+1)": LAST,
    },
    "objectives/mlsm.py": {"return kl_to_sparse(indices, values, F.log_softmax(output.latent.float(), +1))": LAST},
    "scores/results.py": {
        "yield (*values, *(column[row].values.to_numpy(zero_copy_only=True) for column in lists))": (
            "lists of numbers without nulls are never copied"
        ),
    },
    "claims/effects.py": {
        "common = ', '.join((parts[0][key] for key in shared if parts[1][key]))": "what is shared is the same in all",
    },
}
