-- The search as a function in the database: one round trip, and a later step runs only while there is not enough.

CREATE EXTENSION pg_trgm;
CREATE EXTENSION unaccent;

CREATE FUNCTION folded(typed text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE STRICT AS $$
  SELECT btrim(regexp_replace(
    translate(lower(public.unaccent('public.unaccent', typed)), '''’`´', ''), '[^[:alnum:]]+', ' ', 'g'))
$$;

-- pop_rank: by popularity, then id. words: every text after a space. countries: NULL for all.
CREATE TABLE shops (
  pop_rank int PRIMARY KEY, id text, name text, domain text, category text, countries text[], words text, categories text
);

-- kind: 1 for a whole text, 2 for the rest of one from a later word on.
CREATE TABLE texts (pop_rank int, kind int, folded text);

CREATE FUNCTION suggest(typed text, market text, enough int)
RETURNS TABLE (id text, name text, domain text, category text)
LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  q text := folded(typed);
  found int[] := '{}';
  words text[] := string_to_array(q, ' ');
  first_word text := '% ' || words[1] || '%';
  second_word text := '% ' || words[2] || '%';
  any_word text[] := ARRAY(SELECT '% ' || w || '%' FROM unnest(words) w);
BEGIN
  IF q = '' THEN
    found := ARRAY(SELECT s.pop_rank FROM shops s WHERE market IS NULL OR s.countries IS NULL OR market = ANY(s.countries)
      ORDER BY s.pop_rank LIMIT enough);
  ELSIF length(q) <= 2 THEN
    found := ARRAY(SELECT t.pop_rank FROM texts t JOIN shops s USING (pop_rank)
      WHERE t.folded = q AND t.kind = 1 AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
      ORDER BY t.pop_rank LIMIT enough);
    IF cardinality(found) < enough AND length(q) = 1 THEN
      found := found || ARRAY(SELECT t.pop_rank FROM texts t JOIN shops s USING (pop_rank)
        WHERE left(t.folded, 1) = q AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
        ORDER BY t.kind, t.pop_rank LIMIT 3 * enough);
    ELSIF cardinality(found) < enough THEN
      found := found || ARRAY(SELECT t.pop_rank FROM texts t JOIN shops s USING (pop_rank)
        WHERE left(t.folded, 2) = q AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
        ORDER BY t.kind, t.pop_rank LIMIT 3 * enough);
    END IF;
  ELSE
    -- As a range, since the pattern of a LIKE is not known when a statement is planned for all of them.
    found := ARRAY(SELECT t.pop_rank FROM texts t JOIN shops s USING (pop_rank)
      WHERE t.folded ~>=~ q AND t.folded ~<~ (q || chr(1114111))
        AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
      ORDER BY t.kind, t.folded <> q, t.pop_rank + 0 LIMIT 3 * enough);
    IF cardinality(found) < enough AND cardinality(words) > 1 THEN
      found := found || ARRAY(SELECT s.pop_rank FROM shops s
        WHERE s.words LIKE first_word AND s.words LIKE second_word AND s.words LIKE ALL (any_word)
          AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
        ORDER BY s.pop_rank + 0 LIMIT enough);
      IF cardinality(found) < enough THEN
        found := found || ARRAY(SELECT s.pop_rank FROM shops s
          WHERE (s.words LIKE first_word OR s.words LIKE second_word)
            AND s.words || s.categories LIKE ALL (any_word)
            AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
          ORDER BY s.pop_rank + 0 LIMIT enough);
      END IF;
    END IF;
    IF cardinality(found) < enough THEN
      found := found || ARRAY(SELECT s.pop_rank FROM shops s
        WHERE s.words LIKE '%' || q || '%'
          AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
        ORDER BY s.pop_rank + 0 LIMIT enough);
    END IF;
    IF found = '{}' THEN
      found := ARRAY(SELECT s.pop_rank FROM shops s
        WHERE q <% s.words AND (market IS NULL OR s.countries IS NULL OR market = ANY(s.countries))
        ORDER BY q <<-> s.words, similarity(q, s.words) DESC, s.pop_rank LIMIT enough);
    END IF;
  END IF;
  RETURN QUERY SELECT s.id, s.name, s.domain, s.category
    FROM (SELECT f.pop_rank, min(f.at) AS at FROM unnest(found) WITH ORDINALITY AS f (pop_rank, at)
      GROUP BY f.pop_rank ORDER BY 2 LIMIT enough) AS best
    JOIN shops s USING (pop_rank) ORDER BY best.at;
END
$$;
