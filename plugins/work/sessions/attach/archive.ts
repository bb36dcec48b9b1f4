import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'

/** Archives a stopped session: lists omit it and no prompt starts it. Throws `session_not_stopped` (409). */
export async function archive({ kernel, table }: SessionsContext, id: string): Promise<void> {
  await kernel.db.tx(t => {
    const row = table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    if (row.state !== 'stopped') throw SessionErrors.session_not_stopped(`this session is ${row.state}`)
    if (row.archived_at !== null) return
    const now = kernel.clock.now()
    const attention = row.unseen_since === null ? {} : { unseen_since: null, attention_changed_at: now }
    table.update(t, id, { archived_at: now, updated_at: now, ...attention })
  })
}

/** Unarchives a session; does nothing for one that is not archived. */
export async function unarchive({ kernel, table }: SessionsContext, id: string): Promise<void> {
  await kernel.db.tx(t => {
    if (table.get(id)?.archived_at == null) return
    table.update(t, id, { archived_at: null, updated_at: kernel.clock.now() })
  })
}
