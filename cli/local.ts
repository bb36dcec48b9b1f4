import type { CommandContext } from '../kernel/contract/command.js'
import type { CommandArgument, CommandOption } from '../kernel/contract/surface.js'
import type { DaemonClient } from './client.js'
import type { CommandData } from './commands/command-data.js'
import type { Io } from './io.js'
import type { Output } from './show/output.js'
import type { Progress } from './show/progress.js'

/** What a command of the command line itself gets: more than others, since it works without a daemon. */
export interface LocalContext extends CommandContext {
  readonly io: Io
  readonly client: DaemonClient
  readonly out: Output
  readonly data: CommandData
  readonly progress: Progress
  /** Options of the type `list`, in the order in which they were given. */
  readonly lists: Readonly<Record<string, readonly string[]>>
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
    path: 'init',
    summary: 'Find installed agents and write config.json',
    args: [],
    options: [
      { name: 'yes', type: 'boolean', summary: 'ask nothing and take what is recommended' },
      { name: 'endpoint', type: 'text', summary: 'URL of an OpenAI-compatible endpoint for the agent of this package' },
    ],
    load: () => import('./setup/init.js').then(module => module.initHome),
  },
  {
    kind: 'local',
    path: 'provider auth login',
    summary: 'Log in to a provider: by its own command, else as its agent offers it',
    args: [{ name: 'provider', summary: 'name of a provider' }],
    options: [{ name: 'method', type: 'text', summary: 'id of a way to log in that its agent offers' }],
    load: () => import('./setup/provider-login.js').then(module => module.logIn),
  },
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
    path: 'daemon restart',
    summary: 'Restart the daemon of this home and wait until it is ready',
    args: [],
    options: [],
    load: () => import('./daemon/restart-daemon.js').then(module => module.restartDaemon),
  },
  {
    kind: 'local',
    path: 'config edit',
    summary: 'Open config.json in your editor, and apply what you save',
    args: [],
    options: [],
    load: () => import('./setup/config-edit.js').then(module => module.editConfig),
  },
  {
    kind: 'local',
    path: 'config path',
    summary: 'Print the path of config.json',
    args: [],
    options: [],
    load: () => import('./setup/config-edit.js').then(module => module.printConfigPath),
  },
  {
    kind: 'local',
    path: 'logs',
    summary: 'Show the last lines of the log of this daemon, whether it runs or not',
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
    path: 'mcp serve',
    summary: 'Serve the tools of the running daemon to an MCP client on standard input and output',
    args: [],
    options: [
      { name: 'risk', type: 'list', summary: 'also tools of this risk: mutating, open_world, destructive' },
      { name: 'all', type: 'boolean', summary: 'tools of every risk; default: those that only read' },
      { name: 'workspace', type: 'text', summary: 'tools as a workspace has them' },
    ],
    load: () => import('./mcp/serve.js').then(module => module.serveMcp),
  },
  {
    kind: 'local',
    path: 'mcp auth login',
    summary: 'Log in to an MCP server in a browser',
    args: [{ name: 'name', summary: 'name of the server' }],
    options: [
      {
        name: 'workspace',
        type: 'text',
        summary: 'the workspace that has the server; default: that of this folder, if any',
      },
      { name: 'no-browser', type: 'boolean', summary: 'only print the address' },
      {
        name: 'code',
        type: 'text',
        summary: 'end a login that was begun: its code, or the address that the browser ended at',
      },
    ],
    load: () => import('./mcp/login.js').then(module => module.logInToServer),
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
