"""What a claim takes for granted, checked in one place for all claims. A premise that fails leaves a claim untested.

A model that learned no more than its null decides nothing, and a sentence about models of equal loss says nothing about
others. Each function returns why the premise fails, or None.
"""

import math
from dataclasses import replace

import numpy as np

from masklab.claims.claim import Claim, gap_of, loss_of
from masklab.claims.effect_words import with_interval
from masklab.claims.effects import (
    Correlation,
    Crossing,
    Growth,
    Lowest,
    Matched,
    Mediated,
    Ratio,
    Slope,
    Sum,
    Within,
    every_effect,
    every_part,
)
from masklab.claims.values import effect_estimate, points, values
from masklab.scores.estimate import Estimate
from masklab.scores.per_replicate import difference, in_all
from masklab.scores.reading import CONVERGED, FEWEST, Reading, leaves
from masklab.scores.results import Results

VARIED = 0.05  # level of the test that what is correlated varies
OF_KNOWABLE, OF_ENTROPY = 0.5, 0.2  # shares that a recipe has to learn for claims that ask for trained ones


def failing(claim: Claim, results: Results) -> str | None:
    """Why the first failing premise of a claim fails; None if all hold."""
    reasons = (
        unlike,
        few_points,
        unvaried,
        alone_at_its_loss,
        converged_late,
        unlearned_language,
        untrained,
        unlearned_tasks,
        unequal_losses,
        nothing_given,
    )
    return next((why for premise in reasons if (why := premise(claim, results))), None)


def unlike(claim: Claim, results: Results) -> str | None:
    """What is compared was measured on the same tasks, splits and training sizes."""
    for effect in every_effect(claim.effect):
        alike: dict[Reading, list[Reading]] = {}
        for part in _compared(effect):
            if isinstance(part, Reading):
                alike.setdefault(replace(part, recipe="", step="last"), []).append(part)
        for first, *others in alike.values():
            for other in others:
                if results.cells(first) != results.cells(other):
                    both = " and ".join(results.view.label(part.recipe) for part in (first, other))
                    return f"{both} were not measured on the same tasks and training sizes"
    return None


def _compared(effect) -> list:
    """Parts of an effect that it sets beside each other."""
    if isinstance(effect, Crossing):
        return [replace(effect.curve, over=None), *leaves(effect.level)]
    return effect.readings() if isinstance(effect, Sum | Ratio | Slope | Growth | Lowest) else []


def few_points(claim: Claim, results: Results) -> str | None:
    """A correlation needs points, and so does what is computed over replicates."""
    for effect in every_effect(claim.effect):
        if (
            not isinstance(effect, Correlation | Within | Mediated)
            or (count := points(effect, results)) >= effect.points
        ):
            continue
        if isinstance(effect, Correlation):
            return f"{count} points; a correlation needs {effect.points}"
        within = effect.within if isinstance(effect, Mediated) else effect
        if len(within.ys) < 2:
            return f"one recipe; a {within.statistic} over replicates needs two"
        return f"{count} degrees of freedom; a {within.statistic} over replicates needs {effect.points}"
    return None


def unvaried(claim: Claim, results: Results) -> str | None:
    """What something is to correlate with comes in an order that replicates share (Friedman's test)."""
    for effect in every_effect(claim.effect):
        if isinstance(effect, Correlation) and effect.varied and (why := _unvaried(effect, results)):
            return why
    return None


def _unvaried(effect, results):
    measured = [values(part, results) for part in effect.xs]
    replicates = in_all(measured)
    by_replicate = np.concatenate([each.at(replicates).data[:, :, 0] for each in measured], 1)
    p = friedman(by_replicate) if len(replicates) > 1 else 1.0
    if p < VARIED:
        return None
    first = effect.xs[0]
    said = first.parts(results.view)["what"] if isinstance(first, Reading) else first.words(results.view)
    return f"{said} is not shown to differ between the points (Friedman's test: p = {p:.2g})"


