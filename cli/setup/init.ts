import { execFile } from 'node:child_process'
import { builtIn, catalog } from '../../plugins/agents/providers/catalog.js'
import { findExecutable } from '../../plugins/agents/providers/detect.js'
import { searchPath } from '../../plugins/agents/providers/environment.js'
import { confirm } from '../../plugins/work/session-commands/typed.js'
import { runningDaemon } from '../address.js'
import { bringUp } from '../daemon/start-daemon.js'
import type { LocalContext } from '../local.js'
import { isSchemaBuilt, writeConfigSchema } from '../schema/print-schema.js'
import { choose } from './choose.js'
import { chooseEndpoint, tellEndpoint } from './endpoint.js'
import { readSettings, writeSettings } from './settings-file.js'

const loginMs = 5000
const modes = ['approve-reads', 'deny-all', 'approve-all'] as const
const modeTexts: Readonly<Record<(typeof modes)[number], string>> = {
  'approve-reads': 'it may read; it asks before it changes a file or runs a command (recommended)',
  'deny-all': 'it may do nothing on its own; everything is refused without asking',
  'approve-all': 'it may do everything without asking',
}

type Provider = (typeof catalog)[number]
interface Installed {
  readonly provider: Provider
  /** Undefined: there is no command to find out. */
  readonly isLoggedIn: boolean | undefined
}

/** `svc init`: finds agents, their logins and model endpoints, asks at most three questions, writes config.json. */
export async function initHome(context: LocalContext): Promise<number | undefined> {
  const { out, home, options } = context
  const asks = context.terminal !== undefined && options.yes !== true
  const known = await readSettings(home)
  const programs = await findInstalled(context)
  const settings: Record<string, string> = {}
  const endpoint = await chooseEndpoint(context, known['providers.svc.base_url'], asks && programs.length === 0)
  const own = catalog.filter(({ needsEndpoint }) => needsEndpoint && endpoint !== undefined)
  const installed = [...programs, ...own.map(provider => ({ provider, isLoggedIn: undefined }))]
  tellInstalled(context, programs, endpoint !== undefined)
  if (endpoint !== undefined) {
    tellEndpoint(context, endpoint)
    if (endpoint.url !== known['providers.svc.base_url']) settings['providers.svc.base_url'] = endpoint.url
  }
  const provider = known['defaults.provider'] ?? (await chooseProvider(context, installed, asks))
  if (provider !== undefined && known['defaults.provider'] === undefined) settings['defaults.provider'] = provider
  if (known['permissions.mode'] === undefined) settings['permissions.mode'] = await chooseMode(context, asks)
  const file = await writeSettings(home, settings)
  if (isSchemaBuilt(context)) await writeConfigSchema(context)
  const all = { ...known, ...settings }
  if (out.json) {
    const found = installed.map(({ provider, isLoggedIn }) => ({ name: provider.name, logged_in: isLoggedIn ?? null }))
    out.value({ home, file, settings: all, installed: found })
    return undefined
  }
  out.line('')
  out.line(`${Object.keys(settings).length > 0 ? 'wrote' : 'nothing to change in'} ${file}`)
  for (const [name, value] of Object.entries(all)) out.line(`  ${name} = ${value}`)
  const isRunning = (await runningDaemon(home)) !== undefined
  if (isRunning && Object.keys(settings).length > 0) {
    out.line('The daemon runs with the earlier settings. Restart it: svc daemon restart')
  } else if (!isRunning && asks && (await confirm(context, 'Start the daemon now?'))) {
    const { identity } = await bringUp(context)
    out.line(out.color('dim', `started the daemon (pid ${identity.daemon.pid})`))
  }
  const agent = installed.length > 0 ? '' : '--agent report '
  out.line('')
  out.line('Next:')
  out.line(`  svc run ${agent}"Summarise the TODOs in this folder"`)
  out.line('  svc inbox')
  out.line('  svc --help')
  return undefined
}

async function findInstalled({ io }: LocalContext): Promise<Installed[]> {
  const folders = searchPath(io.env)
  const found = await Promise.all(
    catalog.map(async (provider): Promise<Installed[]> => {
      const [command = ''] = provider.argv
      if (provider === builtIn || provider.needsEndpoint || !(await findExecutable(command, folders))) return []
      const [program, ...args] = provider.loginCheck ?? []
      const path = program === undefined ? undefined : await findExecutable(program, folders)
      return [{ provider, isLoggedIn: path === undefined ? undefined : await endsWell(path, args, io.env) }]
    }),
  )
  return found.flat()
}

/** Whether a program exits with 0. Its output may contain secrets and is discarded. */
function endsWell(program: string, args: readonly string[], env: LocalContext['io']['env']): Promise<boolean> {
  return new Promise(resolve => {
    const child = execFile(program, [...args], { timeout: loginMs, killSignal: 'SIGKILL', env: { ...env } }, error =>
      resolve(error === null),
    )
    child.stdin?.end()
  })
}

function tellInstalled({ out }: LocalContext, installed: readonly Installed[], hasEndpoint: boolean): void {
  if (installed.length === 0) {
    if (hasEndpoint) return
    const first = catalog.find(({ install }) => install)
    out.line('No agent is installed. The agent "report" is built in and needs no account.')
    out.line(`To install one: ${first?.install}`)
    out.line('Others: svc provider list')
    out.line('With an OpenAI-compatible endpoint, no agent is needed: svc init --endpoint <url>')
    return
  }
  for (const { provider, isLoggedIn } of installed) {
    const login = provider.login === undefined ? '' : `: ${provider.login}`
    const state =
      isLoggedIn === undefined
        ? 'installed; its login status is unknown'
        : isLoggedIn
          ? 'logged in'
          : `not logged in${login}`
    out.line(`${isLoggedIn === false ? '✗' : '✓'} ${provider.displayName}: ${state}`)
  }
}

async function chooseProvider(context: LocalContext, installed: readonly Installed[], asks: boolean) {
  const ready = [...installed].sort((a, b) => Number(b.isLoggedIn ?? 0.5) - Number(a.isLoggedIn ?? 0.5))
  const names = ready.map(({ provider }) => provider)
  if (!asks || names.length < 2) return names[0]?.name
  const chosen = await choose(
    context,
    'Which agent should run by default?',
    names.map(({ displayName }) => displayName),
  )
  return names[chosen]?.name
}

async function chooseMode(context: LocalContext, asks: boolean): Promise<string> {
  if (!asks) return modes[0]
  const texts = modes.map(mode => `${mode}: ${modeTexts[mode]}`)
  return modes[await choose(context, 'What may an agent do without asking?', texts)] ?? modes[0]
}
