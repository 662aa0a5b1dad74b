-- What brings a results store of schema version 3 to version 4, in one transaction. Nothing of version 3 was probed.
ALTER TABLE judged_case ADD COLUMN probes TEXT;

-- Each phase of each rank that probes were loaded in: times in seconds from the case's first mark, live bytes of the heap at its end and
-- its peak.
CREATE VIEW probe_phase AS
SELECT c.run, c.implementation, c.case_id, c.world_size, json_extract(r.value, '$.rank') AS rank, p.key AS position,
       json_extract(p.value, '$.name') AS phase, json_extract(p.value, '$.step') AS step,
       1e-6 * json_extract(p.value, '$.us[0]') AS begin_s, 1e-6 * json_extract(p.value, '$.us[1]') AS end_s,
       json_extract(p.value, '$.heap[1]') AS heap_end, json_extract(p.value, '$.heap[2]') AS heap_peak,
       json_extract(p.value, '$.traffic') AS traffic
FROM judged_case c, json_each(c.probes, '$.ranks') r, json_each(r.value, '$.phases') p;

PRAGMA user_version = 4;
