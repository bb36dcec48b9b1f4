import { type AttributedFault, type PluginInfo, Redactors, reasonOf } from '../../../kernel/platform.js'
import { type HostView, iso } from '../../../kernel/plugin.js'
import type { PluginDetail, PluginSummary } from '../../../schemas/daemon.js'

/** A short summary of a plugin, with the number of its faults. */
export function pluginSummary(info: PluginInfo, faults: readonly AttributedFault[]): PluginSummary {
  const reason = reasonOf(info.state)
  return {
    name: info.name,
    version: info.version,
    state: info.state.status,
    ...(reason ? { reason } : {}),
    ...(info.replacedBy === undefined ? {} : { replaced_by: info.replacedBy }),
    holds: info.holds.length,
    faults: faultsOf(info, faults).reduce((sum, { count }) => sum + count, 0),
  }
}

/** All details of a plugin. Equal labels of its resources are counted. */
export function pluginDetail(info: PluginInfo, host: Pick<HostView, 'plugins' | 'pluginOf' | 'faults'>): PluginDetail {
  const faults = host.faults()
  const { registries = [] } = host.pluginOf(info.name)?.surface ?? {}
  const running = host.plugins().filter(({ state }) => state.status === 'active')
  const ofPlugins = running.flatMap(({ name }) => host.pluginOf(name)?.surface.declares ?? [])
  const declared = [Redactors, ...ofPlugins]
  const holds = new Map<string, number>()
  for (const label of info.holds) holds.set(label, (holds.get(label) ?? 0) + 1)
  return {
    ...pluginSummary(info, faults),
    requires: [...info.requires],
    ...(info.provides === undefined ? {} : { provides: info.provides }),
    // Contributions to registries that no running plugin declares.
    unclaimed: registries.flatMap(({ to: { registry } }) =>
      declared.some(one => one.registry === registry) ? [] : registry,
    ),
    holds: [...holds].map(([label, count]) => (count > 1 ? `${label} (${count})` : label)),
    faults: faultsOf(info, faults).map(({ at, count, where, error }) => ({ at: iso(at), count, where, error })),
  }
}

const faultsOf = ({ name, replacedBy }: PluginInfo, faults: readonly AttributedFault[]) =>
  faults.filter(({ owner }) => owner === name || owner === replacedBy)
