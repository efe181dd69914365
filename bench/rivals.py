"""Plain methods to compare with: FTS5's own tokenisers, jieba, bm25s and tantivy.

Each takes documents and a folder to work in, and gives a function from a query to ids, best first.
The packages come with `pip install 'datasette-memory[bench]'`; none is needed to use the project.
"""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

from .sets import Document

LIMIT = 10

_WORDS = re.compile(r"\w+")


def _fts5(documents: list[Document], tokenize: str, cut: Callable[[str], list[str]], least: int):
    """An FTS5 table over title and text, asked for any of the tokens that `cut` gives."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create virtual table t using fts5(title, text, tokenize='{tokenize}')")
    connection.executemany(
        "insert into t (rowid, title, text) values (?, ?, ?)",
        [(n, _joined(one.title, cut), _joined(one.text, cut)) for n, one in enumerate(documents)],
    )

    def search(query: str) -> list[str]:
        tokens = [token for token in dict.fromkeys(cut(query)) if len(token) >= least]
        if not tokens:
            return []
        match = " OR ".join('"' + token.replace('"', '""') + '"' for token in tokens)
        rows = connection.execute(
            "select rowid from t where t match ? order by rank limit ?", [match, LIMIT]
        )
        return [documents[number].id for (number,) in rows]

    return search


def _joined(text: str, cut: Callable[[str], list[str]]) -> str:
    return text if cut in (_words, _trigrams) else " ".join(cut(text))


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())


def _trigrams(text: str) -> list[str]:
    return [word[i : i + 3] for word in _words(text) for i in range(max(1, len(word) - 2))]


def _jieba(text: str) -> list[str]:
    import jieba

    jieba.setLogLevel(60)
    return [token for token in jieba.cut_for_search(text.lower()) if _WORDS.search(token)]


def _bigrams(text: str) -> list[str]:
    from datasette_memory.text.tokenise import index_text

    return index_text(text).split()


def unicode61(documents: list[Document], folder: Path):
    """FTS5 as it comes."""
    return _fts5(documents, "unicode61", _words, 1)


def trigram(documents: list[Document], folder: Path):
    """FTS5's trigram tokeniser."""
    return _fts5(documents, "trigram", _trigrams, 3)


def jieba(documents: list[Document], folder: Path):
    """Words by jieba's search mode in FTS5's unicode61."""
    return _fts5(documents, "unicode61", _jieba, 1)


def bm25s(documents: list[Document], folder: Path):
    """The package bm25s over jieba's words."""
    import bm25s as package

    retriever = package.BM25()
    corpus = [_jieba(f"{one.title}\n{one.text}") or ["\0"] for one in documents]
    retriever.index(corpus, show_progress=False)

    def search(query: str) -> list[str]:
        tokens = list(dict.fromkeys(_jieba(query)))
        if not tokens:
            return []
        count = min(LIMIT, len(documents))
        numbers, scores = retriever.retrieve([tokens], k=count, show_progress=False)
        found = zip(numbers[0].tolist(), scores[0].tolist())
        return [documents[number].id for number, score in found if score > 0]

    return search


def tantivy(documents: list[Document], folder: Path):
    """The engine tantivy over this project's tokens, cut at spaces."""
    import tantivy as package

    schema = package.SchemaBuilder()
    schema.add_unsigned_field("number", stored=True)
    schema.add_text_field("text", tokenizer_name="whitespace")
    index = package.Index(schema.build())
    writer = index.writer(50_000_000, 1)
    for number, one in enumerate(documents):
        tokens = " ".join(_bigrams(f"{one.title}\n{one.text}"))
        writer.add_document(package.Document(number=number, text=tokens))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> list[str]:
        terms = [
            (package.Occur.Should, package.Query.term_query(index.schema, "text", token))
            for token in dict.fromkeys(_bigrams(query))
        ]
        if not terms:
            return []
        hits = searcher.search(package.Query.boolean_query(terms), LIMIT).hits
        return [documents[searcher.doc(address)["number"][0]].id for _, address in hits]

    return search


RIVALS = {
    "FTS5 unicode61": unicode61,
    "FTS5 trigram": trigram,
    "jieba": jieba,
    "bm25s": bm25s,
    "tantivy": tantivy,
}
