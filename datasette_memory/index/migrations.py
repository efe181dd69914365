"""The schema as sqlite-utils migrations. Released ones are never edited: add another."""

from sqlite_utils import Database, Migrations

from ..text.tokenise import TOKENIZER_VERSION
from .connection import transaction
from .functions import register
from .schema import (
    CREATE_FTS,
    SCHEMA_VERSION,
    create_triggers,
    ensure_triggers,
    get_meta,
    rebuild_fts,
    set_meta,
)

migrations = Migrations("datasette-memory")


def migrate(connection) -> None:
    """Bring the index behind `connection` to the present schema and tokeniser.

    The connection gets the SQL functions that the schema needs. A database with other tables
    keeps them. Runs inside no transaction of the caller.
    """
    register(connection)
    db = Database(connection, execute_plugins=False)
    if migrations.pending(db):
        # All of them or none: a database of somebody else is not to be left half changed.
        with transaction(connection):
            migrations.apply(db)
    if get_meta(connection, "schema_version") != SCHEMA_VERSION:
        set_meta(connection, "schema_version", SCHEMA_VERSION)
    ensure_triggers(connection)
    if get_meta(connection, "tokenizer_version") != TOKENIZER_VERSION:
        with db.atomic():
            rebuild_fts(connection)


@migrations()
def m001_initial(db: Database) -> None:
    db.table("meta").create({"key": str, "value": str}, pk="key")
    db.table("sources").create(
        {"name": str, "root": str, "exclude": str, "max_bytes": int, "imported": str, "note": str},
        pk="name",
    )
    cards = db.table("cards").create(
        {
            "id": int,
            "ref": str,
            "title": str,
            "kind": str,
            "project": str,
            "updated": str,
            "created": str,
            "superseded_by": str,
            "summary": str,
            "summary_from_body": int,
            "tags": str,
            "keywords": str,
            "aliases": str,
            "source": str,
            "path": str,
            "confidence": float,
            "sensitivity": str,
            "priority": int,
            "ttl": int,
            "valid_from": str,
            "valid_until": str,
            "version": int,
            "agent": str,
            "session": str,
            "refs": str,
            "extra": str,
            "body": str,
            "embedding": bytes,
        },
        pk="id",
        not_null={"ref", "title", "kind", "source", "path", "body", "summary"},
        defaults={
            "kind": "note",
            "summary": "",
            "summary_from_body": 0,
            "tags": "[]",
            "keywords": "[]",
            "aliases": "[]",
            "confidence": 0.7,
            "sensitivity": "internal",
            "priority": 0,
            "version": 1,
            "refs": "{}",
            "extra": "{}",
            "body": "",
        },
    )
    cards.create_index(["source", "path"], unique=True)
    for column in ("ref", "kind", "project", "updated"):
        cards.create_index([column])
    db.execute("create index idx_cards_title on cards (title collate nocase)")
    cards.create_index(["superseded_by"])
    # What was found at each path: the ground for the next incremental import, and where a fault
    # is kept. `path` is hashed where the card is secret.
    db.execute(
        """
        create table files (
            source text not null references sources(name) on delete cascade,
            path text not null,
            mtime_ns integer not null,
            size integer not null,
            sha256 text,
            card_id integer references cards(id) on delete set null,
            fault text,
            primary key (source, path)
        ) without rowid
        """
    )
    db.execute("create index idx_files_card_id on files (card_id)")
    db.execute("create index idx_files_fault on files (fault) where fault is not null")
    db.execute(
        """
        create table tags (
            card_id integer not null references cards(id) on delete cascade,
            tag text not null collate nocase,
            primary key (card_id, tag)
        ) without rowid
        """
    )
    db.execute("create index idx_tags_tag on tags (tag, card_id)")
    db.execute(
        """
        create table links (
            card_id integer not null references cards(id) on delete cascade,
            type text not null,
            target text not null,
            origin text not null,
            target_id integer references cards(id) on delete set null,
            key integer,
            other_key integer,
            primary key (card_id, type, target, origin)
        ) without rowid
        """
    )
    for column in ("target_id", "type", "key", "other_key"):
        db.execute(f"create index idx_links_{column} on links ({column})")
    # The names that a card answers to, hashed; see links.py. The columns of the primary key come
    # first, as in every table without rowid: SQLite 3.40 checks the wrong ones for NULL otherwise.
    db.execute(
        """
        create table names (
            key integer not null,
            card_id integer not null references cards(id) on delete cascade,
            rank integer not null,
            primary key (key, card_id)
        ) without rowid
        """
    )
    db.execute("create index idx_names_card_id on names (card_id)")
    db.execute(
        """
        create table card_stats (
            card_id integer primary key references cards(id) on delete cascade,
            reads integer not null default 0,
            last_read text,
            support integer not null default 0,
            contradict integer not null default 0,
            gain real not null default 0,
            adopted integer not null default 0,
            rejected integer not null default 0
        )
        """
    )
    db.create_view(
        "cards_never_read",
        "select id, ref, title, kind, project, updated, source, path from cards "
        "where id not in (select card_id from card_stats where reads > 0)",
    )
    db.create_view(
        "cards_superseded",
        "select id, ref, title, kind, superseded_by, updated, source, path from cards "
        "where superseded_by is not null",
    )
    db.create_view(
        "broken_links",
        "select cards.id, cards.ref, cards.title, links.type, links.target, links.origin, "
        "cards.source, cards.path from links join cards on cards.id = links.card_id "
        "where links.target_id is null",
    )
    db.create_view(
        "file_faults",
        "select source, path, fault, card_id from files where fault is not null",
    )
    for statement in CREATE_FTS:
        db.execute(statement)
    create_triggers(db.conn)
    set_meta(db.conn, "tokenizer_version", TOKENIZER_VERSION)


@migrations()
def m002_ledger(db: Database) -> None:
    db.execute(
        """
        create table events (
            id text primary key,
            t text not null,
            kind text not null,
            ref text,
            source text,
            path text,
            surface text,
            agent text,
            session text,
            data text not null,
            host text not null,
            line integer not null
        ) without rowid
        """
    )
    db.execute("create index idx_events_kind on events (kind, source, path)")
    db.execute("create index idx_events_ref on events (ref)")
    db.table("evidence").create(
        {
            "sha256": str,
            "bytes": int,
            "kind": str,
            "origin": str,
            "session": str,
            "created": str,
            "sensitivity": str,
        },
        pk="sha256",
    )
    db.create_view(
        "gaps",
        "select t, data ->> 'query' as query, surface, agent, session from events "
        "where kind = 'gap'",
    )


@migrations()
def m003_feedback(db: Database) -> None:
    db.execute(
        "create index idx_events_session on events (session, t, id) where kind = 'inject'",
    )
    db.execute(
        "create index idx_events_cohort on events (data ->> 'cohort', t, id) "
        "where kind in ('inject', 'feedback')"
    )
    db.create_view(
        "injections",
        "select t, data ->> 'cohort' as cohort, session, agent, surface, "
        "data ->> 'project' as project, json_array_length(data, '$.cards') as cards, "
        "data ->> 'tokens' as tokens, data ->> 'budget' as budget from events "
        "where kind = 'inject'",
    )
    db.create_view(
        "feedback_given",
        "select t, data ->> 'cohort' as cohort, data ->> 'verdict' as verdict, ref, source, path, "
        "session, agent, surface from events where kind = 'feedback' and path is not null",
    )
