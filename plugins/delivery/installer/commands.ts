import { existsSync } from 'node:fs'
import path from 'node:path'
import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { InstallPreview, InstallPreviewReply, UpdateAllReply } from '../../../schemas/extensions/install.js'
import type { ExtensionReply, RemoveExtensionReply, UpdateExtensionReply } from '../../../schemas/extensions.js'
import { referenceOf } from '../extensions/api.js'
import { MEANINGS, printPreview } from './preview-text.js'

/** Values of repeatable options. */
type WithLists = CommandContext & { readonly lists?: Readonly<Record<string, readonly string[]>> }

/** `svc extension install <source>`: shows a preview, then installs exactly that. */
export async function runInstall(context: WithLists): Promise<number | undefined> {
  const { client, out, options } = context
  const body = { ...sourceOf(context), ...trustOf(context) }
  out.line(out.color('dim', `reading ${context.args.source}`))
  const preview = await previewOf(context, body)
  show(context, preview)
  if (options['dry-run']) return undefined
  // An archive with another version of an installed extension.
  const isUpdate = preview.action === 'update' && /\.(tar\.gz|tgz)$/i.test(String(body.path ?? ''))
  // A refused installation needs no question.
  const mayAsk = !preview.refusal && (isUpdate || preview.action === 'install')
  if (mayAsk && !(await isWanted(context, 'Install it?', preview.consent_required, preview))) {
    out.line('nothing was installed')
    return undefined
  }
  const allow = await allowed(context, preview)
  if (isUpdate) {
    await update(context, preview, { path: body.path, ...trustOf(context), ...digestsOf(preview), ...allow })
    return undefined
  }
  const reply = await client.request('POST', '/api/extensions', { ...body, ...digestsOf(preview), ...allow })
  const { extension } = reply as ExtensionReply
  const { name, version, state, last_error: error } = extension
  const isBroken = state === 'error'
  if (out.json) out.value(reply)
  else {
    out.line(isBroken ? `${name} ${version} is installed and does not load` : `installed ${name} ${version}, ${state}`)
    if (error) out.line(out.color('red', error))
    out.line(out.color('dim', `next: ${command(isBroken ? 'extension logs' : 'extension info', name)}`))
  }
  return isBroken ? 1 : undefined
}

/** Preview of an installation. A daemon of an earlier version sends no consents. */
async function previewOf({ client }: CommandContext, body: Record<string, unknown>): Promise<InstallPreview> {
  const { preview } = (await client.request('POST', '/api/extensions/preview', body)) as InstallPreviewReply
  return { ...preview, consents_asked: preview.consents_asked ?? [], consents_given: preview.consents_given ?? [] }
}

/** The consents that the person grants by name: with `--allow`, else interactively. */
async function allowed(context: WithLists, { consents_asked, consents_given, name }: InstallPreview) {
  const { options, lists, out, terminal, path: called, args } = context
  const missing = consents_asked.filter(one => !consents_given.includes(one))
  if (lists?.allow?.length || missing.length === 0) return {}
  const again = commandAgain(called, args.source, name, ...missing.flatMap(one => ['--allow', one]))
  if (!terminal || options.yes === true) {
    out.line(out.color('yellow', `not granted: ${missing.join(', ')}; allow it with ${again}`))
    return {}
  }
  const question = `Allow ${missing.map(one => `${one} (${MEANINGS[one]})`).join(' and ')}?`
  return (await confirmed(context, question)) ? { allow: [...consents_given, ...missing] } : {}
}

/** The called command with the missing options added. */
const commandAgain = (called: string, source: string | undefined, name: string, ...options: readonly string[]) =>
  called === 'extension update'
    ? command('extension update', name, ...options)
    : command('extension install', source ?? name, ...options)

/** Digests of the preview, so that the request installs exactly the previewed files. */
const digestsOf = ({ tree_digest, consent_digest }: InstallPreview) => ({
  tree_digest,
  ...(consent_digest === '' ? {} : { consent_digest }),
})

function show({ out, options }: CommandContext, preview: InstallPreview): void {
  if (out.json) {
    if (options['dry-run']) out.value({ preview })
  } else printPreview(out, preview)
}

/** Items that an error lists. */
const NAMED = 5

/**
 * Asks for confirmation on the terminal; anything but yes is a no. `--yes` answers in advance.
 * @param isNeeded whether the command fails without a terminal, instead of going on
 */
