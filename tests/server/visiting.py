"""Somebody who has signed in to the pages, without a browser."""

from __future__ import annotations

import re

import httpx

from server.running import AUTHORITIES, Service


def session(service: Service, token: str) -> httpx.Client:
    client = httpx.Client(base_url=service.url, timeout=60, verify=AUTHORITIES)
    page = client.get("/sign-in")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    key = re.findall(r'name="form_key" value="(\w+)"', page.text)[0]
    found = client.post("/sign-in", data={"token": token, "form_key": key})
    assert (found.status_code, found.headers["location"]) == (303, "/")
    return client


def key_of(client: httpx.Client) -> str:
    (found,) = re.findall(r'data-form-key="(\w+)"', client.get("/").text)
    return str(found)
