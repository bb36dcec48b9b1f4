import { existsSync } from 'node:fs'
import path from 'node:path'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { InstallPreview, InstallPreviewReply, UpdateAllReply } from '../../../schemas/extensions/install.js'
import type { ExtensionReply, RemoveExtensionReply, UpdateExtensionReply } from '../../../schemas/extensions.js'
import { referenceOf } from '../identity.js'

/** `svc extension install <source>`: shows what it is, then installs exactly that. */
export async function runInstall(context: CommandContext): Promise<void> {
  const { client, out, options } = context
  const body = { ...sourceOf(context), ...trustOf(context) }
  out.line(out.color('dim', `reading ${context.args.source}`))
  const { preview } = (await client.request('POST', '/api/extensions/preview', body)) as InstallPreviewReply
  show(context, preview)
  if (options['dry-run']) return
  // What is refused is refused without a question.
  const mayAsk = context.terminal && options.yes !== true && !preview.refusal && preview.action !== 'taken'
  if (mayAsk && !(await isWanted(context))) {
    out.line('nothing was installed')
    return
  }
  const reply = await client.request('POST', '/api/extensions', { ...body, tree_digest: preview.tree_digest })
  if (out.json) return out.value(reply)
  const { extension } = reply as ExtensionReply
  out.line(`installed ${extension.name} ${extension.version}, ${extension.state}`)
  if (extension.last_error) out.line(out.color('red', extension.last_error))
  out.line(out.color('dim', `next: svc extension info ${extension.name}`))
}

/** Asks on the terminal; only a yes is one. */
function isWanted({ terminal, out }: CommandContext): Promise<boolean> {
  out.text('Install it? [y/N] ')
  return new Promise(resolve => {
    const quiet = terminal?.onLine(line => {
      quiet?.()
      resolve(/^y(?:es)?$/i.test(line?.trim() ?? ''))
    })
  })
}

/** `svc extension update [name]`: one, after a look at what it asks for, or without a name all that were installed. */
export async function runUpdate(context: CommandContext): Promise<number | undefined> {
  const { client, out, options, args, fault } = context
  const { name } = args
  if (name === undefined) return updateAll(context)
  const url = `/api/extensions/${encodeURIComponent(name)}`
  const version = options.ref === undefined ? {} : { version: options.ref }
  const body = { ...version, ...trustOf(context) }
  out.line(out.color('dim', `reading the source of ${name}`))
  const asked = await client.request('POST', '/api/extensions/preview', { ...body, name })
  const { preview } = asked as InstallPreviewReply
  show(context, preview)
  if (options['dry-run']) return undefined
  if (preview.permissions_added.length > 0 && !options.yes)
    fault(
      'confirmation_required',
      `${name} asks for more than before: ${preview.permissions_added.join(', ')}`,
      `svc extension update ${name} --yes`,
    )
  const reply = await client.request('PUT', url, { ...body, tree_digest: preview.tree_digest })
  if (out.json) out.value(reply)
  const { update } = reply as UpdateExtensionReply
  if (update.status !== 'updated') return void out.line(`${name} is up to date`)
  const { extension } = (await client.request('GET', url)) as ExtensionReply
  out.line(`updated ${name} to ${update.latest_version}, ${extension.state}`)
  if (extension.last_error) out.line(out.color('red', extension.last_error))
  return undefined
}

/** `svc extension remove <name>` */
export async function runRemove({ client, out, options, cwd, args: { name = '' } }: CommandContext): Promise<void> {
  const { purge, workspace } = options
  const query = new URLSearchParams({
    ...(purge ? { purge: 'true' } : {}),
    ...(workspace === undefined ? {} : { workspace: referenceOf(workspace, cwd) }),
  })
  const reply = await client.request('DELETE', `/api/extensions/${encodeURIComponent(name)}?${query}`)
  if (out.json) return out.value(reply)
  const { extension } = reply as RemoveExtensionReply
  const kept = purge ? '' : `; its records and tables stay (svc extension remove ${name} --purge takes them along)`
  out.line(
    `${extension.status} ${name}${extension.status === 'unlinked' ? `; ${extension.path} stays as it is` : kept}`,
  )
}

async function updateAll(context: CommandContext): Promise<number | undefined> {
  const { client, out } = context
  out.line(out.color('dim', 'updating all, one after the other'))
  const reply = (await client.request('POST', '/api/extensions/update', trustOf(context))) as UpdateAllReply
  if (out.json) out.value(reply)
  else
    out.table(
      reply.updates,
      [
        { header: 'Name', path: 'name' },
        { header: 'Status', path: 'status' },
        { header: 'Before', path: 'current_version' },
        { header: 'Now', path: 'latest_version' },
        { header: 'Error', path: 'error' },
      ],
      'nothing was installed; what was put into the folder by hand is changed there',
    )
  return reply.updates.some(({ status }) => status === 'failed') ? 1 : undefined
}

function trustOf({ options }: CommandContext): Record<string, unknown> {
  return {
    ...(options.checksum === undefined ? {} : { checksum: options.checksum }),
    ...(options['allow-unverified'] ? { allow_unverified: true } : {}),
  }
}

/** A path may be relative for a person, never for the daemon; `owner/repository` is GitHub's unless such a folder is here. */
function sourceOf({ args: { source = '' }, options, cwd }: CommandContext): Record<string, unknown> {
  const more = {
    ...(options.from === undefined ? {} : { source: options.from }),
    ...(options.ref === undefined ? {} : { version: options.ref }),
    ...(options.asset === undefined ? {} : { asset: options.asset }),
  }
  const resolved = path.resolve(cwd, source)
  if (/^[a-z+]+:|^[^/]+@[^/]+:/i.test(source)) return { path: source, ...more }
  const isSlug = /^[\w-]+\/[\w.-]+$/.test(source) && !existsSync(resolved)
  return isSlug || options.from === 'github' || options.from === 'curated'
    ? { slug: source, ...more }
    : { path: resolved, ...more }
}

function show({ out }: CommandContext, preview: InstallPreview): void {
  if (out.json) return
  const row = (what: string, text: string) => out.line(`  ${what.padEnd(12)} ${text}`)
  const versions = preview.previous_version ? `${preview.previous_version} → ${preview.version}` : preview.version
  out.line(out.color('bold', `${preview.name} ${versions}`))
  if (preview.description) row('is', preview.description)
  row('from', `${preview.source_url} (${preview.registry_tier})`)
  if (preview.commit) row('commit', preview.commit)
  if (preview.archive_digest_sha256) row('archive', `sha256 ${preview.archive_digest_sha256}`)
  row('files', `${preview.files}, ${preview.bytes} bytes, sha256 ${preview.tree_digest}`)
  row('runs', preview.command ?? (preview.type === 'plugin' ? 'inside the daemon, with all its rights' : 'nothing'))
  row('asks for', preview.permissions.join(', ') || 'nothing')
  if (preview.permissions_added.length > 0 && preview.previous_version)
    row('new', out.color('yellow', preview.permissions_added.join(', ')))
  if (preview.permissions_dropped.length > 0)
    row('not granted', out.color('yellow', preview.permissions_dropped.join(', ')))
  if (preview.requires_env.length > 0) row('needs', preview.requires_env.join(', '))
  row('trust', preview.refusal ? out.color('red', preview.refusal.error) : preview.decision)
}
