import { SegmentIndex } from '../../../desk/archives/api.js'

/**
 * The segment of each session in the archive, and the totals of each segment by agent and workspace. Times in epoch
 * milliseconds; `newest_*` are upper bounds, because a session that was brought back does not lower them.
 */
export const ARCHIVED_TABLES = `
CREATE TABLE sessions_archived_session (id INTEGER PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT;
CREATE TABLE sessions_archived (id TEXT PRIMARY KEY NOT NULL, segment INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE sessions_archived_part (
  workspace_id TEXT NOT NULL, agent_name TEXT NOT NULL, segment INTEGER NOT NULL, sessions INTEGER NOT NULL,
  failed INTEGER NOT NULL, bytes INTEGER NOT NULL, runtime_ms INTEGER NOT NULL,
  newest_created_at INTEGER NOT NULL, newest_activity_at INTEGER NOT NULL,
  PRIMARY KEY (workspace_id, agent_name, segment)) STRICT;`

/** Rows of a segment are valid only if this index contains their session. */
export const archivedSessions = new SegmentIndex({ ses: 'sessions_archived_session' }, 'sessions_archived')

/** The rows of a session that move with it, with the column of its ID. Its prompts are in its folder by then. */
export const MOVED = [
  ['sessions_session', 'id'],
  ['sessions_briefing', 'session_id'],
  ['sessions_attachment', 'session_id'],
] as const
