import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { knownMigrations } from '../../../../cli/backup/known-migrations.js'
import { systemClock } from '../../../../kernel/plugin.js'
import { restoreBackup } from '../../../../plugins/desk/backup/restore/restore.js'
import { type Verified, verifyBackup } from '../../../../plugins/desk/backup/restore/verify.js'
import { backup, daemon, resources, vault, workspaces } from '../../../../plugins/index.js'
import { boot, type Reply, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

export const plugins = [backup, daemon, resources, vault, workspaces]

/** A home with a daemon, and a folder beside it. */
export interface World extends TestKernel {
  readonly folder: string
  create(body?: Record<string, unknown>): Promise<Reply>
  verify(file: string, opening?: Partial<Parameters<typeof verifyBackup>[0]['opening']>): Promise<Verified>
  restore(file: string, home: string): Promise<Verified>
  /** Puts a file into the home. */
  file(name: string, text: string, mode?: number): Promise<void>
  end(): Promise<void>
}

export async function world(): Promise<World> {
  const home = await temporaryFolder('backup-home')
  const folder = await temporaryFolder('backup')
  const kernel = await boot({ home, plugins })
  const known = await knownMigrations()
  const knows = (hash: string) => known.has(hash)
  return {
    ...kernel,
    folder,
    create: async (body = {}) => {
      const reply = await kernel.request('POST', '/api/backups', body)
      if (reply.status !== 201) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`)
      return reply.body
    },
    verify: (file, opening = {}) => verifyBackup({ file, opening: { identities: [], ...opening }, knows }),
    restore: (file, at) => restoreBackup({ file, home: at, opening: { identities: [] }, knows, clock: systemClock() }),
    file: async (name, text, mode = 0o600) => {
      await mkdir(path.dirname(path.join(home, name)), { recursive: true })
      await writeFile(path.join(home, name), text, { mode })
    },
    end: async () => {
      await kernel.close()
      for (const made of [home, folder]) await rm(made, { recursive: true, force: true })
    },
  }
}

/** The code that work is refused with. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'none'
  } catch (error) {
    return String((error as { code?: string }).code ?? (error as Error).stack)
  }
}

/** What is below a folder, with slashes. */
export async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  return entries
    .filter(entry => entry.isFile())
    .map(entry => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort()
}
