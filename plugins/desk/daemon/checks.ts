import { command } from '../../../kernel/kit/commands/command-line.js'
import { type AttributedFault, type PluginInfo, reasonOf } from '../../../kernel/platform.js'
import type { HostView } from '../../../kernel/plugin.js'
import type { HeldHome } from '../../../schemas/daemon/backup.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { ConfigState, ConfigurationApi } from '../../platform/configuration/api.js'
import type { KindHealth } from '../../platform/reconcile/api.js'
import type { TcpState } from '../../platform/tcp/api.js'
import { finding } from './api.js'
import { formerPluginItems, type NamedPlugins, wentTo } from './former-plugins.js'

/** Restarts the daemon, with the current Node and settings. */
export const START_AGAIN = `${command('daemon stop')} && ${command('daemon start')}`

/** Most items that one probe lists; the last one counts the rest. */
const LISTED = 50

/** `daemon_status_ok`, `daemon_draining` (information only), or no item if other probes report the problem. */
export function daemonItems(status: string): DiagnosticItem[] {
  const common = { id: 'daemon.status', category: 'daemon', severity: 'info' }
  if (status === 'ok') {
    return [finding({ ...common, code: 'daemon_status_ok', title: 'Daemon', message: 'the daemon is running' })]
  }
  if (status !== 'draining') return []
  return [
    finding({
      ...common,
      code: 'daemon_draining',
      title: 'Daemon is draining',
      message: 'new work is refused, running work continues',
      suggested_command: command('undrain'),
    }),
  ]
}

/** Why no work begins and how to change that; undefined if the home is not held. */
export function heldText(isHeld: boolean, hold: HeldHome | undefined): string | undefined {
  if (!isHeld) return undefined
  return `restored from ${hold?.backup ?? 'a backup'}; to start work: ${command('backup confirm')}`
}

/** @param hold the backup that the home was restored from, if its mark says so */
export function heldItems(isHeld: boolean, hold: HeldHome | undefined): DiagnosticItem[] {
  if (!isHeld) return []
  const from = hold ? `was restored from ${hold.backup} (made ${hold.backup_created_at})` : 'was restored from a backup'
  const message = `the home ${from} and is held: no job, session, task, bridge or network connection runs until it is confirmed. Confirm it once the original daemon is stopped permanently`
  return [
    finding({
      id: 'daemon.held',
      code: 'home_held',
      category: 'daemon',
      severity: 'warning',
      title: 'The home is held',
      message,
      suggested_command: command('backup confirm'),
    }),
  ]
}

/** Whether TCP is served, and whether it requires a token. */
export function tcpItems(tcp: TcpState): DiagnosticItem[] {
  const common = { id: 'daemon.tcp', category: 'daemon', severity: 'warning' }
  if (tcp.status === 'unchecked') {
    const message = `${tcp.why}, so every local user can run programs as the daemon's user. Set it to true`
    return [finding({ ...common, code: 'tcp_unchecked', title: 'TCP serves every local user', message })]
  }
  const message = tcp.status === 'on' ? 'TCP serves callers with a token' : `TCP is off: ${tcp.why}`
  return [fine(common.id, common.category, 'tcp_ok', 'TCP', message)]
}

/** @param why the reason for safe mode; undefined if extensions run */
export function safeModeItems(why: string | undefined, isHeld: boolean): DiagnosticItem[] {
  if (why === undefined) return []
  return [
    finding({
      id: 'daemon.safe_mode',
      code: 'daemon_safe_mode',
      category: 'daemon',
      severity: 'warning',
      title: 'Safe mode: no extensions run',
      message: `the daemon is in safe mode and runs no extension: ${why}`,
      suggested_command: isHeld ? command('backup confirm') : START_AGAIN,
    }),
  ]
}

