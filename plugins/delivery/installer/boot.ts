import type { Db } from '../../../kernel/plugin.js'
import type { SourceTier } from '../extensions/api.js'
import { intents } from './intents.js'
import { installs } from './provenance.js'

/** Before the plugin runs, a home may lack its tables. */
const has = (db: Db, table: string) => db.get('SELECT 1 FROM sqlite_master WHERE name = ?', [table]) !== undefined

/** Tier of an installed extension, before the boot; undefined for one that was copied to its folder by hand. */
export const installedTier = (db: Db, name: string): SourceTier | undefined =>
  has(db, 'extensions_install') ? installs.get(db, { name })?.provenance.tier : undefined

/** Whether an installation or removal was interrupted by a crash: it is rolled forward first. */
export const isUnderWay = (db: Db, name: string): boolean =>
  has(db, 'extensions_intent') && intents.get(db, { name }) !== undefined
