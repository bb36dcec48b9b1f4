import { isDeepStrictEqual } from 'node:util'
import * as v from 'valibot'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { SecretSet } from '../../../kernel/kit/secret-set.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { shown } from '../../../kernel/kit/text.js'
import { type Actor, messageOf, type Setting } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { PutProviderBody } from '../../../schemas/settings/entries.js'
import type { HookEntry } from '../../../schemas/settings/hooks.js'
import { type ApplyOutcome, PatchKeysBody } from '../../../schemas/settings.js'
import { type ConfigChange, valueIn } from '../../platform/configuration/api.js'
import { finding } from '../daemon/api.js'
import { AgentSections } from './agent-sections.js'
import type { SettingKeysApi } from './api.js'
import { ConfigKeys } from './config-keys.js'
import { readDotEnv } from './dot-env.js'
import { SettingsErrors } from './errors.js'
import { checkedBody, fill, keysIn, pathOf, wireValue } from './keys.js'
import { tailOf } from './log-tail.js'
import type { K } from './needs.js'
import type { ScopeQuery, Section } from './section.js'
import { type Collection, type CollectionFacts, hooks, providers } from './sections/collections.js'
import { sections } from './sections/sections.js'
import { partOf } from './show.js'
import { Targets } from './targets.js'
import { WorkspaceOverlays } from './workspace-overlays.js'
import { type About, SettingsWriter, type Write } from './writer.js'

/** Shortest value in bytes that is hidden; a shorter one could match ordinary text. */
const SHORTEST_SECRET = 8

/** Settings by section, by named entry and by key: reading them, their sources, and changing them. */
export class SettingsService implements SettingKeysApi {
  readonly writer: SettingsWriter
  readonly keys: ConfigKeys
  readonly hidden = new SecretSet()
  readonly overlays: WorkspaceOverlays
  #envProblem: string | undefined
  readonly #targets: Targets
  readonly #agents: AgentSections
  /** Serializes changes: a failed change must restore the very secrets that it replaced. */
  readonly #puts = new Serial()
  #isRunning = false

