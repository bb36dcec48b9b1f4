import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { inheritedBy, migrateTables } from '../../kernel/host/tables.js'
import type { Plugin } from '../../kernel/plugin.js'
import { RecordStore } from '../../kernel/records/store.js'
import { openStore } from '../../kernel/store/index.js'
import { journalsBelow } from '../../plugins/platform/journals/catalog-guard.js'

/** How often homes for the same tables were asked for in this process, and the catalog that they begin with. */
const templates = new Map<string, { asked: number; catalog?: Promise<Buffer | undefined> }>()

/**
 * Gives a folder without a catalog one that has the tables of these plugins and no row of theirs: to migrate is the largest
 * part of a first start. The first kernel of a process with these tables migrates for itself.
 */
export async function beginHome(home: string, plugins: readonly Plugin[]): Promise<void> {
  const owner = await stat(home).catch(() => undefined)
  if (owner && owner.uid !== os.userInfo().uid) return
  const found = await readdir(home).catch(() => undefined)
  if (found?.some(name => name.startsWith('svc.db')) || (found && (await journalsBelow(home)).length > 0)) return
  const template = templateFor(keyOf(plugins))
  if (++template.asked === 1) return
  template.catalog ??= migrated(plugins).catch(() => undefined)
  const catalog = await template.catalog
  if (catalog === undefined) return
  await mkdir(home, { recursive: true, mode: 0o700 })
  await writeFile(path.join(home, 'svc.db'), catalog, { mode: 0o600 })
}

function templateFor(key: string) {
  const template = templates.get(key) ?? { asked: 0 }
  templates.set(key, template)
  return template
}

function keyOf(plugins: readonly Plugin[]): string {
  const tables = plugins.map(({ name, surface: { tables, inherits } }) => [name, tables, inherits])
  return createHash('sha256').update(JSON.stringify(tables)).digest('base64')
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
