import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { objectOf, parseJsonFile, readForeign } from './foreign-file.js'
import type { Step, Wanted, WantedAgent, WantedHook, WantedJob, WantedProvider, WantedServer } from './plan.js'
import { skillStep } from './skill-folder.js'

/** The target of a plan: the home, or one workspace. */
export interface Where {
  readonly client: LocalContext['client']
  readonly home: string
  readonly workspace?: { readonly id: string; readonly rootDir: string }
  /** New jobs start at once. */
  readonly enable: boolean
}

type Members = Readonly<Record<string, unknown>>

/** Existing items by name. */
type Present = ReadonlyMap<string, Members>

/** Compares a plan with the existing items of each kind, which are fetched once. */
export class Targets {
  readonly #present = new Map<string, Promise<Present>>()

  constructor(private readonly where: Where) {}

  async step(wanted: Wanted): Promise<Step> {
    switch (wanted.kind) {
      case 'mcp_server':
        return this.#server(wanted)
      case 'job':
        return this.#job(wanted)
      case 'hook':
        return this.#hook(wanted)
      case 'agent':
        return this.#agent(wanted)
      case 'provider':
        return this.#provider(wanted)
      case 'skill':
        return skillStep(wanted, this.#folder('skills'))
    }
  }

  async #server({ name, server, secrets }: WantedServer): Promise<Step> {
    const before = (await this.#once('mcp_server', () => this.#writtenServers())).get(name)
    const stored = await this.#once('secret', () => this.#storedSecrets())
    const missing = Object.entries(secrets).filter(([reference]) => !stored.has(reference))
    const same = before !== undefined && isDeepStrictEqual(pick(before, SERVER_MEMBERS), pick(server, SERVER_MEMBERS))
    if (same && missing.length === 0) return { action: 'unchanged' }
    const query = this.where.workspace ? `?workspace_id=${encodeURIComponent(this.where.workspace.id)}` : ''
    const carry = async () => {
      for (const [ref, secret_value] of missing)
        await this.where.client.request('PUT', '/api/vault/secrets', { ref, secret_value, kind: 'mcp' })
      const body = { server: { ...pick(before ?? {}, ['sandbox', 'auth']), ...server, name } }
      await this.where.client.request('PUT', `/api/settings/mcp-servers/${encodeURIComponent(name)}${query}`, body)
    }
    return { action: before ? 'update' : 'create', carry }
  }

  async #job({ name, agent, prompt, schedule, enabled }: WantedJob): Promise<Step> {
    const before = (await this.#once('job', () => this.#jobs())).get(name)
    const runs = { ...(agent !== '' && { agent_name: agent }), prompt }
    const wanted = { ...runs, schedule }
    const { client, workspace, enable } = this.where
    if (!before) {
      const scope = workspace ? { scope: 'workspace', workspace_id: workspace.id } : { scope: 'global' }
      const body = { name, ...wanted, ...scope, enabled: enable && enabled !== false }
      return { action: 'create', carry: async () => void (await client.request('POST', '/api/automation/jobs', body)) }
    }
    const had = objectOf(before.schedule) ?? {}
    const changed = { ...pick(had, ['catch_up_policy', 'misfire_grace_seconds']), ...schedule }
    const same = isDeepStrictEqual(pick(before, Object.keys(runs)), runs)
    if (same && isDeepStrictEqual(had, changed)) return { action: 'unchanged' }
    const path = `/api/automation/jobs/${encodeURIComponent(String(before.id))}`
    const body = { ...runs, schedule: changed }
    return { action: 'update', carry: async () => void (await client.request('PATCH', path, body)) }
  }

  async #hook({ name, declaration }: WantedHook): Promise<Step> {
    const present = await this.#once('hook', () => this.#listed('/api/settings/hooks', 'hooks'))
    const before = objectOf(present.get(name)?.declaration)
    const wanted = { matcher: {}, ...declaration, name }
    if (before && isDeepStrictEqual(pick(before, Object.keys(wanted)), wanted)) return { action: 'unchanged' }
    const body = { declaration: { ...pick(before ?? {}, ['enabled', 'priority']), ...wanted } }
    const path = `/api/settings/hooks/${encodeURIComponent(name)}`
    return this.#put(before, path, body)
  }

