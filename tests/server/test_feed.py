"""The feed behind /events: bounded, in order, and honest about what was lost."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from ghost.server.feed import Feed, Follower, encoded
from ghost.server.request_limits import EVENT_CLIENTS, EVENTS_KEPT


def in_a_loop(work: Callable[[Feed], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        feed = Feed("run")
        feed.open(asyncio.get_running_loop())
        return await work(feed)

    return asyncio.run(run())


def parsed(content: bytes) -> list[tuple[str | None, str, Any]]:
    """Id, kind and data of each event."""
    events = []
    for block in content.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        events.append((fields.get("id"), fields["event"], json.loads(fields["data"])))
    return events


async def arrived(follower: Follower) -> list[tuple[str | None, str, Any]]:
    return parsed(await follower.next(5) or b"")


def test_an_event_is_one_data_line_whatever_it_says() -> None:
    content = encoded("thought", {"content": "a\nb\r\nc\u2028d\n\nevent: forged"}, "x-1")
    assert content.count(b"\n") == 4
    assert content.endswith(b"\n\n")
    assert parsed(content) == [("x-1", "thought", {"content": "a\nb\r\nc\u2028d\n\nevent: forged"})]


def test_every_follower_gets_every_event_in_order() -> None:
    async def work(feed: Feed) -> None:
        followers = [feed.follow(None) for _ in range(5)]
        threads = [threading.Thread(target=feed.publish, args=("thought", float(n), {"n": n})) for n in range(20)]
        for thread in threads:
            thread.start()
            thread.join()
        await asyncio.sleep(0.05)
        for follower in followers:
            events = await arrived(follower)
            assert [data["n"] for _, _, data in events] == list(range(20))
            assert [name for name, _, _ in events] == [f"run-{n}" for n in range(1, 21)]

    in_a_loop(work)


def test_events_before_the_loop_was_there_wait_for_it() -> None:
    feed = Feed("run")
    feed.publish("thought", 1.0, {"n": 1})

    async def work() -> None:
        feed.open(asyncio.get_running_loop())
        follower = feed.follow("run-0")
        assert [data["n"] for _, _, data in await arrived(follower)] == [1]

    asyncio.run(work())
    feed.publish("thought", 2.0, {"n": 2})  # the loop has ended: nobody listens, nothing is raised


def test_who_comes_back_gets_what_it_missed() -> None:
    async def work(feed: Feed) -> None:
        for n in range(10):
            feed.publish("thought", float(n), {"n": n})
        await asyncio.sleep(0.02)
        follower = feed.follow("run-7")
        assert [data["n"] for _, _, data in await arrived(follower)] == [7, 8, 9]
        current = feed.follow("run-10")
        assert await current.next(0.01) == b""

    in_a_loop(work)


def test_who_comes_back_too_late_or_from_elsewhere_is_told_of_the_gap() -> None:
    async def work(feed: Feed) -> None:
        for n in range(EVENTS_KEPT + 50):
            feed.publish("thought", float(n), {"n": n})
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        for last in (
            "run-3",
            "other-5",
            f"other-{EVENTS_KEPT}",
            "run-99999",
            "run-",
            "-1",
            "nonsense",
            "run-" + "9" * 40,
            "run-²",
        ):
            assert [(kind, data) for _, kind, data in await arrived(feed.follow(last))] == [("gap", {"missed": None})]

    in_a_loop(work)


def test_a_slow_follower_loses_the_oldest_and_is_told_how_many() -> None:
    async def work(feed: Feed) -> None:
        slow = feed.follow(None)
        for n in range(EVENTS_KEPT + 30):
            feed.publish("thought", float(n), {"n": n})
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        events = await arrived(slow)
        assert events[0][1:] == ("gap", {"missed": 30})
        assert [data["n"] for _, _, data in events[1:]] == list(range(30, EVENTS_KEPT + 30))

    in_a_loop(work)


def test_a_burst_from_a_thread_is_bounded_too() -> None:
    async def work(feed: Feed) -> None:
        for n in range(10 * EVENTS_KEPT):  # the loop does not run meanwhile
            feed.publish("thought", float(n), {"n": n})
        follower = feed.follow(None)
        await asyncio.sleep(0.02)
        assert len(await arrived(follower)) == EVENTS_KEPT

    in_a_loop(work)


def test_only_so_many_follow_and_a_place_is_free_again() -> None:
    async def work(feed: Feed) -> None:
        followers = [feed.follow(None) for _ in range(EVENT_CLIENTS)]
        assert None not in followers
        assert feed.follow(None) is None
        feed.leave(followers[0])
        assert feed.follow(None) is not None
        assert feed.clients == EVENT_CLIENTS

    in_a_loop(work)


def test_closing_delivers_what_waits_and_then_ends() -> None:
    async def work(feed: Feed) -> None:
        follower, idle = feed.follow(None), feed.follow(None)
        waiting = asyncio.create_task(idle.next(60))
        await asyncio.sleep(0.01)
        feed.publish("thought", 1.0, {"n": 1})
        await asyncio.sleep(0.02)
        feed.close()
        assert [data["n"] for _, _, data in parsed(await waiting)] == [1]
        assert [data["n"] for _, _, data in await arrived(follower)] == [1]
        assert await asyncio.wait_for(follower.next(60), 1) is None
        assert await asyncio.wait_for(idle.next(60), 1) is None
        assert feed.follow(None) is None

    in_a_loop(work)


def test_a_client_that_leaves_as_an_event_arrives_is_not_waited_for() -> None:
    """Its stream went on until a heartbeat, unwoken, and a server that stopped meanwhile had to cancel it."""

    async def work(feed: Feed) -> None:
        for rounds in range(4):
            follower = feed.follow(None)
            waiting = asyncio.create_task(follower.next(60))
            await asyncio.sleep(0.01)
            follower.give(b"event")
            for _ in range(rounds):
                await asyncio.sleep(0)
            ended = waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert ended or waiting.cancelled(), rounds

    in_a_loop(work)
