import type { CommandArgument, CommandOption } from '../kernel/contract/surface.js'
import type { CommandContext } from '../kernel/kit/commands/context.js'
import { backupCommands } from './backup/command-list.js'
import type { DaemonClient } from './client.js'
import type { CommandData } from './commands/command-data.js'
import type { Io } from './io.js'
import type { Output } from './show/output.js'
import type { Progress } from './show/progress.js'

/** Context of a local command, which gets more than others because it works without a daemon. */
export interface LocalContext extends CommandContext {
  readonly io: Io
  readonly client: DaemonClient
  readonly out: Output
  readonly data: CommandData
  readonly progress: Progress
  /** Options of the type `list` in their given order. */
  readonly lists: Readonly<Record<string, readonly string[]>>
}

/** A command that needs no daemon. */
export interface LocalCommand {
  readonly kind: 'local'
  readonly path: string
  readonly summary: string
  readonly args: readonly CommandArgument[]
  readonly options: readonly CommandOption[]
  /** The loaded function returns the exit code, or undefined for 0. */
  readonly load: () => Promise<(context: LocalContext) => Promise<number | undefined>>
}

const userOption = { name: 'user', type: 'text', summary: 'user that the daemon runs as; default: you' } as const
const serviceOptions = [
  { name: 'system', type: 'boolean', summary: 'install a system unit, which runs as that user; requires root' },
  userOption,
] as const

const shellArgument = { name: 'shell', optional: true, summary: 'bash, zsh or fish; default: that of $SHELL' } as const
const printOption = [{ name: 'print', type: 'boolean', summary: 'print the files and change nothing' }] as const

