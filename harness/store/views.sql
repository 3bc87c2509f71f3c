-- Plain names for the questions people ask. Each view has `run`, so add: WHERE run LIKE 'ab12%'.

-- The cases of every slice, also of those that a run fixes by what the parent did.
CREATE OR REPLACE VIEW slice_cases AS
SELECT r.run, m.slice, m.case_id FROM slice_members m JOIN runs r USING (suite_digest)
UNION ALL SELECT run, slice, case_id FROM run_slice_members;

-- Candidate minus parent on every case and metric, with the case's text.
CREATE OR REPLACE VIEW case_deltas AS
SELECT c.run, k.role, c.metric, c.case_id, k.case_group, p.value AS parent_value, c.value AS candidate_value,
       c.value - p.value AS delta, c.status AS candidate_status, p.status AS parent_status, k.text
FROM case_metrics c
JOIN runs r ON r.run = c.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = c.case_id
LEFT JOIN case_metrics p ON p.run = c.run AND p.side = 'parent' AND p.metric = c.metric AND p.case_id = c.case_id
WHERE c.side = 'candidate';

-- Promotion cases on which the candidate lost most, worst first; of a metric like a loss, those where it rose most.
CREATE OR REPLACE VIEW worst_regressions AS
SELECT run, metric, case_id, parent_value, candidate_value, delta, text
FROM case_deltas JOIN metrics m USING (run, metric)
WHERE role = 'promotion' AND CASE WHEN m.higher_is_better THEN delta < 0 ELSE delta > 0 END
ORDER BY run, metric, abs(delta) DESC, case_id;

-- What both sides made of every case, beside what holds, in tasks without a corpus.
CREATE OR REPLACE VIEW case_predictions AS
SELECT c.run, k.role, c.case_id, k.case_group, c.gold, p.prediction AS parent, c.prediction AS candidate,
       p.probability AS parent_probability, c.probability AS candidate_probability,
       p.flags AS parent_flags, c.flags AS candidate_flags, k.text
FROM predictions c
JOIN runs r ON r.run = c.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = c.case_id
LEFT JOIN predictions p ON p.run = c.run AND p.side = 'parent' AND p.case_id = c.case_id
WHERE c.side = 'candidate'
ORDER BY c.run, k.position;

-- Which label was given for which, and how often, by side (promotion role).
CREATE OR REPLACE VIEW confusions AS
SELECT p.run, p.side, p.gold, p.prediction, count(*) AS cases
FROM predictions p
JOIN runs r ON r.run = p.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = p.case_id AND k.role = 'promotion'
WHERE p.gold IS DISTINCT FROM p.prediction
GROUP BY ALL
ORDER BY p.run, p.side, cases DESC, p.gold, p.prediction;

-- By slice and bin: how many forecasts, what they say on average, and how often it comes true (promotion role).
CREATE OR REPLACE VIEW reliability_bins AS
SELECT run, side, "row" ->> 0 AS slice, "row" ->> 1 AS bin, ("row" ->> 2)::BIGINT AS forecasts,
       ("row" ->> 3)::DOUBLE AS said, ("row" ->> 4)::DOUBLE AS came_true
FROM (SELECT run, side, unnest(json_extract(content, '$.rows[*]')) AS "row" FROM companions WHERE name = 'slice-reliability');

-- Every slice and metric: both sides, the difference, its interval, and what it rests on.
CREATE OR REPLACE VIEW slice_scoreboard AS
SELECT c.run, c.slice, c.metric, p.value AS parent_value, c.value AS candidate_value, d.delta, d.low, d.high,
       c.n_scored, c.n_total, c.n_groups, d.mde
FROM summaries c
LEFT JOIN summaries p ON p.run = c.run AND p.side = 'parent' AND p.slice = c.slice AND p.metric = c.metric
LEFT JOIN deltas d ON d.run = c.run AND d.slice = c.slice AND d.metric = c.metric
WHERE c.side = 'candidate'
ORDER BY c.run, c.slice, c.metric;

