import * as v from 'valibot'
import { issueLine } from '../../../kernel/kit/issue-text.js'
import type { PluginKernel } from '../../../kernel/plugin.js'
import type { ExtensionStorage, StoredKey } from './api.js'
import { ExtensionErrors } from './errors.js'
import { makeDataFolder } from './subprocess/data-folder.js'
import { ExtensionState, KeyParams, ListParams, PutParams } from './subprocess/state.js'

/** Storage of code in the daemon: the same values and folder as those of the extension's process. */
export function storageOf(kernel: Pick<PluginKernel, 'db' | 'clock' | 'home'>, name: string): ExtensionStorage {
  const state = new ExtensionState(kernel)
  return {
    get: async key => {
      const { found, value } = (await state.get(name, valid(KeyParams, { key }))) as { found: boolean; value: unknown }
      return found ? value : undefined
    },
    put: async (key, value) => void (await state.put(name, valid(PutParams, { key, value: asJson(key, value) }))),
    delete: async key => ((await state.delete(name, valid(KeyParams, { key }))) as { deleted: boolean }).deleted,
    list: async (options = {}) => {
      const { entries, has_more } = (await state.list(name, valid(ListParams, options))) as {
        entries: StoredKey[]
        has_more: boolean
      }
      return { entries, has_more }
    },
    folder: () => makeDataFolder(kernel, name),
  }
}

/** @throws Fault `extension_state_invalid` */
function valid<S extends v.GenericSchema>(schema: S, params: object): object {
  const { issues } = v.safeParse(schema, params)
  if (!issues) return params
  throw ExtensionErrors.extension_state_invalid(`${issueLine(issues[0], 'the value')}`)
}

/** A copy of a value through JSON; functions and cycles cannot be stored. @throws Fault `extension_state_invalid` */
function asJson(key: string, value: unknown): unknown {
  try {
    const text = JSON.stringify(value)
    return text === undefined ? undefined : JSON.parse(text)
  } catch (error) {
    throw ExtensionErrors.extension_state_invalid(`the value of ${key} is not valid JSON`, { cause: error })
  }
}
