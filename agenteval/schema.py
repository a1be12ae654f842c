"""The database's tables and views, as numbered migrations.

A migration that has been released is never edited: a change is a new one at the end. Knows SQL only; must not import
duckdb.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step from the schema before to the schema of its number."""

    number: int
    sql: str


_TABLES = """
CREATE TABLE runs (
    run_id VARCHAR PRIMARY KEY, suite VARCHAR NOT NULL, suite_digest VARCHAR NOT NULL,
    contract VARCHAR NOT NULL, contract_digest VARCHAR NOT NULL, contract_fields JSON NOT NULL,
    model VARCHAR NOT NULL, model_digest VARCHAR NOT NULL, agent VARCHAR NOT NULL, samples INTEGER NOT NULL,
    repeats INTEGER NOT NULL, planned_episodes INTEGER NOT NULL, started_at TIMESTAMPTZ NOT NULL,
    agenteval_version VARCHAR NOT NULL, facts JSON NOT NULL,
    ended_at TIMESTAMPTZ, status VARCHAR NOT NULL, verdict VARCHAR, message VARCHAR
);
CREATE TABLE boots (
    boot_id VARCHAR PRIMARY KEY, run_id VARCHAR NOT NULL, is_managed BOOLEAN NOT NULL,
    started_at TIMESTAMPTZ NOT NULL, ready_s DOUBLE NOT NULL, base_url VARCHAR NOT NULL, argv VARCHAR[] NOT NULL,
    env JSON NOT NULL, facts JSON NOT NULL,
    ended_at TIMESTAMPTZ, reason VARCHAR, metrics JSON, model_digest VARCHAR
);
CREATE TABLE episodes (
    episode_id VARCHAR PRIMARY KEY, run_id VARCHAR NOT NULL, boot_id VARCHAR NOT NULL, position INTEGER NOT NULL,
    task VARCHAR NOT NULL, variant VARCHAR NOT NULL, sample INTEGER NOT NULL, repeat INTEGER NOT NULL,
    seed INTEGER NOT NULL, cache_salt VARCHAR, status VARCHAR NOT NULL, stop_reason VARCHAR NOT NULL,
    message VARCHAR, answer VARCHAR, world JSON NOT NULL, turns INTEGER NOT NULL,
    started_at TIMESTAMPTZ NOT NULL, elapsed_s DOUBLE NOT NULL
);
CREATE TABLE turns (
    run_id VARCHAR NOT NULL, boot_id VARCHAR NOT NULL, episode_id VARCHAR NOT NULL, turn INTEGER NOT NULL,
    kind VARCHAR NOT NULL, started_at TIMESTAMPTZ NOT NULL, elapsed_s DOUBLE NOT NULL, queued_s DOUBLE NOT NULL,
    requests_in_flight INTEGER NOT NULL, request JSON NOT NULL, messages_kept INTEGER NOT NULL,
    messages_added JSON NOT NULL, prompt_tokens INTEGER NOT NULL, prompt_kept INTEGER NOT NULL,
    prompt_added INTEGER[] NOT NULL, is_continuous BOOLEAN, output_ids INTEGER[] NOT NULL,
    output_tokens VARCHAR[] NOT NULL, logprobs FLOAT[] NOT NULL, runner_up_tokens VARCHAR[] NOT NULL,
    runner_up_logprobs FLOAT[] NOT NULL, cached_tokens INTEGER, finish_reason VARCHAR, content VARCHAR,
    response JSON NOT NULL,
    PRIMARY KEY (episode_id, turn)
);
CREATE TABLE tool_calls (
    run_id VARCHAR NOT NULL, episode_id VARCHAR NOT NULL, turn INTEGER NOT NULL, call INTEGER NOT NULL,
    call_id VARCHAR NOT NULL, server_call_id VARCHAR NOT NULL, tool VARCHAR NOT NULL, arguments VARCHAR NOT NULL,
    result VARCHAR NOT NULL, error VARCHAR, state_digest VARCHAR NOT NULL, world_patch JSON NOT NULL,
    is_repeatable BOOLEAN NOT NULL,
    PRIMARY KEY (episode_id, turn, call)
);
CREATE TABLE grades (
    run_id VARCHAR NOT NULL, episode_id VARCHAR NOT NULL, "check" INTEGER NOT NULL, kind VARCHAR NOT NULL,
    passed BOOLEAN, reason VARCHAR NOT NULL, weight DOUBLE NOT NULL,
    PRIMARY KEY (episode_id, "check")
);
CREATE TABLE evidence (
    run_id VARCHAR NOT NULL, clause VARCHAR NOT NULL, fact VARCHAR NOT NULL, verdict VARCHAR NOT NULL,
    expected VARCHAR NOT NULL, observed VARCHAR NOT NULL, detail JSON NOT NULL
);
CREATE TABLE divergences (
    run_id VARCHAR NOT NULL, episode_a VARCHAR NOT NULL, episode_b VARCHAR NOT NULL, task VARCHAR NOT NULL,
    variant VARCHAR NOT NULL, sample INTEGER NOT NULL, repeat_a INTEGER NOT NULL, repeat_b INTEGER NOT NULL,
    level VARCHAR NOT NULL, turn INTEGER NOT NULL, token INTEGER, text_a VARCHAR NOT NULL, text_b VARCHAR NOT NULL,
    margin_a DOUBLE, margin_b DOUBLE, cause VARCHAR NOT NULL
);
CREATE TABLE journals (run_id VARCHAR PRIMARY KEY, ingested_bytes BIGINT NOT NULL);
"""

