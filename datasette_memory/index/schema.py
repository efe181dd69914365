"""The tables of the index, their full-text part, and how both are kept whole.

Ordinary tables come from sqlite-utils migrations (`migrations.py`, loaded only to write). The
full-text part is plain SQL and stands here, because the light path has to look at it too.
"""

from ..text.tokenise import FTS5_TOKENIZE, TOKENIZER_VERSION
from .connection import sqlite3, transaction

#: What `cards_fts` has a column of tokens for, and the SQL over a row of `cards` that each is made
#: of. A summary that was taken from the body is shown, and not indexed a second time.
FTS_COLUMNS = {
    "title": "{row}title",
    "keywords": "{row}keywords || ' ' || {row}aliases || ' ' || {row}tags || ' ' || "
    "coalesce({row}project, '')",
    "summary": "iif({row}summary_from_body, '', {row}summary)",
    "body": "{row}body",
}


def fts_column(name: str) -> str:
    """The column of `cards_fts` for one of `FTS_COLUMNS`.

    Named unlike any column of `cards`, so that a join of the two has no ambiguous name:
    `select title from cards join cards_fts on cards.id = cards_fts.rowid where ...`.
    """
    return f"{name}_tokens"


_COLUMNS = ", ".join(map(fts_column, FTS_COLUMNS))
_INDEXED = "title, keywords, aliases, tags, project, summary, summary_from_body, body"


def _tokens(row: str) -> str:
    """SQL for the tokens of every full-text column of a row (`new.`, `old.` or none)."""
    return ", ".join(f"memory_tokens({sql.format(row=row)})" for sql in FTS_COLUMNS.values())


_VIEW_COLUMNS = ", ".join(
    f"memory_tokens({sql.format(row='')}) as {fts_column(name)}"
    for name, sql in FTS_COLUMNS.items()
)

CREATE_FTS = (
    f"create view cards_fts_source as select id as rowid, {_VIEW_COLUMNS} from cards",
    f"create virtual table cards_fts using fts5({_COLUMNS}, content='cards_fts_source', "
    f'tokenize="{FTS5_TOKENIZE}")',
)

_DELETE = (
    f"insert into cards_fts (cards_fts, rowid, {_COLUMNS}) values ('delete', old.id, "
    f"{_tokens('old.')})"
)
_INSERT = f"insert into cards_fts (rowid, {_COLUMNS}) values (new.id, {_tokens('new.')})"

TRIGGERS = {
    "cards_fts_insert": f"after insert on cards begin {_INSERT}; end",
    "cards_fts_delete": f"after delete on cards begin {_DELETE}; end",
    "cards_fts_update": f"after update of {_INDEXED} on cards begin {_DELETE}; {_INSERT}; end",
    # What the foreign keys do too, but most programs that write to SQLite have them off.
    "cards_delete": "after delete on cards begin "
    + "".join(
        f"delete from {table} where card_id = old.id; "
        for table in ("tags", "links", "names", "card_stats")
    )
    + "update links set target_id = null where target_id = old.id; "
    "update files set card_id = null where card_id = old.id; end",
}

#: For an import, which writes many rows at once and is a fifth faster without the triggers.
UNINDEX_ROWS = (
    f"insert into cards_fts (cards_fts, rowid, {_COLUMNS}) select 'delete', rowid, {_COLUMNS} "
    "from cards_fts_source where rowid in (select value from json_each(?))"
)
INDEX_ROWS = (
    f"insert into cards_fts (rowid, {_COLUMNS}) select rowid, {_COLUMNS} "
    "from cards_fts_source where rowid in (select value from json_each(?))"
)

# FTS5 merges its segments as they come, and again and again in a long import. Left alone until the
# end they are merged once: a third less work, and a search afterwards reads one segment.
_MERGE_LATER = {"automerge": 0, "crisismerge": 500}
_MERGE_ALWAYS = {"automerge": 4, "crisismerge": 16}


