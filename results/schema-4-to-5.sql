-- What brings a results store of schema version 4 to version 5, in one transaction. Nothing of version 4 was measured as a series.

-- What `net`, `bench` and `advise --validate` measured: one point of a measurement, and what is the same for all of its samples.
CREATE TABLE series (
    id       INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    tool     TEXT NOT NULL,       -- net, bench, validate
    fabric   TEXT NOT NULL,
    subject  TEXT NOT NULL,       -- mpi, or an implementation
    name     TEXT NOT NULL,       -- of the collective or the workload
    quantity TEXT NOT NULL,       -- what a sample is, with its unit: seconds
    point    TEXT NOT NULL,       -- JSON object: ranks, bytes, dtype, ...
    facts    TEXT,                -- JSON object: errors, line rate, flop, ...
    UNIQUE (run, tool, fabric, subject, name, quantity, point)
) STRICT;

-- Every raw sample, by start of the workers (launch) and in the order in which it was taken.
CREATE TABLE sample (
    series   INTEGER NOT NULL REFERENCES series(id) ON DELETE CASCADE,
    launch   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    value    REAL NOT NULL,
    PRIMARY KEY (series, launch, position)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 5;
