"""A search service over HTTP as a retriever, whatever the engine: a request with places for the
query, and expressions that find ids and scores in the answer."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter_ns
from typing import Any
from urllib.parse import urlsplit

from retrieval_bench.core import plugins, secrets
from retrieval_bench.core.calls.failures import CallError, Kind, TransientError
from retrieval_bench.core.calls.usage import report, usage_of
from retrieval_bench.core.errors import ConfigError, ContractError, check_known, counted
from retrieval_bench.core.installed.installation import require
from retrieval_bench.core.notices import Code, Notice
from retrieval_bench.core.retriever import Capabilities, Retriever, require_k
from retrieval_bench.core.types import Query, Ranking
from retrieval_bench_retrievers.encoders.encoder import Encoder
from retrieval_bench_retrievers.encoders.fit import fit_of
from retrieval_bench_retrievers.functions.search_counts import SearchCounts
from retrieval_bench_retrievers.functions.user_code import declared_index
from retrieval_bench_retrievers.http import answer as http_answer
from retrieval_bench_retrievers.http.partial import partial as partial_answer
from retrieval_bench_retrievers.http.templates import FILTER, checked_names, filled
from retrieval_bench_retrievers.http.write_messages import WritesMessages

WHERE = "target http"
MISSING = ("error", "drop")
_PARTIAL = ("fail", "accept")


class HTTP(WritesMessages, Retriever):
    """Asks a service that holds its own index; one request a query.

    The placeholders of :mod:`retrieval_bench_retrievers.http.templates` stand in ``url``,
    ``headers`` and ``body``.

    Args:
        url: http or https; what is put into it is percent-encoded.
        method: POST with a body, otherwise GET.
        headers: texts by name.
        body: sent as JSON; a text is sent as it is.
        hits: JMESPath to the list of hits.
        id: JMESPath to the document's id inside of a hit.
        score: the same for its score.
        ids: JMESPath to a list of ids, in place of ``hits`` and ``id``.
        scores: the same for scores.
        text: JMESPath to the text of a hit, beside its id.
        source: the same to where it is from.
        order: ``descending``; ``ascending`` for distances, of which the lowest is the best.
        server_time: JMESPath to the milliseconds that the service says it took, or ``{s: path}``.
        usage: ``{tokens_in, tokens_out, calls, money}``: JMESPath to what the call used up.
        external: ``{index, version, count}`` declares the fingerprint of what it searches.
        connections: ``reused``, or ``new`` for one with each request.
        ca: file of certificates to check the service's with.
        verify: false takes any certificate.
        timeout_s: seconds to wait for each part of an answer; the deadline of the harness ends a
            call in any case.
        raw: nothing is a placeholder: every query gets the same request.
        missing: where the query has no value for a placeholder of its filter: ``error``, or
            ``drop`` the key, item or URL parameter that holds it.
        partial: where an answer says of itself that it is not whole: ``fail`` the call, or
            ``accept`` the answer; see :mod:`retrieval_bench_retrievers.http.partial`.
        encoder: parameters of :class:`retrieval_bench_retrievers.encoders.encoder.Encoder`,
            which makes ``{embedding}``.
        write: ``{into: COLLECTION, add: {url, method, headers, body}, delete: {...}}`` with
            ``{document.id}`` and ``{document.text}``: how documents are added and deleted; see
            :mod:`retrieval_bench_retrievers.http.write`.

    Raises:
        ConfigError: parameters that do not fit.
        MissingDependencyError: the extra ``http`` is not installed.
    """

    at = WHERE
    example = "{into: NAME, add: {...}, delete: {...}}"

    def __init__(
        self,
        *,
        url: Any,
        method: str | None = None,
        headers: dict[str, Any] | None = None,
        body: Any = None,
        hits: str | None = None,
        id: str | None = None,  # noqa: A002 - the name that it has in a config
        score: str | None = None,
        ids: str | None = None,
        scores: str | None = None,
        text: str | None = None,
        source: str | None = None,
        order: str = "descending",
        server_time: str | dict[str, str] | None = None,
        usage: dict[str, str] | None = None,
        external: bool | dict[str, Any] = True,
        connections: str = "reused",
        ca: str | None = None,
        verify: bool = True,
        timeout_s: float | None = None,
        raw: bool = False,
        missing: str = "error",
        partial: str = "fail",
        encoder: dict[str, Any] | None = None,
        write: dict[str, Any] | None = None,
    ) -> None:
        require("httpx2", "http", WHERE, instead="httpx")
        require("jmespath", "http", WHERE)
        from retrieval_bench_retrievers.http import client as http_client
        from retrieval_bench_retrievers.http import write as http_write
        from retrieval_bench_retrievers.http.request import RequestTemplate

        self._declared = declared_index(external)
        self._reading = http_answer.reading(
            hits=hits, hit_id=id, score=score, ids=ids, scores=scores, order=order
        )
        self._beside = {
            name: http_answer.compiled(path, name)
            for name, path in (("text", text), ("source", source))
            if path is not None
        }
        self._server = http_answer.server_time(server_time)
        self._usage = http_answer.usage_paths(usage)
        self._drop = http_answer.one_of(missing, "missing", MISSING) == "drop"
        self._accepts = http_answer.one_of(partial, "partial", _PARTIAL) == "accept"
        kept = http_answer.one_of(connections, "connections", http_client.CONNECTIONS)
        self._reuse = kept == "reused"
        if timeout_s is not None and not 0 < timeout_s < math.inf:
            raise ConfigError(f"timeout_s = {timeout_s!r}", where=WHERE, accepted="seconds above 0")

        self._request = RequestTemplate(method, url, headers or {}, body, literal=raw)
        self._names = self._request.names
        if not raw or encoder is not None:
            checked_names(
                self._names if not raw else self._names | {"text"},
                encoder,
                where=WHERE,
                places="url, headers or body",
                otherwise=", or raw: true to send the same request for every query",
            )
        self._encoder = None if encoder is None else encoder_of(encoder, WHERE)

        self._line = http_client.Line(
            reuse=self._reuse,
            timeout_s=timeout_s,
            verify=http_client.certificates(ca, verify, plugins.beside_config),
            host=urlsplit(url).hostname or "",
        )
        self._line.hide(self._request.hidden)
        if write is not None:
            self._writes = http_write.WriteRequests(write, headers or {}, self._encoder)
            self._line.hide(self._writes.hidden)
        self._counts = SearchCounts(
            "is the index filled, and is it this one?",
            'does "{k}" stand where the service takes the number of hits, and does it give so '
            "many?",
        )
        self._partial, self._partial_says = 0, ""

    @property
    def capabilities(self) -> Capabilities:
        """External; it has scores where it was told how to read them, and applies filters where
        the request has a place for them."""
        return Capabilities(
            external=True,
            has_scores=self._reading.scores is not None,
            filters=any(name.partition(".")[0] == FILTER for name in self._names),
            threads=self._encoder is None,
            score_tolerance=1e-5 if self._encoder is not None else 1e-9,
            writes=self._writes is not None,
        )

    def prepare(self) -> None:
        """Load the encoder, if there is one.

        Raises:
            ModelError: it cannot be had.
        """
        if self._encoder is not None:
            self._encoder.load()

    def use_k(self, k: int) -> None:
        """Load the encoder now: the first search is timed."""
        self.prepare()

    def _send(self, messages: Iterator[Any]) -> None:
        for *message, gone in messages:
            self._line.ask(*message, gone=gone)

    def search(self, query: Query, k: int) -> Ranking:
        """The hits of the service's answer, in its order; those beyond ``k`` are cut off.

        Stages: ``encode``; ``request``, from sending to the last byte of the answer, of which
        ``server`` is what the service says it took itself; ``wrapper``, what the adapter adds.

        Raises:
            TransientError, CallError: the service did not answer as it should, or in part.
            ContractError: ``k`` below 1, a filter that the request has no place for, or an answer
                that the expressions do not fit.
            ConfigError: the service was never reached.
        """
        start = perf_counter_ns()
        require_k(k)
        stages: dict[str, int] = {}
        url, headers, body = self._request.render(self._values(query, int(k), stages))
        content, elapsed = self._line.ask(self._request.method, url, headers, body)
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            text = content[:4000].decode("utf-8", "replace")
            raise CallError(
                f"the answer is no JSON: {http_answer.shown(self._line.clean(text))}"
            ) from None
        if self._usage:  # an answer that is none is paid for, too
            report(usage_of({name: path(answer) for name, path in self._usage.items()}))
        says = partial_answer(answer)
        try:
            ids, scores, given = self._reading.read(answer, k)
        except ContractError:
            if says and not self._accepts:  # its list of hits may be what it lacks
                self._answered_in_part(self._line.clean(says))
            raise
        if says:
            self._answered_in_part(self._line.clean(says))
        stages["request"] = elapsed
        if self._server is not None:
            stages["server"] = http_answer.server_ns(self._server, answer)
        self._counts.add(query, k, given)
        texts, sources = (
            (path := self._beside.get(name)) and self._reading.beside(path, name, answer, k)
            for name in ("text", "source")
        )
        order = http_answer.order_of_ties(scores)
        ranking = Ranking(ids, scores, stages, order=order, texts=texts, sources=sources)
        stages["wrapper"] = perf_counter_ns() - start - elapsed - stages.get("encode", 0)
        return ranking

    def describe(self) -> Mapping[str, Any]:
        """Where and how it asks, how many connections were opened so far, and what was declared
        about the index. No value of a header, and no password."""
        from importlib.metadata import version

        facts: dict[str, Any] = {
            "url": secrets.redact(str(self._request.address)),
            "method": self._request.method,
            "header_names": self._request.header_names,
            "connections": "reused" if self._reuse else "new",
            "connections_opened": self._line.opened,
            **({"requests_by_proxy": self._line.proxied} if self._line.proxied else {}),
            **({"partial_answers": self._partial} if self._partial else {}),
            "httpx": version(self._line.library),
            "http_library": self._line.library,
            "external": self._declared,
        }
        return facts | ({} if self._encoder is None else {"encoder": self._encoder.describe()})

    def health(self, queries: Sequence[Query]) -> Sequence[str]:
        """Says what does not fit the encoder, which answers were partial, when every search so far
        got fewer hits than asked for, when a proxy stood between, and when the service redirects.
        """
        warnings: list[str] = []
        if self._encoder is not None:
            warnings += fit_of(self._encoder, (), queries).warnings(None)
        if self._partial:
            warnings.append(self._partial_warning())
        warnings += self._counts.warnings()
        warnings += self._line.warnings("service")
        return warnings

    def close(self) -> None:
        """Close the connections."""
        self._line.close()

    def _values(self, query: Query, k: int, stages: dict[str, int]) -> dict[str, Any]:
        """Return the value of each placeholder; those that this query has no value for are not
        there."""
        values = filled(
            query, k, self._names, where=WHERE, drop=self._drop, kept=self._request.in_path
        )
        if self._encoder is not None:
            begin = perf_counter_ns()
            self._encoder.load()
            values["embedding"] = self._encoder.encode_query(query.text)[0].tolist()
            stages["encode"] = perf_counter_ns() - begin
        return values

    def _answered_in_part(self, says: str) -> None:
        self._partial += 1
        self._partial_says = self._partial_says or says
        if not self._accepts:
            raise TransientError(f"the service answered in part: {says}", Kind.PARTIAL)

    def _partial_warning(self) -> Notice:
        """In which way, and what that does to the figures."""
        answers = self._counts.searches + (0 if self._accepts else self._partial)
        said = (
            f"{self._partial:,} of {counted(answers, 'answer')} said of themselves that they are "
            f"partial ({self._partial_says})"
        )
        more = ": these calls count as failed. Mend the service, or say `partial: accept`."
        if self._accepts:
            more = (
                ", and are accepted: what they lack lowers the quality, and a search that was cut "
                "short looks fast. `partial: fail` counts them as failed."
            )
        return Notice(f"{said}{more}", Code.PARTIAL)


def encoder_of(params: Mapping[str, Any], where: str) -> Encoder:
    """The encoder that the parameter ``encoder`` of a target describes.

    Raises:
        ConfigError: an unknown key.
    """
    known = list(inspect.signature(Encoder).parameters)
    for name in params:
        fix = "correct the keys under `encoder:`"
        check_known(name, known, f"encoder: unknown key {name!r}", where=where, fix=fix)
    return Encoder(**params)
