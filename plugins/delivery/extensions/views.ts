import { stat } from 'node:fs/promises'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Actor, iso, KernelErrors } from '../../../kernel/plugin.js'
import type * as wire from '../../../schemas/extensions.js'
import { finding } from '../../desk/daemon/api.js'
import { ExtensionErrors } from './errors.js'
import { EVERYWHERE } from './identity.js'
import { hashTree } from './load/code.js'
import { leftOutOf } from './load/families.js'
import type { Instance } from './load/instance.js'
import type { ExtensionsService } from './service.js'
import { commandsOf, devToWire, extensionToWire, inventoryOf, logsOf, previewOf } from './wire.js'

/** Milliseconds that a log request waits for entries, and between two checks. */
const FOLLOW_MS = 20_000
const FOLLOW_STEP_MS = 250
/** Maximum number of left-out parts in a list. */
const DIAGNOSTICS_SHOWN = 100

/** Replies of the routes. */
export class Views {
  constructor(private readonly service: ExtensionsService) {}

  /** All extensions, without links to other workspaces than the caller's. */
  list({ maxScope }: Actor): wire.ListExtensionsReply {
    const isHere = ({ workspace_id: at = EVERYWHERE }: wire.Extension) =>
      !maxScope?.id || [maxScope.id, EVERYWHERE].includes(at)
    const all = this.service.all().map(instance => ({ instance, extension: this.toWire(instance) }))
    const here = all.filter(({ extension }) => isHere(extension))
    const diagnostics = here
      .flatMap(({ instance: { name, enabled, generation } }) =>
        enabled && generation ? leftOutOf(generation).map(message => ({ extension: name, message })) : [],
      )
      .slice(0, DIAGNOSTICS_SHOWN)
    return { extensions: here.map(({ extension }) => extension), ...(diagnostics.length > 0 && { diagnostics }) }
  }

  /** Disables an extension; a diagnostic names the plugins that then wait for it. @throws as the service */
  async disable(instance: Instance, actor: Actor): Promise<wire.Extension> {
    const token = instance.generation?.plugin?.provides?.id
    const requiring = this.service.kernel.needs.host
      .plugins()
      .flatMap(({ name, requires, state }) =>
        token !== undefined && requires.includes(token) && state.status === 'active' ? name : [],
      )
    const extension = this.toWire(await this.service.disable(instance, actor))
    // Plugins keep running if the removed replacement gives way to the original plugin.
    const waiting = requiring.filter(name => this.#waits(name))
    if (waiting.length === 0) return extension
    const required = finding({
      id: `extension.${instance.key}`,
      code: 'extension_required',
      category: 'extensions',
      severity: 'warning',
      title: `${waiting.join(', ')} ${waiting.length > 1 ? 'wait' : 'waits'} for it`,
      message: `${waiting.join(', ')} requires ${instance.name} and does not run until it is enabled again`,
      suggested_command: command('extension enable', instance.name),
    })
    return { ...extension, diagnostics: [...(extension.diagnostics ?? []), required] }
  }

  #waits(plugin: string): boolean {
    const found = this.service.kernel.needs.host.plugins().find(({ name }) => name === plugin)
    return found?.state.status === 'waiting'
  }

  /** An extension with its items. */
  one(instance: Instance): wire.Extension {
    return { ...this.toWire(instance), items: inventoryOf(instance).items }
  }

  readonly toWire = (instance: Instance): wire.Extension =>
    extensionToWire(instance, this.service.kernel.env, this.service.kernel.clock)

  /** Commands of installed extensions and of links to that workspace. */
  async commands({ extension, workspace }: wire.ExtensionCommandsQuery): Promise<wire.ExtensionCommandsReply> {
    const workspaceId = await this.service.dev.workspaceOf(workspace)
    const shown = this.service.all().filter(({ link }) => !link?.workspace || link.workspace === workspaceId)
    return commandsOf(shown, extension)
  }

  /** @throws the reason why it would not load */
  async preview(instance: Instance): Promise<wire.ExtensionPreviewReply> {
    return previewOf(instance, await instance.plan(), this.service.kernel.env)
  }

  /** With `follow`, waits up to 20 s for entries. */
  async logs(
    instance: Instance,
    query: wire.ExtensionLogsQuery,
    signal: AbortSignal,
  ): Promise<wire.ExtensionLogsReply> {
    const after = Number(query.after ?? 0)
    if (!Number.isSafeInteger(after) || after < 0) throw KernelErrors.invalid_query('after is a sequence number')
    const readLogs = (): wire.ExtensionLogsReply => {
      const current = this.service.get(instance.key)
      current.noteFaults(this.service.kernel.needs.host.faults())
      return logsOf(current, after, query.stream_epoch, this.service.kernel.redact)
    }
    if (query.follow !== 'true') return readLogs()
    const until = this.service.kernel.clock.monotonic() + FOLLOW_MS
    const leave = instance.log.follow()
    try {
      for (;;) {
        const reply = readLogs()
        const over = this.service.kernel.clock.monotonic() >= until || signal.aborted
        if (reply.logs.length > 0 || over) return reply
        await this.service.kernel.clock.sleep(FOLLOW_STEP_MS, signal).catch(() => {})
      }
    } finally {
      leave()
    }
  }

  /** An extension without provenance was copied there by the owner of the home. */
  async provenance({ name, link, found, tier }: Instance): Promise<wire.Provenance> {
    const installed = link ? undefined : this.service.installations.shown(name)
    if (installed) return installed
    const { ctimeMs } = await stat(found.root)
    const permissions = 'fault' in found ? [] : found.manifest.permissions.requires
    return {
      allow_unverified: true,
      checksum_sha256: await hashTree(found.root),
      checksum_verified: false,
      installed_at: iso(Math.floor(ctimeMs)),
      installed_by: 'owner',
      installed_from: 'folder',
      permissions: [...permissions],
      registry_tier: tier(),
      source_url: found.root,
    }
  }

  async linkBuild(
    body: wire.LinkExtensionBody,
    workspace: string | undefined,
    actor: Actor,
  ): Promise<wire.DevExtension> {
    const { origin_path: origin, generation_hash: generation, confirm_network_digest: confirmed } = body
    return this.#devToWire(await this.service.dev.link({ origin, workspace, generation, confirmed }, actor), generation)
  }

  /** A given hash, SHA-256 of the folder, has to match its current content. */
  async reloadBuild(instance: Instance, body: wire.ReloadExtensionBody = {}): Promise<wire.DevExtension> {
    const { generation_hash: generation, confirm_network_digest: confirmed } = body
    const { root } = instance.found
    if (generation !== undefined) {
      const current = await hashTree(root)
      if (current !== generation) {
        throw ExtensionErrors.extension_generation_stale(`${root} holds another build`, {
          details: { current_digest: current },
        })
      }
    }
    return this.#devToWire(await this.service.reload(instance, confirmed), generation)
  }

  #devToWire(instance: Instance, wanted: string | undefined): wire.DevExtension {
    const { env, clock } = this.service.kernel
    const { link } = instance
    const bound = this.service.secrets.list(instance).bound_env_keys
    return {
      ...devToWire(instance, { env, clock, wanted, bound }),
      dev: link !== undefined,
      overrides_published: link !== undefined && this.service.folder.get(instance.name) !== undefined,
    }
  }
}
