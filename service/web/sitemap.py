"""/sitemap.xml: the addresses of the start page, all categories and all public shops, where the operator wants that.

The path itself is an index of files, and with `?file=1` and so on it is one of them, of at most 50,000 addresses. A
file counts as one read for each 2,000 addresses begun. It is never cached, as a shop that is hidden must leave it.
"""

import asyncio
import gzip
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from starlette.requests import Request

from service.calls.admission import Admission
from service.calls.live_data import LiveData
from service.errors import QuotaExceededError, RouteNotFoundError, ServiceError
from service.http.compression import VARY, accepts_gzip
from service.http.messages import READING, Answer, Endpoint, http_caller, problem_answer, stamp_headers
from service.limits.policy import Bucket
from service.runtime.caller import Channel, Proxies
from service.web.site import Site, address
from shop_directory.search.protocol import Snapshot

# The most addresses of a file that the protocol of sitemaps allows.
FILE_ADDRESSES: Final = 50_000
SITEMAP_PATH: Final = "/sitemap.xml"
_ADDRESSES_PER_READ: Final = 2_000
_XML: Final = b"application/xml"
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


class Sitemap:
    """The sitemap of one site."""

    def __init__(self, site: Site, live: LiveData, admission: Admission, trusted: Proxies) -> None:
        self._site, self._live, self._admission, self._trusted = site, live, admission, trusted
        self.endpoint = Endpoint(READING, self._answer)

    async def _answer(self, request: Request) -> Answer:
        caller = http_caller(request.scope, Channel.REST, self._trusted)
        packed = accepts_gzip(request.headers.raw)
        try:
            number = _file_number(request.scope["query_string"])
            admitted = await self._admission.admit(caller, Bucket.READS)
        except ServiceError as error:
            return problem_answer(error)

        headers = admitted.headers

        async def work(snapshot: Snapshot) -> bytes:
            nonlocal headers
            slugs = [category.slug for category in await snapshot.categories()]
            total = 1 + len(slugs) + snapshot.stamp.counts.get("shops", 0)
            numbers = range(1, -(-total // FILE_ADDRESSES) + 1)
            if number is None:
                return self._index(numbers)
            if number not in numbers:
                raise RouteNotFoundError
            listed = min(FILE_ADDRESSES, total - (number - 1) * FILE_ADDRESSES)
            if units := (listed - 1) // _ADDRESSES_PER_READ:
                headers = await self._admission.charge(caller, admitted.token, Bucket.READS, units)
            return await asyncio.to_thread(self._file, snapshot, slugs, number, packed=packed)

        live = await self._live.run(work, caller.request_id)
        if isinstance(live.result, QuotaExceededError):
            # The error has newer headers of the quota.
            return problem_answer(live.result, stamp_headers(live.stamp))
        if isinstance(live.result, ServiceError):
            return problem_answer(live.result, (*stamp_headers(live.stamp), *headers))
        encoding = ((b"content-encoding", b"gzip"),) if packed and number is not None else ()
        return Answer(200, live.result, _XML, (*stamp_headers(live.stamp), *headers, *encoding, VARY))

    def _index(self, numbers: Iterable[int]) -> bytes:
        files = (f"{self._site.public_url}{SITEMAP_PATH}?file={number}" for number in numbers)
        return _document("sitemapindex", "sitemap", files)

    def _file(self, snapshot: Snapshot, slugs: list[str], number: int, *, packed: bool) -> bytes:
        start = (number - 1) * FILE_ADDRESSES
        pages = [f"{self._site.public_url}/", *(self._url(category=slug) for slug in slugs)]
        first = max(0, start - len(pages))
        pages = pages[start : start + FILE_ADDRESSES]
        domains = snapshot.domains(first, first + FILE_ADDRESSES - len(pages))
        document = _document("urlset", "url", (*pages, *(self._url(shop=domain) for domain in domains)))
        return gzip.compress(document, compresslevel=5, mtime=0) if packed else document

    def _url(self, **parameters: str) -> str:
        return f"{self._site.public_url}/{address(**parameters)}"


def _file_number(query_string: bytes) -> int | None:
    """The number of the file that is asked for; None for their index. Raises RouteNotFoundError if it is none."""
    asked = parse_qs(query_string.decode("latin-1"), keep_blank_values=True).get("file")
    if asked is None:
        return None
    if len(asked) > 1 or not asked[0].isascii() or not asked[0].isdecimal():
        raise RouteNotFoundError
    return int(asked[0][:20])


def _document(root: str, entry: str, urls: Iterable[str]) -> bytes:
    entries = "".join(f"<{entry}><loc>{escape(url)}</loc></{entry}>\n" for url in urls)
    return f'{_HEAD}<{root} xmlns="{_NAMESPACE}">\n{entries}</{root}>\n'.encode()
