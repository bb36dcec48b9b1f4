import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import type { DaemonClient } from '../client.js'
import { pick } from '../show/cells.js'
import type { Output } from '../show/output.js'

/** The reply of a command's route, and the arguments of the command by name. */
interface About {
  readonly reply?: unknown
  readonly args: Readonly<Record<string, string>>
}

interface Concern {
  /** The category of its findings, if they have one. */
  readonly only?: string
  readonly is: (item: DiagnosticItem, about: About) => boolean
}

const trigger: Concern = {
  only: 'automation',
  is: ({ id }, { reply }) => id.startsWith(`trigger:${pick(reply, 'trigger.id')}:`),
}
const preset: Concern = {
  only: 'notifications',
  is: ({ id }, { args }) => id === `notifications.presets.${args.name}`,
}

/** Commands after which doctor may find a problem that only shows later, such as at a delivery. */
const concerns: Readonly<Record<string, Concern>> = {
  'automation triggers create': trigger,
  'automation triggers update': trigger,
  'notifications preset create': preset,
  'notifications preset update': preset,
  'notifications preset enable': preset,
  'vault delete': { is: ({ suggested_command: next }, { args }) => next === `svc vault put ${args.ref}` },
}

/** Notes what doctor finds about the outcome of a command. Without an answer of doctor nothing is noted. */
export async function noteFindings(
  path: string,
  about: About,
  { client, out }: { readonly client: Pick<DaemonClient, 'request'>; readonly out: Output },
): Promise<void> {
  const concern = concerns[path]
  if (!concern || out.quiet) return
  const query = concern.only === undefined ? '' : `?only=${concern.only}`
  const report = await client.request('GET', `/api/doctor${query}`).catch(() => undefined)
  for (const item of (pick(report, 'items') ?? []) as DiagnosticItem[]) {
    const { severity, message, suggested_command: next } = item
    if (severity === 'info' || !concern.is(item, about)) continue
    out.note(next === undefined ? message : `${message}; try: ${next}`)
  }
}
