"""Connections cut at every moment: the answer that comes in the end was paid for once."""

from __future__ import annotations

from urllib.parse import urlsplit

import afresh
from server.proxy import Proxy
from server.running import Service


def test_a_cut_connection_costs_nothing(service: Service) -> None:
    port = urlsplit(service.url).port
    assert port is not None
    moments = [("request", at) for at in (0, 1, 40, 200, 330)] + [("response", at) for at in (0, 1, 100, 250, 400)]
    with Proxy(port) as proxy, afresh.connect(proxy.url, service.token()) as connected:
        guard = connected.open("customers")
        for number, moment in enumerate(moments):
            spent = guard.budget.spent
            proxy.cut = moment
            answer = guard.ask(f"tenure < {number + 1} AND churned")
            proxy.cut = None
            assert guard.budget.spent == spent + 1
            again = guard.ask(f"tenure < {number + 1} AND churned")
            assert (again.value, again.interval, again.charged) == (answer.value, answer.interval, 0)
        assert proxy.cuts >= len(moments) - 2  # a request may be shorter than where it was to be cut
        assert len({record.digest for record in guard.transcript.answers}) == guard.budget.spent
