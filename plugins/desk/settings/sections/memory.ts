import { amount, duration, flag, integer, list, type Members, words } from '../keys.js'

/** Settings of agents' memory. */
export const memory: Members = {
  enabled: flag(true, 'Whether agents have a memory'),
  global_dir: words('', 'Folder of the memory of all workspaces; empty: `memory` in the home'),
  controller: {
    mode: words('hybrid', 'How the controller decides about a write'),
    max_latency: duration('800ms', 'Timeout of a decision'),
    default_op_on_fail: words('noop', 'What happens to a write when the controller fails'),
    policy: {
      allow_origins: list([], 'Origins that may write memories; empty: all'),
      max_content_chars: integer(4096, 'Characters of one memory'),
      max_writes_per_min: integer(60, 'Writes a minute'),
    },
  },
  daily: {
    archive_path: words('_system/archive', 'Folder of archived daily logs'),
    cold_archive_days: integer(30, 'Days after which a daily log is archived'),
    dreaming_window: integer(7, 'Days of daily logs that a consolidation reads'),
    hard_delete_days: integer(365, 'Days after which an archived log is deleted'),
    max_archive_bytes: integer(104_857_600, 'Bytes of the archive', 1e12),
    max_bytes: integer(262_144, 'Bytes of one daily log'),
    max_lines: integer(5000, 'Lines of one daily log'),
    rotate_format: words('YYYY-MM-DD', 'Name of a daily log'),
    sweep_hour: integer(3, 'Hour of the day at which logs are swept', 23),
  },
  decisions: {
    keep_audit_summary: flag(true, 'Whether a summary of each decision is kept'),
    max_post_content_bytes: integer(65_536, 'Bytes of the content that a decision keeps'),
    prune_after_applied_days: integer(90, 'Days after which applied decisions are removed'),
  },
  dream: {
    check_interval: duration('30m', 'Interval at which a consolidation is considered'),
    debounce: duration('10m', 'Time without a write before a consolidation'),
    min_hours: amount(24, 'Hours between two consolidations'),
    min_sessions: integer(3, 'Sessions between two consolidations'),
    prompt_version: words('v1', 'Version of the prompt of consolidations'),
    gates: {
      min_recall_count: integer(2, 'Recalls of a memory before it is promoted'),
      min_score: amount(0.6, 'Score of a memory before it is promoted'),
      min_unpromoted: integer(5, 'Memories that wait before a consolidation'),
    },
    scoring: {
      recency_half_life_days: integer(14, 'Days after which recency counts half'),
      weights: {
        frequency: amount(0.3, 'Weight of how often a memory was recalled'),
        freshness: amount(0.2, 'Weight of how new a memory is'),
        recency: amount(0.2, 'Weight of how recently a memory was recalled'),
        relevance: amount(0.3, 'Weight of how relevant a memory is'),
      },
    },
  },
  extractor: {
    mode: words('async', 'When memories are extracted from turns'),
    deadline: duration('60s', 'Timeout of an extraction'),
    dlq_path: words('_system/dlq', 'Folder of extractions that failed'),
    inbox_path: words('_inbox', 'Folder of extractions that wait'),
    sandbox_inbox_only: flag(true, 'Whether a sandboxed agent may write to its inbox only'),
    throttle_turns: integer(1, 'Turns between two extractions'),
    queue: {
      capacity: integer(256, 'Turns that may wait'),
      coalesce_max: integer(16, 'Turns that are extracted together'),
    },
  },
  file: {
    max_bytes: integer(65_536, 'Bytes of one memory file'),
    max_lines: integer(1000, 'Lines of one memory file'),
  },
  provider: {
    name: words('local', 'Where memories are kept'),
    cooldown: duration('30s', 'Cooldown without calls after failures'),
    failure_threshold: integer(3, 'Failures in a row before the cooldown'),
    timeout: duration('5s', 'Timeout of a call'),
  },
  recall: {
    fusion: words('weighted', 'How rankings are combined'),
    include_already_surfaced: flag(false, 'Whether memories that a session was shown are recalled again'),
    include_system: flag(false, 'Whether memories of the system are recalled'),
    raw_candidates: integer(50, 'Memories that are ranked'),
    top_k: integer(5, 'Memories that are recalled'),
    freshness: { banner_after_days: integer(30, 'Days after which a memory is marked as old') },
    signals: {
      metrics_enabled: flag(true, 'Whether recalls are counted'),
      queue_capacity: integer(1024, 'Recall signals that may wait'),
      worker_retry_max: integer(3, 'Attempts per recall signal'),
    },
    weights: {
      bm25_trigram: amount(0.3, 'Weight of the trigram ranking'),
      bm25_unicode: amount(0.4, 'Weight of the word ranking'),
      recall_signal: amount(0.2, 'Weight of earlier recalls'),
      recency: amount(0.1, 'Weight of recency'),
    },
  },
  session: {
    cold_archive_days: integer(30, 'Days after which the ledger of a session is archived'),
    events_purge_grace: duration('168h', 'Time before the events of a purged session are deleted'),
    hard_delete_days: integer(365, 'Days after which an archived ledger is deleted'),
    ledger_format: words('jsonl', 'Format of ledgers'),
    ledger_root: words('sessions', 'Folder of ledgers'),
    max_archive_bytes: integer(1_073_741_824, 'Bytes of archived ledgers', 1e12),
    unbound_partition: words('_unbound', 'Folder of sessions without a workspace'),
  },
  workspace: {
    auto_create: flag(true, 'Whether a workspace gets a memory by itself'),
    toml_path: words('.svc/workspace.toml', 'File that names the workspace of a memory'),
  },
}
