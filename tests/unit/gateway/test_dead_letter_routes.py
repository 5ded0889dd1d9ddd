"""Requests about dead letters and the messages that they become."""

import msgspec
import pytest

from services.gateway.dead_letter_routes import (
    ROUTES,
    LetterList,
    LettersToDrop,
    LettersToReplay,
    MessageToSkip,
    OneLetter,
)
from services.gateway.route import Requester, Route
from wms.messages import commands, queries

ME = Requester("an-id", "a-client")


def route(method: str, path: str) -> Route:
    (found,) = [each for each in ROUTES if (each.method, each.path) == (method, f"/dead-letters{path}")]
    return found


def test_letters_are_listed_and_shown() -> None:
    page = route("GET", "").message(ME, LetterList(consumer="matcher.requests", before=7, limit=5))
    assert page == queries.ListDeadLetters(
        query_id="an-id", client="a-client", consumer="matcher.requests", before=7, limit=5
    )
    shown = route("GET", "/{letter}").message(ME, OneLetter(letter=7))
    assert shown == queries.ShowDeadLetter(query_id="an-id", client="a-client", letter=7)


def test_letters_are_replayed_and_dropped_and_a_message_is_skipped() -> None:
    replay = route("POST", "/replay").message(ME, None, LettersToReplay(letters=(1, 2)))
    assert isinstance(replay, commands.ReplayDeadLetters)
    assert (replay.letters, replay.command_id, replay.client) == ((1, 2), "an-id", "a-client")
    drop = route("POST", "/drop").message(ME, None, LettersToDrop(letters=(1,), reason="a test"))
    assert isinstance(drop, commands.DropDeadLetters)
    body = MessageToSkip(consumer="c", topic="t", partition=2, offset=9, reason="slow")
    skip = route("POST", "/skip").message(ME, None, body)
    assert isinstance(skip, commands.SkipMessage)
    assert (skip.consumer, skip.topic, skip.partition, skip.offset) == ("c", "t", 2, 9)


@pytest.mark.parametrize(
    "body", [b'{"letters":[1]}', b'{"letters":[1],"reason":""}', b'{"letters":[],"reason":"r"}']
)
def test_nothing_is_dropped_without_a_letter_or_a_reason(body: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(body, type=LettersToDrop)