def friedman(numbers) -> float:
    """Level at which columns of numbers [replicates, columns] are shown to differ by Friedman's test; 1 if all tie."""
    from scipy.stats import chi2, friedmanchisquare

    if numbers.shape[1] < 3:  # of two columns it is the sign test, which scipy leaves to others; one does not differ
        signs = np.sign(numbers[:, 0] - numbers[:, -1])
        return float(chi2.sf(signs.sum() ** 2 / max(np.abs(signs).sum(), 1), 1))
    with np.errstate(invalid="ignore"):
        p = friedmanchisquare(*numbers.T).pvalue
    return 1.0 if np.isnan(p) else float(p)


def alone_at_its_loss(claim: Claim, results: Results) -> str | None:
    """A growth at equal loss needs another recipe at that loss, and so does a course that is matched with others."""
    if isinstance(claim.effect, Growth) and len(claim.effect.parts) < 2:
        return f"no other recipe is at the loss of {results.view.label(claim.effect.parts[-1].recipe)}"
    if isinstance(claim.effect, Matched) and not claim.effect.matched:
        first, last = (results.view.label(claim.effect.course[at][0].recipe) for at in (0, -1))
        others = [results.view.label(other.recipe) for other, _ in claim.effect.others]
        return f"between {first} and {last} the loss passes that of {' and '.join(others)} nowhere"
    return None


def converged_late(claim: Claim, results: Results) -> str | None:
    """A claim on what happens after a loss has converged needs a checkpoint after that."""
    for reading in leaves(claim.effect):
        if reading.step in CONVERGED:
            gaps = results.gaps(reading.recipe)
            if gaps and min(results.saturated(gaps)) == max(gaps):
                return f"the loss of {results.view.label(reading.recipe)} converges at its last checkpoint"
    return None


def unlearned_language(claim: Claim, results: Results) -> str | None:
    """One of the pre-trained recipes has, in every replicate, a validation loss below that of word frequencies."""
    if not claim.learned:
        return None
    trained = [name for name in _recipes(claim) if results.view.fact(name, "steps")]
    gains = {name: gain for name in trained if (gain := _language_gain(results, name)) is not None}
    if not gains or max(gains.values()) > 0:
        return None
    best = max(gains, key=gains.get)
    best_in_words = f"the loss of {results.view.label(best)} is {-gains[best]:.3g} nats above theirs"
    return f"no recipe learned more than word frequencies ({best_in_words} in its worst replicate)"


def untrained(claim: Claim, results: Results) -> str | None:
    """Every pre-trained recipe has learned its language, in every replicate: of claims that ask for it.

    Where the least possible loss is known and measured: `OF_KNOWABLE` of what lies between it and the entropy of single
    words. Elsewhere a share `OF_ENTROPY` of that entropy: near it verdicts tell how models begin to learn, and no more.
    Of a second phase it is enough that its first has: what it forgets is its own doing, and a finding.
    """
    view = results.view
    for recipe in _recipes(claim) if claim.trained else ():
        short, first = _lacks(_shares_learned(results, recipe)), view.first_phase(recipe)
        begun = _shares_learned(results, first) if first else {}
        if short and (not begun or _lacks(begun)):
            return f"{view.label(recipe)} has learned too little: {short}"
    return None


def _lacks(shares) -> str | None:
    """In words, a share that a recipe has learned and that does not count; None if all do."""
    said = (
        f"{share:.0%} of {what}, of which {least:.0%} count" for (what, least), share in shares.items() if share < least
    )
    return next(said, None)


def _shares_learned(results, recipe) -> dict[tuple[str, float], float]:
    """(of what, the least that counts) -> the share that a recipe has learned in its worst replicate.

    Empty where nothing was trained or nothing is known.
    """
    if not results.view.fact(recipe, "steps"):  # nulls
        return {}
    gaps, worst, alone = results.values(gap_of(recipe)), {}, _masks_alone(results.view, recipe)
    floors = results.values(Reading(recipe, "floor"))
    for (name, replicate), facts in results.models.items():
        losses, entropy = facts.get("valid_loss") or {}, facts.get("unigram_loss")
        if name != recipe or not losses or entropy is None:
            continue
        last = _of_hidden(results.view, recipe, losses[max(losses, key=int)])
        if alone and replicate in gaps.replicates and replicate in floors.replicates:
            gap, floor = (each.at([replicate]).scalar[0, 0] for each in (gaps, floors))
            key, share = ("what can be learned", OF_KNOWABLE), 1 - gap / (entropy - floor)
        elif last is not None:
            key, share = ("the entropy of single words", OF_ENTROPY), 1 - last / entropy
        else:
            continue
        worst[key] = min(worst.get(key, 1.0), share)
    return worst


