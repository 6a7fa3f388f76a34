"""How an encoder fits the texts that it is given, as every retriever with an encoder tells it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_bench.core.types import Query
from retrieval_bench_retrievers.encoders import fit as encoder_fit
from retrieval_bench_retrievers.encoders.encoder import Encoder, readable


@dataclass(frozen=True, slots=True)
class EncoderFit:
    """An encoder beside a sample of the documents and the queries.

    Attributes:
        documents, queries: what its tokenizer makes of them; None where nobody can look into it.
    """

    encoder: Encoder
    documents: encoder_fit.TokenFit | None
    queries: encoder_fit.TokenFit | None

    def facts(self) -> list[str]:
        """What it cuts off, and how much it does not know."""
        if self.documents is None or self.queries is None:
            return []
        name, limit = self.encoder.name, self.encoder.max_seq_length
        return [encoder_fit.facts(name, limit, self.documents, self.queries)]

    def warnings(self, language: str | None) -> Sequence[str]:
        """Why rankings by its vectors may be bad; ``language`` is that of the dataset."""
        name, prompts = self.encoder.name, self.encoder.missing_prompts()
        if self.documents is None or self.queries is None:
            hidden = f"encoder {name}: its tokenizer cannot be examined"
            return prompts if self.encoder.reads_all else [*prompts, hidden]
        unfit = encoder_fit.warnings(
            name,
            self.documents,
            self.queries,
            max_length=self.encoder.max_seq_length,
            languages=self.encoder.languages(),
            language=language,
        )
        return [*prompts, *unfit]


def fit_of(encoder: Encoder, texts: Sequence[str], queries: Sequence[Query]) -> EncoderFit:
    """``encoder``, which is loaded, beside ``texts`` of documents and ``queries``."""
    tools = encoder.tokenizer()
    if tools is None:
        return EncoderFit(encoder, None, None)
    asked = encoder_fit.sample([readable(query.text) for query in queries])
    documents, questions = (
        encoder_fit.measure(
            *tools, [encoder.prompts[role] + text for text in some], encoder.max_seq_length
        )
        for role, some in (("document", encoder_fit.sample(texts)), ("query", asked))
    )
    return EncoderFit(encoder, documents, questions)
