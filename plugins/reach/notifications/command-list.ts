import type { Command, CommandOption } from '../../../kernel/plugin.js'

const name = { name: 'name', summary: 'name of a preset' } as const
const profile = { name: 'profile', type: 'text', summary: 'profile in which it is enabled; default: default' } as const

/** Options that define a preset. */
const definition: readonly CommandOption[] = [
  { name: 'events', type: 'text', summary: 'event types, comma-separated: task.run_failed, task.run_*, provider.*' },
  { name: 'filter', type: 'text', summary: 'condition, such as: severity >= error AND workspace = docs' },
  {
    name: 'targets',
    type: 'text',
    summary: 'targets, comma-separated: a bridge, or bridge=route such as team=group:#ops',
  },
  { name: 'after-failures', type: 'integer', summary: 'send a failure only after this many in a row for one subject' },
  { name: 'cooldown', type: 'text', summary: 'minimum time between two messages about one subject: 10m' },
  { name: 'only-on-change', type: 'boolean', summary: 'send an event only if the previous one of its subject differs' },
  { name: 'quiet', type: 'text', summary: 'hours in which messages wait: 22:00-07:00, or off' },
  { name: 'time-zone', type: 'text', summary: 'time zone of the quiet hours: Europe/Berlin' },
  { name: 'remind-after', type: 'text', summary: 'time after which an unanswered question is sent once more: 15m' },
]

/** Commands that are not generated from routes. */
export const commands: readonly Command[] = [
  {
    path: 'notifications preset create',
    summary: 'Create a notification preset',
    args: [name],
    options: [...definition, { name: 'enable', type: 'boolean', summary: 'enable it at once' }],
    load: () => import('./commands.js').then(module => ({ run: module.runCreate })),
  },
  {
    path: 'notifications preset update',
    summary: 'Change a notification preset; omitted options keep their values',
    args: [name],
    options: definition,
    load: () => import('./commands.js').then(module => ({ run: module.runUpdate })),
  },
  {
    path: 'notifications preset enable',
    summary: 'Enable a notification preset',
    args: [name],
    options: [profile],
    load: () => import('./commands.js').then(module => ({ run: module.runEnable })),
  },
  {
    path: 'notifications preset disable',
    summary: 'Disable a notification preset',
    args: [name],
    options: [profile],
    load: () => import('./commands.js').then(module => ({ run: module.runDisable })),
  },
  {
    path: 'attention ack',
    summary: 'Acknowledge all current items of the attention list, or one of them',
    args: [{ name: 'id', optional: true, summary: 'id of an item; default: all' }],
    options: [
      { name: 'surface', type: 'text', values: ['bell', 'home'], summary: 'where it was seen; default: bell' },
      { name: 'workspace', type: 'text', summary: 'only items of this workspace: id, name or path' },
      { name: 'profile', type: 'text', summary: 'profile whose list it is; default: default' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runAcknowledge })),
  },
]
