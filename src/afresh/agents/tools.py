"""The tools. Each sends a request to a door of the service, in the name of the token's owner, and shows the result.

A refusal is a result like any other. No tool reads rows, raises a limit or names another analyst. A session may have a
cap: the most a call may cost is set aside before it is made.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from afresh.agents.words import conclude
from afresh.errors import AfreshError, BudgetExhausted, InvalidArgument, MissingExtra, Unreachable
from afresh.judging.files import Files, read_candidate
from afresh.version import __version__
from afresh.wire.problems import to_problem

try:
    import httpx
    from mcp.server.mcpserver import Context, MCPServer
    from mcp_types import CallToolResult, TextContent, ToolAnnotations
except ImportError:
    raise MissingExtra("the MCP SDK", "mcp") from None

INSTRUCTIONS = """\
afresh stands between you and rows or test items that you must not see. Every answer costs a part of a fixed budget;
the same question again is free. Answers carry a range that holds however you chose your questions. Report the range,
never the number alone. "Cannot tell" and "not accepted" mean that there is no evidence of an improvement: do not
report one. Look at the price before you ask, tune on what is open, and confirm only what survived."""

_Name = Annotated[str, Field(description="A name that `list` shows.")]
_Expression = Annotated[
    str, Field(description="A row expression in SQL: a condition (its share of rows), or a number (its mean).")
]
_Bounds = Annotated[
    tuple[float, float] | None, Field(description="The range a number is clipped to, if `describe` shows no bounds.")
]
_Where = Annotated[str | None, Field(description="Ask for the mean among the rows where this condition is true.")]
_Contents = Annotated[
    dict[str, str] | None, Field(description="For an evaluation: the candidate's files by name, as text.")
]
_Predictions = Annotated[
    dict[str, list[Any]] | None,
    Field(description="For a holdout: predictions for all rows, in order, by model name."),
]
_Label = Annotated[str, Field(description="The candidate's name in the record.")]
_Path = Annotated[
    str | None, Field(description="Instead, the path of a file or folder, if the tools run on your machine.")
]
_MEDIA = {
    ".csv": "text/csv",
    ".npy": "application/x-npy",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
}
_MOST = 50_000_000


class Said(BaseModel):
    """What every tool returns."""

    conclusion: str = Field(description="What may be concluded, in one sentence.")
    refused: bool = Field(description="Whether this is a refusal; if so, nothing was charged.")
    result: dict[str, Any] = Field(description="The result, or the problem with its code and detail.")


Returned = Annotated[CallToolResult, Said]
Ctx = Context[Any, Any]
Client = Callable[[Ctx], httpx.AsyncClient]
"""Gives the connection to the service for one call."""


class Cap:
    """The most answers a session may spend; None if it has no cap of its own."""

    def __init__(self, most: int | None) -> None:
        """Allow `most` answers."""
        self.most, self.spent = most, 0

    def take(self, answers: int) -> None:
        """Set answers aside, or refuse."""
        if self.most is not None and self.spent + answers > self.most:
            wanted = "1 answer" if answers == 1 else f"{answers} answers"
            raise BudgetExhausted(
                asked=answers,
                spent=self.spent,
                questions=self.most,
                message=f"this may need {wanted}, but {self.spent} of this session's {self.most} are spent. "
                "Nothing was charged.",
            )
        self.spent += answers


class Tools:
    """The tools of one server."""

    def __init__(self, client: Client, cap: int | None = None, *, local: bool = False) -> None:
        """`local` tools run on the agent's machine, and may read the files it names."""
        self._client, self._cap, self._local = client, Cap(cap), local

    async def list_all(self, ctx: Ctx) -> Returned:
        """List what can be asked: datasets, holdouts and evaluations, with descriptions. Free."""

        async def both() -> Any:
            found = await self._got(ctx, "/v1/datasets")
            return {**found, **await self._got(ctx, "/v1/evaluations")}

        return await self._free(both)

    async def describe(self, ctx: Ctx, name: _Name) -> Returned:
        """Describe a dataset (columns, rows, plan) or an evaluation (numbers of items, limits). Free."""
        return await self._free(lambda: self._described(ctx, name))

    async def open_items(
        self,
        ctx: Ctx,
        name: _Name,
        after: Annotated[int, Field(ge=0, description="How many to skip.")] = 0,
        limit: Annotated[int, Field(ge=1, le=1000, description="How many to show.")] = 50,
    ) -> Returned:
        """Show the open items of an evaluation in full, some at a time, to study and tune on. Free."""

        async def some() -> Any:
            found = (await self._got(ctx, f"/v1/evaluations/{_part(name)}/items"))["items"]
            return {"items": found[after : after + limit], "total": len(found)}

        return await self._free(some)

    async def price(
        self, ctx: Ctx, name: _Name, expression: _Expression, bounds: _Bounds = None, where: _Where = None
    ) -> Returned:
        """Show what a question would cost and how wide its range would be, before you ask. Free."""
        question = {"expression": expression, "bounds": bounds, "where": where}
        return await self._free(lambda: self._sent(ctx, f"/v1/datasets/{_part(name)}/price", {"question": question}))

    async def ask(
        self, ctx: Ctx, name: _Name, expression: _Expression, bounds: _Bounds = None, where: _Where = None
    ) -> Returned:
        """Ask for the share of rows where a condition is true, or the mean of a number, with a range that holds.

        Costs 1 answer, or 2 within a group. The same question again is free.
        """
        question = {"expression": expression, "bounds": bounds, "where": where}
        return await self._asked(ctx, name, "ask", question, [question])

    async def ask_many(
        self,
        ctx: Ctx,
        name: _Name,
        questions: Annotated[list[_Expression], Field(description="Row expressions.", min_length=1)],
    ) -> Returned:
        """Ask several questions together: all are charged, or none. With rounds, they form one round."""
        return await self._asked(
            ctx, name, "ask_many", {"questions": questions}, [{"expression": each} for each in questions]
        )

    async def score(
        self,
        ctx: Ctx,
        name: _Name,
        label: _Label = "candidate",
        predictions: _Predictions = None,
        files: _Contents = None,
        path: _Path = None,
    ) -> Returned:
        """Estimate models' mean losses on a holdout, or a candidate's mean score on an evaluation. 1 answer each."""
        return await self._judged(ctx, name, "score", {label: files}, predictions, [path])

    async def compare(
        self,
        ctx: Ctx,
        name: _Name,
        labels: Annotated[tuple[str, str], Field(description="The two names in the record.")] = ("A", "B"),
        predictions: _Predictions = None,
        a: _Contents = None,
        b: _Contents = None,
        paths: Annotated[tuple[str, str] | None, Field(description="Instead, the paths of two candidates.")] = None,
    ) -> Returned:
        """Is the second better than the first? Two models on a holdout (1 or 2 answers), or two candidates (1)."""
        given = {labels[0]: a, labels[1]: b}
        return await self._judged(ctx, name, "compare", given, predictions, list(paths or (None,)))

    async def try_open(
        self,
        ctx: Ctx,
        name: _Name,
        label: _Label = "candidate",
        files: _Contents = None,
        path: _Path = None,
    ) -> Returned:
        """Run a candidate on the open items of an evaluation: every score, and what the evaluator wrote. Free."""
        return await self._judged(ctx, name, "try", {label: files}, None, [path], price=0)

    async def propose(
        self,
        ctx: Ctx,
        name: _Name,
        label: _Label = "candidate",
        files: _Contents = None,
        path: _Path = None,
    ) -> Returned:
        """Propose a candidate to the gate of an evaluation: accepted if it is certainly better than the incumbent.

        Costs 1 answer; the same candidate again is free. Propose only what did clearly better on the open items.
        """
        return await self._judged(ctx, name, "propose", {label: files}, None, [path])

    async def budget(self, ctx: Ctx, name: _Name) -> Returned:
        """Show what was spent, and what is left for you. Free."""
        return await self._free(lambda: self._of_either(ctx, name, "budget"))

    async def transcript(
        self,
        ctx: Ctx,
        name: _Name,
        last: Annotated[int, Field(ge=1, le=1000, description="How many records, from the end.")] = 50,
    ) -> Returned:
        """Show what was released and who asked for it, in order. Free."""

        async def some() -> Any:
            found = await self._of_either(ctx, name, "transcript")
            return {**found, "records": found["records"][-last:]}

        return await self._free(some)

    async def _described(self, ctx: Ctx, name: str) -> Any:
        return await self._of_either(ctx, name, "")

    async def _of_either(self, ctx: Ctx, name: str, what: str) -> Any:
        """Get the document at a door that both datasets and evaluations have."""
        kind = await self._kind(ctx, name)
        return await self._got(ctx, f"/v1/{kind}/{_part(name)}/{what}".rstrip("/"))

    async def _kind(self, ctx: Ctx, name: str) -> str:
        found = (await self._got(ctx, "/v1/evaluations"))["evaluations"]
        return "evaluations" if name in [each["name"] for each in found] else "datasets"

    async def _asked(
        self, ctx: Ctx, name: str, what: str, body: Any, questions: list[dict[str, Any]]
    ) -> CallToolResult:
        path = f"/v1/datasets/{_part(name)}"

        async def work() -> Any:
            most = 0
            if self._cap.most is not None:
                for each in questions:
                    most += (await self._sent(ctx, f"{path}/price", {"question": each}))["answers"]
            return await self._paid(most, lambda: self._sent(ctx, f"{path}/{what}", body))

        return await self._free(work)

    async def _judged(
        self,
        ctx: Ctx,
        name: str,
        what: str,
        given: Mapping[str, dict[str, str] | None],
        predictions: dict[str, list[Any]] | None,
        paths: list[str | None],
        price: int = 1,
    ) -> CallToolResult:
        async def work() -> Any:
            if await self._kind(ctx, name) == "evaluations":
                candidates = self._candidates(given, paths)
                body: Any = {"candidates": candidates}
                return await self._paid(price, lambda: self._sent(ctx, f"/v1/evaluations/{_part(name)}/{what}", body))
            if what not in ("score", "compare"):
                raise InvalidArgument(f"{name!r} is not an evaluation; propose candidates to an evaluation.")
            path = f"/v1/holdouts/{_part(name)}/{what}"
            if predictions is not None:
                most = 2 if what == "compare" else len(predictions)
                return await self._paid(most, lambda: self._sent(ctx, path, {"predictions": predictions}))
            content, media = self._file(paths[0])
            most = 2 if what == "compare" else 0
            if self._cap.most is not None and what == "score":
                told = await self._sent(ctx, f"/v1/holdouts/{_part(name)}/unscored", content, media)
                most = int(told["unscored"])
            return await self._paid(most, lambda: self._sent(ctx, path, content, media))

        return await self._free(work)

    def _candidates(self, given: Mapping[str, dict[str, str] | None], paths: list[str | None]) -> list[dict[str, Any]]:
        if any(paths):
            return [
                _encoded(read_candidate(self._allowed(path), _MOST, label))
                for label, path in zip(given, paths, strict=False)
            ]
        if any(files is None for files in given.values()):
            raise InvalidArgument("give the candidate's files: names and contents.")
        return [{"name": label, "file" if len(files or {}) == 1 else "files": files} for label, files in given.items()]

    def _file(self, path: str | None) -> tuple[bytes, str]:
        place = Path(self._allowed(path))
        if place.suffix not in _MEDIA:
            raise InvalidArgument(f"predictions must be a file that ends in {', '.join(_MEDIA)}.")
        try:
            return place.read_bytes(), _MEDIA[place.suffix]
        except OSError as error:
            raise InvalidArgument(f"{place} cannot be read: {error.strerror}.") from None

    def _allowed(self, path: str | None) -> str:
        """Check a path on the agent's own machine: a service reads no files for clients."""
        if path is None:
            raise InvalidArgument("give predictions by model name, or a path if the tools run on your machine.")
        if not self._local:
            raise InvalidArgument("these tools run at the service, which cannot read your files; give the contents.")
        return path

    async def _paid(self, most: int, work: Callable[[], Any]) -> Any:
        """Make a call that may cost so many of the session's answers."""
        self._cap.take(most)
        spent = 0
        try:
            found = await work()
            spent = _charged(found)
            return found
        finally:
            self._cap.spent -= most - min(spent, most)

    async def _free(self, work: Callable[[], Any]) -> CallToolResult:
        """Make a call; a refusal is a result too."""
        try:
            found = await work()
        except _Refused as refused:
            return _said(refused.problem.get("detail", "It was refused."), True, refused.problem)
        except AfreshError as error:
            return _said(str(error), True, to_problem(error))
        return _said(conclude(found), False, found)

    async def _got(self, ctx: Ctx, path: str) -> Any:
        return await self._request(ctx, "GET", path)

    async def _sent(self, ctx: Ctx, path: str, body: Any, media: str = "application/json") -> Any:
        try:
            content = json.dumps(body, allow_nan=False).encode() if media == "application/json" else body
        except (TypeError, ValueError):
            raise InvalidArgument(
                "the arguments contain something that JSON cannot represent; use text and numbers."
            ) from None
        return await self._request(ctx, "POST", path, content=content, headers={"Content-Type": media})

    async def _request(self, ctx: Ctx, method: str, path: str, **more: Any) -> Any:
        async with self._client(ctx) as client:
            try:
                found = await client.request(method, path, **more)
                document = found.json()
            except (httpx.TransportError, ValueError):
                raise Unreachable("no answer came from the service; asking again is safe.") from None
        if not found.is_success:
            raise _Refused(document)
        return document


