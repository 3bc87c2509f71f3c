"""Reading back what the parent did with each case, as far as slices are made of it."""

from harness.output.parent import ParentCase
from harness.store.connection import Connection


def parent_cases(connection: Connection, run: str) -> dict[str, ParentCase]:
    """By case ID, in suite order; empty where the run has no parent."""
    rows = connection.execute(
        """WITH relevant AS (
               SELECT j.case_id, j.document_id FROM judgements j JOIN runs r USING (suite_digest)
               WHERE r.run = $run AND j.grade > 0),
           cut AS (
               SELECT DISTINCT e.case_id FROM relevant e JOIN cut_documents c USING (document_id)
               WHERE c.run = $run AND c.side = 'parent'),
           given AS (
               SELECT e.case_id, min(c.position) AS place FROM relevant e JOIN candidates c USING (case_id, document_id)
               WHERE c.run = $run AND c.side = 'parent' GROUP BY e.case_id),
           ranked AS (
               SELECT e.case_id, min(g.place) AS place FROM relevant e JOIN (
                   SELECT case_id, document_id, rank() OVER (PARTITION BY case_id ORDER BY score DESC) AS place
                   FROM rankings WHERE run = $run AND side = 'parent') g USING (case_id, document_id)
               GROUP BY e.case_id),
           staged AS (SELECT count(*) > 0 AS has FROM candidate_sets WHERE run = $run AND side = 'parent')
           SELECT o.case_id, o.tokens_kept,
                  CASE WHEN x.case_id IS NOT NULL OR o.tokens_lost > 0 THEN true
                       WHEN o.tokens_lost IS NULL THEN NULL ELSE false END,
                  CASE WHEN s.has THEN v.place ELSE q.place END,
                  o.norm
           FROM outputs o JOIN runs r ON r.run = o.run
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = o.case_id
           CROSS JOIN staged s
           LEFT JOIN cut x ON x.case_id = o.case_id LEFT JOIN given v ON v.case_id = o.case_id
           LEFT JOIN ranked q ON q.case_id = o.case_id
           WHERE o.run = $run AND o.side = 'parent' ORDER BY k.position""",
        {"run": run},
    ).fetchall()
    return {case_id: ParentCase(tokens, cut, rank, norm) for case_id, tokens, cut, rank, norm in rows}
