"""The tables of the first schema, as step 1 of migrations.py makes them; released, and so never edited."""

SETTINGS_1 = """
CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL                -- JSON
) STRICT, WITHOUT ROWID;
"""

# Order is always by id, which AUTOINCREMENT never reuses and no clock can turn back. `activity` is the greatest
# message id when the conversation was last added to. `parent_id` is deferred instead of cascading: a cascade along
# a chain of more than 1,000 messages would exceed SQLite's trigger depth.
HISTORY_1 = """
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    options TEXT NOT NULL DEFAULT '{}', -- JSON
    active_root_id INTEGER REFERENCES messages(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    activity INTEGER NOT NULL DEFAULT 0,
    created_at_ms INTEGER NOT NULL,
    trashed_at_ms INTEGER
) STRICT;
CREATE INDEX conversations_by_activity ON conversations(activity DESC, id DESC);

CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    parent_id INTEGER REFERENCES messages(id) DEFERRABLE INITIALLY DEFERRED,
    active_child_id INTEGER REFERENCES messages(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    status TEXT NOT NULL,               -- complete, streaming, interrupted, failed
    finish_reason TEXT,
    error TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    sampling TEXT NOT NULL DEFAULT '{}', -- JSON
    token_ids BLOB NOT NULL DEFAULT x'',
    prompt_tokens INTEGER,
    cached_tokens INTEGER,
    ttft_s REAL,
    tpot_s REAL,
    seed INTEGER,
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_by_conversation ON messages(conversation_id, id);
CREATE INDEX messages_by_parent ON messages(parent_id);
CREATE INDEX messages_by_active_child ON messages(active_child_id);
CREATE INDEX conversations_by_active_root ON conversations(active_root_id);
CREATE INDEX messages_streaming ON messages(id) WHERE status = 'streaming';
"""

DOCUMENTS_1 = """
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL UNIQUE,        -- of the newest version: the same bytes are the same document
    current_version_id INTEGER REFERENCES document_versions(id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    is_missing INTEGER NOT NULL DEFAULT 0,
    added_at_ms INTEGER NOT NULL,
    trashed_at_ms INTEGER
) STRICT;
CREATE INDEX documents_by_path ON documents(path);
CREATE INDEX documents_by_current_version ON documents(current_version_id);

CREATE TABLE document_versions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    modified_at_ns INTEGER NOT NULL,
    kind TEXT NOT NULL DEFAULT '',      -- pdf, text, markdown
    title TEXT NOT NULL DEFAULT '',     -- the document's own
    status TEXT NOT NULL,               -- waiting, parsing, ready, failed, superseded
    error TEXT NOT NULL DEFAULT '',
    notices TEXT NOT NULL DEFAULT '[]', -- JSON: sentences for the user
    num_pages INTEGER NOT NULL DEFAULT 0,
    added_at_ms INTEGER NOT NULL,
    UNIQUE (document_id, sha256)
) STRICT;
CREATE INDEX document_versions_unfinished ON document_versions(status) WHERE status IN ('waiting', 'parsing');

CREATE TABLE pages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL REFERENCES document_versions(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    label TEXT,
    text TEXT NOT NULL,
    width REAL NOT NULL,
    height REAL NOT NULL,
    first_line INTEGER,
    last_line INTEGER,
    UNIQUE (version_id, page_index)
) STRICT;

CREATE TABLE chunks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version_id INTEGER NOT NULL REFERENCES document_versions(id) ON DELETE CASCADE,
    page_index INTEGER NOT NULL,
    page_label TEXT,
    char_start INTEGER NOT NULL,
    char_end INTEGER NOT NULL,
    first_line INTEGER,
    last_line INTEGER,
    rectangles BLOB NOT NULL,           -- packing.py
    heading_path TEXT NOT NULL,         -- JSON
    context TEXT NOT NULL,              -- title and headings as they are embedded with the text
    text TEXT NOT NULL,
    content_hash BLOB NOT NULL,         -- of context and text: an unchanged chunk keeps its vector
    search_heading TEXT NOT NULL,       -- segmentation.py: what the indexes see of the context
    search_text TEXT,                   -- what the indexes see of the text; NULL where it is the text itself
    has_trigrams INTEGER NOT NULL       -- whether it has words of a script that is searched by trigrams
) STRICT;
CREATE INDEX chunks_by_version ON chunks(version_id, id);
"""

