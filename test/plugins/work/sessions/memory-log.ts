import { systemClock } from '../../../../kernel/plugin.js'
import type { Journal } from '../../../../plugins/platform/journals/api.js'
import { SessionLog } from '../../../../plugins/work/sessions/journal/session-log.js'
import type { SessionRow } from '../../../../plugins/work/sessions/table.js'

/** An active session and its log over a journal in memory, of which the test makes what it needs. */
export function memoryLog(made: Pick<Journal, 'last' | 'append' | 'written'> & Partial<Pick<Journal, 'read'>>) {
  const journal = Object.assign(made, { generation: 1, first: 1, close: async () => {} }) as unknown as Journal
  const ids = { id: (kind: string) => `${kind}_0123456789abcdef` } as never
  const redact = { value: (value: unknown) => value, stream: () => ({ held: 0 }) } as never
  const log = new SessionLog(journal, systemClock(), ids, redact, error => {
    throw error
  })
  const row = { id: 'ses', workspace_id: 'ws', state: 'active', epoch: 1 } as unknown as SessionRow
  return { log, row }
}
