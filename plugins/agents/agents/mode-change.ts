import { command } from '../../../kernel/kit/commands/command-line.js'
import { column, table } from '../../../kernel/kit/table.js'
import { iso, type PluginKernel } from '../../../kernel/plugin.js'
import type { PermissionMode } from '../../../schemas/agents.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { DefaultPermissions } from './settings.js'

/** A single row: the default mode, the previous one, and the time of the change in epoch milliseconds. */
export const modeTable =
  'CREATE TABLE agents_default_mode (mode TEXT NOT NULL, former TEXT, changed_at INTEGER NOT NULL) STRICT;'

const { text, time } = column

export const modes = table('agents_default_mode', {
  mode: text<PermissionMode>(),
  former: text<PermissionMode>().nullable(),
  changed_at: time(),
})

const TOLD_MS = 14 * 24 * 60 * 60_000

/**
 * Remembers the default permission mode, so that `svc doctor` reports a change by an upgrade or a setting: unattended
 * agents may now ask questions, and an unanswered question ends a run.
 */
export class ModeChange {
  constructor(private readonly kernel: Pick<PluginKernel, 'clock' | 'config' | 'db' | 'log'>) {}

  /** Compares the mode with that of the last start. */
  async note(): Promise<void> {
    const { clock, config, db, log } = this.kernel
    const mode = config.get(DefaultPermissions)
    const before = modes.get(db, {})
    if (before?.mode === mode) return
    if (before) log.warn(`permissions.mode is ${mode}; it was ${before.mode} when the daemon ran last`)
    await db.tx(t => {
      modes.delete(t, {})
      modes.insert(t, { mode, former: before?.mode ?? null, changed_at: clock.now() })
    })
  }

  findings(): DiagnosticItem[] {
    const {
      mode,
      former,
      changed_at: at,
    } = modes.get(this.kernel.db, {}) ?? { mode: null, former: null, changed_at: 0 }
    if (mode === null || former === null || this.kernel.clock.now() - at > TOLD_MS) return []
    return [
      finding({
        ...{ id: 'agents.permissions_mode', code: 'permissions_mode_changed', category: 'agents', severity: 'warning' },
        title: `agents without permissions of their own run with ${mode}`,
        message: `permissions.mode was ${former} until ${iso(at)}. Jobs and triggers of these agents may now ask for permission, and an unanswered question ends the run`,
        suggested_command: command('config set', DefaultPermissions.path, former),
        evidence: { mode, former },
      }),
    ]
  }
}
