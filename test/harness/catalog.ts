import path from 'node:path'
import { inheritedBy, migrateTables } from '../../kernel/host/tables.js'
import type { Plugin } from '../../kernel/plugin.js'
import { RecordStore } from '../../kernel/records/store.js'
import { openStore, type Store } from '../../kernel/store/index.js'
import { temporaryFolder } from './kernel.js'

/** An empty catalog with the tables of these plugins, nothing of which runs. */
export async function openCatalog(plugins: readonly Plugin[]): Promise<Store> {
  const store = await openStore({ path: path.join(await temporaryFolder('catalog'), 'svc.db'), now: Date.now })
  store.share(inheritedBy(plugins))
  store.migrate('kernel', RecordStore.migrations)
  for (const plugin of plugins) migrateTables(store, { plugin } as Parameters<typeof migrateTables>[1])
  return store
}