  async #provider({ name, settings }: WantedProvider): Promise<Step> {
    const present = await this.#once('provider', () => this.#listed('/api/settings/providers', 'providers'))
    const before = objectOf(present.get(name)?.settings)
    if (before && isDeepStrictEqual(pick(before, Object.keys(settings)), settings)) return { action: 'unchanged' }
    const path = `/api/settings/providers/${encodeURIComponent(name)}`
    return this.#put(before, path, { settings: { ...before, ...settings } })
  }

  async #agent({ name, agent }: WantedAgent): Promise<Step> {
    const { client, workspace } = this.where
    const query = workspace ? `?workspace=${encodeURIComponent(workspace.id)}` : ''
    const path = `/api/agents/${encodeURIComponent(name)}`
    const before = await client
      .request('GET', `${path}${query}`)
      .then(reply => objectOf(objectOf(reply)?.agent))
      .catch(error => {
        if (error instanceof CliFault && error.code === 'agent_not_found') return undefined
        throw error
      })
    const scope = workspace ? 'workspace' : 'global'
    const target = workspace ? { workspace: workspace.id } : {}
    const body = { agent: { ...agent, name }, ...target }
    if (before?.origin !== scope)
      return {
        action: 'create',
        carry: async () => void (await client.request('POST', '/api/agents', { ...body, scope })),
      }
    if (isDeepStrictEqual(pick(before, Object.keys(agent)), agent)) return { action: 'unchanged' }
    const digest = { expected_digest: before.definition_digest }
    return { action: 'update', carry: async () => void (await client.request('PUT', path, { ...body, ...digest })) }
  }

  /** A folder of the home, or of the workspace. */
  #folder(name: string) {
    const { home, workspace } = this.where
    return { root: workspace?.rootDir ?? home, folder: join(workspace ? join(workspace.rootDir, '.svc') : home, name) }
  }

  #put(before: unknown, path: string, body: unknown): Step {
    const carry = async () => void (await this.where.client.request('PUT', path, body))
    return { action: before ? 'update' : 'create', carry }
  }

  #once(kind: string, read: () => Promise<Present>): Promise<Present> {
    const known = this.#present.get(kind) ?? read()
    this.#present.set(kind, known)
    return known
  }

  /** Read from the files, because replies never contain the values of variables and headers. */
  async #writtenServers(): Promise<Present> {
    const { home, workspace } = this.where
    const folder = workspace ? join(workspace.rootDir, '.svc') : home
    const files = [
      ['config.json', 'mcp_servers'],
      ['mcp.json', 'mcpServers'],
    ] as const
    const present = new Map<string, Members>()
    for (const [file, member] of files) {
      // The later write reports an unreadable file.
      const source = await readForeign(join(folder, file)).catch(() => undefined)
      const document = source && attempt(() => parseJsonFile(source).value)
      for (const [name, server] of Object.entries(objectOf(objectOf(document)?.[member]) ?? {}))
        present.set(name, objectOf(server) ?? {})
    }
    return present
  }

  async #storedSecrets(): Promise<Present> {
    const reply = objectOf(await this.where.client.request('GET', '/api/vault/secrets?prefix=vault%3Amcp%2F'))
    return byName((reply?.secrets ?? []) as Members[], 'ref')
  }

  async #jobs(): Promise<Present> {
    const { client, workspace } = this.where
    const jobs: Members[] = []
    const query = new URLSearchParams({ limit: '200', scope: workspace ? 'workspace' : 'global' })
    if (workspace) query.set('workspace_id', workspace.id)
    for (let more = true; more; ) {
      const reply = objectOf(await client.request('GET', `/api/automation/jobs?${query}`))
      jobs.push(...((reply?.jobs ?? []) as Members[]))
      const next = objectOf(reply?.page)?.next_cursor
      more = typeof next === 'string' && next !== ''
      if (more) query.set('cursor', String(next))
    }
    return byName(jobs, 'name')
  }

  async #listed(path: string, member: string): Promise<Present> {
    const reply = objectOf(await this.where.client.request('GET', path))
    return byName((reply?.[member] ?? []) as Members[], 'name')
  }
}

const SERVER_MEMBERS = ['command', 'args', 'url', 'env', 'secret_env', 'headers', 'secret_headers']

/** The members of these names that have a value. */
const pick = (from: object, names: readonly string[]): Members =>
  Object.fromEntries(
    Object.entries(from).filter(([name, value]) => names.includes(name) && value !== undefined && value !== null),
  )

const byName = (all: readonly Members[], key: string): Present => new Map(all.map(one => [String(one[key]), one]))

function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}