/** One item for each plugin that failed or waits for another. */
export function pluginItems(plugins: readonly PluginInfo[]): DiagnosticItem[] {
  const isOff = ({ state }: PluginInfo) => state.status === 'disabled' && state.why.startsWith('plugins.disabled ')
  const disabled = plugins.filter(isOff).map(({ name }) => name)
  const items = plugins.flatMap(({ name, state }) => {
    const common = { id: `daemon.plugins.${name}`, category: 'daemon' }
    if (state.status === 'failed') {
      const ahead = /schema_ahead|\bthe database has migration\b/.test(state.error)
      const code = ahead ? 'schema_ahead' : 'plugin_failed'
      const helps = state.next === undefined ? {} : { suggested_command: state.next }
      const title = `Plugin ${name} failed`
      return finding({ ...common, code, severity: 'error', title, message: state.error, ...helps })
    }
    if (state.status !== 'waiting') return []
    const message =
      state.missing.length === 0 ? `${name} is still being started` : `${name} is not running; ${reasonOf(state)}`
    const off = disabled.find(one => state.missing.at(-1)?.endsWith(` of ${one}, which is disabled`))
    const rest = JSON.stringify(disabled.filter(one => one !== off))
    const helps = off === undefined ? {} : { suggested_command: command('config set', 'plugins.disabled', rest) }
    const title = `Plugin ${name} waits`
    return finding({ ...common, code: 'plugin_waiting', severity: 'warning', title, message, ...helps })
  })
  if (items.length > 0) return items
  const active = plugins.filter(plugin => plugin.state.status === 'active').length
  return [fine('daemon.plugins', 'daemon', 'plugins_ok', 'Plugins', `${active} plugins are active`)]
}

/** Faults of plugins that were contained. */
export function faultItems(faults: readonly AttributedFault[]): DiagnosticItem[] {
  const items = faults.map(({ owner, where, count, error }) =>
    finding({
      id: `daemon.faults.${owner}`,
      code: 'plugin_fault',
      category: 'daemon',
      severity: 'warning',
      title: `Fault in ${owner}`,
      message: `${owner} failed in ${where}${count > 1 ? `, ${count} times` : ''}: ${error}`,
    }),
  )
  return items.length > 0
    ? bounded(items)
    : [fine('daemon.faults', 'daemon', 'faults_ok', 'Faults', 'no plugin failed')]
}

/** Kinds that the runtime fails to reconcile, all quarantined records, and kinds without a plugin. */
export function reconcileItems(
  health: readonly KindHealth[],
  kinds: readonly { readonly name: string; readonly registered: boolean; readonly count: number }[],
): DiagnosticItem[] {
  const category = 'resources'
  const troubled = health.filter(entry => entry.status !== 'healthy')
  const items = [
    ...troubled.map(entry =>
      finding({
        id: `resources.reconcile.${entry.kind}`,
        code: `kind_${entry.status}`,
        category,
        severity: entry.status === 'failing' ? 'warning' : 'error',
        title: `Records of kind ${entry.kind} are ${entry.status}`,
        message: `${entry.quarantined.length} quarantined, ${entry.pending} pending; the runtime still uses their earlier state`,
      }),
    ),
    ...bounded(health.flatMap(entry => entry.quarantined).map(quarantinedItem)),
    ...kinds
      .filter(kind => !kind.registered && kind.count > 0)
      .map(({ name, count }) =>
        finding({
          id: `resources.kinds.${name}`,
          code: 'kind_unregistered',
          category,
          severity: 'info',
          title: `No plugin has the kind ${name}`,
          message: `stored records without effect: ${count}`,
          suggested_command: command('resource list', name),
        }),
      ),
  ]
  if (troubled.length > 0 || items.length > 0) return items
  return [fine('resources.reconcile', category, 'reconcile_ok', 'Records', 'all stored records are applied')]
}

function quarantinedItem(record: KindHealth['quarantined'][number]): DiagnosticItem {
  return finding({
    id: `resources.reconcile.${record.kind}/${record.id}`,
    code: 'record_quarantined',
    category: 'resources',
    severity: 'warning',
    title: `${record.kind} ${record.id} cannot be applied`,
    message: `${record.error} (${record.attempts} attempts; retried automatically, and on its next write)`,
    suggested_command: command('resource get', record.kind, record.id),
  })
}

/** Without a configuration plugin, no configuration change is pending. */
export const configState = (configuration: ConfigurationApi | undefined): ConfigState =>
  configuration?.state() ?? { unowned: [], leftOut: [], pending: [] }

/**
 * Items about the configuration file: an invalid state, pending changes, keys without owner, and names of unknown plugins.
 * @param named settings that name plugins, and their values
 * @param known valid names that belong to no running plugin
 */
