"""Requests made up from the OpenAPI document: none breaks the service, and every refusal is as described."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from schemathesis import GenerationMode

from server.made_up import try_out
from server.running import Service

ALONE = {"/v1/tokens/{which}", "/v1/datasets/{name}/freeze"}  # they would end what the others need


@pytest.fixture(scope="module")
def document(service: Service) -> Any:
    return httpx.get(f"{service.url}/v1/openapi.json").json()


@pytest.mark.parametrize("method", ["positive", "negative"])
def test_made_up_requests_are_answered_or_refused(service: Service, document: Any, method: str) -> None:
    """All doors; every response has the status, the type and the fields that the document says."""
    schema = schemathesis.openapi.from_dict(document)
    mode = GenerationMode.POSITIVE if method == "positive" else GenerationMode.NEGATIVE
    seen: set[int] = set()
    for path, verbs in document["paths"].items():
        for verb in verbs:
            if path not in ALONE and (method == "positive" or verb == "post"):
                cases = schema[path][verb.upper()].as_strategy(generation_mode=mode)
                try_out(
                    service, cases, path, seen, ["customers", "churn"], "steward" if path in STEWARDS else "analyst"
                )
    assert len(seen) > 2


STEWARDS = {
    "/v1/tokens",
    "/v1/datasets/{name}/divide",
    "/v1/datasets/{name}/charge",
    "/v1/datasets/{name}/close_rounds",
}


def test_every_door_is_typed_and_has_an_example(document: Any) -> None:
    """Of all that is asked for and all that comes back; examples are as their schemas say."""
    schemas, shown_kinds = document["components"]["schemas"], set[str]()
    for path, verbs in document["paths"].items():
        for verb, told in verbs.items():
            good = told["responses"]["200"]["content"]
            for media, shown in good.items():
                if media == "application/json":
                    assert shown["schema"] != {"type": "object"}, (verb, path)
                    if "example" in shown:
                        jsonschema.Draft202012Validator(shown["schema"]).validate(shown["example"])
                    else:
                        kinds = re.findall("#/components/schemas/([A-Za-z]+)", json.dumps(shown["schema"]))
                        assert kinds, (verb, path)
                        shown_kinds.update(kinds)
            problem = told["responses"]["422"]["content"]
            assert [*problem] == ["application/problem+json"], (verb, path)
    for kind in {*shown_kinds, "Problem"}:
        whole = {"$ref": f"#/components/schemas/{kind}", "components": {"schemas": schemas}}
        jsonschema.Draft202012Validator(whole).validate(schemas[kind]["example"])


def test_what_a_client_has_is_not_sent_again(service: Service) -> None:
    service.post("/v1/datasets/customers/ask", {"expression": "tenure < 99"})
    paths = ["/v1/datasets/customers", "/v1/datasets/customers/transcript", "/v1/datasets/customers/receipt"]
    for path in [*paths, "/v1/holdouts/churn/features?format=csv"]:
        tag = service.get(path).headers["etag"]
        for told in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            found = service.get(path, headers={"If-None-Match": told})
            assert (found.status_code, found.content, found.headers["etag"]) == (304, b"", tag)
        assert service.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    before = service.get(paths[1]).headers["etag"]
    service.post("/v1/datasets/customers/ask", {"expression": "tenure < 98"})
    assert service.get(paths[1], headers={"If-None-Match": before}).status_code == 200