def _shown(view, recipe) -> float:
    """Share of the tokens that a recipe predicts which it is shown as they are: .1 of 80/10/10."""
    mask, random = (view.fact(recipe, f"masking.{key}") for key in ("mask", "random"))
    return 0.0 if mask is None else max(0.0, 1 - mask - (random or 0.0))


def _of_hidden(view, recipe, loss: float | None) -> float | None:
    """The most that a recipe's loss can be on tokens that it is not shown, if it is `loss` on all: others cost nothing.

    Words that are seen cost little: with them 80/10/10 would seem to have learned a tenth of everything by copying.
    """
    return loss if loss is None or (shown := _shown(view, recipe)) in (0.0, 1.0) else loss / (1 - shown)


def _masks_alone(view, recipe) -> bool:
    """Whether a probe of the loss hides all that a recipe predicts there."""
    probes = view.measured_by(recipe, ["loss"])
    return not _shown(view, recipe) or any(view.probes[probe].get("masks") == "one" for probe in probes)


def _language_gain(results, recipe) -> float | None:
    """How far the last validation loss of a recipe lies below word frequencies', in its worst replicate."""
    gains = []
    for (name, _), facts in results.models.items():
        losses = facts.get("valid_loss") or {}  # by step
        if name == recipe and losses and facts.get("unigram_loss") is not None:
            last = _of_hidden(results.view, recipe, losses[max(losses, key=int)])
            gains += [] if last is None else [facts["unigram_loss"] - last]
    return min(gains, default=None)


def unlearned_tasks(claim: Claim, results: Results) -> str | None:
    """On each set of tasks that the effect reads, one recipe does better than every null of the study; where it
    compares differences within panels, one recipe of each panel.

    By the study's `gain` at least; on the splits that the effect reads, or on those of the claim's `learned_on`; on its
    `learned_tasks` if it has any. By any gain where no tasks are read, but a probe of a user's kind. A sentence about
    the least of several parts is one about each, so that one recipe of each must; but for a part that contradicts it by
    itself.
    """
    one, parts = _by_one(claim, results), every_part(claim.effect)
    lacking = {part: why for part in parts if (why := _unlearned(replace(claim, effect=part), results, one))}
    least = claim.bounds(results)[0]
    if lacking and any(effect_estimate(part, results).high <= least for part in parts if part not in lacking):
        return None
    return next(iter(lacking.values()), None)


def _unlearned(claim: Claim, results: Results, one: bool) -> str | None:
    groups = {}
    for reading in claim.to_learn(results.view):
        on = reading.tasks or (reading.probe, reading.named)
        groups.setdefault((on, reading.splits, reading.metric), []).append(reading)
    for group in [part for whole in groups.values() for part in _by_panel(whole, results.view)]:
        least = results.view.gain if group[0].tasks else 0.0
        if claim.learned_on:
            group = [*group, *(replace(reading, splits=claim.learned_on) for reading in group)]
        gains = {reading: _gains(reading, results) for reading in dict.fromkeys(group)}
        if not any(gains.values()) and (beside := [reading for reading in gains if results.nulls(reading)]):
            return f"no replicate has both it and its nulls: {beside[0].words(results.view)}"
        short = {
            reading: [pair for pair in own if not (_is_above(pair[1], one) and pair[1].value >= least)]
            for reading, own in gains.items()
            if own
        }
        if short and all(short.values()):
            # of each recipe the null that it exceeds by the least, or falls short of
            closest = {reading: min(own, key=lambda pair: pair[1].value) for reading, own in short.items()}
            reading, (null, gain) = max(closest.items(), key=lambda item: item[1][1].value)
            label = results.view.label(reading.recipe)
            said = [part for key, part in reading.parts(results.view).items() if key != "recipe"]
            over = f"mean over {len(sizes)} training sizes" if (sizes := results.sizes(reading)) else ""
            measured = ", ".join(part for part in [*said, over] if part)
            by, side = f" by {least:g}" if least else "", "below" if reading.less_is_better(results.view) else "above"
            return f"no recipe does better than its nulls{by} (best: {label}, {measured}: {_said(gain)} {side} {null})"
    return None


