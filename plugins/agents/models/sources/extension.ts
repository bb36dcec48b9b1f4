import { type Clock, within } from '../../../../kernel/plugin.js'
import type { ExtensionsApi, InstalledExtension } from '../../../delivery/extensions/api.js'
import { factsOf, modelsIn, textIn } from './parse.js'
import type { FoundModel, ModelSource } from './source.js'

const TIMEOUT_MS = 10_000

/** The models listed by an extension (`model.source`); each may name its provider, default: the extension. */
export function extensionSource(
  { key, name }: Pick<InstalledExtension, 'key' | 'name'>,
  extensions: Pick<ExtensionsApi, 'call'>,
  clock: Clock,
): ModelSource {
  return {
    id: `extension:${key}`,
    kind: 'extension',
    provider: '',
    async read() {
      const answer = await within(clock, TIMEOUT_MS, extensions.call(key, 'models/list', {}))
      const list = modelsIn(answer)
      if (!list) throw new Error('models/list: the reply is not a list of models')
      return list.flatMap((entry): FoundModel[] => {
        const facts = factsOf(entry)
        return facts ? [{ provider: textIn(entry, ['provider_id', 'provider'], 64) ?? name, facts }] : []
      })
    },
  }
}
