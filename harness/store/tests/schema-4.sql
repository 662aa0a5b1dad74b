-- The results store: what every run observed. One SQLite file, written by harness/store, embedded in
-- the program at build time. Reports and published results are made of nothing else.
--
-- user_version counts changes of meaning. A program writes the version it was built with, brings older ones up to it
-- (schema-2-to-3.sql, schema-3-to-4.sql) and refuses newer ones.
-- Numbers that do not exist are NULL; a figure that is NaN is NULL beside a bound that is not.
-- Times are UTC, ISO 8601; durations are seconds. Seeds are 64-bit patterns: negative ones wrapped.

PRAGMA application_id = 0x46534450; -- "FSDP"
PRAGMA user_version = 4;

CREATE TABLE run (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    command     TEXT NOT NULL,
    profile     TEXT,
    pattern     TEXT,
    seed        INTEGER NOT NULL,
    started     TEXT NOT NULL,
    ended       TEXT,             -- NULL: still running, or killed
    exit_status INTEGER,
    environment TEXT NOT NULL     -- JSON object of allowlisted facts
) STRICT;

-- How many cases were meant to be recorded: what is missing was never judged.
CREATE TABLE plan (
    run            INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    implementation TEXT NOT NULL,
    planned        INTEGER NOT NULL,
    versions       TEXT NOT NULL, -- JSON object, name to version
    note           TEXT,          -- what every verdict on it must be read with: its manifest's note
    seconds        REAL,          -- that its cases took, over all sessions of the run
    PRIMARY KEY (run, implementation)
) STRICT;

CREATE TABLE judged_case (
    id             INTEGER PRIMARY KEY,
    run            INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    implementation TEXT NOT NULL,
    case_id        TEXT NOT NULL,
    family         TEXT,
    layer          TEXT,          -- of evidence: exact, witness, calibrated, measured
    model          TEXT,
    strategy       TEXT,
    layout         TEXT,
    compute        TEXT,          -- dtype
    world_size     INTEGER NOT NULL,
    seed           INTEGER NOT NULL,
    case_json      TEXT,
    origin         TEXT,          -- FILE:LINE
    seconds        REAL,          -- of the case in the worker
    judge_seconds  REAL,
    start          INTEGER NOT NULL, -- which start of the workers served it
    log_tail       TEXT,
    figures        TEXT,          -- JSON list of {check, label, tensor, figure, bound}
    digest         TEXT,          -- of the final parameters: --resume compares families by it
    truth_digest   TEXT,          -- of the truth's, in the same dtype
    note           TEXT,          -- the manifest's note and that of the worker's hello
    probes         TEXT,          -- JSON: what the probes saw, by rank (harness/probes/stored.h); NULL where none was loaded
    UNIQUE (run, implementation, case_id)
) STRICT;

-- Known failures that concern the run: those whose implementation, versions and cases it has. One is expired where `expires` is
-- before the day on which the run started.
CREATE TABLE waiver (
    id             INTEGER PRIMARY KEY,
    run            INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    implementation TEXT NOT NULL, -- the one that it concerned
    checks         TEXT NOT NULL,
    cases          TEXT NOT NULL,
    versions       TEXT NOT NULL,
    reason         TEXT NOT NULL,
    page           TEXT NOT NULL,
    expires        TEXT NOT NULL,
    origin         TEXT NOT NULL, -- FILE:LINE
    UNIQUE (run, implementation, checks, cases, versions, reason, page, expires, origin)
) STRICT;

CREATE TABLE result (
    judged_case INTEGER NOT NULL REFERENCES judged_case(id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    check_name  TEXT NOT NULL,
    verdict     TEXT NOT NULL CHECK (verdict IN ('PASS', 'FAIL', 'SKIP', 'BROKEN')),
    figure      REAL,
    bound       REAL,
    unit        TEXT,
    message     TEXT,
    classes     TEXT,
    ranks       TEXT,
    waiver      INTEGER REFERENCES waiver(id), -- that covers it: a FAIL is waived unless it is expired, a PASS is unexpected
    PRIMARY KEY (judged_case, position)
) STRICT, WITHOUT ROWID;

-- For reading with any SQLite client; the program itself uses the tables.

-- The verdict of a case is the worst of its results, BROKEN over FAIL over SKIP over PASS; none is BROKEN. It is waived where it
-- is FAIL and each of its FAILs has a waiver that is not expired.
CREATE VIEW case_verdict AS
SELECT c.run, c.implementation, c.case_id, c.family, c.strategy, c.world_size,
       CASE coalesce(max(CASE r.verdict WHEN 'PASS' THEN 0 WHEN 'SKIP' THEN 1 WHEN 'FAIL' THEN 2 ELSE 3 END), 3)
           WHEN 0 THEN 'PASS' WHEN 1 THEN 'SKIP' WHEN 2 THEN 'FAIL' ELSE 'BROKEN' END AS verdict,
       coalesce(max(CASE r.verdict WHEN 'FAIL' THEN CASE WHEN w.expires >= substr(u.started, 1, 10) THEN 1 ELSE 2 END
                                   WHEN 'BROKEN' THEN 2 ELSE 0 END), 0) = 1 AS waived
FROM judged_case c JOIN run u ON u.id = c.run LEFT JOIN result r ON r.judged_case = c.id LEFT JOIN waiver w ON w.id = r.waiver
GROUP BY c.id;

CREATE VIEW tensor_figure AS
SELECT c.run, c.implementation, c.case_id, c.world_size,
       json_extract(f.value, '$.check') AS check_name, json_extract(f.value, '$.label') AS label,
       json_extract(f.value, '$.tensor') AS tensor, json_extract(f.value, '$.figure') AS figure,
       json_extract(f.value, '$.bound') AS bound
FROM judged_case c, json_each(c.figures) f;

-- Each phase of each rank that probes were loaded in: times in seconds from the case's first mark, live bytes of the heap at its end and
-- its peak.
CREATE VIEW probe_phase AS
SELECT c.run, c.implementation, c.case_id, c.world_size, json_extract(r.value, '$.rank') AS rank, p.key AS position,
       json_extract(p.value, '$.name') AS phase, json_extract(p.value, '$.step') AS step,
       1e-6 * json_extract(p.value, '$.us[0]') AS begin_s, 1e-6 * json_extract(p.value, '$.us[1]') AS end_s,
       json_extract(p.value, '$.heap[1]') AS heap_end, json_extract(p.value, '$.heap[2]') AS heap_peak,
       json_extract(p.value, '$.traffic') AS traffic
FROM judged_case c, json_each(c.probes, '$.ranks') r, json_each(r.value, '$.phases') p;
