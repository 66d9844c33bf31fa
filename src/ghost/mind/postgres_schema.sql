-- The mind in PostgreSQL, version 1. Run as one transaction, once for each database; `vector` is pgvector's.
-- Texts of memories are bytes: PostgreSQL's text cannot hold NUL, and what was kept comes back as it was.
CREATE SCHEMA ghost;
SET LOCAL search_path TO ghost, public;

-- English stems without a list of stop words: `vm-a` must not lose its `a`.
CREATE TEXT SEARCH DICTIONARY ghost.stems (TEMPLATE = pg_catalog.snowball, Language = english);
CREATE TEXT SEARCH CONFIGURATION ghost.words (COPY = pg_catalog.simple);
ALTER TEXT SEARCH CONFIGURATION ghost.words
    ALTER MAPPING FOR asciiword, word, numword WITH ghost.stems;

CREATE TABLE ghost.fact (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE ghost.last_id (
    kind text, moment bigint, number bigint NOT NULL, given timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (kind, moment)
);
CREATE TABLE ghost.memory (
    place bigint GENERATED ALWAYS AS IDENTITY,
    id text COLLATE "C" PRIMARY KEY,
    type text NOT NULL,
    created_at double precision NOT NULL,
    last_access double precision NOT NULL,
    importance double precision NOT NULL,
    content bytea NOT NULL,
    tags bytea[] NOT NULL,
    metadata bytea NOT NULL,
    space text NOT NULL,
    embedding vector,
    words tsvector NOT NULL
);
CREATE INDEX memory_by_age ON ghost.memory (created_at, id);
CREATE INDEX memory_by_place ON ghost.memory (place);
CREATE INDEX memory_by_tag ON ghost.memory USING gin (tags);
CREATE INDEX memory_by_word ON ghost.memory USING gin (words);
CREATE INDEX memory_by_space ON ghost.memory (space);
CREATE TABLE ghost.thought (id text COLLATE "C" PRIMARY KEY, ts double precision NOT NULL, body bytea NOT NULL);
CREATE INDEX thought_by_time ON ghost.thought (ts, id);
CREATE TABLE ghost.task (id text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE ghost.query (id text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
CREATE TABLE ghost.preference (name text COLLATE "C" PRIMARY KEY, body bytea NOT NULL);
INSERT INTO ghost.fact VALUES ('version', '1');