  constructor(private readonly kernel: K) {
    this.writer = new SettingsWriter(kernel)
    this.#targets = new Targets(kernel, this.writer)
    this.#agents = new AgentSections(this.#targets)
    this.overlays = new WorkspaceOverlays(kernel, this.#targets)
    this.keys = new ConfigKeys(kernel.needs.configuration, this.writer, this.#targets)
  }

  /** Hides the values of the home's `.env` before the plugin serves requests. */
  async start(): Promise<void> {
    const { home, env } = this.kernel
    try {
      for (const [name, value] of Object.entries(await readDotEnv(home.root)))
        if (env[name] === value && Buffer.byteLength(value) >= SHORTEST_SECRET) this.hidden.hide(value, { name })
    } catch (error) {
      this.#envProblem = messageOf(error)
    }
  }

  /** Doctor items for an `.env` of the home that was not read. */
  check(): DiagnosticItem[] {
    if (this.#envProblem === undefined) return []
    return [
      finding({
        id: 'home.env',
        code: 'secrets_perms_wrong',
        category: 'home',
        severity: 'error',
        title: 'Variables of .env are not set',
        message: this.#envProblem,
        suggested_command: `chmod 600 ${this.kernel.home.path('.env')}`,
      }),
    ]
  }

  /** Runs once the settings of all plugins have their owners. */
  async running(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    await this.writer.begin()
  }

  /** The reply for a section. @throws Fault `settings_unavailable`, `settings_scope_invalid` */
  async read(section: Section, actor: Actor, query: ScopeQuery): Promise<Record<string, unknown>> {
    if (query.scope === 'agent') return this.#agents.read(section, query, await this.read(section, actor, {}))
    const workspace = await this.#scope(query)
    const overlay = workspace && (await this.#targets.overlayOf(workspace))
    const config = fill(section.members, (member, key) => this.#value(pathOf(section.prefix, member, key), overlay))
    return {
      section: section.name,
      scope: workspace ? 'workspace' : 'global',
      available_scopes: section.scopes ?? ['global'],
      ...(workspace && { workspace_id: workspace.id }),
      ...(section.flat ? config : { config }),
      ...(await section.more?.read(this.#facts(actor))),
    }
  }

  /** Changes the members of a body that differ from the effective or pending values. */
  async patch(section: Section, body: unknown, actor: Actor, query: ScopeQuery): Promise<ApplyOutcome> {
    if (query.scope === 'agent')
      return this.#agents.patch(section, body, actor, query, await this.read(section, actor, {}))
    const workspace = await this.#scope(query)
    const overlay = workspace && (await this.#targets.overlayOf(workspace))
    const changes = () =>
      keysIn(section.members).flatMap(({ member, key }): ConfigChange[] => {
        const value = partOf(body, member.split('.'))
        if (value === undefined || value === null) return []
        const path = pathOf(section.prefix, member, key)
        if (isDeepStrictEqual(wireValue(key, this.#value(path, overlay)), value)) return []
        if (key.isShown)
          throw SettingsErrors.settings_target_invalid(
            `${member} cannot be changed together with the rest of this section`,
            {
              next: command('config set', path, placeholder('value')),
            },
          )
        return [{ path, value }]
      })
    const about = { section: section.name } as const
    if (!workspace) return this.#write(changes, actor, { scope: 'global', ...about })
    const inWorkspace = { scope: 'workspace', workspace_id: workspace.id, ...about } as const
    return this.#targets.writeWorkspace(workspace, changes, actor, inWorkspace)
  }

  async valueIn<T>({ path }: Setting<T>, workspaceId: string): Promise<T | undefined> {
    const { configuration, workspaces } = this.kernel.needs
    const workspace = workspaces.get(workspaceId)
    if (!workspace) return undefined
    return configuration.explain(path, await this.#targets.overlayOf(workspace)).value as T
  }

  putProvider(name: string, body: PutProviderBody, actor: Actor): Promise<ApplyOutcome> {
    return this.put(providers, name, checkedBody(PutProviderBody, body), actor)
  }

  /** Changes keys in one of the settings files. */
  async patchKeys(input: PatchKeysBody, actor: Actor): Promise<ApplyOutcome> {
    const body = checkedBody(PatchKeysBody, input)
    const { changes, target = 'global-config', agent_name: agentName, dry_run: isDry } = body
    const workspace = await this.#targets.workspace(body.workspace_id)
    if (target.startsWith('workspace-') !== (workspace !== undefined))
      throw SettingsErrors.settings_target_invalid(
        `${target} ${workspace ? 'is not of a' : 'needs the id of a'} workspace`,
      )
    const aside = { changes, actor, target, workspace, agentName }
    if (isDry && !target.endsWith('-config')) throw SettingsErrors.settings_target_invalid(`${target} has no dry run`)
    if (target.endsWith('-sidecar')) return this.#targets.writeSidecar(aside)
    if (target.endsWith('-agent-file')) return this.#targets.writeAgent(aside)
    const overlay = workspace && (await this.#targets.overlayOf(workspace))
    const wanted = () =>
      changes.map(({ key, name, value }) =>
        judged(this.keys.changeOf(name === undefined ? key : `${key}.${name}`, value, overlay)),
      )
    const about = {
      scope: workspace ? 'workspace' : 'global',
      ...(workspace && { workspace_id: workspace.id }),
    } as const
    const requestedChanges = changes.map(({ key, name, value }) => ({
      path: key,
      ...(name !== undefined && { name }),
      ...(value !== undefined && { value }),
    }))
    if (isDry) return this.writer.plan({ changes: wanted, requestedChanges, about, target, overlay })
    return workspace
      ? this.#targets.writeWorkspace(workspace, wanted, actor, about, requestedChanges)
      : this.writer.write({ changes: wanted, requestedChanges, actor, target: 'global-config', about })
  }

  #write(changes: Write['changes'], actor: Actor, about: About): Promise<ApplyOutcome> {
    return this.writer.write({ changes, actor, target: 'global-config', about })
  }

  /** @throws Fault `settings_scope_invalid` */
  async #scope({ scope, workspace_id: id }: ScopeQuery) {
    const isOfWorkspace = scope === 'workspace' || (scope === undefined && id !== undefined)
    if (isOfWorkspace !== (id !== undefined))
      throw SettingsErrors.settings_scope_invalid(
        isOfWorkspace ? 'scope workspace needs workspace_id' : 'workspace_id belongs to scope workspace',
      )
    return this.#targets.workspace(id)
  }

  async list(collection: Collection, actor: Actor): Promise<Record<string, unknown>> {
    const facts = this.#facts(actor)
    const written = this.#entries(collection)
    const names = new Set([...(collection.builtIn?.(facts) ?? []), ...Object.keys(written)])
    const entries = [...names].map(name => collection.describe(name, written[name], facts))
    return {
      collection: collection.name,
      scope: 'global',
      available_scopes: ['global'],
      ...(collection.section !== undefined && { section: collection.section }),
      [collection.name]: await Promise.all(entries),
    }
  }

  /** @throws Fault `setting_entry_not_found` */
  async entry(collection: Collection, name: string, actor: Actor): Promise<Record<string, unknown>> {
    const facts = this.#facts(actor)
    const written = this.#entries(collection)
    const isThere = Object.hasOwn(written, name) || collection.builtIn?.(facts).includes(name)
    if (!isThere) throw missing(collection, name)
    return { [collection.one]: await collection.describe(name, written[name], facts) }
  }

  async put(collection: Collection, name: string, body: unknown, actor: Actor): Promise<ApplyOutcome> {
    const refusal = collection.refusal?.(body, name)
    if (refusal !== undefined) throw SettingsErrors.settings_target_invalid(refusal)
    const change = { path: collection.path, name, value: partOf(body, [collection.member]) }
    return this.#puts.run(async () => {
      const undo = await collection.keep?.(name, body, this.#facts(actor))
      try {
        const outcome = await this.#writeEntry(collection, change, actor)
        return undo && outcome.skipped ? await this.#secretsAlone(collection, name, actor) : outcome
      } catch (error) {
        await undo?.()
        throw error
      }
    })
  }

  /** Records a change of secrets without a change of the file. */
  #secretsAlone(collection: Collection, name: string, actor: Actor): Promise<ApplyOutcome> {
    const keys = [`${collection.path}.${name}.secrets`]
    const about = { scope: 'global', section: collection.name } as const
    const write = { keys, actor, about, target: 'global-config', lifecycle: 'session-rebind' } as const
    return this.writer.aside(write, async () => true)
  }

  /** @throws Fault `setting_entry_not_found`, `setting_in_use` */
  async remove(collection: Collection, name: string, actor: Actor): Promise<ApplyOutcome> {
    if (!Object.hasOwn(this.#entries(collection), name)) throw missing(collection, name)
    const facts = this.#facts(actor)
    // A built-in entry remains after its override in the file is removed.
    const stays = collection.builtIn && facts.providers?.builtInEntry(name) !== undefined
    const users = stays ? [] : await collection.users(name, facts)
    if (users.length > 0) {
      const [first = ''] = users
      throw SettingsErrors.setting_in_use(
        `${collection.one} ${shown(name)} is used by ${users
          .slice(0, 10)
          .map(user => shown(user))
          .join(', ')}; change that first`,
        { details: { user: first } },
      )
    }
    const ended = await collection.deleting?.(name, facts)
    try {
      return await this.#writeEntry(collection, { path: collection.path, name }, actor)
    } finally {
      await ended?.()
    }
  }

  #writeEntry(collection: Collection, change: ConfigChange, actor: Actor): Promise<ApplyOutcome> {
    return this.#write(() => [change], actor, { scope: 'global', section: collection.name })
  }

  tail(signal: AbortSignal) {
    return tailOf(`${this.kernel.home.logs}/svc.log`, this.kernel.clock, signal)
  }

  get version(): string {
    return this.kernel.needs.host.version
  }

  #entries(collection: Collection): Readonly<Record<string, unknown>> {
    return this.#value(collection.path) as Readonly<Record<string, unknown>>
  }

  #value(path: string, overlay?: string): unknown {
    const { configuration } = this.kernel.needs
    const entry = configuration.known.find(known => known.path === path)
    if (!entry) throw SettingsErrors.settings_unavailable(`the plugin that owns ${path} does not run`)
    const value = valueIn(entry, configuration.layers(overlay))
    // The setting is empty if the socket is at its default path in the home.
    return path === 'daemon.socket' && value === '' ? this.kernel.home.socket : value
  }

  #facts(actor: Actor): CollectionFacts {
    const { home, needs } = this.kernel
    return {
      actor,
      home,
      value: path => this.#value(path),
      providers: needs.providers.current,
      workspaces: needs.workspaces,
      hooks: needs.hooks.current,
      canRestart: needs.restart.current !== undefined && needs.restart.current.refusal === undefined,
      status: () => needs.daemon.reports.status({}),
      statusOf: path => needs.daemon.reports.member(path),
      network: () => needs.network.current?.status(),
      extensions: async () => needs.extensions.current?.shown(actor),
      hookEntries: async () => (await this.list(hooks, actor)).hooks as HookEntry[],
    }
  }
}

/** Schemas of keys whose requests are more restricted than the file. */
const NARROWER = new Map(
  sections.flatMap(({ prefix, members }) =>
    keysIn(members).flatMap(({ member, key }) =>
      key.stored ? [[pathOf(prefix, member, key), key.wire] as const] : [],
    ),
  ),
)

/** @throws Fault `settings_target_invalid` for a value that is only valid in files of earlier versions */
function judged(change: ConfigChange): ConfigChange {
  const wire = NARROWER.get(change.path)
  const decoded = wire && change.value !== undefined ? v.safeParse(wire, change.value) : undefined
  if (!decoded || decoded.success) return change
  throw SettingsErrors.settings_target_invalid(`${change.path}: ${issueText(decoded.issues[0])}`)
}

const missing = ({ one, path }: Collection, name: string) =>
  SettingsErrors.setting_entry_not_found(`there is no ${one} ${shown(name)} in the configuration`, {
    next: command('config get', path),
  })
