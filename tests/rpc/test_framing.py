"""Messages come out of a byte stream whole, in any cut, and nothing makes it grow without end."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.rpc.framing import (
    LARGE,
    Event,
    Frame,
    Framing,
    OversizedMessage,
    Splitter,
    Unreadable,
    add_framing,
    content_length,
)
from testing.fuzz import damaged_inputs

LIMIT = 200
BODIES = st.lists(
    st.binary(min_size=1, max_size=150).map(lambda body: b"{" + body.replace(b"\n", b"") + b"}"),
    min_size=1,
    max_size=8,
)
MESSAGES = (b'{"id":1}', b"[1, 2]", "{林}".encode(), b"x" * (LIMIT + 5))
STREAMS = [
    b"".join(bytes(add_framing(framing, bytearray(body))) for body in MESSAGES)
    for framing in (Framing.LINES, Framing.HEADERS)
]
HEADERS = (b"Content-Length: ", b"content-length:8", b"Content-Type: x\r\n", b"\r\n\r\n", b"\n\n")
CUTS = st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=60)


def split(data: bytes, cuts: list[int]) -> tuple[Splitter, list[Event]]:
    splitter = Splitter(LIMIT)
    events: list[Event] = []
    position = 0
    for step in range(len(data)):
        size = cuts[step % len(cuts)]
        splitter.feed(data[position : position + size])
        events += splitter.events()
        position += size
        if position >= len(data):
            break
    return splitter, [*events, *splitter.finish()]


@given(BODIES, CUTS, st.sampled_from([Framing.LINES, Framing.HEADERS]))
def test_any_cut_of_the_stream_gives_the_same_messages(
    bodies: list[bytes], cuts: list[int], framing: Framing
) -> None:
    stream = b"".join(add_framing(framing, bytearray(body)) for body in bodies)

    splitter, events = split(stream, cuts)

    expected = [body.strip(b" \t\r\n\xef\xbb\xbf") for body in bodies]
    if framing is Framing.HEADERS:
        expected = bodies
    assert events == [Frame(body=body) for body in expected]
    assert splitter.framing is framing


@given(BODIES, CUTS)
def test_bytes_that_are_put_into_the_room_for_them_give_the_same_messages(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(add_framing(Framing.HEADERS, bytearray(body)) for body in bodies)
    splitter = Splitter(LIMIT)
    events: list[Event] = []

    for cut in [*cuts, *[40] * len(stream)]:
        piece, room = stream[:cut], splitter.get_buffer()
        if room is None:
            splitter.feed(piece)
        else:
            piece = piece[: len(room)]
            room[: len(piece)] = piece
            room.release()
            splitter.buffer_updated(len(piece))
        events += splitter.events()
        stream = stream[len(piece) :]

    assert events == [Frame(body=body) for body in bodies]


@given(
    st.lists(st.sampled_from([0, 1, 100, LARGE - 3, LARGE, LARGE * 3]), min_size=1, max_size=5),
    st.integers(min_value=1, max_value=4),
    st.sampled_from([Framing.LINES, Framing.HEADERS]),
)
def test_large_messages_come_out_whole_among_small_ones(
    sizes: list[int], pieces: int, framing: Framing
) -> None:
    bodies = [b"{%s}" % (bytes([65 + number]) * size) for number, size in enumerate(sizes)]
    stream = b"".join(add_framing(framing, bytearray(body)) for body in bodies)
    splitter = Splitter(LARGE * 4)
    step = len(stream) // pieces + 1
    events: list[Event] = []

    for start in range(0, len(stream), step):
        splitter.feed(stream[start : start + step])
        events += splitter.events()

    assert events == [Frame(body=body) for body in bodies]


def test_the_end_of_a_stream_inside_a_large_message_breaks_it() -> None:
    splitter = Splitter(LIMIT)
    splitter.feed(b"Content-Length: 100\r\n\r\n{")

    events = [*splitter.events(), *splitter.finish()]

    assert events == [Unreadable(reason="the stream ended inside a message")]


@given(st.binary(max_size=300), st.sampled_from(Framing), st.integers(min_value=0, max_value=64))
def test_room_for_the_header_does_not_change_what_is_sent(
    body: bytes, framing: Framing, room: int
) -> None:
    plain = add_framing(framing, bytearray(body))

    assert add_framing(framing, bytearray(room) + body, room) == plain


@pytest.mark.fuzz
@given(damaged_inputs(STREAMS, HEADERS), CUTS)
@example(b"Content-Length: 3\r\n\r\n{}\n", [20, 1])
@example(b"\r\n\r\nContent-Length: 2\r\n\r\n{}", [1])
def test_how_a_stream_is_cut_never_changes_what_comes_out(data: bytes, cuts: list[int]) -> None:
    _, at_once = split(data, [max(1, len(data))])

    _, in_pieces = split(data, cuts)

    assert in_pieces == at_once


def test_blank_lines_before_headers_are_passed_over() -> None:
    message = b"\r\n\r\nContent-Length: 2\r\n\r\n{}"

    _, events = split(message * 2, [1000])

    assert events == [Frame(body=b"{}")] * 2


@pytest.mark.fuzz
@given(st.binary(max_size=2000), CUTS)
def test_any_bytes_end_in_events_and_never_in_an_exception(data: bytes, cuts: list[int]) -> None:
    _, events = split(data, cuts)

    assert all(isinstance(event, Frame | OversizedMessage | Unreadable) for event in events)
    assert all(len(event.body) <= LIMIT for event in events if isinstance(event, Frame))


@given(st.binary(max_size=2000), CUTS)
def test_the_buffer_never_holds_more_than_a_message_and_a_chunk(
    data: bytes, cuts: list[int]
) -> None:
    splitter = Splitter(LIMIT)
    for start in range(0, len(data), cuts[0]):
        splitter.feed(data[start : start + cuts[0]])
        list(splitter.events())

        held = len(splitter._buffer)  # pyright: ignore[reportPrivateUsage]

        assert held <= max(LIMIT, 8 * 1024) + 40 + 64


@pytest.mark.parametrize("framing", [Framing.LINES, Framing.HEADERS])
def test_a_message_over_the_limit_is_skipped_and_the_next_one_is_read(framing: Framing) -> None:
    huge = b'{"id":7,' + b"x" * 5000 + b',"tail":1}'
    after = b'{"id":8}'

    _, events = split(
        bytes(add_framing(framing, bytearray(huge)) + add_framing(framing, bytearray(after))), [17]
    )

    oversized, frame = events
    assert isinstance(oversized, OversizedMessage)
    assert abs(oversized.size - len(huge)) <= 1
    assert oversized.head.startswith(b'{"id":7,')
    assert oversized.tail.endswith(b'"tail":1}')
    assert frame == Frame(body=after)


@pytest.mark.parametrize("sent", [b"", b"{}", b'{"id":7,' + b"x" * 3000])
def test_a_message_over_the_limit_that_is_cut_off_has_the_size_it_stated(sent: bytes) -> None:
    _, events = split(b"Content-Length: 20000\r\n\r\n" + sent, [5])

    (oversized,) = events
    assert isinstance(oversized, OversizedMessage)
    assert oversized.size == 20_000
    assert oversized.head == sent


def test_a_line_over_the_limit_that_is_cut_off_has_the_size_that_came() -> None:
    _, events = split(b"x" * 5000, [7])

    (oversized,) = events
    assert isinstance(oversized, OversizedMessage)
    assert oversized.size == 5000


def test_lines_survive_blank_lines_carriage_returns_and_a_byte_order_mark() -> None:
    _, events = split(b'\xef\xbb\xbf\r\n\n  {"a":1}\r\n\r\n{"b":2}', [3])

    assert events == [Frame(body=b'{"a":1}'), Frame(body=b'{"b":2}')]


def test_headers_may_come_in_any_case_and_with_other_headers() -> None:
    stream = (
        b"content-type: application/json\r\nCONTENT-LENGTH:  2\r\n\r\n{}Content-Length: 2\n\n{}"
    )

    splitter, events = split(stream, [1])

    assert events == [Frame(body=b"{}"), Frame(body=b"{}")]
    assert splitter.framing is Framing.HEADERS


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Type: x",
        b"Content-Length: -5",
        b"Content-Length: 0x10",
        b"Content-Length: +5",
        b"Content-Length: 1e3",
        b"Content-Length: ",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 99999999999999999999",
        b"Content-Length: 5\r\nno colon here",
        b"Content-Length: 5\r\n: nameless",
    ],
)
def test_headers_that_cannot_be_trusted_end_the_stream(headers: bytes) -> None:
    _, events = split(headers + b'\r\n\r\n{"jsonrpc"', [9])

    assert [type(event) for event in events] == [Unreadable]


def test_headers_without_end_are_given_up() -> None:
    _, events = split(b"Content-Length: 5\r\n" + b"X-Filler: y\r\n" * 1000, [40])

    assert events == [Unreadable(reason="the headers are too long")]


def test_half_a_message_with_headers_is_reported_at_the_end() -> None:
    _, events = split(b'Content-Length: 50\r\n\r\n{"jsonrpc"', [7])

    assert events == [Unreadable(reason="the stream ended inside a message")]


def test_a_repeated_length_that_agrees_is_taken() -> None:
    assert content_length(b"Content-Length: 5\r\nContent-Length: 5") == 5
