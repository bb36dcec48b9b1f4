import path from 'node:path'
import type { StoredRecord } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'
import { ownFolder, type Workspace } from '../../desk/workspaces/api.js'
import type { AgentFolder } from '../agents/api.js'
import type { SkillView } from './api.js'
import { bundledSkills } from './bundled/index.js'
import { type Broken, type Candidate, declaredIn, type Findings, type Member, refusal } from './candidate.js'
import type { K } from './needs.js'
import { scan } from './scan.js'
import { SkillSettings } from './settings.js'
import { SkillFolder, type SkillPlace } from './skill-folder.js'
import { SkillKind, type SkillSpec } from './skill-kind.js'

/** Cached folders; the least recently used one is dropped. */
const MAX_FOLDERS = 256

/** Folders of other programs with skills of a project; `.svc` takes precedence, then the first of these. */
const SHARED = ['.agents/skills', '.claude/skills']

/** Names of the skills in a list that declare a member. A folder gives the same list until it is looked at again. */
const declaring = new WeakMap<readonly Candidate[], Map<Member, readonly string[]>>()

function namesDeclaring(candidates: readonly Candidate[], member: Member): readonly string[] {
  const known = declaring.get(candidates) ?? new Map<Member, readonly string[]>()
  declaring.set(candidates, known)
  const names =
    known.get(member) ?? candidates.filter(one => declaredIn(one, member) !== undefined).map(({ name }) => name)
  known.set(member, names)
  return names
}

/** All sources of skills. */
export class SkillSources {
  readonly #folders = new Map<string, SkillFolder>()
  readonly #records = new Map<string, { readonly version: number; readonly candidate: Candidate }>()
  readonly home: string

  constructor(private readonly kernel: K) {
    this.home = kernel.home.path('skills')
  }

  /** Makes the next lookup check all folders. */
  expire(): void {
    for (const folder of this.#folders.values()) folder.expire()
  }

  /** All skills visible in a view, including shadowed ones; ordered by precedence within a tier. */
  async of(view: SkillView): Promise<{ candidates: Candidate[]; broken: Broken[] }> {
    const found = await this.#found(view)
    return {
      candidates: found.flatMap(({ candidates }) => candidates),
      broken: found.flatMap(({ broken }) => broken),
    }
  }

  /** Of {@link of} the skills that declare a member, and all others with a name of these. */
  async declaring(view: SkillView, member: Member): Promise<Candidate[]> {
    const found = await this.#found(view)
    const names = new Set(found.flatMap(({ candidates }) => namesDeclaring(candidates, member)))
    if (names.size === 0) return []
    return found.flatMap(({ candidates }) => candidates.filter(({ name }) => names.has(name)))
  }

  async #found({ workspace, agent }: SkillView): Promise<Findings[]> {
    const maxAge = durationMs(this.kernel.config.get(SkillSettings.pollInterval)) ?? 0
    const places = await this.#places(workspace, agent)
    const looked = await Promise.all(places.map(source => this.#folder(source).scan(maxAge)))
    const rest = (candidates: readonly Candidate[]) => ({ candidates, broken: [] })
    return [rest(bundledSkills()), ...looked, rest(this.#ofRecords(workspace))]
  }

  async #places(workspace: Workspace | undefined, agent: string | undefined): Promise<SkillPlace[]> {
    const inside = (root: string, tier: 'workspace' | 'additional'): SkillPlace[] => {
      const own = ownFolder(root, this.kernel.home.root)
      if (own === undefined) return []
      const folders = [path.join(own, 'skills'), ...SHARED.map(folder => path.join(root, folder))]
      return folders.map(folder => ({ folder, root, tier, ofWorkspace: true }))
    }
    const where = agent === undefined ? undefined : await this.agentFolder(agent, workspace)
    return [
      { folder: this.home, root: this.home, tier: 'user', ofWorkspace: false },
      ...(workspace?.addDirs ?? []).flatMap(dir => inside(dir, 'additional')),
      ...(workspace ? inside(workspace.rootDir, 'workspace') : []),
      // Files beside an agent from a catalog were not part of the consent.
      ...(where && where.digests === undefined && agent !== undefined
        ? [
            {
              folder: path.join(where.folder, agent, 'skills'),
              root: path.join(where.folder, agent),
              tier: 'agent_local' as const,
              ofWorkspace: where.workspaceId !== undefined,
            },
          ]
        : []),
    ]
  }

  /** Folder of the agent; undefined if it is not a file. @throws Fault `agent_not_found`, `agent_invalid` */
  async agentFolder(agent: string, workspace: Workspace | undefined): Promise<AgentFolder | undefined> {
    return (await this.kernel.needs.agents.current?.locate(agent, workspace))?.where
  }

  #folder(source: SkillPlace): SkillFolder {
    const known = this.#folders.get(source.folder)
    const folder = known?.source.tier === source.tier ? known : new SkillFolder(source, this.kernel.clock)
    // Moved to the end: the map is ordered by last use.
    this.#folders.delete(source.folder)
    this.#folders.set(source.folder, folder)
    const [oldest] = this.#folders.keys()
    if (this.#folders.size > MAX_FOLDERS && oldest !== undefined) this.#folders.delete(oldest)
    return folder
  }

  /** Records of the workspace first, then by id. */
  #ofRecords(workspace: Workspace | undefined): Candidate[] {
    const records = this.kernel.records
      .list({ kind: SkillKind })
      .filter(({ scope }) => scope.kind !== 'workspace' || scope.id === workspace?.id)
      .sort(
        (a, b) => Number(b.scope.kind === 'workspace') - Number(a.scope.kind === 'workspace') || (a.id < b.id ? -1 : 1),
      )
    const known = new Set(records.map(({ id }) => id))
    if (this.#records.size > known.size + MAX_FOLDERS)
      for (const id of this.#records.keys()) if (!known.has(id)) this.#records.delete(id)
    return records.map(record => this.#ofRecord(record as StoredRecord<SkillSpec>))
  }

  #ofRecord(record: StoredRecord<SkillSpec>): Candidate {
    const { id, version, spec, source, owner } = record
    const known = this.#records.get(id)
    if (known?.version === version) return known.candidate
    const extension = source.kind === 'extension' ? source.id : undefined
    const file = spec.source_path ?? `${SkillKind.name}/${id}`
    const warnings = scan(`${spec.description}\n${spec.body}`, spec.source_path ?? spec.name)
    const failure = refusal(warnings)
    const candidate: Candidate = {
      name: spec.name,
      tier: 'extension',
      path: file,
      dir: path.posix.dirname(file),
      ofWorkspace: false,
      spec,
      warnings,
      ...(failure && { failure }),
      ...(extension !== undefined && {
        extension: extension.split('@', 1)[0] ?? extension,
        extensionKey: extension,
      }),
      ...(owner.kind === 'bundle.activation' && { bundle: owner.id }),
    }
    this.#records.set(id, { version, candidate })
    return candidate
  }
}
