"""Every byte string decodes to something that can be handled or answered."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.errors import CATALOGUE, DaemonError, ErrorCode, Language
from creonowd.redaction import Redactor
from creonowd.rpc.messages import (
    LARGE,
    LONGEST_ID,
    Batch,
    ErrorStyle,
    Event,
    Frame,
    Framing,
    Invalid,
    OversizedMessage,
    Request,
    Response,
    Splitter,
    Unreadable,
    add_framing,
    content_length,
    decode,
    decode_large,
    encode,
    error_object,
    failure,
    recover_id,
)
from creonowd.rpc.server import PING
from testing.fuzz import damaged_inputs

MAX_BATCH = 64
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TORN = st.text(alphabet=st.characters(exclude_categories=()))
WHOLE = [
    b'{"jsonrpc":"2.0","id":1,"method":"app:ping","params":{"a":[1,"\\ud83d\\ude00",{"b":null}]}}',
    b'[{"jsonrpc":"2.0","id":"x","method":"a"},{"jsonrpc":"2.0","method":"b","params":{}}]',
    '{"jsonrpc": "2.0", "result": {"林": 1.5}, "id": "creonowd-1"}'.encode(),
    b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no","data":{}}}',
]


def values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        st.none() | st.booleans() | st.integers() | FINITE | text,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
        max_leaves=12,
    )


JSON = values(st.text())


def decoded(message: Any) -> Any:
    return decode(json.dumps(message).encode(), MAX_BATCH)


@pytest.mark.fuzz
@given(damaged_inputs(WHOLE, [b'"id":', b'"jsonrpc":', b'"method":"b"']))
def test_a_spoilt_message_is_read_as_plain_json_reads_it(data: bytes) -> None:
    read = decode(data, MAX_BATCH)

    assert isinstance(read, Request | Response | Invalid | Batch)
    if isinstance(read, Request):
        plain = json.loads(data, parse_int=lambda digits: int(digits[:4000]))
        number = plain.get("id", msgspec.UNSET)
        assert (mended(plain["method"]), mended(number)) == (read.method, read.id)


def mended(value: Any) -> Any:
    """Put the replacement character where half a character is."""
    return (
        value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if isinstance(value, str)
        else value
    )


@pytest.mark.fuzz
@given(st.binary(max_size=300))
def test_any_bytes_decode_to_a_message(data: bytes) -> None:
    assert isinstance(decode(data, MAX_BATCH), Request | Response | Invalid | Batch)


@given(values(TORN))
def test_any_json_decodes_to_a_message(value: Any) -> None:
    assert isinstance(decoded(value), Request | Response | Invalid | Batch)


@given(JSON, st.text(), st.integers() | st.text() | st.none())
def test_a_request_keeps_its_method_params_and_id(params: Any, method: str, number: Any) -> None:
    read = decoded({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    assert isinstance(read, Request)
    assert read.id is not msgspec.UNSET
    assert (read.method, read.id) == (method.encode("utf-8", "replace").decode(), number)
    assert json.loads(bytes(read.params)) == params


def test_an_absurd_id_is_refused_and_not_repeated() -> None:
    body = '{"jsonrpc":"2.0","method":"app:ping","params":{},"id":"%s"}'
    usual = decode((body % ("x" * LONGEST_ID)).encode(), MAX_BATCH)
    absurd = (body % ("x" * (LONGEST_ID + 1))).encode()

    read = (
        decode(absurd, MAX_BATCH),
        decode_large(absurd, {"app:ping": PING}),
        decode(absurd[:-1], MAX_BATCH),
    )

    assert isinstance(usual, Request)
    assert [isinstance(one, Invalid) and one.id for one in read] == [None, None, None]


@pytest.mark.parametrize("number", [None, 0, -1, 1.5, 1.0, 2**70, "", "é", 'a"b'])
def test_ids_of_every_kind_come_back_as_they_were(number: Any) -> None:
    read = decoded({"jsonrpc": "2.0", "id": number, "method": "x"})

    assert isinstance(read, Request)
    assert msgspec.json.decode(encode({"id": read.id}))["id"] == number


@pytest.mark.parametrize(
    ("body", "code", "known"),
    [
        (b"{", ErrorCode.PARSE_ERROR, None),
        (b'{"id": 4, "method": ', ErrorCode.PARSE_ERROR, 4),
        (b'{"id": "a\\u0062", nonsense', ErrorCode.PARSE_ERROR, "ab"),
        (b'{"params": {"id": 9}, "id": 4, ', ErrorCode.PARSE_ERROR, 4),
        (b'{"params": {"id": 9}, ', ErrorCode.PARSE_ERROR, None),
        (b'{"id": 5, "x": "\xff\xfe"}', ErrorCode.PARSE_ERROR, 5),
        (b'{"id": 5, "x": NaN}', ErrorCode.PARSE_ERROR, 5),
        (b'{"jsonrpc":"2.0","id":6,"params":' + b"[" * 100_000, ErrorCode.PARSE_ERROR, 6),
        (b"[" * 100_000, ErrorCode.PARSE_ERROR, None),
        (b'{"id": 7, "x": ' + b"[" * 5000 + b'"\\ud83d"', ErrorCode.PARSE_ERROR, 7),
        (b'{"id": 1' + b"0" * 400 + b", ", ErrorCode.PARSE_ERROR, 10**400),
        (b'{"x": "\\"id\\": 9, \\"y', ErrorCode.PARSE_ERROR, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', ErrorCode.INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', ErrorCode.INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":3,"method":"x"}', ErrorCode.INVALID_REQUEST, 3),
        (b'{"id":3,"method":"x"}', ErrorCode.INVALID_REQUEST, 3),
        (b'{"jsonrpc":"2.0","id":3,"method":5}', ErrorCode.INVALID_REQUEST, 3),
        (b'{"jsonrpc":"2.0","id":3}', ErrorCode.INVALID_REQUEST, 3),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"x"}', ErrorCode.INVALID_REQUEST, None),
        (b"[]", ErrorCode.INVALID_REQUEST, None),
        (b"[" + b"1," * 64 + b"1]", ErrorCode.INVALID_REQUEST, None),
        (b"5", ErrorCode.INVALID_REQUEST, None),
        (b"null", ErrorCode.INVALID_REQUEST, None),
        (b'"text"', ErrorCode.INVALID_REQUEST, None),
    ],
)
def test_what_is_wrong_is_named_and_the_id_is_saved(
    body: bytes, code: ErrorCode, known: Any
) -> None:
    read = decode(body, MAX_BATCH)

    assert isinstance(read, Invalid)
    assert (read.error.code, read.id) == (code, known)


def test_a_batch_keeps_the_good_beside_the_bad() -> None:
    read = decode(b'[{"jsonrpc":"2.0","id":1,"method":"x"}, 7, {"foo":"boo"}]', MAX_BATCH)

    assert isinstance(read, Batch)
    assert [type(item) for item in read.items] == [Request, Invalid, Invalid]


def test_a_string_cut_inside_an_emoji_is_mended() -> None:
    read = decode(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"t":"a\\ud83d"}}', MAX_BATCH)

    assert isinstance(read, Request)
    assert json.loads(bytes(read.params)) == {"t": "a\ufffd"}


@pytest.mark.parametrize("batch", [[1] * 65, [None] * 65, [1] * 1_000_000])
def test_a_batch_is_refused_at_the_first_item_too_many(batch: list[Any]) -> None:
    message = decoded(batch)

    assert isinstance(message, Invalid)
    assert message.error.code is ErrorCode.INVALID_REQUEST
    assert "64 requests at most" in message.error.message


def test_a_batch_of_as_many_as_there_may_be_is_read() -> None:
    message = decoded([{"jsonrpc": "2.0", "id": n, "method": "a"} for n in range(MAX_BATCH)])

    assert isinstance(message, Batch)
    assert [one.id for one in message.items] == list(range(MAX_BATCH))


def test_a_batch_with_a_cut_emoji_is_mended() -> None:
    read = decode(b'[{"jsonrpc":"2.0","id":1,"method":"x","params":["\\udc00"]}]', MAX_BATCH)

    assert isinstance(read, Batch)
    assert isinstance(read.items[0], Request)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (rb"\ud83d", "\ufffd"),
        (rb"\udE00", "\ufffd"),
        (rb"\ud83d\ud83d\ude00", "\ufffd😀"),
        (rb"\ud83d\ude00\ude00", "😀\ufffd"),
        (rb"\ud83d\u0041", "\ufffdA"),
        (rb"\ud83d\\ude00", "\ufffd\\ude00"),
        (rb"\ud83d\n\"", '\ufffd\n"'),
        (rb"\\\ud83d\\ud83d", "\\\ufffd\\ud83d"),
    ],
)
@pytest.mark.parametrize("shape", [b"%s", b"[%s]"], ids=["single", "batch"])
def test_only_the_lone_half_of_an_emoji_is_replaced(sent: bytes, read: str, shape: bytes) -> None:
    deep = b"[" * 700 + b'{"k%s": ["%s", 1e999, 1.50]}' % (sent, sent) + b"]" * 700
    request = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"t":%s}}' % deep

    message = decode(shape % request, MAX_BATCH)

    (only,) = message.items if isinstance(message, Batch) else [message]
    assert isinstance(only, Request)
    inner = bytes(only.params).strip(b'{"t:[]}')
    assert json.loads(b'{"' + inner + b"]}") == {f"k{read}": [read, float("inf"), 1.5]}


def test_nothing_we_send_holds_a_lone_surrogate() -> None:
    assert encode({"a\ud83d": ["b\udc00", {"c": "\ud800"}]}).decode() == (
        '{"a\ufffd":["b\ufffd",{"c":"\ufffd"}]}'
    )


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_text_at_all_can_be_sent(text: str) -> None:
    sent = msgspec.json.decode(encode({"text": text}))["text"]

    assert sent == "".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in text)


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_travels_with_its_number_and_both_languages(code: ErrorCode) -> None:
    error = DaemonError(code, field="x")

    spelled = error_object(error)
    chinese = error_object(error, ErrorStyle(Language.CHINESE))

    assert spelled["code"] == CATALOGUE[code].number
    assert spelled["data"] == {
        "code": code,
        "retryable": CATALOGUE[code].retryable,
        "details": {"field": "x"},
    }
    assert chinese["message"] == CATALOGUE[code].chinese


@pytest.mark.parametrize(
    ("tail", "known"),
    [
        (b'aaaa","id":12}', 12),
        (b'aaaa"},"id":"z","jsonrpc":"2.0"}', "z"),
        (b'aaaa","id":12}}', None),
        (b'aaaa"}', None),
    ],
)
def test_the_id_of_a_skipped_message_is_found_at_its_end_too(tail: bytes, known: Any) -> None:
    assert recover_id(b'{"method":"x","params":{"t":"aaaa', tail) == known


def test_an_error_repeats_no_secret_that_a_client_sent() -> None:
    """Paths stay: an owner's error must name the folder that it is about."""
    key = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
    error = DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"There is no {key} in /home/mei/novel.",
        field=key,
        known=[key, "a"],
        by={key: 1},
    )

    spelled = error_object(error)

    assert key not in str(spelled)
    assert spelled["message"] == "There is no ***REDACTED*** in /home/mei/novel."
    assert spelled["data"]["details"]["known"] == ["***REDACTED***", "a"]


def test_an_error_repeats_little_of_what_a_client_sent_and_no_secret_of_it() -> None:
    """Redacting megabytes of it took a second, in which nobody else was answered."""
    secret = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
    error = DaemonError(ErrorCode.NOT_FOUND, "x " * 490 + secret + "key=" * 2_000_000, field=secret)

    shown = error_object(error)

    assert len(shown["message"]) == 1001
    assert secret[:20] not in str(shown)


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


def test_what_errors_say_again_and_again_is_searched_for_secrets_once() -> None:
    """Refusals of strangers must cost little: a search was two thirds of one."""
    searched: list[str] = []

    class CountedRedactor(Redactor):
        def hide_secrets(self, text: str) -> str:
            searched.append(text)
            return super().hide_secrets(text)

    redactor = CountedRedactor()
    style = ErrorStyle(redactor=redactor)
    error = DaemonError(ErrorCode.UNAUTHENTICATED, "There is no `Xq7-violet-lake`.")
    first, second = (failure(number, error, style)["error"]["message"] for number in (1, 2))

    redactor.also_hide("Xq7-violet-lake")
    third = failure(3, error, style)["error"]["message"]

    assert (first, searched.count(first)) == (second, 2)
    assert "violet" in first
    assert "violet" not in third
