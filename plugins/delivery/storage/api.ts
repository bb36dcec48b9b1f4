/** `svc/plugins/storage`: storage of code in the daemon without own tables. */
import { token } from '../../../kernel/plugin.js'
import type { ExtensionStorage } from '../extensions/api.js'

export type { ExtensionStorage, StoredKey } from '../extensions/api.js'

/** Key-value storage and a folder for files, private to the requiring plugin. */
export const Storage = token<ExtensionStorage>('storage@1')
