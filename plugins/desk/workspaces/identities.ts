import { messageOf, type PluginKernel } from '../../../kernel/plugin.js'
import { excludeFromGit } from './git-exclude.js'
import { ensureIdentity } from './identity.js'
import { directoryAt } from './paths.js'
import { type StoredWorkspace, workspaces } from './table.js'

/** The identity files of roots, and the workspace of each identity. */
export class Identities {
  constructor(private readonly kernel: Pick<PluginKernel, 'clock' | 'db' | 'ids' | 'log'>) {}

  /** ULID of the folder; empty if the file cannot be written, which does not prevent the registration. */
  async of(rootDir: string): Promise<string> {
    const { clock, ids, log } = this.kernel
    const source = { now: () => clock.now(), hex: (bytes: number) => ids.hex(bytes) }
    try {
      const isCopy = async (ulid: string) =>
        workspaces.get(this.kernel.db, { identity: ulid }) !== undefined && (await this.movedFrom(ulid)) === undefined
      const { workspaceId, made } = await ensureIdentity(rootDir, source, isCopy)
      if (made !== undefined)
        await excludeFromGit(made).catch(error => log.debug(`git status will list ${made}: ${messageOf(error)}`))
      return workspaceId
    } catch (error) {
      log.warn(`the workspace ${rootDir} has no identity file, because it could not be written: ${messageOf(error)}`)
      return ''
    }
  }

  /** The workspace with this identity whose root is missing, so its folder was moved. */
  async movedFrom(identity: string): Promise<StoredWorkspace | undefined> {
    for (const workspace of workspaces.all(this.kernel.db, { identity })) {
      const found = await directoryAt(workspace.rootDir)
      if (found.is === 'gone' && found.missing) return workspace
    }
    return undefined
  }
}