-- How many promotion cases of each slice went from right to wrong, and the other way.
CREATE OR REPLACE VIEW transition_counts AS
SELECT t.run, t.criterion, m.slice, t.transition, count(*) AS cases
FROM transitions t
JOIN runs r ON r.run = t.run
JOIN (SELECT run, slice, case_id FROM slice_cases
      UNION ALL SELECT run, 'all', case_id FROM runs JOIN cases USING (suite_digest)) m
  ON m.run = r.run AND m.case_id = t.case_id
GROUP BY ALL
ORDER BY t.run, t.criterion, m.slice, t.transition;

-- What each side put first, with the judgement it has (NULL: nobody judged it).
CREATE OR REPLACE VIEW first_answers AS
SELECT g.run, g.side, k.role, g.case_id, k.text, g.document_id, d.head, g.score, j.grade
FROM rankings g
JOIN runs r ON r.run = g.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = g.case_id
LEFT JOIN documents d ON d.suite_digest = r.suite_digest AND d.document_id = g.document_id
LEFT JOIN judgements j
  ON j.suite_digest = r.suite_digest AND j.case_id = g.case_id AND j.document_id = g.document_id
WHERE g.position = 1
ORDER BY g.run, g.side, k.position;

-- Documents among the candidate's first ten that nobody judged: what a judge should read next.
CREATE OR REPLACE VIEW judging_queue AS
SELECT g.run, g.case_id, k.text, g.position, g.document_id, d.head
FROM rankings g
JOIN runs r ON r.run = g.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = g.case_id AND k.role = 'promotion'
LEFT JOIN documents d ON d.suite_digest = r.suite_digest AND d.document_id = g.document_id
LEFT JOIN judgements j
  ON j.suite_digest = r.suite_digest AND j.case_id = g.case_id AND j.document_id = g.document_id
WHERE g.side = 'candidate' AND g.position <= 10 AND (j.grade IS NULL OR j.grade < 0)
ORDER BY g.run, g.position, k.position;

-- Cases whose text the model did not see whole.
CREATE OR REPLACE VIEW cut_cases AS
SELECT o.run, o.side, o.case_id, o.tokens_kept, o.tokens_lost, k.text
FROM outputs o
JOIN runs r ON r.run = o.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = o.case_id
WHERE o.tokens_lost > 0
ORDER BY o.run, o.side, o.tokens_lost DESC, o.case_id;

-- Every window of a text that was read in several, in the text's own tokens and characters, ends exclusive. It shares
-- `left_tokens` with the one before it and `right_tokens` with the one behind; a token stands in up to `multiplicity`.
CREATE OR REPLACE VIEW windows AS
SELECT t.run, t.side, t.release, e.content_id, t.member, t.reads, t.case_id, t.document_id, t.reading, t.position,
       token_start[position] AS token_start, token_end[position] AS token_end,
       token_end[position] - token_start[position] AS tokens,
       character_start[position] AS character_start, character_end[position] AS character_end,
       greatest(token_end[position - 1] - token_start[position], 0) AS left_tokens,
       greatest(token_end[position] - token_start[position + 1], 0) AS right_tokens,
       owned_start[position] AS owned_start, owned_end[position] AS owned_end, t.aggregation, t.owner, t.size,
       token_start[2] AS stride, t.around, len(token_start) AS windows,
       least(len(token_start), ceil(token_end[1] / token_start[2])::BIGINT) AS multiplicity, t.uncovered
FROM (SELECT *, unnest(range(1, len(token_start) + 1)) AS position FROM texts_in_windows) t
LEFT JOIN releases e ON e.run = t.run AND e.side = t.side
ORDER BY t.run, t.side, t.member, t.reads, t.case_id, t.document_id, t.reading, t.position;

-- Pairs that a last stage did not see whole, by what was cut of either text.
CREATE OR REPLACE VIEW cut_pairs AS
SELECT run, side, case_id, document_id, query_tokens_kept, query_tokens_lost, document_tokens_kept, document_tokens_lost
FROM candidates
WHERE query_tokens_lost > 0 OR document_tokens_lost > 0
ORDER BY run, side, query_tokens_lost + document_tokens_lost DESC, case_id, document_id;

