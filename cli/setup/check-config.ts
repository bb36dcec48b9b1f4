import type { Setting } from '../../kernel/contract/surface.js'
import { configProblems, configText } from '../../plugins/platform/configuration/document.js'
import type { ConfigProblem, ConfigText } from '../../plugins/platform/configuration/layers.js'

/**
 * Validates a configuration as a starting daemon would. Without one, settings of drop-ins are unknown: they are in `unowned`.
 * @param where names the text in messages
 * @throws Fault `config_invalid`
 */
export async function checkConfig(text: string, where: string): Promise<ConfigText> {
  return configText(text, where, await knownSettings())
}

/** A function that finds the errors of a text which {@link checkConfig} would report. */
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