/** The local commands of the CLI. */
export const localCommands: readonly LocalCommand[] = [
  {
    kind: 'local',
    path: 'init',
    summary: 'Find installed agents and write config.json',
    args: [],
    options: [
      { name: 'yes', type: 'boolean', summary: 'accept the recommended answers without asking' },
      { name: 'endpoint', type: 'text', summary: 'URL of an OpenAI-compatible endpoint for the built-in svc agent' },
    ],
    load: () => import('./setup/init.js').then(module => module.initHome),
  },
  {
    kind: 'local',
    path: 'provider auth login',
    summary: 'Log in to a provider',
    args: [{ name: 'provider', summary: 'name of a provider' }],
    options: [{ name: 'method', type: 'text', summary: 'id of a login method that its agent offers' }],
    load: () => import('./setup/provider-login.js').then(module => module.logIn),
  },
  {
    kind: 'local',
    path: 'daemon start',
    summary: 'Start the daemon of this home and wait until it is ready',
    args: [],
    options: [
      { name: 'foreground', type: 'boolean', summary: 'stay in this process and log to standard output' },
      { name: 'safe-mode', type: 'boolean', summary: 'start without extensions' },
      {
        name: 'new-catalog',
        type: 'boolean',
        summary: 'create a new database where svc.db is missing; other files are kept',
      },
    ],
    load: () => import('./daemon/start-daemon.js').then(module => module.startDaemon),
  },
  {
    kind: 'local',
    path: 'daemon stop',
    summary: 'Stop the daemon of this home and wait until it has ended',
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
  ...backupCommands,
  {
    kind: 'local',
    path: 'service install',
    summary: 'Have the system start the daemon of this home: a unit of systemd or an agent of launchd',
    args: [],
    options: [
      ...serviceOptions,
      { name: 'print', type: 'boolean', summary: 'print the files and change nothing' },
      { name: 'force', type: 'boolean', summary: 'replace a unit that was edited; it is kept as .before' },
      { name: 'no-start', type: 'boolean', summary: 'write the files and print the commands that start it' },
      { name: 'socket', type: 'boolean', summary: 'let systemd listen and start the daemon when it is needed' },
      { name: 'tcp', type: 'boolean', summary: 'let systemd listen on http.host and http.port as well' },
      { name: 'manager', type: 'text', values: ['systemd', 'launchd'], summary: 'with --print: for this manager' },
    ],
    load: () => import('./service/install.js').then(module => module.installService),
  },
  {
    kind: 'local',
    path: 'service status',
    summary: 'Show the service of this home and what keeps it from starting',
    args: [],
    options: [userOption],
    load: () => import('./service/status.js').then(module => module.serviceStatus),
  },
  {
    kind: 'local',
    path: 'service uninstall',
    summary: 'Stop the service of this home and remove its unit; the home stays',
    args: [],
    options: [...serviceOptions, { name: 'force', type: 'boolean', summary: 'remove a unit that was edited' }],
    load: () => import('./service/uninstall.js').then(module => module.uninstallService),
  },
  {
    kind: 'local',
    path: 'config edit',
    summary: 'Edit config.json in your editor and apply it',
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
    path: 'config schema',
    summary: 'Print the JSON Schema of config.json, settings of loaded extensions included',
    args: [],
    options: [{ name: 'write', type: 'boolean', summary: 'write it beside config.json, which names it for editors' }],
    load: () => import('./schema/print-schema.js').then(module => module.printConfigSchema),
  },
  {
    kind: 'local',
    path: 'extension schema',
    summary: 'Print the JSON Schema of extension.toml and extension.json',
    args: [],
    options: [],
    load: () => import('./schema/print-schema.js').then(module => module.printSchema('extension')),
  },
  {
    kind: 'local',
    path: 'bundle schema',
    summary: 'Print the JSON Schema of a bundle file',
    args: [],
    options: [],
    load: () => import('./schema/print-schema.js').then(module => module.printSchema('bundle')),
  },
  {
    kind: 'local',
    path: 'logs',
    summary: 'Show the last lines of the daemon log, even if the daemon is stopped',
    args: [],
    options: [
      { name: 'lines', type: 'integer', summary: 'number of lines (default 50)' },
      { name: 'level', type: 'text', summary: 'minimum level: debug, info, warn or error' },
      { name: 'plugin', type: 'text', summary: 'show only lines of this plugin: svc plugin list' },
      { name: 'since', type: 'text', summary: 'a duration before now or a time: 1h, 2030-01-31' },
      { name: 'follow', type: 'boolean', summary: 'follow new lines' },
    ],
    load: () => import('./logs.js').then(module => module.printLogs),
  },
  {
    kind: 'local',
    path: 'mcp serve',
    summary: 'Serve the tools of the daemon to an MCP client over standard input and output',
    args: [],
    options: [
      { name: 'risk', type: 'list', summary: 'also offer tools of this risk: mutating, open_world, destructive' },
      { name: 'all', type: 'boolean', summary: 'offer tools of every risk; default: read-only tools' },
      { name: 'workspace', type: 'text', summary: 'workspace whose tools are offered' },
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
        summary: 'workspace of the server; default: that of this folder, if any',
      },
      { name: 'no-browser', type: 'boolean', summary: 'print the URL without opening a browser' },
      {
        name: 'code',
        type: 'text',
        summary: 'complete a started login with its code or the redirect URL',
      },
    ],
    load: () => import('./mcp/login.js').then(module => module.logInToServer),
  },
  {
    kind: 'local',
    path: 'open',
    summary: 'Open the console in the browser, by a link that is valid once',
    args: [],
    options: [
      { name: 'no-browser', type: 'boolean', summary: 'print the link without opening a browser' },
      { name: 'revoke', type: 'boolean', summary: 'end all sessions and links of the console instead' },
    ],
    load: () => import('./console/open.js').then(module => module.openConsole),
  },
  {
    kind: 'local',
    path: 'import',
    summary: 'Import jobs, MCP servers, hooks and agents from files of other programs',
    args: [
      {
        name: 'source',
        optional: true,
        summary: 'a file, a folder, or a program such as crontab, cursor, claude; default: list what is found here',
      },
    ],
    options: [
      { name: 'dry-run', type: 'boolean', summary: 'show what would be imported, and change nothing' },
      {
        name: 'format',
        type: 'text',
        summary: 'format of the file, if its name does not show it; svc import --json lists them',
      },
      { name: 'workspace', type: 'text', summary: 'workspace to import into; default: all' },
      { name: 'agent', type: 'text', summary: 'agent for imported jobs; default: one that runs their commands' },
      { name: 'system', type: 'boolean', summary: 'the lines of the crontab name a user, as in /etc/crontab' },
      { name: 'enable', type: 'boolean', summary: 'enable imported jobs at once' },
    ],
    load: () => import('./import/command.js').then(module => module.importSource),
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
    path: 'completion install',
    summary: 'Install shell completion, which works from the next start of your shell',
    args: [shellArgument],
    options: [...printOption, { name: 'force', type: 'boolean', summary: 'replace a file that svc did not write' }],
    load: () => import('./setup/user-install.js').then(module => module.installCompletion),
  },
  {
    kind: 'local',
    path: 'completion uninstall',
    summary: 'Remove what svc completion install wrote',
    args: [shellArgument],
    options: printOption,
    load: () => import('./setup/user-install.js').then(module => module.uninstallCompletion),
  },
  {
    kind: 'local',
    path: 'man install',
    summary: 'Install the manual pages for yourself',
    args: [],
    options: [...printOption, { name: 'force', type: 'boolean', summary: 'replace pages that svc did not write' }],
    load: () => import('./setup/user-install.js').then(module => module.installMan),
  },
  {
    kind: 'local',
    path: 'man uninstall',
    summary: 'Remove what svc man install wrote',
    args: [],
    options: printOption,
    load: () => import('./setup/user-install.js').then(module => module.uninstallMan),
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
