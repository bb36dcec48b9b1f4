import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import type { Support } from './probe.js'

const item = { id: 'sandboxes', category: 'sandboxes', title: 'Sandboxes' }

/** Doctor items: whether sandboxes work, and settings that weaken them. */
export function sandboxItems(found: {
  /** Undefined while the probe is running. */
  readonly support: Support | undefined
  readonly problems: readonly { readonly name: string; readonly problem: string }[]
  /** Whether `defaults.sandbox` is `none`. */
  readonly isOff: boolean
  readonly trustsOwnUser: boolean
}): DiagnosticItem[] {
  const { support, problems, isOff, trustsOwnUser } = found
  if (!support) {
    const message = 'the check whether sandboxes work is still running; run doctor again'
    return [finding({ ...item, code: 'sandbox_unknown', severity: 'info', message })]
  }
  if (!support.works) {
    const text = isOff
      ? `agents run without a sandbox, as defaults.sandbox says: ${support.reason}`
      : `jobs, spawned sessions and sessions with approve-all do not start: ${support.reason}`
    return [finding({ ...item, code: 'sandbox_unavailable', severity: 'warning', message: text })]
  }
  const text = isOff
    ? `${support.program} works, and defaults.sandbox is none: agents run without a sandbox`
    : `${support.program} works: jobs, spawned sessions and sessions with approve-all run in a sandbox`
  const items = [finding({ ...item, code: 'sandbox_ok', severity: 'info', message: text })]
  for (const { name, problem: message } of problems) {
    const id = `sandboxes:${name}`
    items.push(finding({ ...item, id, code: 'sandbox_profile_unusable', severity: 'warning', message }))
  }
  if (trustsOwnUser) {
    const message =
      'http.trust_own_user is on: an agent in a sandbox with the network of the host is served over TCP as the operator'
    const suggested_command = command('config set', 'http.trust_own_user', 'false')
    const id = 'sandboxes:tcp'
    items.push(finding({ ...item, id, code: 'sandbox_porous', severity: 'warning', message, suggested_command }))
  }
  return items
}