# External content over views, so that the text is stored once; "delete" is given exactly what was indexed, because that
# is stored and chunks never change. `secure-delete` takes a deleted term out of the index at once, where FTS5 would by
# default only mark it. The trigram index is three times as large as its text, so it holds only what it improves.
FULL_TEXT_1 = """
CREATE VIEW chunk_search AS
    SELECT id, search_heading AS heading, coalesce(search_text, text) AS body FROM chunks;
CREATE VIEW chunk_search_trigrams AS
    SELECT id, coalesce(search_text, text) AS body FROM chunks WHERE has_trigrams;
CREATE VIRTUAL TABLE chunk_words USING fts5(
    heading, body, content='chunk_search', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE chunk_trigrams USING fts5(
    body, content='chunk_search_trigrams', content_rowid='id', tokenize='trigram remove_diacritics 1'
);
INSERT INTO chunk_words(chunk_words, rank) VALUES ('secure-delete', 1);
INSERT INTO chunk_words(chunk_words, rank) VALUES ('rank', 'bm25(2.0, 1.0)');
INSERT INTO chunk_trigrams(chunk_trigrams, rank) VALUES ('secure-delete', 1);

CREATE TRIGGER chunks_words_insert AFTER INSERT ON chunks BEGIN
    INSERT INTO chunk_words(rowid, heading, body)
        VALUES (new.id, new.search_heading, coalesce(new.search_text, new.text));
END;
CREATE TRIGGER chunks_words_delete AFTER DELETE ON chunks BEGIN
    INSERT INTO chunk_words(chunk_words, rowid, heading, body)
        VALUES ('delete', old.id, old.search_heading, coalesce(old.search_text, old.text));
END;
CREATE TRIGGER chunks_trigrams_insert AFTER INSERT ON chunks WHEN new.has_trigrams BEGIN
    INSERT INTO chunk_trigrams(rowid, body) VALUES (new.id, coalesce(new.search_text, new.text));
END;
CREATE TRIGGER chunks_trigrams_delete AFTER DELETE ON chunks WHEN old.has_trigrams BEGIN
    INSERT INTO chunk_trigrams(chunk_trigrams, rowid, body)
        VALUES ('delete', old.id, coalesce(old.search_text, old.text));
END;
CREATE TRIGGER chunks_never_change BEFORE UPDATE OF text, search_heading, search_text, has_trigrams ON chunks BEGIN
    SELECT raise(ABORT, 'the text of a chunk never changes');
END;
"""

# A block has room for 1,024 rows, allotted at once and filled through blob handles; what changes often about it is kept
# apart from the large blobs. `revision` tells a reader's cache which blocks to read again. A slot whose chunk is gone is
# zeroed, for an embedding says much about its text, and used again.
VECTORS_1 = """
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    dimension INTEGER NOT NULL
) STRICT;

CREATE TABLE vector_blocks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    embedder_id INTEGER NOT NULL REFERENCES embedders(id) ON DELETE CASCADE,
    num_alive INTEGER NOT NULL,
    revision INTEGER NOT NULL
) STRICT;
CREATE INDEX vector_blocks_by_embedder ON vector_blocks(embedder_id, id);

CREATE TABLE vector_rows (
    block_id INTEGER PRIMARY KEY REFERENCES vector_blocks(id) ON DELETE CASCADE,
    chunk_ids BLOB NOT NULL,            -- int64 [1024], 0 is a free slot
    scales BLOB NOT NULL,               -- float32 [1024]
    rows BLOB NOT NULL                  -- int8 [1024, dimension]
) STRICT;

CREATE TABLE chunk_vectors (
    embedder_id INTEGER NOT NULL REFERENCES embedders(id) ON DELETE CASCADE,
    chunk_id INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    block_id INTEGER NOT NULL REFERENCES vector_blocks(id),
    slot INTEGER NOT NULL,
    PRIMARY KEY (embedder_id, chunk_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chunk_vectors_by_chunk ON chunk_vectors(chunk_id);
CREATE INDEX chunk_vectors_by_block ON chunk_vectors(block_id);
"""

# A source keeps its own copy of place and quote, so that it opens after the document is parsed anew or deleted.
SOURCES_1 = """
CREATE TABLE sources (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    document_id INTEGER REFERENCES documents(id) ON DELETE SET NULL,
    version_id INTEGER REFERENCES document_versions(id) ON DELETE SET NULL,
    chunk_id INTEGER REFERENCES chunks(id) ON DELETE SET NULL,
    document_name TEXT NOT NULL,
    page_index INTEGER NOT NULL,
    page_label TEXT,
    char_start INTEGER NOT NULL,
    char_end INTEGER NOT NULL,
    first_line INTEGER,
    last_line INTEGER,
    rectangles BLOB NOT NULL,
    quote TEXT NOT NULL,
    score REAL NOT NULL,
    is_cited INTEGER NOT NULL,          -- 0: retrieved and given to the model, but no sentence rests on it
    answer_start INTEGER,               -- the sentence of the reply that rests on it
    answer_end INTEGER
) STRICT;
CREATE INDEX sources_by_message ON sources(message_id, id);
CREATE INDEX sources_by_document ON sources(document_id);
CREATE INDEX sources_by_version ON sources(version_id);
CREATE INDEX sources_by_chunk ON sources(chunk_id);
"""