-- Relevant documents that a last stage was not given, and so could not find.
CREATE OR REPLACE VIEW out_of_reach AS
SELECT s.run, s.side, k.role, j.case_id, k.text, j.document_id, d.head, j.grade
FROM candidate_sets s
JOIN runs r ON r.run = s.run
JOIN cases k ON k.suite_digest = r.suite_digest
JOIN judgements j ON j.suite_digest = r.suite_digest AND j.case_id = k.case_id AND j.grade > 0
LEFT JOIN documents d ON d.suite_digest = r.suite_digest AND d.document_id = j.document_id
ANTI JOIN candidates c ON c.run = s.run AND c.side = s.side AND c.case_id = j.case_id AND c.document_id = j.document_id
ORDER BY s.run, s.side, k.position, j.document_id;

-- Cases without an output, and why.
CREATE OR REPLACE VIEW cases_without_output AS
SELECT o.run, o.side, o.case_id, o.status, o.reason FROM outputs o WHERE o.status <> 'ok'
ORDER BY o.run, o.side, o.case_id;

-- The rules that did not pass, most serious first.
CREATE OR REPLACE VIEW open_rules AS
SELECT run, id, outcome, metric, slice, delta, low, high, margin, p_adjusted, n_groups, reason
FROM rules WHERE outcome <> 'PASS'
ORDER BY run, CASE outcome WHEN 'FAIL' THEN 0 WHEN 'UNDECIDED' THEN 1 ELSE 2 END, position;

-- Promotion cases that got worse: by the metric that cases are followed by, from right to wrong, or without an output where the parent has one.
CREATE OR REPLACE VIEW regressed_cases AS
SELECT w.run, w.case_id FROM worst_regressions w JOIN metrics m ON m.run = w.run AND m.metric = w.metric AND m.followed
UNION SELECT run, case_id FROM transitions WHERE transition = 'parent-only'
UNION SELECT c.run, c.case_id
FROM outputs c
JOIN outputs p ON p.run = c.run AND p.case_id = c.case_id AND p.side = 'parent' AND p.status = 'ok'
JOIN runs r ON r.run = c.run
JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = c.case_id AND k.role = 'promotion'
WHERE c.side = 'candidate' AND c.status <> 'ok';

