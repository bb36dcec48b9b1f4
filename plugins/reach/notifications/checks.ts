import { command } from '../../../kernel/kit/commands/command-line.js'
import { covers } from '../../../kernel/kit/text.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import type { K } from './needs.js'
import { isProblem, parseFilter } from './presets/filter.js'
import type { Presets } from './presets/presets.js'
import { channelOf, targetProblem, targetText } from './presets/targets.js'
import { cursors, type PresetRow } from './tables.js'

/** Maximum number of items in a report. The last item says how many more there are. */
const LISTED = 50

/** Doctor: reports presets that send nothing, or do not send to all targets. */
export function checks(kernel: K, presets: Presets): DiagnosticItem[] {
  const all = presets.all()
  const items = all.flatMap(preset => itemsOf(kernel, preset))
  if (items.length === 0) {
    const fine = { id: 'notifications.presets', code: 'notifications_ok', title: 'Notifications', severity: 'info' }
    return [finding({ ...fine, category: 'notifications', message: `${all.length} presets, none with a problem` })]
  }
  const shown = items.slice(0, LISTED)
  const last = shown.at(-1)
  const rest = items.length - shown.length
  return rest > 0 && last ? [...shown.slice(0, -1), { ...last, message: `${last.message}; and ${rest} more` }] : shown
}

function itemsOf(kernel: K, { name, built_in: builtIn, events, filter, targets }: PresetRow): DiagnosticItem[] {
  const { db, needs } = kernel
  const { current: bridges } = needs.bridges
  const item = {
    id: `notifications.presets.${name}`,
    category: 'notifications',
    severity: 'warning',
    suggested_command: command('notifications preset show', name),
  } as const
  const read = parseFilter(filter)
  const unreadable = isProblem(read)
    ? [
        finding({
          ...item,
          code: 'preset_filter_invalid',
          title: `The filter of the preset ${name} cannot be read`,
          message: `no notification is sent; error at character ${read.position}: ${read.problem}`,
        }),
      ]
    : []
  // Plugins that are switched off are no fault of a built-in preset.
  const declared = builtIn
    ? undefined
    : needs.host.plugins().flatMap(plugin => needs.host.pluginOf(plugin.name)?.surface.events ?? [])
  const unknown = events
    .filter(pattern => declared && !declared.some(event => covers(pattern, event.name)))
    .map(pattern =>
      finding({
        ...item,
        code: 'preset_events_unknown',
        title: `An event of the preset ${name} does not exist`,
        message: `${pattern}: no plugin and no running extension has such an event, so none is sent`,
      }),
    )
  const broken = targets.flatMap(target => {
    const problem = channelOf(kernel, target) ? undefined : bridges && targetProblem(target, bridges)
    return problem
      ? [
          finding({
            ...item,
            code: 'preset_target_unresolved',
            title: `A target of the preset ${name} does not exist`,
            message: `${targetText(target)}: ${problem}`,
          }),
        ]
      : []
  })
  const failing = cursors.all(db, { preset: name }).flatMap(({ failures, last_error: error }) =>
    failures > 0
      ? [
          finding({
            ...item,
            code: 'preset_delivery_failing',
            title: `The preset ${name} cannot deliver its messages`,
            message: `${failures} attempts failed; the last one: ${error ?? 'unknown'}; it is tried again`,
          }),
        ]
      : [],
  )
  return [...unreadable, ...unknown, ...broken, ...failing]
}