def merge_later(connection) -> None:
    """Let FTS5 put off merging; `merge_now` ends it. Takes part in an open transaction."""
    _configure(connection, _MERGE_LATER)


def merge_now(connection) -> None:
    """Merge all segments into one, and let FTS5 merge as usual from here on."""
    _configure(connection, _MERGE_ALWAYS)
    connection.execute("insert into cards_fts (cards_fts) values ('optimize')")


def merges_later(connection) -> bool:
    """Whether merging is put off, as an interrupted import leaves it."""
    sql = "select v from cards_fts_config where k = 'automerge'"
    row = connection.execute(sql).fetchone()
    return row is not None and row[0] == 0


def _configure(connection, options: dict[str, int]) -> None:
    for name, value in options.items():
        connection.execute("insert into cards_fts (cards_fts, rank) values (?, ?)", (name, value))


#: Counts the migrations; kept in `meta`, so that a writer in a hurry need not load them to ask.
SCHEMA_VERSION = "3"

#: Where `meta` keeps how far the table `events` follows the ledger; see `ledger.reader.Marks`.
MARKS = "ledger_marks"


def is_current(connection) -> bool:
    """Whether the index has the present schema and tokens, so that it needs no `migrate`."""
    return (
        is_memory(connection)
        and get_meta(connection, "schema_version") == SCHEMA_VERSION
        and get_meta(connection, "tokenizer_version") == TOKENIZER_VERSION
        and not missing_triggers(connection)
    )


def is_memory(connection) -> bool:
    """Whether the database holds a memory index."""
    names = "('cards', 'cards_fts', 'cards_fts_source', 'meta')"
    query = f"select count(*) from sqlite_master where name in {names}"
    return connection.execute(query).fetchone()[0] == 4


def create_triggers(connection) -> None:
    """Create the triggers that keep `cards_fts` in step with `cards`."""
    for name, body in TRIGGERS.items():
        connection.execute(f"create trigger if not exists {name} {body}")


def drop_triggers(connection) -> None:
    """Drop them; only inside a transaction that creates them again."""
    for name in TRIGGERS:
        connection.execute(f"drop trigger if exists {name}")


def missing_triggers(connection) -> list[str]:
    """The names of triggers that ought to be there and are not (`transform()` drops them)."""
    found = connection.execute("select name from sqlite_master where type = 'trigger'")
    return sorted(set(TRIGGERS) - {name for (name,) in found})


def ensure_triggers(connection) -> bool:
    """Restore dropped triggers, and the index if rows changed in between; True if so.

    Needs a connection that may write and has the functions of `functions.register`. Takes part
    in a transaction that is already open.
    """
    if not missing_triggers(connection):
        return False
    if connection.in_transaction:
        _mend(connection)
    else:
        with transaction(connection):
            _mend(connection)
    return True


def _mend(connection) -> None:
    create_triggers(connection)
    if not is_in_step(connection):
        rebuild_fts(connection)


def is_in_step(connection) -> bool:
    """Whether `cards_fts` holds exactly the tokens of `cards`, by FTS5's own check."""
    try:
        connection.execute("insert into cards_fts (cards_fts, rank) values ('integrity-check', 1)")
    except sqlite3.DatabaseError:
        return False
    return True


def rebuild_fts(connection) -> None:
    """Build `cards_fts` again from `cards`."""
    connection.execute("insert into cards_fts (cards_fts) values ('rebuild')")
    set_meta(connection, "tokenizer_version", TOKENIZER_VERSION)


def get_meta(connection, key: str) -> str | None:
    """The value of `key` in the table `meta`, or None."""
    row = connection.execute("select value from meta where key = ?", (key,)).fetchone()
    return row and row[0]


def set_meta(connection, key: str, value: str) -> None:
    """Keep `value` under `key` in the table `meta`."""
    connection.execute(
        "insert into meta (key, value) values (?, ?) "
        "on conflict (key) do update set value = excluded.value",
        (key, value),
    )
