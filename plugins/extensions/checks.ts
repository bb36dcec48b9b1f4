import type { DiagnosticItem } from '../../schemas/kernel/diagnostic.js'
import { finding } from '../daemon/api.js'
import { placeOf } from './identity.js'
import type { Instance } from './instance.js'

/** What is wrong with an extension, or worth to know about it; nothing when it is well. */
export function itemsOf({ name, key, link, status, enabled, problem, waits, generation }: Instance): DiagnosticItem[] {
  const place = placeOf({ name, key })
  const item = (code: string, severity: string, title: string, message: string) =>
    finding({
      id: `extension.${key}`,
      code,
      category: 'extensions',
      severity,
      title,
      message,
      suggested_command: link ? `svc extension info ${name} --workspace '${place}'` : `svc extension info ${name}`,
    })
  if (!enabled) return []
  if (problem && generation) {
    return [item('extension_outdated', 'warning', `${key} runs as it was before`, problem.message)]
  }
  if (problem) return [item('extension_failed', 'error', `${key} did not load`, problem.message)]
  const health = generation?.runtime?.health()
  if (status === 'error') {
    return [
      item('extension_failed', 'error', `${key} does not run`, health?.message ?? 'its process ends again and again'),
    ]
  }
  if (waits !== undefined) return [item('extension_waiting', 'warning', `${key} waits`, waits)]
  if (health?.health === 'unhealthy') {
    return [item('extension_unhealthy', 'warning', `${key} is not well`, health.message ?? 'its health check fails')]
  }
  return []
}

/** The doctor's items: one for each extension that is not well, else that all are. */
export function extensionItems(instances: readonly Instance[]): DiagnosticItem[] {
  const items = instances.flatMap(itemsOf)
  if (items.length > 0 || instances.length === 0) return items
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
  ]
}