export function configItems(
  host: HostView,
  state: ConfigState,
  named: readonly NamedPlugins[],
  known: readonly string[],
): DiagnosticItem[] {
  const { unowned, leftOut, pending, problem } = state
  const common = { category: 'config', severity: 'warning' }
  const running = new Set(host.plugins().flatMap(({ name, state }) => (state.status === 'active' ? name : [])))
  const items = unowned.map(path => {
    const common = { category: 'config', id: `config.settings.${path}`, code: 'config_unowned' }
    const name = path.replace(/^plugins\./, '')
    return known.includes(name) && !running.has(name)
      ? finding({
          ...common,
          severity: 'info',
          title: `Setting ${path} waits`,
          message: `${name} does not run now; ${path} is checked and takes effect when it does`,
        })
      : finding({
          ...common,
          severity: 'warning',
          title: `Setting ${path} has no effect`,
          message: `no active plugin owns ${path}; it is kept as it is`,
        })
  })
  items.push(...formerPluginItems(host.formerNames, named))
  for (const name of host.unknownPlugins()) {
    if (known.includes(name) || wentTo(host.formerNames, name) !== undefined) continue
    items.push(
      finding({
        ...common,
        id: `config.plugins.${name}`,
        code: 'config_unknown_plugin',
        title: `No plugin is named ${name}`,
        message: `plugins.disabled or plugins.replace names ${name}, which does not exist; the entry has no effect`,
        suggested_command: command('plugin list'),
      }),
    )
  }
  for (const text of leftOut) {
    items.push(
      finding({
        ...common,
        id: `config.entries.${text.replace(/^.*?:\d+: ([^:]*):.*$/s, '$1')}`,
        code: 'config_entry_invalid',
        title: 'An entry of config.json is not used',
        message: text,
      }),
    )
  }
  if (problem !== undefined) {
    items.push(
      finding({
        ...common,
        severity: 'error',
        id: 'config.file',
        code: 'config_invalid',
        title: 'Configuration is not valid',
        message: `the values in force stay as they are: ${problem}`,
      }),
    )
  }
  if (pending.length > 0) {
    items.push(
      finding({
        ...common,
        id: 'config.pending',
        code: 'config_restart_required',
        title: 'Configuration changed',
        message: `${pending.join(', ')} changed in config.json; this takes effect with the next start`,
        suggested_command: START_AGAIN,
      }),
    )
  }
  return items.length > 0
    ? items
    : [fine('config.settings', 'config', 'config_ok', 'Configuration', 'settings applied')]
}

/** Whether the catalog accepts writes. */
export function storeItems(store: ReturnType<HostView['store']>): DiagnosticItem[] {
  if (store.failed === undefined) {
    const message = `${store.bytes} bytes, ${store.streams.length} schema streams applied`
    return [fine('store.state', 'store', 'store_ok', 'Store', message)]
  }
  return [
    finding({
      id: 'store.state',
      code: 'disk_write_failed',
      category: 'store',
      severity: 'error',
      title: 'The store failed',
      message: `a write or sync failed, and the store accepts no more writes: ${store.failed}`,
      suggested_command: command('daemon start'),
    }),
  ]
}

/** An item that says that all is well. */
export function fine(id: string, category: string, code: string, title: string, message: string): DiagnosticItem {
  return finding({ id, code, category, severity: 'info', title, message })
}

function bounded(items: readonly DiagnosticItem[]): DiagnosticItem[] {
  const rest = items.length - LISTED
  const last = items[LISTED - 1]
  if (rest <= 0 || !last) return [...items]
  return [...items.slice(0, LISTED - 1), { ...last, message: `${last.message}; and ${rest} more like it` }]
}

/** Schemes of secrets with several resolvers: a secret of such a scheme is not resolved at all. */
export function resolverItems(
  resolvers: readonly { readonly owner: string; readonly entry: { readonly scheme: string } }[],
): DiagnosticItem[] {
  const schemes = [...new Set(resolvers.map(({ entry }) => entry.scheme))]
  return schemes.flatMap(scheme => {
    const owners = resolvers.filter(({ entry }) => entry.scheme === scheme).map(({ owner }) => owner)
    if (owners.length < 2) return []
    return finding({
      id: `daemon.secrets.${scheme}`,
      code: 'secret_resolver_conflict',
      category: 'daemon',
      severity: 'error',
      title: `Secrets of ${scheme}: cannot be read`,
      message: `${owners.join(' and ')} resolve ${scheme}: references, so none of these secrets can be resolved. Disable one of them`,
      suggested_command: command('extension list'),
    })
  })
}
