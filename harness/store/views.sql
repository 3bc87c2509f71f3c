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
