import type { CommandContext } from '../../../../kernel/plugin.js'
import type { ExtensionLogsReply } from '../../../../schemas/extensions.js'
import { referenceOf } from '../identity.js'

type Entry = ExtensionLogsReply['logs'][number]

/** What the daemon says of an extension that its author has to see. */
const BAD = /^\[svc\] (is not loaded|runs as it was before|failed|the process (failed|is given up))/

/** `svc extension logs <name>`: what is there, and with `--follow` what comes, until Ctrl-C. */
export async function runLogs(context: CommandContext): Promise<void> {
  const { client, out, options, cwd, args } = context
  const place = options.workspace === undefined ? {} : { workspace: referenceOf(options.workspace, cwd) }
  const at = (query: Readonly<Record<string, string>>) =>
    `/api/extensions/${encodeURIComponent(args.name ?? '')}/logs?${new URLSearchParams({ ...query, ...place })}`
  const print = (entry: Entry) => {
    if (out.json) out.value(entry)
    else out.line(`${out.color('dim', timeOf(entry))} ${colored(out, entry.message)}`)
  }
  if (options.follow) return void (await followLogs(context, at, context.signal, print))
  const reply = (await client.request('GET', at({}))) as ExtensionLogsReply
  if (out.json) return out.value(reply)
  for (const entry of reply.logs) print(entry)
  if (reply.logs.length === 0) out.line('nothing was written')
}

/**
 * Hands on what is in the log of an extension and what comes until `signal` aborts.
 * @param at the path of the log, with this query
 * @returns whether there is such an extension still
 */
export async function followLogs(
  { client }: CommandContext,
  at: (query: Readonly<Record<string, string>>) => string,
  signal: AbortSignal,
  take: (entry: Entry) => void,
): Promise<boolean> {
  let after = 0
  let epoch = ''
  while (!signal.aborted) {
    const query = { follow: 'true', after: String(after), ...(epoch ? { stream_epoch: epoch } : {}) }
    const reply = await client.request('GET', at(query), undefined, { waits: true }).catch(error => {
      // The first answer says that there is none, later ones that there was one.
      if (epoch === '' || !isGone(error)) throw error
    })
    if (reply === undefined) return false
    const { logs, stream_epoch } = reply as ExtensionLogsReply
    if (stream_epoch !== epoch) after = 0
    epoch = stream_epoch
    for (const entry of logs) {
      after = Math.max(after, entry.sequence)
      if (!signal.aborted) take(entry)
    }
  }
  return true
}

export const isGone = (error: unknown): boolean => (error as { code?: unknown }).code === 'extension_not_found'

/** What the daemon says stands out from what the extension wrote. */
export function colored(out: CommandContext['out'], message: string): string {
  if (BAD.test(message)) return out.color('red', message)
  return message.startsWith('[svc] ') ? out.color('cyan', message) : message
}

const two = (part: number) => String(part).padStart(2, '0')

/** In the zone of the reader, to the second. */
function timeOf({ timestamp }: Entry): string {
  const at = new Date(timestamp)
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`
}
