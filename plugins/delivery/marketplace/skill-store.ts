import { mkdir, readdir } from 'node:fs/promises'
import path from 'node:path'
import { META_FILE, type SkillMeta } from '../../agents/skills/api.js'
import { syncFolder } from '../../desk/workspaces/api.js'
import { systemFiles, type Tree, writeTree } from '../extensions/api.js'

/** Prefixes of folders that are not skills: an unfinished new one, and a replaced one. */
const NEW = '.new-'
const OLD = '.old-'

/** The folder of installed skills. After a crash at any point, each skill is complete, in its old or new version. */
export class SkillStore {
  constructor(
    readonly folder: string,
    private readonly unique: () => string,
  ) {}

  /** Folder name for a skill: all characters but letters, digits, dot, minus and underscore are replaced. */
  pathOf(name: string): string {
    return path.join(
      this.folder,
      encodeURIComponent(name)
        .replace(/[%*'()!~]/g, '_')
        .replace(/^\./, '_'),
    )
  }

  /** Whether something is there under that name. */
  async isThere(name: string): Promise<boolean> {
    return (await this.#names()).includes(path.basename(this.pathOf(name)))
  }

  /** Installs a skill, replacing an earlier version. */
  async put(name: string, tree: Tree, meta: SkillMeta): Promise<string> {
    await this.recover()
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    const target = this.pathOf(name)
    const base = path.basename(target)
    const fresh = path.join(this.folder, `${NEW}${this.unique()}-${base}`)
    const whole: Tree = [
      ...tree,
      { path: META_FILE, executable: false, bytes: Buffer.from(`${JSON.stringify(meta, null, 2)}\n`) },
    ]
    await writeTree(systemFiles, whole, fresh)
    if (await this.isThere(name)) await systemFiles.rename(target, path.join(this.folder, `${OLD}${base}`))
    await systemFiles.rename(fresh, target)
    await syncFolder(this.folder)
    await systemFiles.remove(path.join(this.folder, `${OLD}${base}`))
    return target
  }

  /** @param dir of a skill in this folder */
  async remove(dir: string): Promise<void> {
    await this.recover()
    const gone = path.join(this.folder, `${NEW}${this.unique()}-removed`)
    await systemFiles.rename(dir, gone)
    await syncFolder(this.folder)
    await systemFiles.remove(gone)
  }

  /** Recovers from a crash: restores an old version whose successor was not renamed into place. */
  async recover(): Promise<void> {
    const names = await this.#names()
    for (const name of names) {
      const at = path.join(this.folder, name)
      if (name.startsWith(NEW)) await systemFiles.remove(at)
      else if (name.startsWith(OLD)) {
        const before = name.slice(OLD.length)
        if (names.includes(before)) await systemFiles.remove(at)
        else await systemFiles.rename(at, path.join(this.folder, before))
      }
    }
  }

  async #names(): Promise<string[]> {
    return readdir(this.folder).catch(error => {
      if (error.code === 'ENOENT') return []
      throw error
    })
  }
}
