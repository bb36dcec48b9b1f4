import type { Command } from '../../../kernel/plugin.js'

const options = [
  { name: 'workspace', type: 'workspace', summary: 'workspace (id, name or path); default: that of this folder' },
  { name: 'task', type: 'text', summary: 'id of a task; default: the workspace as a whole' },
] as const

const of = (path: string, summary: string, run: 'runEnable' | 'runDisable' | 'runDismiss' | 'runReset'): Command => ({
  path,
  summary,
  args: [],
  options: [...options],
  load: () => import('./commands.js').then(module => ({ run: module[run] })),
})

/** Commands that need more than one request. */
export const commands: readonly Command[] = [
  of('network coordination enable', 'Let future runs of a workspace or task coordinate in a channel', 'runEnable'),
  of('network coordination disable', 'Keep future runs of a workspace or task local', 'runDisable'),
  of('network invitation dismiss', 'Dismiss the invitation to coordinate', 'runDismiss'),
  of('network invitation reset', 'Open the invitation to coordinate again', 'runReset'),
]
