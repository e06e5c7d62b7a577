-- What a capture says about a variant beyond the first columns, as JSON: see captures.Details.
ALTER TABLE sightings ADD COLUMN details TEXT NOT NULL DEFAULT '{}';
-- Captures were recorded by file, factory and the name of one input function.
UPDATE captures SET record = json_remove(
    json_set(
        record,
        '$.model', json_extract(record, '$.file') || ':' || json_extract(record, '$.factory'),
        '$.inputs', json_array(json_extract(record, '$.inputs'))
    ),
    '$.file', '$.factory'
) WHERE json_extract(record, '$.file') IS NOT NULL;
