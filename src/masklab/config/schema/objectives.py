"""Objectives: what an encoder is trained to predict. An objective is a mapping of terms to their settings."""

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, RootModel, SerializeAsAny, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from masklab.config import kinds
from masklab.config.schema.base import Count, Entity, Share


class Weight(Entity):
    """What every term has: its weight in the sum. The settings of a term of one's own derive from this class.

    needs: what the term reads besides the batch: "teacher" (the logits of the `teacher` model, else of `init`), "codes" (sparse codes,
        from a dictionary), "task" (the rows of the labelled task that its key `task` names).
    predicts: whether it has a loss for each masked token; else it is added once per update.
    reads: whether it brings its own way of hiding tokens, or of reading them; an objective has at most one such term.
    excludes: terms that cannot stand beside it -> why.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    predicts: ClassVar[bool] = True
    reads: ClassVar[bool] = False
    excludes: ClassVar[dict[str, str]] = {}

    weight: float = Field(1, ge=0, description="Weight of the term in the sum of all; 0: left out.")

    def leaving(self, masking) -> float:
        """Share of the masked tokens that leave the encoder's input, with this `Masking`; for counts of FLOPs."""
        return 0.0

    def besides(self) -> tuple[int, int]:
        """(s, n): the term reads s sequences besides the batch, once in n updates; for counts of FLOPs."""
        return 0, 1


class Mlm(Weight):
    """Cross-entropy of the masked token."""


class Kd(Weight):
    """KL(teacher's vocabulary distribution || student's); the teacher (`teacher`, else `init`) reads the unmasked sequence."""

    needs: ClassVar = ("teacher",)

    temperature: float = Field(1.0, gt=0, description="Temperature of both distributions (released code: 1).")


class Mlsm(Weight):
    """KL(L1-normalised sparse code || student's latent distribution); the codes are those of a dictionary."""

    needs: ClassVar = ("codes",)


class Mae(Weight):
    """Cross-entropy of the masked token where [MASK]s leave the encoder and a decoder reads its states (MAE-LM)."""

    reads: ClassVar = True
    excludes: ClassVar = {"mlm": "they are one loss on two inputs"}

    delta: Share = Field(
        0.0,
        description="Share of a sequence's [MASK]s that stay in the encoder; the others leave it, and only the decoder sees them. Random tokens of `masking.random` stay. 1 without a decoder is `mlm` (Meng et al. 2024, section 4.3).",
    )
    reset: bool = Field(
        False, description="Masked positions that stay in the encoder are [MASK] in the decoder's input again."
    )
    aligned: bool = Field(
        True, description="Tokens keep their positions in the encoder when others leave; false: they count from 0."
    )

    def leaving(self, masking) -> float:
        return (1 - self.delta) * masking.mask


class Adversarial(Weight):
    """Squared error of a ridge head on a downstream task, which is maximised (Liu et al. 2023, appendix A.4)."""

    needs: ClassVar = ("task",)
    predicts: ClassVar = False

    task: str = Field(description="A labelled task on the sequences that the model reads.")
    support: Count = Field(448, description="Training rows that a ridge head is fitted on at a step (D1).")
    query: Count = Field(64, description="Other training rows, on which the head's squared error is maximised (D2).")
    ridge: float = Field(1e-3, gt=0, description="Penalty of the head (released fragment: 1e-3).")
    pooling: Literal["concat", "cls", "mean"] = Field(
        "concat", description="What the head reads, scaled to length 1; as `pooling` of a `linear_probe`."
    )
    every: Count = Field(1, description="Updates from one that has the term to the next; the first has it.")

    def besides(self) -> tuple[int, int]:
        return self.support + self.query, self.every


