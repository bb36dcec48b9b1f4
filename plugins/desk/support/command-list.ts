import type { Command } from '../../../kernel/plugin.js'

export const commands: readonly Command[] = [
  {
    path: 'support bundle',
    summary: 'Create an archive for troubleshooting, without secrets',
    options: [
      { name: 'yes', type: 'boolean', summary: 'consent without a prompt' },
      { name: 'out', type: 'text', summary: 'file to write; default: its name in the current directory' },
      { name: 'no-status', type: 'boolean', summary: 'leave out status.json' },
      { name: 'offline', type: 'boolean', summary: 'read the files of the home, without the daemon' },
    ],
    load: () => import('./commands.js').then(module => ({ run: module.runBundle })),
  },
]
