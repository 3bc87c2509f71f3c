-- One row per thing that happened, keyed so that a step done twice leaves one copy.
-- IDs are VARCHAR everywhere: "007", "1e2" and "100" are three IDs.

CREATE TABLE IF NOT EXISTS layout (       -- digests of this file, by which a store of another version is known, and of the views
    digest VARCHAR NOT NULL,
    views  VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS suites (
    suite_digest   VARCHAR PRIMARY KEY,   -- digest of the lock
    suite          VARCHAR NOT NULL,
    data_digest    VARCHAR NOT NULL,      -- the part of the lock that outputs depend on
    policy_digest  VARCHAR NOT NULL,      -- the part that only the decision depends on
    lock           VARCHAR NOT NULL       -- suite.lock.json
);

CREATE TABLE IF NOT EXISTS cases (
    suite_digest VARCHAR NOT NULL,
    position     BIGINT  NOT NULL,        -- suite order, from 0
    case_id      VARCHAR NOT NULL,
    role         VARCHAR NOT NULL,
    case_group   VARCHAR NOT NULL,
    answerable   BOOLEAN NOT NULL,
    text         VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS case_attributes (
    suite_digest VARCHAR NOT NULL,
    case_id      VARCHAR NOT NULL,
    name         VARCHAR NOT NULL,
    type         VARCHAR NOT NULL,        -- text | integer | number | boolean
    value        VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS golds (        -- what holds of a case, in tasks without a corpus; what nobody knows is NULL
    suite_digest VARCHAR NOT NULL,
    case_id      VARCHAR NOT NULL,
    inputs       VARCHAR NOT NULL,        -- JSON
    label        VARCHAR,
    labels       VARCHAR[],
    value        DOUBLE,
    tags         VARCHAR[],
    answers      VARCHAR[],               -- empty where there is none
    starts       BIGINT[],                -- first characters of the answers in the context
    choice       BIGINT                   -- from 0
);

CREATE TABLE IF NOT EXISTS documents (    -- judged documents and those that a run put among its first ten
    suite_digest VARCHAR NOT NULL,
    document_id  VARCHAR NOT NULL,
    head         VARCHAR NOT NULL         -- the first 200 characters
);

CREATE TABLE IF NOT EXISTS judgements (
    suite_digest VARCHAR NOT NULL,
    case_id      VARCHAR NOT NULL,
    document_id  VARCHAR NOT NULL,
    grade        INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS slices (
    suite_digest VARCHAR NOT NULL,
    slice        VARCHAR NOT NULL,
    definition   VARCHAR NOT NULL,        -- what picks its cases, as one reads it
    critical     BOOLEAN NOT NULL,
    min_support  BIGINT  NOT NULL
);

CREATE TABLE IF NOT EXISTS slice_members (
    suite_digest VARCHAR NOT NULL,
    slice        VARCHAR NOT NULL,
    case_id      VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS run_slice_members ( -- of slices that a run fixes, by what the parent did
    run     VARCHAR NOT NULL,
    slice   VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS runs (
    run           VARCHAR PRIMARY KEY,    -- digest of the inputs
    suite         VARCHAR NOT NULL,
    suite_digest  VARCHAR NOT NULL,
    suite_place   VARCHAR NOT NULL,       -- where the suite's folder was
    candidate     VARCHAR NOT NULL,
    parent        VARCHAR,                -- NULL under --parent none
    decision      VARCHAR,                -- PASS | FAIL | UNDECIDED; NULL until decided
    exploratory   BOOLEAN,
    reading       BIGINT,                 -- how many runs had read these promotion outcomes, this one included
    remarks       VARCHAR[],
    policy_digest VARCHAR,                -- of the rules that decided
    updated_at    TIMESTAMP NOT NULL,      -- when it was last run or decided
    version       VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS steps (        -- a step stands here once all it writes is committed
    run     VARCHAR NOT NULL,
    step    VARCHAR NOT NULL,             -- outputs:candidate | outputs:parent | measured | decided
    seconds DOUBLE
);

CREATE TABLE IF NOT EXISTS passes (       -- what texts took on their way through a model: clocks, in nothing that is digested
    run         VARCHAR   NOT NULL,
    pass_key    VARCHAR   NOT NULL,       -- of the contextual rows and of what computes them
    side        VARCHAR   NOT NULL,       -- of the texts: query | document | pair | text
    measured_at TIMESTAMP NOT NULL,
    texts       BIGINT    NOT NULL,       -- that were computed; what lay in the cache is left out
    tokens      BIGINT    NOT NULL,       -- theirs, special ones included, padding left out
    seconds     DOUBLE    NOT NULL,       -- of the forward passes alone, by the wall
    threads     BIGINT    NOT NULL,
    backend     VARCHAR   NOT NULL,
    machine     VARCHAR   NOT NULL
);

CREATE TABLE IF NOT EXISTS plans (        -- those actions of the invalidation plan, as it was after the run, that encode
    run       VARCHAR NOT NULL,
    position  BIGINT  NOT NULL,           -- among all actions of the plan, from 1
    action    VARCHAR NOT NULL,
    namespace VARCHAR NOT NULL,
    made_from VARCHAR,                    -- the namespace whose rows it is made of; NULL where the texts are read
    pass_key  VARCHAR,                    -- as in `passes`; NULL where no model of the candidate reads the texts
    side      VARCHAR,
    items     BIGINT,
    of_items  BIGINT,
    tokens    BIGINT
);

CREATE TABLE IF NOT EXISTS releases (
    run         VARCHAR NOT NULL,
    side        VARCHAR NOT NULL,         -- candidate | parent
    release     VARCHAR NOT NULL,
    place       VARCHAR NOT NULL,
    content_id  VARCHAR NOT NULL,
    output_key  VARCHAR NOT NULL,         -- what every output of this release on this suite depends on
    interaction VARCHAR NOT NULL,
    meaning     VARCHAR NOT NULL,         -- JSON
    parts       VARCHAR NOT NULL,         -- JSON: by role, the meanings of the releases that it is made of
    runtime     VARCHAR NOT NULL,         -- JSON
    threshold   VARCHAR,                  -- the file that says on what its threshold was fitted
    calibrator  VARCHAR                   -- JSON, as it lies beside release.toml
);

CREATE TABLE IF NOT EXISTS prompts (      -- what a side puts before texts on this suite
    run    VARCHAR NOT NULL,
    side   VARCHAR NOT NULL,              -- candidate | parent
    part   VARCHAR NOT NULL,              -- role of a release that it is made of, after a slash that one's own; else ''
    texts  VARCHAR NOT NULL,              -- query | document | pair
    prompt VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS outputs (
    run          VARCHAR NOT NULL,
    side         VARCHAR NOT NULL,
    release      VARCHAR NOT NULL,
    case_id      VARCHAR NOT NULL,
    status       VARCHAR NOT NULL,        -- ok | missing | failed
    reason       VARCHAR NOT NULL,
    non_finite   BOOLEAN NOT NULL,        -- failed because its output isn't finite
    input_digest VARCHAR,                 -- of the rendered text
    tokens_kept  BIGINT,
    tokens_lost  BIGINT,
    norm         DOUBLE,                  -- length of the query's vector before scoring; NULL where it has no single one
    retrieved    BIGINT  NOT NULL,        -- rows of the ranking
    crossing     BIGINT  NOT NULL         -- size of a tied group across the depth that isn't stored whole, else 0
);

CREATE TABLE IF NOT EXISTS rankings (
    run         VARCHAR NOT NULL,
    side        VARCHAR NOT NULL,
    release     VARCHAR NOT NULL,
    case_id     VARCHAR NOT NULL,
    position    INTEGER NOT NULL,         -- from 1, in the suite's total order
    document_id VARCHAR NOT NULL,
    score       DOUBLE  NOT NULL
);

CREATE TABLE IF NOT EXISTS task_outputs ( -- what a side said of a case, as it said it, in tasks without a corpus
    run        VARCHAR NOT NULL,
    side       VARCHAR NOT NULL,
    release    VARCHAR NOT NULL,
    case_id    VARCHAR NOT NULL,
    scores     DOUBLE[],                  -- one a label, in the order of output_labels, or one a choice
    value      DOUBLE,                    -- a number, before any inverse transform, or how much two texts are alike
    tags       VARCHAR[],
    answer     VARCHAR,                   -- NULL where the model abstains
    span_start BIGINT,                    -- characters of the context
    span_end   BIGINT,
    score      DOUBLE,
    null_score DOUBLE,
    read_start BIGINT[],                  -- of each window, the characters of the context that it showed the model
    read_end   BIGINT[]
);

CREATE TABLE IF NOT EXISTS output_labels (
    run      VARCHAR NOT NULL,
    side     VARCHAR NOT NULL,
    position BIGINT  NOT NULL,            -- of the column in `scores`, from 1
    label    VARCHAR NOT NULL,            -- as the data call it
    own_name VARCHAR NOT NULL             -- as the model does
);

CREATE TABLE IF NOT EXISTS predictions (  -- what a side's output comes to, under the thresholds and rules of the release
    run         VARCHAR NOT NULL,
    side        VARCHAR NOT NULL,
    release     VARCHAR NOT NULL,
    case_id     VARCHAR NOT NULL,
    gold        VARCHAR,                  -- as one reads it; NULL where nobody knows
    prediction  VARCHAR,                  -- as one reads it; NULL where there is none
    probability DOUBLE,                   -- of the predicted label or choice
    flags       VARCHAR[] NOT NULL        -- tied, clipped, short, illegal, …
);

CREATE TABLE IF NOT EXISTS vector_diagnostics (  -- of a sample of a side's vectors, which themselves are not kept
    run      VARCHAR NOT NULL,
    side     VARCHAR NOT NULL,
    release  VARCHAR NOT NULL,
    position BIGINT  NOT NULL,
    name     VARCHAR NOT NULL,
    texts    VARCHAR NOT NULL,            -- documents | queries | pairs of both
    quantile DOUBLE,                      -- where it is one of a distribution
    value    DOUBLE,                      -- NULL where it has no meaning
    n        BIGINT  NOT NULL,            -- how many it is of
    absent   VARCHAR                      -- why there is no value
);

CREATE TABLE IF NOT EXISTS ranking_diagnostics ( -- of the stored rankings of the promotion cases
    run      VARCHAR NOT NULL,
    side     VARCHAR NOT NULL,            -- candidate | parent | pair
    position BIGINT  NOT NULL,
    name     VARCHAR NOT NULL,
    texts    VARCHAR NOT NULL,
    quantile DOUBLE,
    value    DOUBLE,
    n        BIGINT  NOT NULL,
    absent   VARCHAR
);

CREATE TABLE IF NOT EXISTS companions (   -- tables that stand beside the metrics, promotion role
    run      VARCHAR NOT NULL,
    side     VARCHAR NOT NULL,
    position BIGINT  NOT NULL,
    name     VARCHAR NOT NULL,
    content  VARCHAR NOT NULL             -- JSON: title, note, columns, rows
);

CREATE TABLE IF NOT EXISTS candidates (   -- what a last stage was given to rank, and what it made of each pair
    run                   VARCHAR NOT NULL,
    side                  VARCHAR NOT NULL,
    case_id               VARCHAR NOT NULL,
    position              INTEGER NOT NULL,  -- as it was given, from 1
    document_id           VARCHAR NOT NULL,
    first_score           DOUBLE,            -- the first stage's; NULL where not known
    score                 DOUBLE,            -- what ranks; NULL where there is none
    logits                FLOAT[],           -- the raw numbers of a head that reads both texts together
    query_tokens_kept     BIGINT,            -- of such a pair, without special tokens
    query_tokens_lost     BIGINT,
    document_tokens_kept  BIGINT,
    document_tokens_lost  BIGINT
);

CREATE TABLE IF NOT EXISTS candidate_sets (
    run    VARCHAR NOT NULL,
    side   VARCHAR NOT NULL,
    digest VARCHAR NOT NULL,                 -- of every case's document IDs, in order
    cases  BIGINT  NOT NULL,
    pairs  BIGINT  NOT NULL
);

CREATE TABLE IF NOT EXISTS cut_documents ( -- documents that the model did not see whole
    run         VARCHAR NOT NULL,
    side        VARCHAR NOT NULL,
    document_id VARCHAR NOT NULL,
    tokens_kept BIGINT  NOT NULL,
    tokens_lost BIGINT  NOT NULL
);

CREATE TABLE IF NOT EXISTS texts_in_windows ( -- texts that a side read in several; the view `windows` has each of them
    run              VARCHAR NOT NULL,
    side             VARCHAR NOT NULL,
    release          VARCHAR NOT NULL,
    member           VARCHAR,             -- who read it, in a release that is composed of others
    reads            VARCHAR NOT NULL,    -- query | document | pair (a document behind its query) | case
    case_id          VARCHAR,             -- NULL of a document
    document_id      VARCHAR,             -- NULL of a query or case
    reading          BIGINT  NOT NULL,    -- of a case that is read several times which of them, from 1
    size             BIGINT  NOT NULL,    -- as declared, in tokens that are read at once
    aggregation      VARCHAR NOT NULL,
    owner            VARCHAR,             -- NULL where windows are not joined as rows
    around           BIGINT  NOT NULL,    -- tokens around every window: special ones, the prompt's, those of another text
    uncovered        BIGINT  NOT NULL,    -- characters that no token shows
    token_start      INTEGER[] NOT NULL,  -- by window, in the text's own tokens, from 0; ends are exclusive
    token_end        INTEGER[] NOT NULL,
    character_start  INTEGER[] NOT NULL,  -- in the text's characters; words stand one blank apart
    character_end    INTEGER[] NOT NULL,
    owned_start      INTEGER[],           -- of its tokens, those that a window speaks for
    owned_end        INTEGER[]
);

CREATE TABLE IF NOT EXISTS remarks (      -- what a release's outputs were found to hold besides: counted, not dropped
    run    VARCHAR NOT NULL,
    side   VARCHAR NOT NULL,
    kind   VARCHAR NOT NULL,
    count  BIGINT  NOT NULL,
    detail VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS training_leaks ( -- cases whose text stands in a file that a release was trained on
    run        VARCHAR NOT NULL,
    side       VARCHAR NOT NULL,
    case_id    VARCHAR NOT NULL,
    role       VARCHAR NOT NULL,
    file       VARCHAR NOT NULL,
    line       BIGINT  NOT NULL,
    how        VARCHAR NOT NULL,          -- equal | within | near
    similarity DOUBLE  NOT NULL,
    finding    VARCHAR NOT NULL,
    waived     VARCHAR                    -- the reason for which it may stand
);

CREATE TABLE IF NOT EXISTS case_metrics (
    run     VARCHAR NOT NULL,
    side    VARCHAR NOT NULL,
    release VARCHAR NOT NULL,
    metric  VARCHAR NOT NULL,
    case_id VARCHAR NOT NULL,
    value   DOUBLE,                       -- NULL unless scored
    status  VARCHAR NOT NULL              -- scored | missing | failed | undefined | not-applicable
);

CREATE TABLE IF NOT EXISTS metrics (
    run              VARCHAR NOT NULL,
    position         BIGINT  NOT NULL,    -- in the suite's order, from 1
    metric           VARCHAR NOT NULL,
    form             VARCHAR NOT NULL,    -- mean | finish | rank; only a mean has values by case
    higher_is_better BOOLEAN NOT NULL,
    followed         BOOLEAN NOT NULL     -- by it a case is told to have got worse: the primary metric, where that is no
                                          -- mean the one that says right, else the first mean; at most one
);

CREATE TABLE IF NOT EXISTS summaries (    -- promotion role
    run      VARCHAR NOT NULL,
    side     VARCHAR NOT NULL,
    slice    VARCHAR NOT NULL,
    metric   VARCHAR NOT NULL,
    value    DOUBLE,
    low      DOUBLE,
    high     DOUBLE,
    n_scored BIGINT NOT NULL,
    n_total  BIGINT NOT NULL,
    n_groups BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS counts (       -- promotion role: cases, missing, failed, non-finite, truncated, tied, not-applicable
    run   VARCHAR NOT NULL,
    side  VARCHAR NOT NULL,
    name  VARCHAR NOT NULL,
    count BIGINT  NOT NULL
);

CREATE TABLE IF NOT EXISTS deltas (       -- promotion role, candidate minus parent over paired cases
    run              VARCHAR NOT NULL,
    slice            VARCHAR NOT NULL,
    metric           VARCHAR NOT NULL,
    delta            DOUBLE,
    low              DOUBLE,
    high             DOUBLE,
    mde              DOUBLE,
    n_cases          BIGINT NOT NULL,
    n_groups         BIGINT NOT NULL,
    n_changed_groups BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS transitions (
    run        VARCHAR NOT NULL,
    criterion  VARCHAR NOT NULL,          -- when a case counts as right
    case_id    VARCHAR NOT NULL,
    transition VARCHAR NOT NULL           -- both-right | parent-only | candidate-only | both-wrong-same | both-wrong-different
);

CREATE TABLE IF NOT EXISTS transition_tests (   -- whether a slice's groups that moved fall to either side alike
    run         VARCHAR NOT NULL,
    slice       VARCHAR NOT NULL,         -- or all
    lost_groups BIGINT NOT NULL,          -- groups in which more cases went from right to wrong than the other way
    won_groups  BIGINT NOT NULL,
    p           DOUBLE NOT NULL           -- exact and two-sided: McNemar's where every case is a group of its own
);

CREATE TABLE IF NOT EXISTS exposures (    -- as in the suite's ledger, so that a ledger which lost a line is seen
    run       VARCHAR NOT NULL,
    data      VARCHAR NOT NULL,
    policy    VARCHAR NOT NULL,
    candidate VARCHAR NOT NULL,
    parent    VARCHAR,
    outcomes  VARCHAR NOT NULL,
    parameters VARCHAR                    -- calibrator, threshold and abstention, as JSON; NULL where there are none
);

CREATE TABLE IF NOT EXISTS rules (
    run          VARCHAR NOT NULL,
    position     INTEGER NOT NULL,
    id           VARCHAR NOT NULL,
    kind         VARCHAR NOT NULL,
    metric       VARCHAR NOT NULL,
    slice        VARCHAR NOT NULL,
    outcome      VARCHAR NOT NULL,        -- PASS | FAIL | UNDECIDED | WAIVED
    reason       VARCHAR NOT NULL,
    critical     BOOLEAN NOT NULL,
    value        DOUBLE,
    parent_value DOUBLE,
    delta        DOUBLE,
    low          DOUBLE,
    high         DOUBLE,
    margin       DOUBLE,
    n_cases      BIGINT NOT NULL,
    n_groups     BIGINT NOT NULL,
    p            DOUBLE,
    p_adjusted   DOUBLE,
    mde          DOUBLE,
    method       VARCHAR,
    finding      VARCHAR,                 -- what a waiver of a FAIL names
    awaits_judging BOOLEAN NOT NULL       -- it would have failed, but perhaps for want of judgements
);
