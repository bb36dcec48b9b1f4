import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { inheritedBy, migrateTables } from '../../kernel/host/tables.js'
import type { Plugin } from '../../kernel/plugin.js'
import { RecordStore } from '../../kernel/records/store.js'
import { openStore } from '../../kernel/store/index.js'
import { journalsBelow } from '../../plugins/platform/journals/catalog-guard.js'

/** Folder in which the processes of a run share catalogs; without the runner each process makes its own. */
const shared = process.env.SVC_TEST_TEMPLATES

/** For the same tables: whether a home was asked for before in this run or process, and the catalog that the others begin with. */
const templates = new Map<string, { asked: boolean; catalog?: Promise<Buffer | undefined> }>()

/**
 * Gives a folder without a catalog one that has the tables of these plugins and no row of theirs: to migrate is the largest
 * part of a first start. The first kernel of a run with these tables migrates for itself.
 */
export async function beginHome(home: string, plugins: readonly Plugin[]): Promise<void> {
  const owner = await stat(home).catch(() => undefined)
  if (owner && owner.uid !== os.userInfo().uid) return
  const found = await readdir(home).catch(() => undefined)
  if (found?.some(name => name.startsWith('svc.db')) || (found && (await journalsBelow(home)).length > 0)) return
  const key = keyOf(plugins)
  const template = templates.get(key) ?? { asked: await wasAsked(key) }
  templates.set(key, template)
  if (!template.asked) {
    template.asked = true
    return
  }
  template.catalog ??= catalogFor(key, plugins).catch(() => undefined)
  const catalog = await template.catalog
  if (catalog === undefined) return
  await mkdir(home, { recursive: true, mode: 0o700 })
  await writeFile(path.join(home, 'svc.db'), catalog, { mode: 0o600 })
}

/** Whether another process of the run asked before; what cannot be shared was not asked for. */
async function wasAsked(key: string): Promise<boolean> {
  if (shared === undefined) return false
  try {
    await (await open(path.join(shared, `${key}.asked`), 'wx')).close()
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EEXIST'
  }
}

/** The catalog that another process of the run made, or a new one for all of them. */
async function catalogFor(key: string, plugins: readonly Plugin[]): Promise<Buffer> {
  const file = shared && path.join(shared, key)
  const kept = file && (await readFile(file).catch(() => undefined))
  if (kept) return kept
  const catalog = await migrated(plugins)
  if (file) await keep(file, catalog).catch(() => {})
  return catalog
}

/** Processes of other users may write nothing there. */
async function keep(file: string, catalog: Buffer): Promise<void> {
  const temporary = `${file}.${process.pid}`
  await writeFile(temporary, catalog)
  await rename(temporary, file)
}

function keyOf(plugins: readonly Plugin[]): string {
  const tables = plugins.map(({ name, surface: { tables, inherits } }) => [name, tables, inherits])
  return createHash('sha256').update(JSON.stringify(tables)).digest('hex')
}

async function migrated(plugins: readonly Plugin[]): Promise<Buffer> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-template-'))
  try {
    const file = path.join(folder, 'svc.db')
    const store = await openStore({ path: file, now: Date.now })
    try {
      store.share(inheritedBy(plugins))
      store.migrate('kernel', RecordStore.migrations)
      for (const plugin of plugins) migrateTables(store, { plugin } as Parameters<typeof migrateTables>[1])
    } finally {
      await store.close()
    }
    return await readFile(file)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
