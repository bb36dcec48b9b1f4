import { createHash } from 'node:crypto'
import path from 'node:path'
import * as v from 'valibot'
import { canonicalJson } from '../../../kernel/kit/canonical.js'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { parseJson } from '../../../kernel/kit/text.js'
import { Fault, type Kind, messageOf } from '../../../kernel/plugin.js'
import { AgentKind, parseAgent, RESERVED_NAMES } from '../../agents/agents/api.js'
import { AgentHeartbeatKind, AgentSoulKind } from '../../agents/sidecars/api.js'
import { LayoutKind, MAX_LAYOUT_BYTES } from '../../desk/window-manager/api.js'
import { BridgeInstanceKind } from '../../reach/bridges/api.js'
import { JobKind, TriggerKind } from '../../work/automation/api.js'
import { type InstalledExtension, readInside, readText, requirementDigest } from '../extensions/api.js'
import { bundleFiles } from './files.js'
import { derivedId } from './ids.js'
import {
  type BundleManifest,
  type BundleProblem,
  type Channel,
  type ParsedBundle,
  parseBundle,
  twice,
} from './manifest.js'
import { type PackagedAgent, type PackagedLayout, type ProfileContent, type Projected, project } from './project.js'

const MAX_MANIFEST_BYTES = 512 * 1024
const MAX_AGENT_BYTES = 512 * 1024

/** A profile with everything that it projects. */
export interface LoadedProfile extends ProfileContent {
  readonly name: string
  readonly description?: string | undefined
  readonly channels: readonly Channel[]
  readonly primaryChannel?: string | undefined
  /** Hex SHA-256 of its content. */
  readonly hash: string
}

/** A bundle of a loaded extension. */
export interface LoadedBundle {
  /** Id of its record. */
  readonly id: string
  readonly extension: string
  /** Key of the extension. */
  readonly key: string
  readonly version: string
  readonly platform?: string | undefined
  /** Empty where the extension requires nothing of the network. */
  readonly requirement: string
  readonly name: string
  readonly description?: string | undefined
  /** Relative to the extension. */
  readonly file: string
  readonly profiles: readonly LoadedProfile[]
}

/** Reads all bundles of an extension, and collects everything that is wrong with them. */
export async function loadBundles(
  extension: InstalledExtension,
): Promise<{ readonly bundles: readonly LoadedBundle[]; readonly problems: readonly BundleProblem[] }> {
  const bundles: LoadedBundle[] = []
  const problems: BundleProblem[] = []
  const lines = new Map<string, ParsedBundle['lineOf']>()
  for (const file of await filesOf(extension, problems)) {
    const parsed = await readBundle(extension.root, file)
    if ('length' in parsed) problems.push(...parsed)
    else {
      lines.set(file, parsed.lineOf)
      bundles.push(await new BundleReader(extension, file, problems).read(parsed.manifest))
    }
  }
  for (const { key, message } of twice(bundles, '', 'bundle of this extension')) {
    const at = Number(key.split('.')[1])
    problems.push({ file: bundles[at]?.file ?? '', key: 'name', message })
  }
  const placed = problems.map(problem => ({ line: lines.get(problem.file)?.(problem.key), ...problem }))
  return { bundles, problems: placed }
}

async function filesOf({ root, manifest }: InstalledExtension, problems: BundleProblem[]): Promise<string[]> {
  const files = new Set<string>()
  for (const [n, relative] of manifest.resources.bundles.entries()) {
    try {
      for (const file of await bundleFiles(root, relative)) files.add(file)
    } catch (error) {
      problems.push({ file: relative, key: `resources.bundles.${n}`, message: messageOf(error) })
    }
  }
  return [...files]
}

async function readBundle(root: string, file: string): Promise<ParsedBundle | readonly BundleProblem[]> {
  try {
    return parseBundle(file, await readText(root, file, MAX_MANIFEST_BYTES))
  } catch (error) {
    return [{ file, key: '', message: messageOf(error) }]
  }
}

/** Reads the parts of one bundle; problems are collected and do not stop the reading. */
class BundleReader {
  readonly #root: string

  constructor(
    private readonly extension: InstalledExtension,
    private readonly file: string,
    private readonly problems: BundleProblem[],
  ) {
    this.#root = extension.root
  }

  async read(manifest: BundleManifest): Promise<LoadedBundle> {
    const { name, key, version, manifest: own } = this.extension
    const profiles: LoadedProfile[] = []
    for (const [n, profile] of manifest.profiles.entries()) {
      const at = `profiles.${n}`
      const content: ProfileContent = {
        agents: await this.#agents(profile.agents, at),
        layouts: await this.#layouts(profile.layouts, at),
        jobs: profile.jobs,
        triggers: profile.triggers,
        bridges: profile.bridges,
      }
      this.#judge(content, manifest.name, profile.name, at)
      profiles.push({
        name: profile.name,
        description: profile.description,
        channels: profile.channels.items,
        primaryChannel: profile.channels.primary,
        hash: createHash('sha256')
          .update(canonicalJson({ channels: profile.channels, content }))
          .digest('hex'),
        ...content,
      })
    }
    return {
      id: derivedId('bundle', name, manifest.name),
      extension: name,
      key,
      version,
      platform: own.bridge?.platform,
      requirement: requirementDigest(own),
      name: manifest.name,
      description: manifest.description,
      file: this.file,
      profiles,
    }
  }

