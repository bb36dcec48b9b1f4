import type { CommandContext } from '../../../kernel/plugin.js'
import type { DevExtensionReply, ExtensionLogsReply } from '../../../schemas/extensions.js'
import { hashTree } from '../code.js'

/** Milliseconds without a write after which a change is taken to be whole. */
const SETTLE_MS = 100
/** Names below which nothing is watched. */
const LEFT_OUT = /(^|[\\/])(node_modules|\.[^\\/]+)([\\/]|$)/

/**
 * Links a folder to the daemon, loads it again whenever it changes, and unlinks it at Ctrl-C.
 * @param build makes what is loaded of what changed
 */
export async function develop(
  context: CommandContext,
  name: string,
  root: string,
  build: () => Promise<void>,
): Promise<void> {
  const { client, out } = context
  const url = `/api/extensions/${encodeURIComponent(name)}`
  const hash = await hashTree(root)
  const linked = await client.request('POST', '/api/extensions/dev', { origin_path: root, generation_hash: hash })
  say(context, 'linked', linked as DevExtensionReply)
  const stop = new AbortController()
  const release = context.onInterrupt(() => stop.abort())
  context.signal.addEventListener('abort', () => stop.abort(), { once: true })
  try {
    await Promise.race([
      aborted(stop.signal),
      followChanges(root, hash, stop.signal, () => reload(context, url, build)),
      followLogs(context, url, stop.signal),
    ])
  } finally {
    release()
    await client.request('DELETE', url)
    out.line(out.color('dim', `unlinked ${name}`))
  }
}

async function reload(context: CommandContext, url: string, build: () => Promise<void>): Promise<void> {
  const { client, out } = context
  try {
    await build()
    say(context, 'loaded', (await client.request('POST', `${url}/reload`, {})) as DevExtensionReply)
  } catch (error) {
    // What ran goes on, and the next change is tried again.
    out.line(out.color('red', (error as Error).message))
  }
}

function say({ out }: CommandContext, what: string, { extension }: DevExtensionReply): void {
  const { name, version, state, last_error: error } = extension
  if (out.json) out.value({ what, extension })
  else out.line(`${what} ${name} ${version}, ${state}`)
  if (error && !out.json) out.line(out.color('red', error))
}

/** Calls for each burst of changes once, one call at a time, until the signal aborts. */
async function followChanges(
  root: string,
  hash: string,
  signal: AbortSignal,
  changed: () => Promise<void>,
): Promise<void> {
  const { watch } = await import('chokidar')
  const watcher = watch(root, {
    ignoreInitial: true,
    ignored: at => LEFT_OUT.test(at.slice(root.length)),
    awaitWriteFinish: { stabilityThreshold: SETTLE_MS, pollInterval: SETTLE_MS / 4 },
  })
  try {
    let dirty = false
    let busy: Promise<void> | undefined
    const work = async () => {
      while (dirty && !signal.aborted) {
        dirty = false
        await changed()
      }
      busy = undefined
    }
    const note = () => {
      dirty = true
      busy ??= work()
    }
    watcher.on('all', note)
    // What changed before it watched was not told of.
    watcher.on('ready', async () => {
      if ((await hashTree(root).catch(() => '')) !== hash) note()
    })
    await aborted(signal)
    await busy
  } finally {
    await watcher.close()
  }
}

/** Prints what its process writes to standard error. */
async function followLogs({ client, out }: CommandContext, url: string, signal: AbortSignal): Promise<void> {
  let after = 0
  let epoch = ''
  while (!signal.aborted) {
    const query = new URLSearchParams({
      follow: 'true',
      after: String(after),
      ...(epoch ? { stream_epoch: epoch } : {}),
    })
    const { logs, stream_epoch } = (await client.request('GET', `${url}/logs?${query}`)) as ExtensionLogsReply
    if (stream_epoch !== epoch) after = 0
    epoch = stream_epoch
    for (const { sequence, message } of logs) {
      after = Math.max(after, sequence)
      if (!signal.aborted) out.line(out.color('dim', message))
    }
  }
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