class _Refused(Exception):
    """A refusal, with its problem document."""

    def __init__(self, problem: dict[str, Any]) -> None:
        self.problem = problem
        super().__init__(problem)


def _said(conclusion: str, refused: bool, result: Any) -> CallToolResult:
    told = {"conclusion": conclusion, "refused": refused, "result": result}
    texts = [conclusion, json.dumps(result)] if conclusion else [json.dumps(result)]
    return CallToolResult(
        content=[TextContent(type="text", text=text) for text in texts], structured_content=told, is_error=False
    )


def _charged(document: Any) -> int:
    found = document.get("answers") if isinstance(document, dict) else None
    if isinstance(found, list):
        return sum(int(each.get("charged", 0)) for each in found)
    return int(document.get("charged", 0)) if isinstance(document, dict) else 0


def _encoded(files: Files) -> dict[str, Any]:
    contents = {name: base64.b64encode(content).decode() for name, (content, _) in files.files.items()}
    return {"name": files.name, "files" if files.folder else "file": contents, "base64": True}


def _part(name: str) -> str:
    """A name, escaped to be one part of an address."""
    from urllib.parse import quote

    return quote(name, safe="")


_READS = ("list", "describe", "open_items", "price", "budget", "transcript", "try_open")


def make_server(tools: Tools) -> MCPServer:
    """The MCP server with these tools."""
    server = MCPServer("afresh", version=__version__, instructions=INSTRUCTIONS, log_level="CRITICAL")
    for name in (*_READS, "ask", "ask_many", "score", "compare", "propose"):
        hints = ToolAnnotations(
            read_only_hint=name in _READS, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        )
        server.add_tool(getattr(tools, "list_all" if name == "list" else name), name=name, annotations=hints)
    return server
