"""Every byte string decodes to something that can be handled or answered."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import CATALOGUE, DaemonError, ErrorCode, Language
from creonowd.rpc.messages import (
    LONGEST_ID,
    Batch,
    ErrorStyle,
    Invalid,
    Request,
    Response,
    decode,
    decode_large,
    encode,
    error_object,
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
