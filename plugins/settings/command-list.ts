import type { Command } from '../../kernel/plugin.js'
import { SettingsWriteTarget } from '../../schemas/settings.js'

const load = () => import('./commands.js')
const key = { name: 'key', summary: 'a key of svc config list, log.level' } as const
const inWorkspace = { name: 'workspace', type: 'text', summary: 'id, name or path of a workspace' } as const
const write = [
  inWorkspace,
  {
    name: 'target',
    type: 'text',
    values: SettingsWriteTarget.options,
    summary: 'file that is written; default: config.json of the home, or of the workspace',
  },
  { name: 'agent', type: 'text', summary: 'name of an agent, for its definition file' },
  { name: 'dry-run', type: 'boolean', summary: 'only say what the change would come to' },
] as const

/** Commands of `svc config` beside those of routes. */
export const commands: readonly Command[] = [
  { path: 'config get', summary: 'Print the value of a key', args: [key], options: [inWorkspace], load },
  {
    path: 'config set',
    summary: 'Set a key; says when the change takes effect',
    args: [key, { name: 'value', summary: 'JSON, or a text as it is' }],
    options: write,
    load,
  },
  { path: 'config unset', summary: 'Remove a key, so that its default counts', args: [key], options: write, load },
  { path: 'config check', summary: 'Check config.json as it is', load },
  {
    path: 'config validate',
    summary: 'Check a file before it becomes config.json',
    args: [{ name: 'file', summary: 'a file; - is standard input' }],
    load,
  },
  { path: 'config reload', summary: 'Read config.json again', load },
]
