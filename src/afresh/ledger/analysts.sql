-- Least rights for analysts on a ledger in PostgreSQL. Run it as the role that owns the afresh_* tables, in their schema:
--
--     python -m afresh.ledger.analysts | psql postgresql://steward@host/database
--     GRANT afresh_analysts TO ada;        -- for each analyst, who logs in with her own role
--
-- A member of afresh_analysts may read the chains, and append to them only through afresh_append: questions in the name
-- of the role she logged in with, within the caps and her share; answers to those questions; and numbers derived from
-- answers. Only the owner may open data, plan, charge and divide. The rules are those of afresh/ledger/account.py, or
-- stricter: a record that afresh would refuse to read must never get in, because nobody could use the guard again.
BEGIN;
-- pg_temp comes last; otherwise a temporary table of the caller could replace one of the ledger's tables.
SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE OR REPLACE FUNCTION afresh_refuse_because(reason text) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION '%', reason USING ERRCODE = 'AF001'; END $$;

-- The guard's row, locked until the transaction ends.
CREATE OR REPLACE FUNCTION afresh_lock(wanted bigint)
    RETURNS TABLE (id bigint, seed text, length bigint, head text)
    LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
    AS $$ SELECT g.id, g.seed, g.length, g.head FROM afresh_guards g WHERE g.id = wanted FOR UPDATE $$;

