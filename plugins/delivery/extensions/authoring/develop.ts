import { aborted } from '../../../../kernel/kit/backoff.js'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { Serial } from '../../../../kernel/kit/serial.js'
import { type CommandContext, messageOf } from '../../../../kernel/plugin.js'
import type { DevExtensionReply } from '../../../../schemas/extensions.js'
import { EVERYWHERE, referenceOf } from '../identity.js'
import { hashTree } from '../load/code.js'
import { colored, followLogs, isGone } from './logs.js'

/** Milliseconds without a write after which a change counts as complete. */
const SETTLE_MS = 100
/** Folders that are not watched. */
const LEFT_OUT = /(^|[\\/])(node_modules|\.[^\\/]+)([\\/]|$)/
/**
 * Links a folder to the daemon, which reloads it on each change. Unlinks it on Ctrl-C, on SIGTERM and when its terminal
 * or reader is gone. Until then, prints the output of its process and code and the result of each load.
 * @param build bundles changed sources, where that is needed
 */
export async function develop(
  context: CommandContext,
  name: string,
  root: string,
  build?: () => Promise<unknown>,
): Promise<void> {
  const { out } = context
  const workspace = referenceOf(context.options.workspace ?? EVERYWHERE, context.cwd)
  const at = (path: string, query: Readonly<Record<string, string>> = {}) =>
    `/api/extensions/${path}?${new URLSearchParams({ ...query, workspace })}`
  const own = encodeURIComponent(name)
  const stop = new AbortController()
  const release = context.onInterrupt(() => stop.abort(), { anyEnd: true })
  context.signal.addEventListener('abort', () => stop.abort(), { once: true })
  try {
    await link(context, name, root, at('dev'))
    let isLinked = true
    try {
      isLinked = await Promise.race([
        aborted(stop.signal).then(() => true),
        followLogs(
          context,
          query => at(`${own}/logs`, query),
          stop.signal,
          entry => {
            if (out.json) out.value({ what: 'log', ...entry })
            else out.line(colored(out, entry.message))
          },
        ),
        ...(build ? [followSources(context, root, build, stop.signal)] : []),
      ])
    } finally {
      stop.abort()
      if (isLinked) await unlink(context, name, workspace, at(own))
    }
    if (out.json) out.value({ what: 'unlinked', name })
    else out.line(out.color('dim', isLinked ? `unlinked ${name}` : `${name} was unlinked by another command`))
  } finally {
    release()
  }
}

async function link({ client, out, options }: CommandContext, name: string, root: string, at: string): Promise<void> {
  const confirmed = options['confirm-network-digest']
  const body = {
    origin_path: root,
    generation_hash: await hashTree(root),
    ...(confirmed === undefined ? {} : { confirm_network_digest: confirmed }),
  }
  const { extension } = (await client.request('POST', at, body)) as DevExtensionReply
  if (out.json) return out.value({ what: 'linked', extension })
  out.line(`linked ${name} ${extension.version}, ${extension.state}`)
  if (extension.last_error) out.line(out.color('red', extension.last_error))
}

/** Ends a link; a failure leaves it in place and is reported. */
async function unlink({ client, out }: CommandContext, name: string, workspace: string, own: string): Promise<void> {
  try {
    await client.request('DELETE', own)
  } catch (error) {
    if (isGone(error)) return
    if (!out.json) {
      const unlink = command('extension remove', name, '--workspace', workspace)
      out.line(out.color('red', `${name} stays linked; ${unlink} unlinks it`))
    }
    throw error
  }
}

/** Rebuilds on each change, one build at a time. The daemon sees the output; errors are printed. */
async function followSources(
  { out }: CommandContext,
  root: string,
  build: () => Promise<unknown>,
  signal: AbortSignal,
): Promise<true> {
  const { watch } = await import('chokidar')
  const builds = new Serial()
  let waiting = false
  const work = async () => {
    waiting = false
    await build().catch(error => out.line(out.color('red', messageOf(error))))
  }
  const watcher = watch(root, {
    ignoreInitial: true,
    // A link can lead anywhere, for example into /proc; files of the extension are in its folder.
    followSymlinks: false,
    ignored: at => LEFT_OUT.test(at.slice(root.length)),
    awaitWriteFinish: { stabilityThreshold: SETTLE_MS, pollInterval: SETTLE_MS / 4 },
  })
  const note = () => {
    if (!waiting) void builds.run(work)
    waiting = true
  }
  // The watcher reports no changes from before it was ready.
  watcher.on('all', note).on('ready', note)
  await aborted(signal)
  await builds.idle()
  await watcher.close()
  return true
}