class Sharpness(Weight):
    """Logarithm of the trace of the Fisher information, that of the Hessian at saturation, which is lowered or raised: an intervention on how flat a minimum is (after Liu et al. 2023, section 3)."""

    predicts: ClassVar = False
    excludes: ClassVar = {"mae": "the trace is that of a loss whose [MASK]s the encoder reads"}

    raised: bool = Field(False, description="true: the term makes the trace larger.")
    sequences: Count = Field(
        64, description="Training sequences, with one hidden token each, that it is estimated on at a step."
    )
    reach: float = Field(
        0.01,
        gt=0,
        description="Standard deviation of the noise on the parameters, along which the change of the predictions is measured.",
    )
    every: Count = Field(1, description="Updates from one that has the term to the next; the first has it.")

    def besides(self) -> tuple[int, int]:
        return 3 * self.sequences, self.every


class Objective(RootModel[dict[str, SerializeAsAny[Weight]]]):
    """A weighted sum of terms: the name of each -> its settings; a number is short for its weight.

    Terms of weight 0 (or null) are left out; the others stand in the order of `masklab.config.kinds`, whatever the
    order in which they were written.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    @property
    def terms(self) -> dict[str, Weight]:
        """Settings of each term, by name."""
        return self.root

    @property
    def tasks(self) -> list[str]:
        """Tasks that terms read, each once."""
        return list(dict.fromkeys(term.task for term in self.root.values() if "task" in term.needs))

    def get(self, name: str) -> Weight | None:
        """Settings of a term; None where the objective does not have it."""
        return self.root.get(name)

    def needs(self, what: str) -> bool:
        """Whether a term reads this: "teacher", "codes" or "task"."""
        return any(what in term.needs for term in self.root.values())

    def leaving(self, masking) -> float:
        """Share of the masked tokens that leave the encoder's input."""
        return max(term.leaving(masking) for term in self.root.values())

    @model_validator(mode="before")
    @classmethod
    def _terms(cls, value: Any):
        if isinstance(value, Objective) or not isinstance(value, dict):
            return value
        known = kinds.known("terms")
        faults, terms = [], {}
        for name, settings in value.items():
            if name not in known:
                fault = PydanticCustomError("unknown_term", "unknown term")
                faults.append(InitErrorDetails(type=fault, loc=(str(name),), input={}))
                continue
            try:
                terms[name] = _settings(known[name].entity(), settings)
            except ValidationError as error:
                faults += [_fault(name, each) for each in error.errors()]
        if faults:
            raise ValidationError.from_exception_data("Objective", faults)
        return {name: terms[name] for name in known if terms.get(name) is not None and terms[name].weight}

    @model_validator(mode="after")
    def _fit(self):
        if not any(term.predicts for term in self.root.values()):
            able = [name for name, kind in kinds.known("terms").items() if kind.entity().predicts]
            raise ValueError(f"at least one of {', '.join(able)} must have a weight above 0")
        for name, term in self.root.items():
            for other in self.root.keys() & term.excludes:
                raise ValueError(f"{other} and {name} exclude each other: {term.excludes[other]}")
        readers = [name for name, term in self.root.items() if term.reads]
        if len(readers) > 1:
            raise ValueError(f"{' and '.join(readers)} each bring a way of hiding tokens; one of them at most")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core, handler):
        properties = {}
        for name, kind in kinds.OURS["terms"].items():
            kind.entity().model_rebuild()
            settings = handler(kind.entity().__pydantic_core_schema__)
            properties[name] = {"anyOf": [{"type": "number", "minimum": 0}, settings, {"type": "null"}]}
        first = " ".join(cls.__doc__.split("\n\n")[0].split())
        return {"type": "object", "title": cls.__name__, "description": first, "properties": properties}


def _settings(entity, value):
    """The settings of a term as they are written: nothing, a number, a mapping, or settings already."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = {"weight": value}
    return entity.model_validate(value)


def _fault(name, error) -> InitErrorDetails:
    """One fault in the settings of a term, at its place in the objective."""
    fault = PydanticCustomError(error["type"], error["msg"].replace("{", "{{").replace("}", "}}"), error.get("ctx"))
    return InitErrorDetails(type=fault, loc=(name, *error["loc"]), input=error["input"])
