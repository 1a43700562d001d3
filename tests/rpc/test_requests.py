"""Requests are admitted, run, and answered exactly once, or not at all if nobody asked."""

from tests.clients import Client


async def test_a_notification_is_carried_out_and_not_answered(client: Client) -> None:
    notify = {"method": "e2e:notify", "params": {"method": "novel:changed"}}

    await client.post({"jsonrpc": "2.0", **notify})
    await client.event("novel:changed")
    pong = await client.call("app:ping")

    assert pong["pong"] is True
    assert client.strays == []


async def test_requests_with_a_null_id_are_each_answered(client: Client) -> None:
    for value in ("first", "second"):
        echo = {"method": "e2e:echoInTask", "params": {"value": value}}
        await client.post({"jsonrpc": "2.0", "id": None, **echo})

    answers = [await client.stray(), await client.stray()]

    assert [answer["result"]["value"] for answer in answers] == ["first", "second"]
