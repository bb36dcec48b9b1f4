import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { placeOf } from './identity.js'
import { leftOutOf } from './load/families.js'
import type { Instance } from './load/instance.js'

/** General commands; for a single extension there is a more specific one. */
const GENERAL = ['svc help', command('logs'), command('extension list')]

/** Unusable entries that one item lists. */
const SHOWN = 8

/** Diagnostics of an extension; none when it is healthy. */
export function itemsOf({
  name,
  key,
  link,
  status,
  enabled,
  problem,
  waits,
  generation,
  found,
  log,
}: Instance): DiagnosticItem[] {
  const at = link ? ['--workspace', placeOf({ name, key })] : []
  const item = (code: string, severity: string, title: string, message: string, next: string | undefined) =>
    finding({
      id: `extension.${key}`,
      code,
      category: 'extensions',
      severity,
      title,
      message,
      suggested_command: next === undefined || GENERAL.includes(next) ? command('extension logs', name, ...at) : next,
    })
  if (!enabled) return []
  if (problem && generation) {
    const title = `${key} still runs the earlier code, version ${generation.manifest.version}`
    return [item('extension_outdated', 'warning', title, problem.message, problem.next)]
  }
  if (problem) {
    const code = problem.code === 'extension_network_unconfirmed' ? problem.code : 'extension_failed'
    return [item(code, 'error', `${key} did not load`, problem.message, problem.next)]
  }
  const health = generation?.runtime?.health()
  if (status === 'error') {
    const why = health?.message ?? 'its process keeps exiting'
    return [item('extension_failed', 'error', `${key} does not run`, why, undefined)]
  }
  if (waits !== undefined) return [item('extension_waiting', 'warning', `${key} waits`, waits, undefined)]
  if (health?.health === 'unhealthy') {
    const why = health.message ?? 'its health check fails'
    return [item('extension_unhealthy', 'warning', `${key} is unhealthy`, why, undefined)]
  }
  const { former = [] } = generation ?? {}
  if (former.length > 0) {
    const detail = `it fails where its code uses removed members of apiVersion 1: ${former.join('; ')}`
    return [item('extension_api_gone', 'warning', `${key} is written for an earlier version`, detail, undefined)]
  }
  const leftOut = generation ? leftOutOf(generation) : []
  if (leftOut.length > 0) {
    const parts = leftOut.slice(0, SHOWN)
    const more = leftOut.length > SHOWN ? [`and ${leftOut.length - SHOWN} more`] : []
    const detail = `left out: ${[...parts, ...more].join('; ')}`
    return [item('extension_entry_invalid', 'warning', `${key} runs without a part of it`, detail, undefined)]
  }
  const { muted } = log
  if (muted) {
    const detail = `it writes standard error faster than its log accepts; ${Math.ceil(muted.dropped / 1024)} KiB were dropped`
    return [item('extension_muted', 'warning', `${key} floods its log`, detail, undefined)]
  }
  if (link && !log.isFollowed) {
    const detail = `it runs from ${found.root}, but no svc extension dev watches it`
    return [
      item(
        'extension_linked',
        'info',
        `${key} is linked, but not watched`,
        detail,
        command('extension remove', name, ...at),
      ),
    ]
  }
  return []
}

/** The doctor's items: one for each unhealthy extension, else one for all. */
export function extensionItems(instances: readonly Instance[], isLoading: boolean): DiagnosticItem[] {
  const items = instances.flatMap(itemsOf)
  if (isLoading) {
    const title = 'Extensions are being loaded'
    const message = 'the daemon started just now; what depends on an extension waits until it is loaded'
    const common = { id: 'extensions', code: 'extensions_loading', category: 'extensions', severity: 'info' }
    items.push(finding({ ...common, title, message }))
  }
  const old = instances.filter(({ enabled, generation }) => enabled && generation?.manifest.apiVersion === 1)
  const dated = old.length === 0 ? [] : [ofVersionOne(old)]
  if (items.length > 0 || instances.length === 0) return [...items, ...dated]
  const on = instances.filter(({ enabled }) => enabled).length
  return [
    finding({
      id: 'extensions',
      code: 'extensions_ready',
      category: 'extensions',
      severity: 'info',
      title: 'Extensions',
      message: `${on} of ${instances.length} extensions are on`,
    }),
    ...dated,
  ]
}

/** Extensions of API version 1, which run through the translation layer. */
function ofVersionOne(instances: readonly Instance[]): DiagnosticItem {
  const names = instances.map(({ key }) => key)
  const run = names.length === 1 ? 'runs' : 'run'
  return finding({
    id: 'extensions.api',
    code: 'extension_api_old',
    category: 'extensions',
    severity: 'info',
    title: 'Extensions of apiVersion 1',
    message: `${names.join(', ')} ${run} through the compatibility layer of apiVersion 1; the page on plugins shows what changed in apiVersion 2`,
    suggested_command: command('extension info', names[0] ?? ''),
  })
}
