import { realpath, stat, unlink } from 'node:fs/promises'
import path from 'node:path'
import { command, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { Fault, KernelErrors, messageOf, type RecordScope, type Records } from '../../../kernel/plugin.js'
import { isInside, syncFolder, type Workspace, writeWhole } from '../../desk/workspaces/api.js'
import { type AgentDefinition, type AgentFolder, type AgentsApi, readDefinitionFile } from '../agents/api.js'
import { SidecarErrors } from './api.js'
import { AgentHeartbeatKind, AgentSoulKind } from './kinds.js'
import type { SidecarSource } from './source.js'

/** Properties of the two sidecars, with the commands that show their problems and their history. */
export const SIDECARS = {
  soul: {
    file: 'SOUL.md',
    kind: AgentSoulKind,
    inspect: (agent: string) => command('agent soul inspect', agent),
    history: (agent: string) => command('agent soul history', agent),
  },
  heartbeat: {
    file: 'HEARTBEAT.md',
    kind: AgentHeartbeatKind,
    inspect: (agent: string) => command('agent heartbeat inspect', agent),
    history: (agent: string) => command('agent heartbeat history', agent),
  },
} as const
export type Which = keyof typeof SIDECARS

/** Place of an existing or possible sidecar. */
export type SidecarLocation =
  | { readonly by: 'file'; readonly path: string; readonly where: AgentFolder }
  /** A sidecar of a package or of the daemon itself. */
  | { readonly by: 'record'; readonly text?: string; readonly path: string; readonly changedAt?: number }

/** Finds, reads and writes sidecars. Every path is resolved before the check: a link that leads out is refused. */
export class SidecarLocations {
  constructor(
    private readonly agents: AgentsApi,
    private readonly records: Records,
    private readonly unique: () => string,
  ) {}

  /** @throws Fault `agent_not_found` (404), `agent_invalid` (422) */
  async find(which: Which, agent: string, workspace: Workspace | undefined): Promise<SidecarLocation> {
    const { definition, where } = await this.agents.locate(agent, workspace)
    if (where && definition.path) {
      return { by: 'file', path: path.join(path.dirname(definition.path), SIDECARS[which].file), where }
    }
    return this.#ofRecord(which, definition)
  }

  /** The sidecar record of the agent's record: same record id, owner and scope; the lowest id wins. */
  #ofRecord(which: Which, { record }: AgentDefinition): SidecarLocation {
    const { kind } = SIDECARS[which]
    const all = record ? this.records.list({ kind, owner: record.owner, members: { agent_id: record.id } }) : []
    const found = all.find(({ scope }) => record && isSameScope(scope, record.scope))
    if (!found) return { by: 'record', path: '' }
    const { spec, updatedAt } = found
    return { by: 'record', text: spec.content, path: spec.source_path, changedAt: updatedAt }
  }

  /** Reads a sidecar; problems are part of the source. */
  async read(location: SidecarLocation, agentName: string): Promise<SidecarSource> {
    const source = { agentName, sourcePath: location.path }
    if (location.by === 'record') return { ...source, text: location.text, changedAt: location.changedAt }
    try {
      const real = await this.#resolve(location)
      const bytes = await readDefinitionFile(real)
      const { mtimeMs } = await stat(real)
      return {
        ...source,
        text: new TextDecoder('utf-8', { fatal: true }).decode(bytes),
        changedAt: Math.floor(mtimeMs),
      }
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return source
      const escaped = error instanceof EscapeError
      const message = error instanceof TypeError ? 'it is not valid UTF-8' : messageOf(error)
      return { ...source, problem: { code: escaped ? 'path_escape' : 'unreadable', message } }
    }
  }

  /** Replaces the file atomically. */
  write(location: SidecarLocation, text: string): Promise<void> {
    return this.#change(location, async file => {
      // A link is replaced at its target, so that the next read returns the new text.
      const real = await this.#resolve({ ...location, path: file } as SidecarLocation & { by: 'file' }).catch(
        async error => {
          if (codeOf(error) !== 'ENOENT') throw error
          return path.join(await this.#folder(location as SidecarLocation & { by: 'file' }), path.basename(file))
        },
      )
      const mode = await stat(real).then(
        info => info.mode & 0o777,
        () => 0o644,
      )
      await writeWhole(real, text, { how: 'replace', unique: this.unique(), mode })
    })
  }

  /** Removes the file; if it is a link, the link. */
  remove(location: SidecarLocation): Promise<void> {
    return this.#change(location, async file => {
      const folder = await this.#folder(location as SidecarLocation & { by: 'file' })
      await unlink(path.join(folder, path.basename(file)))
      await syncFolder(folder)
    })
  }

  /** @throws Fault `sidecar_read_only` (409) */
  checkWritable(location: SidecarLocation, agent: string): void {
    if (location.by === 'file' && location.where.writable) return
    const from = location.by === 'file' ? `lies in ${location.where.folder}` : 'is built in or comes from a package'
    throw SidecarErrors.sidecar_read_only(`agent ${agent} ${from}; its files cannot be changed here`, {
      next: command('agent duplicate', agent, placeholder('new-name')),
    })
  }

  async #change(location: SidecarLocation, change: (file: string) => Promise<void>): Promise<void> {
    try {
      await change(location.path)
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOSPC' || code === 'EDQUOT') throw KernelErrors.disk_full(undefined, { cause: error })
      if (error instanceof Fault) throw error
      throw SidecarErrors.sidecar_unwritable(`${location.path}: ${messageOf(error)}`, { cause: error })
    }
  }

  /** Real path of the agent's folder, inside the root of its definition. */
  async #folder({ path: file, where }: SidecarLocation & { readonly by: 'file' }): Promise<string> {
    const [folder, root] = await Promise.all([realpath(path.dirname(file)), realpath(where.root)])
    if (isInside(folder, root)) return folder
    throw new EscapeError(`the folder of ${file} is a link that leads out of ${root}`)
  }

  /** Real path of the file, inside the agent's real folder. Throws ENOENT if it does not exist. */
  async #resolve(location: SidecarLocation & { readonly by: 'file' }): Promise<string> {
    const folder = await this.#folder(location)
    const real = await realpath(path.join(folder, path.basename(location.path)))
    if (isInside(real, folder)) return real
    throw new EscapeError(`${location.path} is a link that leads out of ${folder}`)
  }
}

class EscapeError extends Error {
  override readonly name = 'EscapeError'
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code

/** Compares scopes; `user` and `global` are equal. */
const isSameScope = (a: RecordScope, b: RecordScope) =>
  (a.kind === 'workspace') === (b.kind === 'workspace') && (a.kind !== 'workspace' || a.id === b.id)