_VIEWS = """
CREATE VIEW episode_results AS
SELECT e.*, g.passed, g.score
FROM episodes e LEFT JOIN (
    SELECT episode_id,
        CASE WHEN count(*) = count(passed) THEN bool_and(passed) END AS passed,
        CASE WHEN count(*) = count(passed) THEN sum(weight * passed::INTEGER) / sum(weight) END AS score
    FROM grades GROUP BY episode_id
) g USING (episode_id);

CREATE VIEW clauses AS
SELECT run_id, clause,
    CASE WHEN bool_or(verdict = 'breached') THEN 'breached'
         WHEN bool_or(verdict = 'unproven') THEN 'unproven'
         WHEN bool_or(verdict = 'kept') THEN 'kept'
         ELSE 'not promised' END AS verdict,
    count(*) AS facts
FROM evidence GROUP BY run_id, clause;

CREATE VIEW run_summary AS
SELECT r.run_id, r.suite, r.contract, r.model, r.status, r.verdict, r.started_at, r.ended_at,
    r.planned_episodes, count(e.episode_id) FILTER (e.status = 'finished') AS finished_episodes,
    count(*) FILTER (e.passed) AS passed,
    count(*) FILTER (e.passed) / nullif(count(e.passed), 0)::DOUBLE AS pass_rate,
    (SELECT count(*) FROM divergences d WHERE d.run_id = r.run_id) AS divergences
FROM runs r LEFT JOIN episode_results e USING (run_id)
GROUP BY ALL;

CREATE VIEW turn_tokens AS
SELECT run_id, kind, episode_id, turn, t.place - 1 AS token, output_ids[t.place] AS token_id,
    output_tokens[t.place] AS text,
    logprobs[t.place] AS logprob, runner_up_tokens[t.place] AS runner_up,
    runner_up_logprobs[t.place] AS runner_up_logprob,
    logprobs[t.place] - runner_up_logprobs[t.place] AS margin
FROM turns, LATERAL (SELECT unnest(range(1, len(output_ids) + 1)) AS place) t;

CREATE VIEW trajectories AS
SELECT e.run_id, e.episode_id, e.task, e.variant, e.sample, e.repeat, e.passed, e.stop_reason, e.answer,
    (SELECT string_agg(c.tool || '(' || c.arguments || ')', ' > ' ORDER BY c.turn, c.call)
     FROM tool_calls c WHERE c.episode_id = e.episode_id) AS calls
FROM episode_results e;
"""

_TASKS_AND_FAULTS = """
CREATE TABLE tasks (
    run_id VARCHAR NOT NULL, task VARCHAR NOT NULL, variant VARCHAR NOT NULL, tags VARCHAR[] NOT NULL,
    definition JSON NOT NULL,
    PRIMARY KEY (run_id, task, variant)
);
ALTER TABLE tool_calls ADD COLUMN fault VARCHAR;

CREATE OR REPLACE VIEW episode_results AS
SELECT e.*, t.tags, g.passed, g.score
FROM episodes e LEFT JOIN tasks t USING (run_id, task, variant) LEFT JOIN (
    SELECT episode_id,
        CASE WHEN count(*) = count(passed) THEN bool_and(passed) END AS passed,
        CASE WHEN count(*) = count(passed) THEN sum(weight * passed::INTEGER) / sum(weight) END AS score
    FROM grades GROUP BY episode_id
) g USING (episode_id);

CREATE VIEW faults AS
SELECT d.run_id, e.episode_id, d.task, d.variant, e.sample, e.repeat, d.fault, d.kind, d.tool,
    (SELECT count(*) FROM tool_calls c WHERE c.episode_id = e.episode_id AND c.fault = d.fault) AS fired
FROM (
    SELECT run_id, task, variant, f.fault->>'kind' AS kind, f.fault->>'tool' AS tool,
        (f.fault->>'kind') || '#' || (f.place - 1) AS fault
    FROM tasks, LATERAL (
        SELECT unnest(definition->'$.faults[*]') AS fault, generate_subscripts(definition->'$.faults[*]', 1) AS place
    ) f
) d JOIN episodes e USING (run_id, task, variant);
"""

