import type { Setting } from '../../kernel/contract/surface.js'
import { configText } from '../../plugins/configuration/document.js'
import type { ConfigText } from '../../plugins/configuration/layers.js'

/**
 * Judges a configuration as a daemon would that starts with it. Settings of drop-ins are not known without one: they are in `unowned`.
 * @param where names the text in messages
 * @throws Fault `config_invalid`
 */
export async function checkConfig(text: string, where: string): Promise<ConfigText> {
  const [{ KernelSettings }, { inTree }] = await Promise.all([
    import('../../kernel/index.js'),
    import('../../plugins/index.js'),
  ])
  const settings = inTree.flatMap(({ surface }) => surface.settings ?? [])
  return configText(text, where, [...Object.values(KernelSettings), ...settings] as Setting[])
}
