"""What requests may contain. Unknown keys are refused: a name in a body, for example, identifies nobody."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field

from afresh.errors import InvalidArgument
from afresh.server.predictions import FORMATS

_Number = int | float
_Pair = tuple[_Number, _Number]
_Label = bool | int | float | str
_Expression = Annotated[str, Field(max_length=100_000, description="A row expression in SQL: a condition or a number.")]
_Item = TypeVar("_Item")
_Many = Annotated[list[_Item], Field(fail_fast=True)]  # to report every one of 100,000 wrong items would take a second


_KEYS = 100  # the most in an object, except in one whose keys are names: every unknown one would be reported


class BodyRoute(APIRoute):
    """A door that takes a body; one with very many keys is refused before they are looked at."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The door, for requests that check their body."""
        door = super().get_route_handler()

        async def handle(request: Request) -> Response:
            return await door(_Checked(request.scope, request.receive))

        return handle


class _Checked(Request):
    async def json(self) -> Any:
        """What was sent, which Starlette keeps."""
        found = await super().json()
        parts = [found, *found.values()] if isinstance(found, dict) else []
        for each in [*parts, *(item for part in parts if isinstance(part, list) for item in part)]:
            if isinstance(each, dict) and len(each) > _KEYS and each is not found.get("shares"):
                raise InvalidArgument(
                    f"an object has {len(each):,} keys, but at most {_KEYS} may be given; see /v1/openapi.json."
                )
        return found


class Body(BaseModel):
    """A JSON object with these keys and no others."""

    model_config = ConfigDict(extra="forbid", strict=False)

    def given(self) -> dict[str, Any]:
        """The keys that were given, as a dict."""
        return self.model_dump()


class Question(Body):
    """The arguments of `Guard.ask`."""

    expression: _Expression
    bounds: _Pair | None = Field(
        None, description="The range a number is clipped to; the data dictionary's if omitted."
    )
    where: _Expression | None = Field(None, description="Ask for the mean among the rows where this is true.")
    missing: _Number | bool | None = Field(
        None, description="What rows without a value count as; by default they are left out."
    )
    precision: _Number | None = Field(None, description="A half-width that is enough, at a lower charge.")
    guess: _Pair | None = Field(None, description="A value and a half-width of your own, to be checked.")
    about: _Number | None = Field(
        None, description="Roughly what the answer will be, for methods whose noise follows a hint."
    )

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"expression": "churned AND tenure < 3"}, {"expression": "amount"}]},
    )


class Questions(Body):
    """The arguments of `Guard.ask_many`: all are charged, or none."""

    questions: _Many[Question | _Expression] = Field(
        examples=[["churned", {"expression": "amount", "bounds": [0, 500]}]]
    )
    rows: int | None = Field(None, ge=1, description="In rounds, how many fresh rows they get.")


class Priced(Body):
    """A question or a statistic, and the answer to expect."""

    question: Question | None = Field(None, examples=[{"expression": "churned"}])
    statistic: dict[str, Any] | None = Field(
        None, examples=[{"kind": "Quantile", "expression": "amount", "level": 0.5}]
    )
    mean: _Number | _Many[_Number] | None = Field(None, description="For a statistic of two numbers, one for each.")
    share: _Number | None = Field(None, description="For a group, the share of rows you expect in it.")
    exam: int | None = Field(None, description="Asked in the exam, as one of so many questions.")
    deviation: _Number | _Many[_Number] | None = Field(
        None, description="For a number, the standard deviation you expect; for two, one for each."
    )


class Measured(Body):
    """A statistic of `afresh.statistics`: `kind`, and what it is made from."""

    statistic: dict[str, Any] = Field(examples=[{"kind": "Quantile", "expression": "amount", "level": 0.5}])


class Claim(Body):
    """The arguments of `Guard.claim`."""

    expression: _Expression
    between: Any = Field(
        description="Two ends; null leaves one side open.",
        json_schema_extra={"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2},
        examples=[[0.2, None]],
    )
    bounds: _Pair | None = None
    missing: _Number | bool | None = None
    where: _Expression | None = Field(None, description="A condition: the claim is about the mean within the group.")


class Detected(Claim):
    """The arguments of `Guard.detects`."""

    deviation: _Number | None = None
    share: _Number | None = Field(None, description="For a group, the share of rows you expect in it.")


class Fit(Body):
    """A model to be fitted by noisy gradients, as `afresh.learn` does it."""

    kind: str = Field(examples=["logistic"], description="logistic or linear.")
    features: _Many[str] = Field(min_length=1, examples=[["tenure", "amount"]])
    label: str = Field(examples=["churned"])
    bounds: _Pair | _Many[_Pair] = Field(
        (-3, 3), description="The range features are clipped to: two numbers, or one pair per feature."
    )
    norm: _Number | None = Field(None, description="The longest row, scaled.")
    steps: int = Field(50, ge=1, description="The number of gradients to ask for.")
    alpha: _Number = Field(0.0, description="The strength of the ridge penalty.")
    classes: tuple[_Label, _Label] = Field((0, 1), examples=[[False, True]])
    target: _Pair = Field((-1, 1), description="For a linear regression, the range the label is clipped to.")


class Division(Body):
    """How many answers each analyst may have."""

    shares: dict[str, int] = Field(examples=[{"ann": 400, "bob": 300}])


class Charge(Body):
    """The arguments of `Guard.charge`."""

    revealed: str = Field(examples=["a noisy mean in the 2025 report"])
    kl: _Number | None = None
    zcdp: _Number | None = None
    pure_dp: _Number | None = None
    noise_sd: _Number | None = None
    study: dict[str, Any] | None = Field(None, description="The receipt of a finished guard over some of the rows.")
    rows: int | None = None
    count: int = 1


class Freeze(Body):
    """Why nothing new may be answered."""

    why: str = Field("the steward has frozen it.", max_length=1000)


class NewToken(Body):
    """The owner, role and limits of a new token."""

    name: str = Field(max_length=200, examples=["ann"])
    role: str = Field("analyst", examples=["analyst"])
    datasets: _Many[str] = Field(["*"], examples=[["customers"]])
    days: float | None = Field(None, description="The number of days it is valid; no limit if omitted.")
    cap: int | None = Field(None, description="The most answers it may spend; no cap if omitted.")


PREDICTIONS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"predictions": {"my model": [0, 1, 1, 0]}},
            },
            **{media: {"schema": {"type": "string", "format": "binary"}} for media in FORMATS},
        },
    }
}
"""What OpenAPI says about a body with predictions."""
