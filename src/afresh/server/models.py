"""The doors to holdouts: features go out, predictions come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from afresh import checks
from afresh.errors import InvalidArgument, NotFound
from afresh.server.api import Form, check_batch, enter, handed_out
from afresh.server.bodies import PREDICTIONS
from afresh.server.house import Served
from afresh.server.predictions import Submission, read_submission
from afresh.server.schemas import gives, shows, tells
from afresh.wire.arguments import OF_MODELS, to_loss, to_statistic
from afresh.wire.results import to_json
from afresh.wire.tables import FORMATS as FILES

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout
    from afresh.server.app import Desk
    from afresh.server.tokens import Caller

router = APIRouter(tags=["holdouts"])


async def _holdout(request: Request, name: str, role: str = "analyst") -> tuple[Desk, Served, Caller, Holdout]:
    desk, served, caller = await enter(request, name, role)
    if served.holdout is None:
        raise NotFound(f"{name!r} is a dataset without labels, so it cannot score models; ask it questions.")
    return desk, served, caller, served.holdout.for_analyst(caller.name)


@router.get("/holdouts/{name}/features", responses=gives(*FILES.values()), response_class=Response)
async def features(request: Request, name: str, form: Form = "parquet") -> Response:
    """The features of all rows, in the order predictions must have; with the id column, if there is one."""
    desk, served, _, holdout = await _holdout(request, name, "viewer")
    return await handed_out(request, desk, served, form, lambda: (holdout.features, None))


@router.get("/holdouts/{name}/open_rows", responses=gives(*FILES.values()), response_class=Response)
async def open_rows(request: Request, name: str, form: Form = "parquet") -> Response:
    """Features and labels of the open rows, if the holdout was opened with any."""
    desk, served, _, holdout = await _holdout(request, name)

    def make() -> tuple[Any, Any]:
        frame, labels = holdout.open_rows()
        return frame.assign(**{holdout.label: labels}), frame.index

    return await handed_out(request, desk, served, form, make)


async def _submitted(request: Request, name: str) -> tuple[Desk, Served, Caller, Holdout, Submission]:
    desk, served, caller, holdout = await _holdout(request, name)
    media, given = request.headers.get("content-type", ""), request.query_params

    def read(body: bytes) -> Submission:
        return read_submission(body, media, given, served.guard.rows, served.places, served.settings.id)

    found = await desk.asking.files.take(caller.name, request.body, read)
    check_batch(desk, len(found.models))
    return desk, served, caller, holdout, found


async def _ask(
    request: Request,
    name: str,
    what: str,
    work: Callable[[Holdout, Submission], Any],
    price: Callable[[Submission], int],
    charged: Callable[[Any], int] = lambda found: int(found.charged),
) -> Any:
    desk, served, caller, holdout, given = await _submitted(request, name)
    question = [what, given.digest]
    return await desk.asking.ask(served, caller, question, lambda: work(holdout, given), lambda: price(given), charged)


@router.post("/holdouts/{name}/score", responses=shows("Answer", listed="answers"), openapi_extra=PREDICTIONS)
async def score(request: Request, name: str) -> Response:
    """The mean loss of each model, 1 answer each; all are charged, or none."""

    def work(holdout: Holdout, given: Submission) -> Any:
        loss, precision = to_loss(given.options.get("loss")), given.options.get("precision")
        return holdout.score_many(given.models, names=given.names, loss=loss, precision=precision)

    found = await _ask(
        request, name, "score", work, lambda given: len(given.models), lambda all: sum(each.charged for each in all)
    )
    return JSONResponse({"answers": [to_json(each) for each in found]})


@router.post("/holdouts/{name}/unscored", responses=tells({"unscored": 1}), openapi_extra=PREDICTIONS)
async def unscored(request: Request, name: str) -> Response:
    """How many of these scores would be charged. Free."""
    desk, _, caller, holdout, given = await _submitted(request, name)

    def work() -> int:
        loss = holdout.settled(to_loss(given.options.get("loss")))
        return holdout.unscored(holdout.predict(given.models, given.names, loss), loss)

    return JSONResponse({"unscored": await desk.asking.estimate(caller, work)})


@router.post("/holdouts/{name}/compare", responses=shows("Comparison", "Identical"), openapi_extra=PREDICTIONS)
async def compare(request: Request, name: str) -> Response:
    """Whether the second model is better than the first: 1 or 2 answers."""

    def work(holdout: Holdout, given: Submission) -> Any:
        if len(given.models) != 2:
            raise InvalidArgument(f"the request has predictions of {len(given.models)} models; a comparison takes two.")
        loss, precision = to_loss(given.options.get("loss")), given.options.get("precision")
        a, b = given.models
        return holdout.compare(a, b, names=_pair(given.names), loss=loss, precision=precision)

    return JSONResponse(to_json(await _ask(request, name, "compare", work, lambda given: 2)))


@router.post("/holdouts/{name}/best_of", responses=shows("Ranking"), openapi_extra=PREDICTIONS)
async def best_of(request: Request, name: str) -> Response:
    """Models in order, tied where the data cannot separate them."""

    def work(holdout: Holdout, given: Submission) -> Any:
        return holdout.best_of(given.models, names=given.names, loss=to_loss(given.options.get("loss")))

    found = await _ask(request, name, "best_of", work, _most_of_ranking)
    return JSONResponse(to_json(found))


@router.post("/holdouts/{name}/exam", responses=shows("Ranking"), openapi_extra=PREDICTIONS)
async def exam(request: Request, name: str) -> Response:
    """Take the exam, once: score the final models on rows that nothing else has touched. Costs no answers."""

    def work(holdout: Holdout, given: Submission) -> Any:
        return holdout.exam(given.models, names=given.names, loss=to_loss(given.options.get("loss")))

    return JSONResponse(to_json(await _ask(request, name, "exam", work, lambda given: 0, lambda found: 0)))


@router.post("/holdouts/{name}/measure", responses=shows("Answer"), openapi_extra=PREDICTIONS)
async def measure(request: Request, name: str) -> Response:
    """Precision, recall, F1, calibration error or AUC of one model."""

    def work(holdout: Holdout, given: Submission) -> Any:
        if len(given.models) != 1:
            raise InvalidArgument(f"the request has predictions of {len(given.models)} models; measure one at a time.")
        return holdout.measure(_statistic(given), given.models[0], name=given.names[0] if given.names else None)

    return JSONResponse(to_json(await _ask(request, name, "measure", work, lambda given: int(_statistic(given).price))))


def _statistic(given: Submission) -> Any:
    return to_statistic(given.options.get("statistic"), OF_MODELS)


@router.post("/holdouts/{name}/claim", responses=shows("Claimed"), openapi_extra=PREDICTIONS)
async def claim(request: Request, name: str) -> Response:
    """Whether the first model is certainly better than the second, or its mean loss between two ends. 1 answer."""

    def work(holdout: Holdout, given: Submission) -> Any:
        told = {key: given.options[key] for key in ("by", "between") if given.options.get(key) is not None}
        told |= {"names": given.names, "loss": to_loss(given.options.get("loss"))}
        model, *others = given.models
        if _flag(given, "challenge"):
            if "between" in told:
                raise InvalidArgument("a challenge is about an improvement on the incumbent; leave out between.")
            return holdout.challenge(model, incumbent=others[0] if others else None, **told)
        return holdout.claim(model, better_than=others[0] if others else None, **told)

    return JSONResponse(to_json(await _ask(request, name, "claim", work, lambda given: 1)))


@router.post("/holdouts/{name}/contest", responses=shows("Contested"), openapi_extra=PREDICTIONS)
async def contest(request: Request, name: str) -> Response:
    """Which model has the smallest mean loss; with `incumbent`, the last one is the model to beat. Costs 1 answer."""

    def work(holdout: Holdout, given: Submission) -> Any:
        models, last = given.models, None
        if _flag(given, "incumbent"):
            *models, last = models
        loss = to_loss(given.options.get("loss"))
        return holdout.contest(models, incumbent=last, bins=given.options.get("bins"), names=given.names, loss=loss)

    return JSONResponse(to_json(await _ask(request, name, "contest", work, lambda given: 1)))


@router.post("/holdouts/{name}/detects", responses=tells({"detects": 0.014}), openapi_extra=PREDICTIONS)
async def detects(request: Request, name: str) -> Response:
    """How much better than `by` the first model must be for a claim against the second to pass. Free.

    With `among`, to win a contest of so many models against the second; `binned` if the winner's value is asked for.
    """
    desk, _, caller, holdout, given = await _submitted(request, name)
    if len(given.models) != 2:
        raise InvalidArgument(f"the request has predictions of {len(given.models)} models; this takes two.")
    wanted = ("by", "disagreement", "among", "binned")
    told = {key: given.options[key] for key in wanted if given.options.get(key) is not None}
    b, a = given.models
    loss = to_loss(given.options.get("loss"))
    found = await desk.asking.estimate(caller, lambda: holdout.detects(b, better_than=a, loss=loss, **told))
    return JSONResponse({"detects": found})


def _pair(names: list[str] | None) -> tuple[str, str] | None:
    return None if names is None else (names[0], names[1])


def _flag(given: Submission, name: str) -> bool:
    """An option that is true or false, or left out."""
    return given.options.get(name) is not None and checks.flag(name, given.options[name])


def _most_of_ranking(given: Submission) -> int:
    count = len(given.models)
    return max(3 * count - 2, count * (count + 1) // 2)
