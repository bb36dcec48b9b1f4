import type { Command } from '../../../kernel/plugin.js'
import { SettingsWriteTarget } from '../../../schemas/settings.js'

const load = () => import('./commands.js')
const key = { name: 'key', summary: 'key such as log.level: svc config list' } as const
const inWorkspace = { name: 'workspace', type: 'text', summary: 'id, name or path of a workspace' } as const
const write = [
  inWorkspace,
  {
    name: 'target',
    type: 'text',
    values: SettingsWriteTarget.options,
    summary: 'file to write; default: config.json of the home or the workspace',
  },
  { name: 'agent', type: 'text', summary: 'name of an agent, to write its definition file' },
  { name: 'dry-run', type: 'boolean', summary: 'show what the change would do' },
] as const

/** Commands of `svc config` that are not generated from routes. */
export const commands: readonly Command[] = [
  { path: 'config get', summary: 'Print the value of a key', args: [key], options: [inWorkspace], load },
  {
    path: 'config set',
    summary: 'Set a key and show when the change takes effect',
    args: [key, { name: 'value', summary: 'JSON, or plain text' }],
    options: write,
    load,
  },
  { path: 'config unset', summary: 'Remove a key, so that its default applies', args: [key], options: write, load },
  { path: 'config check', summary: 'Check config.json', load },
  {
    path: 'config validate',
    summary: 'Check a file before using it as config.json',
    args: [{ name: 'file', optional: true, summary: 'path of the file; - reads standard input; default: config.json' }],
    load,
  },
  { path: 'config reload', summary: 'Reload config.json', load },
]