async function isWanted(
  { terminal, out, options, fault, args, path: called }: CommandContext,
  question: string,
  isNeeded: boolean,
  { name, new_brings: fresh, permissions_added: added }: InstallPreview,
): Promise<boolean> {
  if (options.yes === true) return true
  if (!terminal) {
    if (!isNeeded) return true
    // The preview above lists all of it.
    const all = [...fresh.map(one => `${one.kind} ${one.name}`), ...added]
    const more = all.length > NAMED ? [...all.slice(0, NAMED), `${all.length - NAMED} more`] : all
    fault(
      'confirmation_required',
      `${name} asks for consent: ${more.join(', ')}`,
      commandAgain(called, args.source, name, '--yes'),
    )
  }
  return confirmed({ terminal, out }, question)
}

/** Asks for confirmation on the terminal; anything but yes is a no. */
function confirmed({ terminal, out }: Pick<CommandContext, 'terminal' | 'out'>, question: string): Promise<boolean> {
  out.text(`${question} [y/N] `)
  return new Promise(resolve => {
    const quiet = terminal?.onLine(line => {
      quiet?.()
      resolve(/^y(?:es)?$/i.test(line?.trim() ?? ''))
    })
  })
}

/** `svc extension update [name]`: updates one extension after a preview, or all installed ones. */
export async function runUpdate(context: WithLists): Promise<number | undefined> {
  const { out, options, args } = context
  const { name } = args
  if (name === undefined) return updateAll(context)
  const version = options.ref === undefined ? {} : { version: options.ref }
  const archive = typeof options.archive === 'string' ? { path: path.resolve(context.cwd, options.archive) } : {}
  const body = { ...version, ...archive, ...trustOf(context) }
  out.line(out.color('dim', `reading the source of ${name}`))
  const preview = await previewOf(context, { ...body, name })
  show(context, preview)
  if (options['dry-run']) return undefined
  const more = preview.consent_required || preview.permissions_added.length > 0
  if (preview.action !== 'none' && more && !(await isWanted(context, 'Update it?', true, preview))) {
    out.line('nothing was updated')
    return undefined
  }
  const allow = await allowed(context, preview)
  await update(context, preview, { ...body, ...digestsOf(preview), ...allow })
  return undefined
}

/** Updates an extension to the previewed version. */
async function update(
  { client, out }: CommandContext,
  { name, source_url }: InstallPreview,
  body: object,
): Promise<void> {
  const url = `/api/extensions/${encodeURIComponent(name)}`
  const reply = await client.request('PUT', url, body)
  if (out.json) out.value(reply)
  const { update } = reply as UpdateExtensionReply
  if (update.status !== 'updated') return out.line(`${name} is up to date with ${source_url}`)
  const { extension } = (await client.request('GET', url)) as ExtensionReply
  out.line(`updated ${name} to ${update.latest_version}, ${extension.state}`)
  if (extension.last_error) out.line(out.color('red', extension.last_error))
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
  const kept = purge
    ? ''
    : `; its records and tables stay (to remove them as well: ${command('extension remove', name, '--purge')})`
  out.line(
    `${extension.status} ${name}${extension.status === 'unlinked' ? `; ${extension.path} stays as it is` : kept}`,
  )
}

const updateColumns = columnsOf<UpdateAllReply['updates'][number]>()([
  'name',
  'status',
  { of: 'current_version', header: 'Before' },
  { of: 'latest_version', header: 'Now' },
  'error',
])

async function updateAll(context: WithLists): Promise<number | undefined> {
  const { client, out, options } = context
  out.line(out.color('dim', 'updating all, one after the other'))
  const reply = (await client.request('POST', '/api/extensions/update', {
    ...(options['allow-unverified'] ? { allow_unverified: true } : {}),
  })) as UpdateAllReply
  if (out.json) out.value(reply)
  else
    out.table(
      reply.updates,
      updateColumns,
      'no installed extensions; extensions that were copied into the folder by hand are updated there',
    )
  return reply.updates.some(({ status }) => status === 'failed') ? 1 : undefined
}

function trustOf({ options, lists }: WithLists): Record<string, unknown> {
  return {
    ...(options.checksum === undefined ? {} : { checksum: options.checksum }),
    ...(options['allow-unverified'] ? { allow_unverified: true } : {}),
    ...(lists?.allow?.length ? { allow: lists?.allow } : {}),
  }
}

/** Resolves relative paths for the daemon; `owner/repository` means GitHub unless such a folder exists here. */
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
