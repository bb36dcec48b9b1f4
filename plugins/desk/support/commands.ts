import { lstat } from 'node:fs/promises'
import path from 'node:path'
import { replaceDurably } from '../../../kernel/kit/durable-file.js'
import { type CommandContext, messageOf } from '../../../kernel/plugin.js'
import type { SupportManifest, SupportOperation, SupportOperationReply } from '../../../schemas/daemon/support.js'
import { CONTENTS } from './limits.js'

/** The command line passes additional members to its own commands. */
interface Context extends CommandContext {
  readonly io?: { readonly env: Readonly<Record<string, string | undefined>> }
  readonly data?: { readonly version: string }
}

/** Error codes of a daemon that cannot be reached. */
const NOT_ANSWERING = new Set([
  'no_daemon',
  'daemon_unreachable',
  'daemon_unresponsive',
  'daemon_ended',
  'daemon_elsewhere',
  'connection',
  'socket_foreign',
])

interface Made {
  readonly name: string
  readonly bytes: Uint8Array
  readonly manifest: SupportManifest
}

/** `svc support bundle`: made by the daemon, or from the files of the home if no daemon answers. */
export async function runBundle(context: Context): Promise<void> {
  const { out, options } = context
  await askConsent(context)
  const file = await fileOf(context)
  const made = options.offline === true ? await offline(context, '--offline was given') : await online(context)
  const target = file ?? path.resolve(context.cwd, made.name)
  await write(context, target, made.bytes)
  out.id(target)
  if (out.json) return out.value({ file: target, bytes: made.bytes.length, manifest: made.manifest })
  const missing = made.manifest.artifacts.filter(({ included }) => !included)
  for (const { path: name, omitted_reason: why } of missing) out.line(`without ${name}: ${why}`)
  out.line(`wrote ${target} (${kilobytes(made.bytes.length)})`)
  out.line(`Look through it before you pass it on: tar -xOf ${quoted(target)} summary.md`)
}

/** Lists the contents of a bundle and asks for consent. */
async function askConsent({ out, options, terminal, fault }: Context): Promise<void> {
  if (options.yes === true) return
  if (!terminal) {
    const text = 'a support bundle needs consent, but there is no terminal to ask for it'
    return fault('bundle_consent_required', text, 'svc support bundle --yes')
  }
  out.line('A support bundle holds, without secrets:')
  for (const [name, what] of CONTENTS)
    if (name !== 'status.json' || options['no-status'] !== true) out.line(`  ${name.padEnd(27)}${what}`)
  out.line('It stays on this machine. Secrets are replaced by [redacted].')
  out.text('Make it? [y/N] ')
  const answer = await new Promise<string | undefined>(resolve => {
    const quiet = terminal.onLine(line => {
      quiet()
      resolve(line)
    })
  })
  if (!/^y(?:es)?$/i.test(answer?.trim() ?? ''))
    fault('bundle_consent_required', 'nothing was made', 'svc support bundle')
}

async function online(context: Context): Promise<Made> {
  const { client, options, out, fault } = context
  try {
    const body = { yes: true, ...(options['no-status'] === true && { include_status: false }) }
    let operation = ((await client.request('POST', '/api/support/bundles', body)) as SupportOperationReply).operation
    while (operation.status === 'pending' || operation.status === 'running')
      operation = ((await client.request('GET', `${operation.status_url}?wait=true`)) as SupportOperationReply)
        .operation
    if (operation.status === 'failed')
      return fault(
        'bundle_failed',
        `the daemon made no bundle: ${operation.failure_reason}`,
        'svc support bundle --offline',
      )
    return await downloaded(client, operation)
  } catch (error) {
    const { code } = Object(error) as { code?: unknown }
    if (typeof code !== 'string' || !NOT_ANSWERING.has(code)) throw error
    if (!out.json) out.line(`The files of the home are read instead: ${messageOf(error)}`)
    return offline(context, messageOf(error))
  }
}

async function downloaded(client: CommandContext['client'], operation: SupportOperation): Promise<Made> {
  const { download_url: url = '', file_name: name = 'svc-support.tar.gz', manifest } = operation
  const bytes = (await client.request('GET', url, undefined, { headers: { accept: 'application/gzip' } })) as Uint8Array
  return { name, bytes, manifest: manifest as SupportManifest }
}

async function offline({ home, options, signal, io, data }: Context, why: string): Promise<Made> {
  const { makeOfflineBundle } = await import('./bundle/offline.js')
  const includeStatus = options['no-status'] !== true
  const { env = {} } = io ?? {}
  const version = data?.version ?? ''
  const { name, archive, manifest } = await makeOfflineBundle({ home, version, env, includeStatus, why, signal })
  return { name, bytes: archive, manifest }
}

/** The absolute path given by `--out`; undefined to use the archive's name in the current folder. */
async function fileOf({ options, cwd, fault }: Context): Promise<string | undefined> {
  if (options.out === undefined) return undefined
  const file = path.resolve(cwd, String(options.out))
  const there = await lstat(file).catch(() => undefined)
  if (there?.isDirectory())
    return fault('usage', `${file} is a folder; name a file in it`, 'svc support bundle --out <file>')
  if (there) return fault('file_exists', `${file} exists; it is not overwritten`, 'svc support bundle --out <file>')
  const folder = await lstat(path.dirname(file)).catch(() => undefined)
  if (!folder) return fault('usage', `${path.dirname(file)} does not exist`, 'svc support bundle --out <file>')
  return file
}

async function write({ fault }: Context, file: string, bytes: Uint8Array): Promise<void> {
  try {
    await replaceDurably(file, bytes)
  } catch (error) {
    const { code } = Object(error) as { code?: string }
    const text = `${file} cannot be written: ${messageOf(error)}`
    const other = 'svc support bundle --out <file>'
    fault(code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : 'output_unwritable', text, other)
  }
}

const kilobytes = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`
const quoted = (text: string): string => (/^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)