def _by_panel(group, view) -> list[list[Reading]]:
    """Readings panel by panel, where what is compared are differences within panels: of two recipes or more of each."""
    panels = [[each for each in group if each.recipe in members.values()] for members in view.panels.values()]
    panels = [own for own in panels if len({each.recipe for each in own}) > 1]
    apart = len(group) == sum(map(len, panels)) == len({each for own in panels for each in own})
    return panels if apart else [group]


def _gains(reading, results) -> list[tuple[str, Estimate]]:
    """(null, gain over it) of every null of a reading; none if one of them was not measured whole where it was."""
    own = results.values(reading)
    gains = [(kind, results.gain(reading, own, null)) for kind, null in results.nulls(reading).items()]
    return [] if any(gain is None or math.isnan(gain.value) for _, gain in gains) else gains


def unequal_losses(claim: Claim, results: Results) -> str | None:
    """All recipes' gaps to the least possible loss are equal: each shown to be that of the lowest."""
    if not claim.equal_loss:
        return None
    view, readings = results.view, {}
    for reading in leaves(claim.effect):
        gap = loss_of(reading)
        readings.setdefault((gap.recipe, gap.step), gap)
    gaps = list(readings.values())
    for gap in gaps:
        if not results.values(gap).replicates:
            return f"the loss of {view.label(gap.recipe)} against its floor was not measured"
    lowest = min(zip(results.means(gaps), gaps, strict=True), key=lambda pair: pair[0])[1]
    for other in gaps:
        if other is not lowest and not results.shown_equal(other, lowest, _by_one(claim, results)):
            both = [_checkpoint(gap, view) for gap in (other, lowest)]
            apart = difference(results.values(other), results.values(lowest))
            if apart is None:
                return f"no replicate has the losses of both {' and '.join(both)}"
            pair = " - ".join(both)
            return f"losses not shown to be equal within {view.saturation:g} of the floor ({pair}: {_said(apart)})"
    return None


def nothing_given(claim: Claim, results: Results) -> str | None:
    """Each effect that the sentence presupposes is above 0, and not shown to be less than counts."""
    for effect in claim.given:
        shown = effect_estimate(effect, results)
        words = effect.words(results.view)
        if not shown.replicates:
            return f"what it presupposes was not measured: {words}"
        if not _is_above(shown, _by_one(claim, results)):
            return f"what it presupposes was not shown to be above 0: {words} ({_said(shown)})"
        least = replace(claim, effect=effect, region="above 0").least_in(results)
        if shown.high < least:
            return f"what it presupposes was shown to be less than {least:g}: {words} ({_said(shown)})"
    return None


def _checkpoint(reading, view) -> str:
    parts = reading.parts(view)
    return " ".join(part for part in (parts["recipe"], parts["step"]) if part)


def _recipes(claim) -> list[str]:
    return list(dict.fromkeys(reading.recipe for reading in leaves(claim.effect)))


def _by_one(claim, results) -> bool:
    """Whether a single replicate may show a premise: where the claim itself is not decided, for want of replicates."""
    return len(values(claim.effect, results).evidence.replicates) < FEWEST


def _is_above(estimated: Estimate, one: bool) -> bool:
    """Whether an estimate's interval lies above 0; for a single replicate, if `one` may show it, its value."""
    return (one and estimated.value > 0) if estimated.replicates < 2 else estimated.low > 0


def _said(estimated: Estimate) -> str:
    ends = (estimated.low, estimated.high) if estimated.replicates > 1 else ()
    return with_interval(estimated.value, *ends)
