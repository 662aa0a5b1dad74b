-- What brings a results store of schema version 2 to version 3, in one transaction. Nothing of version 2 was waived.
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

ALTER TABLE plan ADD COLUMN note TEXT;
ALTER TABLE plan ADD COLUMN seconds REAL;
ALTER TABLE judged_case ADD COLUMN note TEXT;
ALTER TABLE result ADD COLUMN waiver INTEGER REFERENCES waiver(id);
DROP VIEW case_verdict;
CREATE VIEW case_verdict AS
SELECT c.run, c.implementation, c.case_id, c.family, c.strategy, c.world_size,
       CASE coalesce(max(CASE r.verdict WHEN 'PASS' THEN 0 WHEN 'SKIP' THEN 1 WHEN 'FAIL' THEN 2 ELSE 3 END), 3)
           WHEN 0 THEN 'PASS' WHEN 1 THEN 'SKIP' WHEN 2 THEN 'FAIL' ELSE 'BROKEN' END AS verdict,
       coalesce(max(CASE r.verdict WHEN 'FAIL' THEN CASE WHEN w.expires >= substr(u.started, 1, 10) THEN 1 ELSE 2 END
                                   WHEN 'BROKEN' THEN 2 ELSE 0 END), 0) = 1 AS waived
FROM judged_case c JOIN run u ON u.id = c.run LEFT JOIN result r ON r.judged_case = c.id LEFT JOIN waiver w ON w.id = r.waiver
GROUP BY c.id;

PRAGMA user_version = 3;
