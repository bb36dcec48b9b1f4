import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { messageOf } from '../../../../kernel/plugin.js'
import {
  type Brought,
  broughtAgent,
  broughtSidecar,
  ExtensionErrors,
  type InstalledExtension,
  type ResourceFamily,
  readInside,
  resolveInside,
  sidecarFiles,
} from '../../../delivery/extensions/api.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import {
  AGENT_NAME,
  type AgentDefinition,
  type AgentSource,
  type AgentSpec,
  parseAgent,
  RESERVED_NAMES,
} from '../api.js'
import { digestOf, MAX_DEFINITION_BYTES } from './definition.js'

interface Packaged {
  readonly root: string
  readonly folder: string
  /** Id of a workspace; absent: visible everywhere. */
  readonly workspace?: string | undefined
  /** Key of the extension. */
  readonly extension: string
  /** Digests of the loaded definitions by name; files that differ are ignored. */
  readonly digests?: ReadonlyMap<string, string>
}

/** Folders of definitions from loaded extensions. */
export class PackagedAgents implements AgentSource {
  readonly #byExtension = new Map<string, readonly Packaged[]>()

  /** Links to the workspace first, then global ones, by extension, in the order of the manifest. */
  folders(workspace: Workspace | undefined): readonly Packaged[] {
    const all = [...this.#byExtension.keys()].sort().flatMap(key => this.#byExtension.get(key) ?? [])
    return [
      ...all.filter(packaged => packaged.workspace !== undefined && packaged.workspace === workspace?.id),
      ...all.filter(packaged => packaged.workspace === undefined),
    ]
  }

  /** The family that reads agents of extensions. */
  family(visible: () => Promise<readonly AgentDefinition[]>): ResourceFamily {
    return {
      name: 'agents',
      load: async extension => {
        const { key, root, manifest, workspace, tier } = extension
        const folders: Packaged[] = []
        const names: string[] = []
        const brings: Brought[] = []
        const leftOut: string[] = []
        for (const relative of manifest.resources.agents) {
          const folder = await resolveInside(root, relative)
          const found = await agentsIn(extension, relative, leftOut)
          const digests = new Map(found.map(({ name, digest }) => [name, digest]))
          folders.push({ root, folder, workspace, extension: key, ...(tier === 'marketplace' && { digests }) })
          names.push(...digests.keys())
          for (const { name, spec } of found) {
            brings.push(...broughtAgent(name, spec))
            const files = await readdir(path.join(folder, name))
            brings.push(...sidecarFiles.filter(file => files.includes(file)).map(file => broughtSidecar(name, file)))
          }
        }
        const others = (await visible()).filter(
          ({ path: file = '' }) => !folders.some(one => isBelow(file, one.folder)),
        )
        return {
          items: names.map(name => ({ kind: 'agent', id: name, name, live: true })),
          brings,
          ...(leftOut.length > 0 && { leftOut }),
          agentConflicts: names.filter(name => others.some(other => other.name === name)),
          taken: () => void this.#byExtension.set(key, folders),
        }
      },
      unload: key => void this.#byExtension.delete(key),
    }
  }
}

const isBelow = (file: string, folder: string) => file.startsWith(folder + path.sep)

/** An agent of a folder. */
interface PackagedAgent {
  readonly name: string
  readonly spec: AgentSpec
  readonly digest: string
}

/**
 * The agents of a folder by name. Invalid ones are left out.
 * @param leftOut receives the file and the reason
 */
async function agentsIn({ root }: InstalledExtension, relative: string, leftOut: string[]): Promise<PackagedAgent[]> {
  const agents: PackagedAgent[] = []
  const entries = await readdir(await resolveInside(root, relative), { withFileTypes: true })
  if (entries.some(({ name }) => name === 'AGENT.md')) {
    const above = path.posix.dirname(path.posix.normalize(relative))
    throw invalid(relative, `it is the folder of one agent; name the folder above it: ${above}`)
  }
  for (const { name } of entries.filter(entry => !entry.isFile() && !entry.name.startsWith('.'))) {
    const file = path.posix.join(relative, name, 'AGENT.md')
    const isThere = (await readdir(path.join(root, relative, name)).catch((): string[] => [])).includes('AGENT.md')
    if (!isThere) continue
    try {
      if (!AGENT_NAME.test(name) || RESERVED_NAMES.has(name)) throw new Error(`${name} is not a valid agent name`)
      const bytes = await readInside(root, file, MAX_DEFINITION_BYTES)
      const { spec, leftOut: entries } = await parseAgent(bytes)
      if (spec.name !== name) throw new Error(`its name is ${spec.name}, but its folder is named ${name}`)
      leftOut.push(...entries.map(entry => `${path.join(root, file)}: ${entry}`))
      agents.push({ name, spec, digest: digestOf(bytes) })
    } catch (error) {
      leftOut.push(`${path.join(root, file)}: ${messageOf(error)}`)
    }
  }
  return agents.sort((a, b) => (a.name < b.name ? -1 : 1))
}

const invalid = (file: string, what: string) =>
  ExtensionErrors.extension_manifest_invalid(`${file}: ${what}`, { details: { file } })