RUN_SUMMARY = """
SELECT r.run_id, r.suite, r.contract, r.model, r.agent, r.status, r.verdict, r.started_at, r.ended_at,
    r.planned_episodes, count(e.episode_id) FILTER (e.status = 'finished') AS finished_episodes,
    count(*) FILTER (e.passed) AS passed, count(e.passed) AS graded,
    count(e.episode_id) FILTER (e.status = 'finished' AND e.passed IS NULL) AS not_graded,
    count(*) FILTER (e.passed) / nullif(count(e.passed), 0)::DOUBLE AS pass_rate,
    (SELECT count(*) FROM divergences d WHERE d.run_id = r.run_id) AS divergences
FROM runs r LEFT JOIN episode_results e USING (run_id)
GROUP BY ALL
"""
"""What the view `run_summary` selects; for readers of databases whose own view is an older one, too."""

_BROKEN_MOCKS_AND_UNGRADED_EPISODES = f"""
ALTER TABLE tool_calls ADD COLUMN is_broken BOOLEAN;

CREATE OR REPLACE VIEW episode_results AS
SELECT e.*, t.tags, g.passed, g.score, coalesce(g.checks_not_graded, 0) AS checks_not_graded
FROM episodes e LEFT JOIN tasks t USING (run_id, task, variant) LEFT JOIN (
    SELECT episode_id,
        CASE WHEN count(*) = count(passed) THEN bool_and(passed) END AS passed,
        CASE WHEN count(*) = count(passed) THEN sum(weight * passed::INTEGER) / sum(weight) END AS score,
        count(*) - count(passed) AS checks_not_graded
    FROM grades GROUP BY episode_id
) g USING (episode_id);

CREATE OR REPLACE VIEW run_summary AS {RUN_SUMMARY};
"""

_CAUSES_AND_SWEEPS = """
ALTER TABLE divergences ADD COLUMN cause_kind VARCHAR;
UPDATE divergences SET cause_kind = CASE
    WHEN cause = 'one trajectory has more turns' THEN 'length'
    WHEN cause = 'the grades differ, the trajectories do not' THEN 'grades'
    WHEN starts_with(cause, 'the prompts differ') THEN 'prompt'
    WHEN cause = 'the tools answered otherwise' THEN 'tools'
    WHEN cause = 'another boot' THEN 'boot'
    WHEN starts_with(cause, 'cached tokens differ') THEN 'cache'
    WHEN contains(cause, 'in flight') THEN 'batching'
    WHEN cause = 'unexplained' THEN 'unexplained'
END;
CREATE TABLE sweeps (
    sweep_id VARCHAR PRIMARY KEY, name VARCHAR NOT NULL, description VARCHAR NOT NULL, definition JSON NOT NULL,
    started_at TIMESTAMPTZ NOT NULL, elapsed_s DOUBLE NOT NULL
);
CREATE TABLE sweep_cells (
    sweep_id VARCHAR NOT NULL, cell VARCHAR NOT NULL, place INTEGER NOT NULL, "values" JSON NOT NULL,
    reference VARCHAR NOT NULL, status VARCHAR NOT NULL, run_id VARCHAR, message VARCHAR, elapsed_s DOUBLE NOT NULL,
    PRIMARY KEY (sweep_id, cell)
);
CREATE TABLE sweep_pairs (
    sweep_id VARCHAR NOT NULL, cell VARCHAR NOT NULL, against VARCHAR NOT NULL, task VARCHAR NOT NULL,
    variant VARCHAR NOT NULL, sample INTEGER NOT NULL, repeat_a INTEGER NOT NULL, repeat_b INTEGER NOT NULL,
    episode_a VARCHAR NOT NULL, episode_b VARCHAR NOT NULL, passed_a BOOLEAN, passed_b BOOLEAN,
    level VARCHAR, turn INTEGER, token INTEGER, margin_a DOUBLE, margin_b DOUBLE, cause_kind VARCHAR, cause VARCHAR
);
CREATE VIEW sweep_rates AS
SELECT sweep_id, cell, against, l.level, count(*) AS pairs,
    count(*) FILTER (list_position(l.strictest, p.level) >= list_position(l.strictest, l.level)) AS differing,
    differing / count(*) AS rate
FROM sweep_pairs p, (
    SELECT unnest(names) AS level, names AS strictest
    FROM (SELECT ['logprobs', 'tokens', 'calls', 'tools', 'outcome'] AS names)
) l
GROUP BY ALL;
"""

MIGRATIONS: tuple[Migration, ...] = (
    Migration(number=1, sql=_TABLES + _VIEWS),
    Migration(number=2, sql=_TASKS_AND_FAULTS),
    Migration(number=3, sql=_BROKEN_MOCKS_AND_UNGRADED_EPISODES),
    Migration(number=4, sql=_CAUSES_AND_SWEEPS),
)
VERSION = MIGRATIONS[-1].number
