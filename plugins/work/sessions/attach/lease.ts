import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import { type Actor, iso } from '../../../../kernel/plugin.js'
import type { AttachSessionBody, AttachSessionReply } from '../../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { SessionRow } from '../table.js'

const DEFAULT_SECONDS = 900
const MAX_SECONDS = 86_400
const MAX_HOLDER = 200

/** The current holder of a session; undefined without one, or when the lease has expired. */
export function holderOf(
  row: Pick<SessionRow, 'attached_to' | 'attach_expires_at'>,
  now: number,
): { readonly holder: string; readonly until: number } | undefined {
  const { attached_to: holder, attach_expires_at: until } = row
  return holder !== null && until !== null && until > now ? { holder, until } : undefined
}

/**
 * Gives a session to one holder for a time, or changes the time of its lease; no process is started. `take_over` ends the lease of
 * another holder.
 * @throws Fault `attach_invalid` (400), `session_not_attachable` and `session_attached` (409)
 */
export async function attach(
  { kernel, table }: SessionsContext,
  id: string,
  body: AttachSessionBody,
  actor: Actor,
): Promise<AttachSessionReply['attach']> {
  const holder = body.attached_to?.trim() || actor.id
  if (holder.length > MAX_HOLDER) throw SessionErrors.attach_invalid(`attached_to is at most ${MAX_HOLDER} characters`)
  const seconds = (body.ttl_seconds ?? 0) > 0 ? Number(body.ttl_seconds) : DEFAULT_SECONDS
  if (seconds > MAX_SECONDS) throw SessionErrors.attach_invalid(`ttl_seconds is at most ${MAX_SECONDS} (a day)`)
  return kernel.db.tx(t => {
    const row = table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    if (row.state !== 'active') throw SessionErrors.session_not_attachable(`this session is ${row.state}`)
    const now = kernel.clock.now()
    const held = holderOf(row, now)
    if (held && held.holder !== holder && body.take_over !== true) {
      const text = `${shown(held.holder)} is attached to this session until ${iso(held.until)}`
      const details = { attached_to: held.holder, until: iso(held.until) }
      throw SessionErrors.session_attached(text, { details, next: command('session attach', id, '--take-over') })
    }
    const until = now + seconds * 1000
    table.update(t, id, { attached_to: holder, attach_expires_at: until })
    return { attached_to: holder, attached_at: iso(now), attach_expires_at: iso(until), session_id: id }
  })
}