  async #agents(entries: BundleManifest['profiles'][number]['agents'], at: string): Promise<PackagedAgent[]> {
    const all: PackagedAgent[] = []
    for (const [n, entry] of entries.entries()) {
      const where = `${at}.agents.${n}`
      await this.#attempt(`${where}.path`, path.posix.join(entry.path, 'AGENT.md'), async file => {
        const { spec, leftOut } = await parseAgent(await readInside(this.#root, file, MAX_AGENT_BYTES))
        for (const entry of leftOut) this.#say(`${where}.path`, `${file}: ${entry}`)
        if (entry.name !== undefined && entry.name !== spec.name)
          return this.#say(`${where}.name`, `its definition has the name ${JSON.stringify(spec.name)}`)
        if (all.some(other => other.spec.name.toLowerCase() === spec.name.toLowerCase()))
          return this.#say(where, `another agent of this profile is named ${JSON.stringify(spec.name)}`)
        const [soul, heartbeat] = await Promise.all(
          ['SOUL.md', 'HEARTBEAT.md'].map(name => this.#optional(path.posix.join(entry.path, name))),
        )
        all.push({ spec, ...(soul === undefined ? {} : { soul }), ...(heartbeat === undefined ? {} : { heartbeat }) })
      })
    }
    return all
  }

  async #layouts(entries: BundleManifest['profiles'][number]['layouts'], at: string): Promise<PackagedLayout[]> {
    const all: PackagedLayout[] = []
    for (const [n, entry] of entries.entries()) {
      const where = `${at}.layouts.${n}`
      await this.#attempt(`${where}.path`, entry.path, async file => {
        const spec = parseJson(await readText(this.#root, file, MAX_LAYOUT_BYTES))
        const wrong = layoutProblem(spec)
        if (wrong !== undefined) return this.#say(where, `${file}: ${wrong}`)
        const { id } = spec as { id: string }
        if (entry.id !== undefined && entry.id !== id) return this.#say(`${where}.id`, `${file} has another id`)
        if (all.some(other => other.id === id)) return this.#say(where, 'another layout of this profile has this id')
        all.push({ id, spec: spec as PackagedLayout['spec'] })
      })
    }
    return all
  }

  /** Checks the records that the profile would project with their codecs, for a placeholder workspace. */
  #judge(content: ProfileContent, bundle: string, profile: string, at: string): void {
    const target = {
      activationId: 'act_0000000000000000',
      scope: { kind: 'workspace', id: 'ws_0000000000000000' } as const,
      extension: this.extension.name,
      key: this.extension.key,
      bundle,
      profile,
      platform: this.extension.manifest.bridge?.platform,
    }
    for (const record of project(content, target)) {
      const wrong = codecProblem(record, target.scope)
      if (wrong === undefined) continue
      const file = record.kind.startsWith('agent.') ? `${path.posix.basename(String(record.spec.source_path))}: ` : ''
      this.#say(`${at}.${record.at}${wrong.key && `.${wrong.key}`}`, `${file}${wrong.message}`)
    }
  }

  async #optional(file: string): Promise<string | undefined> {
    try {
      return await readText(this.#root, file, MAX_AGENT_BYTES)
    } catch (error) {
      if (error instanceof Fault && / does not exist$/.test(error.message)) return undefined
      throw error
    }
  }

  async #attempt(key: string, file: string, work: (file: string) => Promise<unknown>): Promise<void> {
    try {
      await work(file)
    } catch (error) {
      this.#say(key, `${file}: ${messageOf(error)}`)
    }
  }

  #say(key: string, message: string): void {
    this.problems.push({ file: this.file, key, message })
  }
}

/** The codecs of all projected kinds, known here because the plugins of these kinds may be disabled. */
const CODECS: ReadonlyMap<string, Kind<never>> = new Map(
  [LayoutKind, AgentKind, AgentSoulKind, AgentHeartbeatKind, JobKind, TriggerKind, BridgeInstanceKind].map(kind => [
    kind.name,
    kind as unknown as Kind<never>,
  ]),
)

function codecProblem(
  record: Projected,
  scope: { kind: 'workspace'; id: string },
): { key: string; message: string } | undefined {
  const kind = CODECS.get(record.kind)
  // A webhook trigger and a reserved name are rejected on activation, with errors of their own.
  if (!kind || record.spec.event === 'webhook' || RESERVED_NAMES.has(String(record.spec.name))) return undefined
  const decoded = v.safeParse(kind.spec, record.spec)
  if (!decoded.success) {
    const [issue] = decoded.issues
    return { key: v.getDotPath(issue) ?? '', message: issueText(issue) }
  }
  const wrong = kind.check?.({ id: record.id, scope, spec: decoded.output })
  if (wrong === undefined) return undefined
  const [, key = '', message = wrong] = /^([a-z_]+(?:\.[\w.]+)?): ([\s\S]+)$/.exec(wrong) ?? []
  return { key, message }
}

/** Checks the members that the projection of a layout needs; its codec checks the rest. */
function layoutProblem(spec: unknown): string | undefined {
  const { id, document } = (typeof spec === 'object' && spec !== null ? spec : {}) as Record<string, unknown>
  if (typeof id !== 'string' || id.trim() === '') return 'id: required'
  if (typeof document !== 'object' || document === null) return 'document: required'
  return undefined
}
