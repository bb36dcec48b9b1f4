import type { CommandContext } from '../../../../kernel/plugin.js'
import type { ExtensionLogsReply } from '../../../../schemas/extensions.js'
import { referenceOf } from '../identity.js'

type Entry = ExtensionLogsReply['logs'][number]

/** Messages of the daemon that report a failure of the extension. */
const BAD = /^\[svc\] (is not loaded|runs as it was before|failed|the process (failed|is given up))/

/** `svc extension logs <name>`: prints the log; `--follow` continues until Ctrl-C. */
export async function runLogs(context: CommandContext): Promise<void> {
  const { client, out, options, cwd, args } = context
  const workspaceQuery = options.workspace === undefined ? {} : { workspace: referenceOf(options.workspace, cwd) }
  const at = (query: Readonly<Record<string, string>>) =>
    `/api/extensions/${encodeURIComponent(args.name ?? '')}/logs?${new URLSearchParams({ ...query, ...workspaceQuery })}`
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
 * Passes on the log of an extension, then new entries until `signal` aborts.
 * @param at the path of the log with this query
 * @returns whether the extension still exists
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
      // Not found is an error on the first request; on later ones it means that the extension was removed.
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

/** Colours messages of the daemon, to set them apart from output of the extension. */
export function colored(out: CommandContext['out'], message: string): string {
  if (BAD.test(message)) return out.color('red', message)
  return message.startsWith('[svc] ') ? out.color('cyan', message) : message
}

const two = (part: number) => String(part).padStart(2, '0')

/** Local time of the reader, to the second. */
function timeOf({ timestamp }: Entry): string {
  const at = new Date(timestamp)
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`
}
