import { command } from '../../../kernel/kit/commands/command-line.js'
import { KernelSettings } from '../../../kernel/platform.js'
import type { HostView } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from './api.js'

type FormerNames = HostView['formerNames']

/** A setting that names plugins, and its value. */
export type NamedPlugins = readonly [path: string, names: readonly string[]]

/** The successor of a former plugin, such as `a part of the plugin tcp`; undefined for any other name. */
export function wentTo(former: FormerNames, name: string): string | undefined {
  if (!Object.hasOwn(former, name)) return undefined
  return former[name] === 'kernel' ? 'a part of the kernel' : `a part of the plugin ${former[name]}`
}

/** Items for names of former plugins: a setting may still contain them, but they have no effect. */
export function formerPluginItems(former: FormerNames, settings: readonly NamedPlugins[]): DiagnosticItem[] {
  return settings.flatMap(([path, names]) => {
    const left = names.filter(name => !Object.hasOwn(former, name))
    const done = path === KernelSettings.disabled.path ? 'disabled' : 'replaced'
    return names.flatMap(name => {
      const where = wentTo(former, name)
      if (where === undefined) return []
      return finding({
        id: `${path}.${name}`,
        code: 'config_former_plugin',
        category: 'config',
        severity: 'warning',
        title: `The plugin ${name} is ${where}`,
        message: `${path} names ${name}, which is now ${where} and can no longer be ${done}; the entry has no effect`,
        suggested_command:
          left.length === 0 ? command('config unset', path) : command('config set', path, JSON.stringify(left)),
      })
    })
  })
}
