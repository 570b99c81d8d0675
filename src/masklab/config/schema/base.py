"""What every entity of the config shares."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Entity(BaseModel):
    """Base of every config entity: frozen, strict about unknown keys."""

    # Validators are built when they are first used: a job uses few of some fifty classes.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Drawn(Entity):
    """Base of what is drawn at random: laws, corpora, tasks."""

    redraw: bool = Field(
        False,
        description="Draw it anew for every replicate, and with it all that is made from it; false: all replicates share it.",
    )