-- Whether a JSON value is a finite number in a range. Python's floats overflow where numeric does not.
CREATE OR REPLACE FUNCTION afresh_number(value jsonb, low numeric, high numeric) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN jsonb_typeof(value) = 'number'
                      THEN (value #>> '{}')::numeric BETWEEN low AND high ELSE false END $$;

CREATE OR REPLACE FUNCTION afresh_pair(value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN jsonb_typeof(value) = 'array' AND jsonb_array_length(value) = 2
                      THEN afresh_number(value -> 0, -1e300, 1e300) AND afresh_number(value -> 1, -1e300, 1e300)
                      ELSE false END $$;

-- Two numbers in increasing order that remain distinct as floats.
CREATE OR REPLACE FUNCTION afresh_bounds(value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN afresh_pair(value) THEN (value ->> 0)::float8 < (value ->> 1)::float8 ELSE false END $$;

-- Whether an end of an interval lies on the plan's grid, whose step is a power of two: the quotient is exact.
CREATE OR REPLACE FUNCTION afresh_on_grid(value jsonb, step float8) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN afresh_number(value, 0, 1)
                      THEN (value #>> '{}')::float8 / step = floor((value #>> '{}')::float8 / step)
                      ELSE false END $$;

-- A coordinate of a vector: the vector's kind and size, how many answers it counts as, and the coordinate's place.
CREATE OR REPLACE FUNCTION afresh_vector(value jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN jsonb_typeof(value) = 'array' AND jsonb_array_length(value) = 4
                      THEN jsonb_typeof(value -> 0) = 'string'
                          AND (value ->> 1) ~ '^[0-9]{1,6}$' AND (value ->> 2) ~ '^[0-9]{1,6}$' AND (value ->> 3) ~ '^[0-9]{1,6}$'
                          AND jsonb_typeof(value -> 1) = 'number' AND jsonb_typeof(value -> 2) = 'number'
                          AND jsonb_typeof(value -> 3) = 'number' AND (value ->> 3)::int < (value ->> 1)::int
                          AND (value ->> 2)::int BETWEEN 1 AND (value ->> 1)::int
                      ELSE false END $$;

-- How many answers a question counts as: the first coordinate of a vector counts for the whole vector.
CREATE OR REPLACE FUNCTION afresh_counts(body jsonb) RETURNS numeric LANGUAGE sql IMMUTABLE
    AS $$ SELECT CASE WHEN body ->> 'kind' = 'charged' THEN (body ->> 'answers')::numeric
                      WHEN coalesce(jsonb_typeof(body -> 'vector'), 'null') = 'null' THEN 1
                      WHEN (body -> 'vector' ->> 3)::int = 0 THEN (body -> 'vector' ->> 2)::numeric
                      ELSE 0 END $$;

-- Refuse a record that the caller may not append to the existing ones.
CREATE OR REPLACE FUNCTION afresh_check(wanted bigint, record text) RETURNS void
    LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    body jsonb; kind text; keys text; plan jsonb; shares jsonb; mine jsonb; before jsonb; latest timestamptz;
    used_answers numeric; used_nats numeric; used_rows numeric; cap_answers numeric; cap_nats numeric;
    part_answers numeric; part_nats numeric; asked_nats numeric; opened bigint; all_rows bigint;
    asked_rows numeric := 0; part_rows numeric; opened_rows numeric;
    slack numeric := 1.0000000005;  -- less than afresh's own 1e-9, because decimals differ slightly from floats
BEGIN
    IF record !~ '^[\x20-\x7e]*$' THEN PERFORM afresh_refuse_because('a record is not one that afresh wrote'); END IF;
    BEGIN
        body := record::jsonb;
        SELECT string_agg(key, ' ' ORDER BY key COLLATE "C") INTO keys FROM json_object_keys(record::json) AS key;
        kind := body ->> 'kind';
    EXCEPTION WHEN OTHERS THEN PERFORM afresh_refuse_because('a record is not one that afresh wrote');
    END;
    -- Compare the keys as written in the text, so that none is missing, unknown or repeated.
    IF body -> 'version' IS DISTINCT FROM '3'::jsonb OR NOT coalesce(keys = CASE kind
        WHEN 'reserved' THEN 'again analyst at bounds charge coarseness digest guess kind levels number own row_charge span text vector version'
        WHEN 'answered' THEN 'at high kind low number released value version'
        WHEN 'stated' THEN 'analyst at bounds high kind low parameters parts rule text value version'
        END, false) THEN
        PERFORM afresh_refuse_because('analysts may ask, answer and state; opening data, planning, charging and '
            'dividing are for the role that owns the ledger');
    END IF;
    IF kind <> 'answered' AND (body ->> 'analyst') IS DISTINCT FROM session_user::text THEN
        PERFORM afresh_refuse_because('analyst= must be the name of the role that is logged in');
    END IF;
    SELECT max((r.record::jsonb ->> 'at')::timestamptz) INTO latest FROM afresh_records r WHERE r.guard = wanted;
    IF jsonb_typeof(body -> 'at') IS DISTINCT FROM 'string' OR (body ->> 'at') !~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$' OR (body ->> 'at')::timestamptz < latest
        OR (body ->> 'at')::timestamptz > clock_timestamp() + interval '5 minutes' THEN
        PERFORM afresh_refuse_because('the time of a record is not now; set this machine''s clock');
    END IF;

    SELECT r.record::jsonb INTO plan FROM afresh_records r
        WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'planned' ORDER BY place DESC LIMIT 1;
    -- An unfinished vector must be completed first, in the same transaction (see afresh_append).
    SELECT r.record::jsonb INTO before FROM afresh_records r WHERE r.guard = wanted ORDER BY place DESC LIMIT 1;
    IF jsonb_typeof(before -> 'vector') = 'array' AND before ->> 'kind' = 'reserved'
        AND (before -> 'vector' ->> 3)::int < (before -> 'vector' ->> 1)::int - 1
        AND (kind <> 'reserved' OR jsonb_typeof(body -> 'vector') IS DISTINCT FROM 'array' OR (body -> 'vector' ->> 3) = '0') THEN
        PERFORM afresh_refuse_because('a vector is incomplete');
    END IF;
    IF kind = 'reserved' THEN
        IF (jsonb_typeof(body -> 'digest') = 'string' AND body ->> 'digest' <> '' AND jsonb_typeof(body -> 'text') = 'string'
            AND afresh_bounds(body -> 'bounds') AND (body -> 'levels') IN ('null'::jsonb, '2'::jsonb, '3'::jsonb)
            AND jsonb_typeof(body -> 'own') = 'boolean' AND afresh_number(body -> 'coarseness', 1e-300, 1e300)
            AND afresh_number(body -> 'charge', 0, 1e300) AND afresh_number(body -> 'row_charge', 0, 1e300)
            AND jsonb_typeof(body -> 'number') = 'number'
            AND jsonb_typeof(body -> 'again') = 'null'
            AND (jsonb_typeof(body -> 'vector') = 'null' OR afresh_vector(body -> 'vector'))
            AND (jsonb_typeof(body -> 'guess') = 'null' OR afresh_pair(body -> 'guess'))) IS NOT TRUE THEN
            PERFORM afresh_refuse_because('a record is not one that afresh wrote');
        END IF;
        -- The coordinates of a vector come one after the other, and the first pays for all; `before` is the last record.
        SELECT r.record::jsonb INTO before FROM afresh_records r WHERE r.guard = wanted ORDER BY place DESC LIMIT 1;
        IF (CASE WHEN jsonb_typeof(body -> 'vector') = 'array' AND (body -> 'vector' ->> 3)::int > 0
            THEN coalesce(before -> 'vector' = jsonb_set(body -> 'vector', '{3}', to_jsonb((body -> 'vector' ->> 3)::int - 1)), false)
                AND before ->> 'analyst' = body ->> 'analyst' AND before -> 'coarseness' = body -> 'coarseness'
                AND (body ->> 'charge')::numeric = 0 AND (body ->> 'row_charge')::numeric = 0
            ELSE true END) IS NOT TRUE THEN
            PERFORM afresh_refuse_because('a question is not the next coordinate of a vector');
        END IF;
        IF EXISTS (SELECT FROM afresh_records r WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'closed') THEN
            PERFORM afresh_refuse_because('the rounds of this dataset were closed by a final look');
        END IF;
        IF (body -> 'span') <> 'null'::jsonb AND plan -> 'plan' ? 'exam' AND plan -> 'plan' ->> 'exam' <> '0' THEN
            PERFORM afresh_refuse_because('the exam is taken once for everybody, by the role that opened the data');
        END IF;
        -- Rows are opened once, in order, for the questions of one batch, which are written one after the other.
        IF (body -> 'span') <> 'null'::jsonb AND (body -> 'span') IS DISTINCT FROM (
            SELECT r.record::jsonb -> 'span' FROM afresh_records r WHERE r.guard = wanted ORDER BY place DESC LIMIT 1) THEN
            SELECT coalesce(max((r.record::jsonb -> 'span' ->> 1)::bigint), 0) INTO opened FROM afresh_records r
                WHERE r.guard = wanted AND jsonb_typeof(r.record::jsonb -> 'span') = 'array';
            SELECT (r.record::jsonb ->> 'rows')::bigint INTO all_rows FROM afresh_records r
                WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'opened';
            IF (CASE WHEN afresh_pair(body -> 'span') THEN (body -> 'span' ->> 0)::numeric = opened
                AND (body -> 'span' ->> 1)::numeric > opened AND (body -> 'span' ->> 1)::numeric <= all_rows
                AND (body -> 'span' ->> 1)::numeric % 1 = 0 ELSE false END) IS NOT TRUE THEN
                PERFORM afresh_refuse_because('a question does not use the next fresh rows');
            END IF;
            asked_rows := (body -> 'span' ->> 1)::numeric - opened;
        END IF;
        IF (body ->> 'number') IS DISTINCT FROM (1 + (SELECT count(*) FROM afresh_records r
            WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'reserved'))::text THEN
            PERFORM afresh_refuse_because('a question does not have the next number');
        END IF;
        IF EXISTS (SELECT FROM afresh_records r WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'reserved'
            AND r.record::jsonb ->> 'digest' = body ->> 'digest'
            AND (r.record::jsonb ->> 'coarseness')::numeric <= (body ->> 'coarseness')::numeric) THEN
            PERFORM afresh_refuse_because('this question has already been paid for');
        END IF;
        SELECT r.record::jsonb -> 'shares' INTO shares FROM afresh_records r
            WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'divided' ORDER BY place DESC LIMIT 1;
        shares := coalesce(shares, '{}');
        asked_nats := (body ->> 'charge')::numeric;
        SELECT coalesce(sum(afresh_counts(b)), 0),
               coalesce(sum((b ->> 'charge')::numeric), 0), coalesce(sum((b ->> 'row_charge')::numeric), 0)
            INTO used_answers, used_nats, used_rows
            FROM (SELECT r.record::jsonb AS b FROM afresh_records r WHERE r.guard = wanted) AS all_records
            WHERE b ->> 'kind' IN ('reserved', 'charged')
            -- An exam is not charged to the budget.
            AND NOT (coalesce(plan -> 'plan' ->> 'exam', '0') <> '0' AND coalesce(jsonb_typeof(b -> 'span'), '') = 'array');
        cap_answers := (plan ->> 'answers')::numeric;
        cap_nats := (plan ->> 'information')::numeric;
        IF used_answers + afresh_counts(body) > cap_answers OR used_nats + asked_nats > cap_nats * slack
            OR used_rows + (body ->> 'row_charge')::numeric > (plan ->> 'row_share')::numeric * slack THEN
            PERFORM afresh_refuse_because('the question would cost more than is left');
        END IF;
        -- What is left of the analyst's share or, without one, of the part that is not shared out.
        SELECT coalesce(sum(floor(value::numeric * cap_answers / greatest((plan ->> 'questions')::numeric, 1))), 0),
               coalesce(sum(cap_nats * value::numeric / greatest((plan ->> 'questions')::numeric, 1)), 0),
               coalesce(sum(floor(all_rows * value::numeric / greatest((plan ->> 'questions')::numeric, 1))), 0)
            INTO part_answers, part_nats, part_rows FROM jsonb_each_text(shares)
            WHERE NOT shares ? session_user::text OR key = session_user::text;
        IF shares ? session_user::text THEN
            cap_answers := part_answers; cap_nats := part_nats;
            SELECT coalesce(sum(afresh_counts(b)), 0), coalesce(sum((b ->> 'charge')::numeric), 0) INTO used_answers, used_nats
                FROM (SELECT r.record::jsonb AS b FROM afresh_records r WHERE r.guard = wanted) AS all_records
                WHERE b ->> 'kind' = 'reserved' AND b ->> 'analyst' = session_user::text;
        ELSE
            cap_answers := cap_answers - part_answers; cap_nats := cap_nats - part_nats;
            SELECT used_answers - coalesce(sum(afresh_counts(b)), 0), used_nats - coalesce(sum((b ->> 'charge')::numeric), 0)
                INTO used_answers, used_nats
                FROM (SELECT r.record::jsonb AS b FROM afresh_records r WHERE r.guard = wanted) AS all_records
                WHERE b ->> 'kind' = 'reserved' AND shares ? (b ->> 'analyst');
        END IF;
        IF used_answers + afresh_counts(body) > cap_answers OR used_nats + asked_nats > cap_nats * slack THEN
            PERFORM afresh_refuse_because('the question would cost more than is left of the share');
        END IF;
        IF asked_rows > 0 THEN
            SELECT coalesce(sum((span ->> 1)::numeric - (span ->> 0)::numeric), 0) INTO opened_rows FROM (
                SELECT DISTINCT r.record::jsonb -> 'span' AS span FROM afresh_records r
                WHERE r.guard = wanted AND jsonb_typeof(r.record::jsonb -> 'span') = 'array'
                AND CASE WHEN shares ? session_user::text THEN r.record::jsonb ->> 'analyst' = session_user::text
                    ELSE NOT shares ? (r.record::jsonb ->> 'analyst') END) AS spans;
            IF opened_rows + asked_rows >
                (CASE WHEN shares ? session_user::text THEN part_rows ELSE all_rows - part_rows END) THEN
                PERFORM afresh_refuse_because('the round would open more rows than are left of the share');
            END IF;
        END IF;
    ELSIF kind = 'answered' THEN
        SELECT r.record::jsonb INTO mine FROM afresh_records r
            WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'reserved'
            AND r.record::jsonb ->> 'number' = body ->> 'number';
        IF mine IS NULL OR EXISTS (SELECT FROM afresh_records r WHERE r.guard = wanted
            AND r.record::jsonb ->> 'kind' = 'answered' AND r.record::jsonb ->> 'number' = body ->> 'number') THEN
            PERFORM afresh_refuse_because('an answer belongs to a question that is not waiting for one');
        END IF;
        IF mine ->> 'analyst' IS DISTINCT FROM session_user::text THEN
            PERFORM afresh_refuse_because('the question was paid for by another analyst, who must complete it');
        END IF;
        IF (jsonb_typeof(body -> 'number') = 'number'
            AND afresh_on_grid(body -> 'low', (plan ->> 'ends')::float8)
            AND afresh_on_grid(body -> 'high', (plan ->> 'ends')::float8)
            AND afresh_number(body -> 'value', (body ->> 'low')::numeric, (body ->> 'high')::numeric)
            AND CASE jsonb_typeof(body -> 'released')
                WHEN 'number' THEN afresh_number(body -> 'released', -1e300, 1e300)
                WHEN 'object' THEN (SELECT bool_and(afresh_number(value, -1e300, 1e300)) FROM jsonb_each(body -> 'released'))
                    AND (SELECT count(*) FROM json_object_keys(record::json -> 'released'))
                        = (SELECT count(*) FROM jsonb_object_keys(body -> 'released'))
                ELSE false END) IS NOT TRUE THEN
            PERFORM afresh_refuse_because('a record is not one that afresh wrote');
        END IF;
    ELSE
        IF (jsonb_typeof(body -> 'text') = 'string' AND jsonb_typeof(body -> 'rule') = 'string'
            AND jsonb_typeof(body -> 'parameters') = 'object' AND afresh_bounds(body -> 'bounds')
            AND jsonb_typeof(body -> 'parts') = 'array' AND jsonb_array_length(body -> 'parts') > 0
            AND afresh_number(body -> 'low', (body -> 'bounds' ->> 0)::numeric, (body -> 'bounds' ->> 1)::numeric)
            AND afresh_number(body -> 'high', (body -> 'bounds' ->> 0)::numeric, (body -> 'bounds' ->> 1)::numeric)
            AND afresh_number(body -> 'value', (body ->> 'low')::numeric, (body ->> 'high')::numeric)) IS NOT TRUE THEN
            PERFORM afresh_refuse_because('a record is not one that afresh wrote');
        END IF;
        IF EXISTS (SELECT FROM jsonb_array_elements(body -> 'parts') AS part WHERE NOT EXISTS (
            SELECT FROM afresh_records r WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'answered'
            AND jsonb_typeof(part) = 'number' AND r.record::jsonb ->> 'number' = part #>> '{}')) THEN
            PERFORM afresh_refuse_because('a derived number follows from answers that do not exist');
        END IF;
        IF EXISTS (SELECT FROM afresh_records r WHERE r.guard = wanted AND r.record::jsonb ->> 'kind' = 'stated'
            AND r.record::jsonb - '{at,analyst,bounds,value,low,high}'::text[]
                = body - '{at,analyst,bounds,value,low,high}'::text[]) THEN
            PERFORM afresh_refuse_because('this derived number has already been stated');
        END IF;
    END IF;
END $$;

-- Append records after the first `expected` ones, with the hashes that follow from the head.
CREATE OR REPLACE FUNCTION afresh_append(wanted bigint, expected bigint, records text[], hashes text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    chain afresh_guards; i integer;
BEGIN
    SELECT * INTO chain FROM afresh_guards g WHERE g.id = wanted FOR UPDATE;
    IF NOT FOUND OR chain.length <> expected THEN
        PERFORM afresh_refuse_because('the chain has grown since it was read');
    END IF;
    FOR i IN 1 .. coalesce(array_length(records, 1), 0) LOOP
        PERFORM afresh_check(wanted, records[i]);
        chain.head := encode(sha256(convert_to(chain.head || chr(10) || records[i], 'UTF8')), 'hex');
        IF hashes[i] IS DISTINCT FROM chain.head THEN
            PERFORM afresh_refuse_because('a record does not follow from the one before it');
        END IF;
        chain.length := chain.length + 1;
        INSERT INTO afresh_records (guard, place, record, hash) VALUES (wanted, chain.length, records[i], chain.head);
    END LOOP;
    IF EXISTS (SELECT FROM afresh_records r WHERE r.guard = wanted AND r.place = chain.length
        AND r.record::jsonb ->> 'kind' = 'reserved' AND jsonb_typeof(r.record::jsonb -> 'vector') = 'array'
        AND (r.record::jsonb -> 'vector' ->> 3)::int < (r.record::jsonb -> 'vector' ->> 1)::int - 1) THEN
        PERFORM afresh_refuse_because('a vector is incomplete');
    END IF;
    IF chain.length > expected THEN
        UPDATE afresh_guards SET length = chain.length, head = chain.head WHERE id = wanted;
    END IF;
END $$;

DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'afresh_analysts') THEN CREATE ROLE afresh_analysts NOLOGIN; END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO afresh_analysts', current_schema());
END $$;
REVOKE ALL ON afresh_layout, afresh_guards, afresh_records, afresh_checkpoints, afresh_key, afresh_sketches
    FROM PUBLIC, afresh_analysts;
GRANT SELECT ON afresh_layout, afresh_guards, afresh_records, afresh_checkpoints, afresh_key, afresh_sketches TO afresh_analysts;
REVOKE ALL ON FUNCTION afresh_lock, afresh_append, afresh_check FROM PUBLIC;
GRANT EXECUTE ON FUNCTION afresh_lock, afresh_append TO afresh_analysts;
COMMIT;
