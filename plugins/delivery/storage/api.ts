/** `svc/plugins/storage`: what code in the daemon keeps without a table of its own. */
import { token } from '../../../kernel/plugin.js'
import type { ExtensionStorage } from '../extensions/api.js'

export type { ExtensionStorage, StoredKey } from '../extensions/api.js'

/** Values under keys and a folder for files, of the plugin that requires it alone. */
export const Storage = token<ExtensionStorage>('storage@1')
