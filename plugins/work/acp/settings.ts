import type { Setting } from '../../../kernel/plugin.js'
import { Duration } from '../../../schemas/duration.js'

const limit = (path: string, milliseconds: number): Setting<number> => ({
  path,
  section: 'general',
  schema: Duration,
  default: milliseconds,
  apply: 'restart-required',
})

/** The settings of connections to agents; durations in milliseconds. */
export const AcpSettings = {
  /** Time for which a question of an agent waits for a person. */
  permissionTimeout: limit('session.permissions.timeout', 300_000),
  initializeTimeout: limit('session.startup.initialize_timeout', 30_000),
  newSessionTimeout: limit('session.startup.new_session_timeout', 60_000),
}
