import type { Setting } from '../../kernel/contract/surface.js'
import { configProblems, configText } from '../../plugins/platform/configuration/document.js'
import type { ConfigProblem, ConfigText } from '../../plugins/platform/configuration/layers.js'

/**
 * Judges a configuration as a daemon would that starts with it. Settings of drop-ins are not known without one: they are in `unowned`.
 * @param where names the text in messages
 * @throws Fault `config_invalid`
 */
export async function checkConfig(text: string, where: string): Promise<ConfigText> {
  return configText(text, where, await knownSettings())
}

/** What finds the mistakes of a text: those that {@link checkConfig} would tell of. */
export async function configChecker(where: string): Promise<(text: string) => readonly ConfigProblem[]> {
  const known = await knownSettings()
  return text => configProblems(text, where, known)
}

async function knownSettings(): Promise<Setting[]> {
  const [{ KernelSettings }, { inTree }] = await Promise.all([
    import('../../kernel/platform.js'),
    import('../../plugins/index.js'),
  ])
  const settings = inTree.flatMap(({ surface }) => surface.settings ?? [])
  return [...Object.values(KernelSettings), ...settings] as Setting[]
}
