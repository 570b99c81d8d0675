"""What every entity of the config shares."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class Entity(BaseModel):
    """Base of every config entity: frozen, strict about unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