-- What was seen where a case got worse, each cause that holds; the lowest place is the one that is counted.
CREATE OR REPLACE VIEW case_causes AS
WITH worse AS (
    SELECT w.run, r.suite_digest, w.case_id, k.text FROM regressed_cases w
    JOIN runs r USING (run) JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = w.case_id
), both_outputs AS (
    SELECT w.run, w.case_id, c.status, c.reason, c.non_finite, c.crossing, c.input_digest, p.input_digest AS parent_digest,
           c.tokens_lost - p.tokens_lost AS more_lost  -- NULL where a side does not tell
    FROM worse w
    JOIN outputs c ON c.run = w.run AND c.side = 'candidate' AND c.case_id = w.case_id
    JOIN outputs p ON p.run = w.run AND p.side = 'parent' AND p.case_id = w.case_id
), both_predictions AS (
    SELECT w.run, w.case_id, c.prediction, p.prediction AS parent_prediction, c.flags, p.flags AS parent_flags
    FROM worse w
    JOIN predictions c ON c.run = w.run AND c.side = 'candidate' AND c.case_id = w.case_id
    JOIN predictions p ON p.run = w.run AND p.side = 'parent' AND p.case_id = w.case_id
), relevant AS (
    SELECT w.run, w.case_id, j.document_id FROM worse w
    JOIN judgements j ON j.suite_digest = w.suite_digest AND j.case_id = w.case_id AND j.grade > 0
), own_labels AS (
    SELECT run, side, list(label ORDER BY position) AS labels FROM output_labels GROUP BY run, side
), raw AS (
    SELECT t.run, t.side, t.case_id, t.scores, o.labels, t.answer, t.value, t.score, t.null_score, t.tags,
           CASE WHEN o.labels IS NULL THEN list_transform(t.scores, lambda x, i: {'label': i::VARCHAR, 'score': x})
                ELSE list_sort(list_transform(t.scores, lambda x, i: {'label': o.labels[i], 'score': x})) END AS scored
    FROM task_outputs t LEFT JOIN own_labels o USING (run, side)
), numbers AS (  -- whatever a side says in numbers, labels by name
    SELECT w.run, w.case_id, c.answer AS answer, p.answer AS parent_answer,
           list_transform(c.scored, lambda x: x.label) AS labels, list_transform(p.scored, lambda x: x.label) AS parent_labels,
           list_concat(list_transform(c.scored, lambda x: x.score), [c.value, c.score, c.null_score]) AS numbers,
           list_concat(list_transform(p.scored, lambda x: x.score), [p.value, p.score, p.null_score]) AS parent_numbers,
           list_max(list_transform(numbers, lambda x: abs(x))) AS largest,
           list_max(list_transform(parent_numbers, lambda x: abs(x))) AS parent_largest
    FROM worse w
    JOIN raw c ON c.run = w.run AND c.side = 'candidate' AND c.case_id = w.case_id
    JOIN raw p ON p.run = w.run AND p.side = 'parent' AND p.case_id = w.case_id
    WHERE list_transform(c.scored, lambda x: x.label) IS NOT DISTINCT FROM list_transform(p.scored, lambda x: x.label)
), of_labels AS (  -- the scores of each label, and the lowest that any has which the parent clearly puts above it
    SELECT run, case_id, score, min(score) OVER (
               PARTITION BY run, case_id ORDER BY parent_score DESC RANGE BETWEEN UNBOUNDED PRECEDING AND 1e-5 PRECEDING
           ) AS above
    FROM (SELECT run, case_id, unnest(numbers[:len(labels)]) / largest AS score,
                 unnest(parent_numbers[:len(labels)]) / parent_largest AS parent_score
          FROM numbers WHERE len(labels) > 1 AND largest > 0 AND parent_largest > 0)
), parts AS (
    SELECT run, side, list(DISTINCT part ORDER BY part) AS parts FROM prompts GROUP BY run, side
), alone AS (  -- prompts of a part that the other side has not
    SELECT run, side, texts, list(DISTINCT prompt) AS prompts
    FROM prompts ANTI JOIN prompts other
      ON other.run = prompts.run AND other.side <> prompts.side AND other.part = prompts.part AND other.texts = prompts.texts
    GROUP BY run, side, texts
), prompt_changes AS (
    SELECT run, texts, c.part FROM prompts c JOIN prompts p USING (run, texts, part)
    WHERE c.side = 'candidate' AND p.side = 'parent' AND c.prompt <> p.prompt
    UNION ALL
    SELECT run, texts, '' FROM alone c JOIN alone p USING (run, texts)
    WHERE c.side = 'candidate' AND p.side = 'parent' AND NOT list_has_any(c.prompts, p.prompts)
), seen AS (
    SELECT run, case_id, 1 AS place, 'non-finite' AS cause, reason AS seen FROM both_outputs WHERE status <> 'ok' AND non_finite
    UNION ALL
    SELECT run, case_id, 2, 'no-output', status || coalesce(': ' || nullif(reason, ''), '')
    FROM both_outputs WHERE status <> 'ok' AND NOT non_finite
    UNION ALL
    SELECT v.run, v.case_id, 3, 'candidate-recall', 'its last stage was not given ' || string_agg(v.document_id, ', ' ORDER BY v.document_id)
    FROM relevant v
    JOIN candidate_sets s ON s.run = v.run AND s.side = 'candidate'
    ANTI JOIN candidates c ON c.run = v.run AND c.side = 'candidate' AND c.case_id = v.case_id AND c.document_id = v.document_id
    WHERE EXISTS (FROM candidates p WHERE p.run = v.run AND p.side = 'parent' AND p.case_id = v.case_id AND p.document_id = v.document_id)
       OR (NOT EXISTS (FROM candidate_sets p WHERE p.run = v.run AND p.side = 'parent')
           AND EXISTS (FROM rankings p WHERE p.run = v.run AND p.side = 'parent' AND p.case_id = v.case_id AND p.document_id = v.document_id))
    GROUP BY v.run, v.case_id
    UNION ALL
    SELECT run, case_id, 4, 'truncated', more_lost || ' more tokens of it are cut' FROM both_outputs WHERE more_lost > 0
    UNION ALL
    SELECT v.run, v.case_id, 4, 'truncated', 'more is cut of ' || string_agg(v.document_id, ', ' ORDER BY v.document_id)
    FROM relevant v
    JOIN cut_documents c ON c.run = v.run AND c.side = 'candidate' AND c.document_id = v.document_id
    JOIN both_outputs o ON o.run = v.run AND o.case_id = v.case_id AND o.more_lost IS NOT NULL
    LEFT JOIN cut_documents p ON p.run = v.run AND p.side = 'parent' AND p.document_id = v.document_id
    WHERE c.tokens_lost > coalesce(p.tokens_lost, 0)
    GROUP BY v.run, v.case_id
    UNION ALL
    SELECT v.run, v.case_id, 4, 'truncated', 'more is cut of its pair with ' || string_agg(v.document_id, ', ' ORDER BY v.document_id)
    FROM relevant v
    JOIN candidates c ON c.run = v.run AND c.side = 'candidate' AND c.case_id = v.case_id AND c.document_id = v.document_id
    JOIN candidates p ON p.run = v.run AND p.side = 'parent' AND p.case_id = v.case_id AND p.document_id = v.document_id
    WHERE c.query_tokens_lost + c.document_tokens_lost > p.query_tokens_lost + p.document_tokens_lost
    GROUP BY v.run, v.case_id
    UNION ALL
    SELECT run, case_id, 4, 'truncated', 'its tags end before the text does'
    FROM both_predictions WHERE list_contains(flags, 'short') AND NOT list_contains(parent_flags, 'short')
    UNION ALL
    SELECT run, case_id, 5, 'calibration-only', 'both sides say the same numbers' FROM numbers
    WHERE answer IS NOT DISTINCT FROM parent_answer
      AND list_transform(numbers, lambda x: x IS NULL) = list_transform(parent_numbers, lambda x: x IS NULL)
      AND list_max(list_transform(list_zip(numbers, parent_numbers), lambda x: abs(x[1] - x[2])))
          <= 1e-5 * greatest(largest, parent_largest)
    UNION ALL
    SELECT o.run, o.case_id, 5, 'calibration-only', 'both sides put the labels or choices in one order'
    FROM of_labels JOIN both_outputs o USING (run, case_id)
    JOIN worse w USING (run, case_id)
    LEFT JOIN golds g ON g.suite_digest = w.suite_digest AND g.case_id = o.case_id
    WHERE o.status = 'ok' AND o.input_digest IS NOT DISTINCT FROM o.parent_digest
      AND g.labels IS NULL  -- of a set each label is decided by itself, whatever stands above it
    GROUP BY o.run, o.case_id HAVING bool_and(above IS NULL OR score <= above + 1e-5)
    UNION ALL
    SELECT b.run, b.case_id, 6, 'no-answer', CASE WHEN b.prediction IS NULL OR list_contains(b.flags, 'abstained')
        THEN 'it says nothing where the parent says something' ELSE 'it says something where the parent says nothing' END
    FROM both_predictions b JOIN both_outputs o USING (run, case_id)
    WHERE o.status = 'ok' AND (b.prediction IS NULL OR list_contains(b.flags, 'abstained'))
                           <> (b.parent_prediction IS NULL OR list_contains(b.parent_flags, 'abstained'))
    UNION ALL
    SELECT w.run, w.case_id, 6, 'no-answer', CASE WHEN coalesce(c.answer, '') = ''
        THEN 'it gives no answer where the parent gives one' ELSE 'it gives an answer where the parent gives none' END
    FROM worse w
    JOIN golds g ON g.suite_digest = w.suite_digest AND g.case_id = w.case_id AND g.answers IS NOT NULL
    JOIN both_outputs o ON o.run = w.run AND o.case_id = w.case_id AND o.status = 'ok'
    JOIN raw c ON c.run = w.run AND c.side = 'candidate' AND c.case_id = w.case_id
    JOIN raw p ON p.run = w.run AND p.side = 'parent' AND p.case_id = w.case_id
    WHERE (coalesce(c.answer, '') = '') <> (coalesce(p.answer, '') = '')
    UNION ALL
    SELECT run, case_id, 7, 'type', 'an entity is found under another type'
    FROM both_predictions WHERE list_contains(flags, 'wrong-type') AND NOT list_contains(parent_flags, 'wrong-type')
    UNION ALL
    SELECT run, case_id, 8, 'label-boundary', 'an entity is found with other ends'
    FROM both_predictions WHERE list_contains(flags, 'wrong-boundary') AND NOT list_contains(parent_flags, 'wrong-boundary')
    UNION ALL
    SELECT run, case_id, 8, 'label-boundary', 'it is wrong by no more than the boundary_gap of the suite'
    FROM both_predictions WHERE list_contains(flags, 'near-boundary') AND NOT list_contains(parent_flags, 'near-boundary')
    UNION ALL
    SELECT run, case_id, 9, 'tied', 'its output hangs on a tie' FROM both_predictions WHERE list_contains(flags, 'tied')
    UNION ALL
    SELECT v.run, v.case_id, 9, 'tied', string_agg(DISTINCT v.document_id, ', ' ORDER BY v.document_id) || ' ties with others'
    FROM relevant v
    JOIN rankings c ON c.run = v.run AND c.side = 'candidate' AND c.case_id = v.case_id AND c.document_id = v.document_id
    JOIN rankings o ON o.run = v.run AND o.side = 'candidate' AND o.case_id = v.case_id AND o.score = c.score
    ANTI JOIN relevant also ON also.run = v.run AND also.case_id = v.case_id AND also.document_id = o.document_id
    GROUP BY v.run, v.case_id
    UNION ALL
    SELECT run, case_id, 10, 'encoding', 'its text holds a replacement or control character, or UTF-8 that was read as another'
    FROM worse WHERE regexp_matches(text, '[\x{FFFD}\x{80}-\x{9F}\x{01}-\x{08}]|[ÃÂ][\x{80}-\x{BF}]|â€')
    UNION ALL
    SELECT o.run, o.case_id, 11, 'prompt-changed', 'its text is put to the model in other words'
    FROM both_outputs o
    LEFT JOIN parts c ON c.run = o.run AND c.side = 'candidate'
    LEFT JOIN parts p ON p.run = o.run AND p.side = 'parent'
    WHERE o.input_digest <> o.parent_digest AND c.parts IS NOT DISTINCT FROM p.parts
    UNION ALL
    SELECT DISTINCT v.run, v.case_id, 11, 'prompt-changed',
           CASE n.texts WHEN 'document' THEN 'documents are' WHEN 'query' THEN 'its text is' ELSE 'its pairs are' END
           || ' put to ' || CASE n.part WHEN '' THEN 'the model' ELSE n.part END || ' with another prompt'
    FROM relevant v JOIN prompt_changes n USING (run)
), named AS (
    SELECT run, case_id, place, cause, string_agg(seen, '; ' ORDER BY seen) AS seen FROM seen GROUP BY ALL
    UNION ALL
    SELECT w.run, w.case_id, 12, 'unexplained', 'none of the others holds' FROM worse w ANTI JOIN seen USING (run, case_id)
)
SELECT n.run, n.case_id, n.place, n.cause, n.seen, w.text FROM named n JOIN worse w USING (run, case_id)
ORDER BY n.run, n.case_id, n.place;

-- Of the cases of each slice that got worse, how many by which cause, each case counted once.
CREATE OR REPLACE VIEW cause_counts AS
SELECT first.run, m.slice, first.cause, count(*) AS cases
FROM (SELECT run, case_id, min(place) AS place, arg_min(cause, place) AS cause FROM case_causes GROUP BY run, case_id) first
JOIN (SELECT run, slice, case_id FROM slice_cases
      UNION ALL SELECT run, 'all', case_id FROM runs JOIN cases USING (suite_digest)) m USING (run, case_id)
GROUP BY first.run, m.slice, first.cause
ORDER BY first.run, m.slice, min(first.place);
