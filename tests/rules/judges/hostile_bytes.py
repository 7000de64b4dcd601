"""What hostile clients send: bodies, lengths, heads, and requests that never come to their end."""

from typing import Final

BEGUN: Final = b"POST /tool/find_shop HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
HOSTILE_BODIES: Final = {
    "60,000 open arrays": b"[" * 60_000,
    "10,000 open objects": b'{"a":' * 10_000,
    "closed nesting": b'{"query":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    "a number of 4,301 digits": b'{"limit":' + b"9" * 4_301 + b"}",
    "a number of 60,000 digits": b'{"limit":-' + b"1" * 60_000 + b"}",
    "a number beyond all floats": b'{"limit":1e999999999}',
    "half a surrogate pair": b'{"query":"\\ud83d"}',
    "half a surrogate pair in a name": b'{"\\udc00":1}',
    "surrogates the wrong way round": b'{"query":"\\udc00\\ud800"}',
    "a raw surrogate": b'{"query":"\xed\xa0\x80"}',
    "no UTF-8": b"\xff\xfe{\x00}\x00",
    "a NUL": b"\x00" * 1_000,
}
IMPOSSIBLE_LENGTHS: Final = (
    "content-length: -1",
    "content-length: 1x",
    "content-length: 0x0c",
    "content-length: 99999999999999999999999999",
    "content-length: 12\r\ncontent-length: 13",
    "content-length: 12, 13",
    "transfer-encoding: chunked\r\ncontent-length: 12",
    "content-length: 12\r\ntransfer-encoding: chunked",
    "transfer-encoding: chunked, gzip",
    "transfer-encoding: xchunked",
    "transfer-encoding : chunked",
    "transfer-encoding: chunked\r\n\r\nzz\r\n",
    "transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    "transfer-encoding: chunked\r\n\r\n-5\r\n",
)
STALLED: Final = (
    b"",
    b"\r\n",
    b"POST /tool/find_shop HT",
    BEGUN,
    BEGUN + b"content-length: 12\r\n\r\n",
    BEGUN + b'content-length: 12\r\n\r\n{"que',
    BEGUN + b"transfer-encoding: chunked\r\n\r\nc\r\n{",
    BEGUN.replace(b"/tool/find_shop", b"/mcp") + b"accept: */*\r\ncontent-length: 9\r\n\r\n{",
)
BROKEN_HEADS: Final = (
    b"GET /health HTTP/3.7\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n",
    b"CONNECT elsewhere.example:443 HTTP/1.1\r\n",
    b"GET /health HTTP/1.1\r\nx: a\x00b\r\n",
    b"GET /health HTTP/1.1\r\nx: a\r\n folded\r\n",
    b"GET /health HTTP/1.1\r\nx : a\r\n",
    b"GET /health HTTP/1.1\r\nno colon\r\n",
    b"GET /health HTTP/1.1\nx: a\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
)
