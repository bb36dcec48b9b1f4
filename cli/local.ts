import type { CommandContext } from '../kernel/contract/command.js'
import type { CommandArgument, CommandOption } from '../kernel/contract/surface.js'
import type { Client } from './client.js'
import type { CommandData } from './commands/command-data.js'
import type { Io } from './io.js'
import type { Output } from './show/output.js'
import type { Progress } from './show/progress.js'

/** What a command of the command line itself gets: more than others, since it works without a daemon. */
export interface LocalContext extends CommandContext {
  readonly io: Io
  readonly client: Client
  readonly out: Output
  readonly data: CommandData
  readonly progress: Progress
}

/** A command that needs no daemon. */
export interface LocalCommand {
  readonly kind: 'local'
  readonly path: string
  readonly summary: string
  readonly args: readonly CommandArgument[]
  readonly options: readonly CommandOption[]
  /** Returns the exit code, or nothing for 0. */
  readonly load: () => Promise<(context: LocalContext) => Promise<number | undefined>>
}

/** The commands that are part of the command line itself. */
export const localCommands: readonly LocalCommand[] = [
  {
    kind: 'local',
    path: 'daemon start',
    summary: 'Start the daemon of this home and wait until it is ready',
    args: [],
    options: [
      { name: 'foreground', type: 'boolean', summary: 'stay in this process and log to standard output' },
      { name: 'safe-mode', type: 'boolean', summary: 'run no extension' },
      {
        name: 'new-catalog',
        type: 'boolean',
        summary: 'begin a new catalog where svc.db is missing; all other files stay',
      },
    ],
    load: () => import('./daemon/start-daemon.js').then(module => module.startDaemon),
  },
  {
    kind: 'local',
    path: 'daemon stop',
    summary: 'Stop the daemon of this home and wait until it is gone',
    args: [],
    options: [],
    load: () => import('./daemon/stop-daemon.js').then(module => module.stopDaemon),
  },
  {
    kind: 'local',
    path: 'logs',
    summary: 'The last lines of the log of this daemon, whether it runs or not',
    args: [],
    options: [
      { name: 'lines', type: 'integer', summary: 'the newest this many (default 50)' },
      { name: 'level', type: 'text', summary: 'debug, info, warn or error, and what is worse' },
      { name: 'follow', type: 'boolean', summary: 'go on with what is logged from now' },
    ],
    load: () => import('./logs.js').then(module => module.printLogs),
  },
  {
    kind: 'local',
    path: 'completion',
    summary: 'Print a completion script: eval "$(svc completion bash)"',
    args: [{ name: 'shell', summary: 'bash, zsh or fish' }],
    options: [],
    load: () => import('./commands/completion.js').then(module => module.printCompletion),
  },
  {
    kind: 'local',
    path: 'version',
    summary: 'Print the version',
    args: [],
    options: [],
    load: async () => async context => {
      context.out.essential(context.data.version)
      if (context.out.json) context.out.value({ version: context.data.version })
      return undefined
    },
  },
]
