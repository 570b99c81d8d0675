"""What every entity of the config shares."""

from typing import Annotated, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import core_schema

from masklab.config import kinds

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]


class Entity(BaseModel):
    """Base of every config entity: frozen, strict about unknown keys."""

    # Validators are built when they are first used: a job uses few of some fifty classes.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


class Drawn(Entity):
    """Base of what is drawn at random: laws, corpora, tasks."""

    redraw: bool = Field(
        False,
        description="Draw it anew for every replicate, and with it all that is made from it; false: all replicates share it.",
    )


def kind_class(section: str, kind) -> type[Entity]:
    """The class of entries of a kind; MaskLabError says which there are."""
    return kinds.find(section, kind).entity()


class Kinds:
    """The type of a section's entries: what their key `kind` says, ours or a user's (`masklab.config.kinds`)."""

    def __init__(self, section: str):
        self.section = section

    def __get_pydantic_core_schema__(self, source, handler):
        return core_schema.no_info_plain_validator_function(self.typed)

    def __get_pydantic_json_schema__(self, schema, handler):
        ours = [kind.entity() for kind in kinds.OURS[self.section].values()]
        return handler(TypeAdapter(Annotated[Union[tuple(ours)], Field(discriminator="kind")]).core_schema)  # noqa: UP007

    def typed(self, value):
        """An entry, or the one that a mapping of settings stands for."""
        if isinstance(value, Entity):
            return value
        return kind_class(self.section, value.get("kind")).model_validate(value)
