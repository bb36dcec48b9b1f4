import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { OWN_AGENT_PROGRAM } from '../../plugins/agents/providers/built-in.js'
import { findExecutable } from '../../plugins/agents/providers/detect.js'
import { searchPath } from '../../plugins/agents/providers/environment.js'
import type { ProbeProviderReply, Provider } from '../../schemas/providers.js'
import { CliFault } from '../fault.js'
import type { LocalContext } from '../local.js'
import { AgentLogin } from './acp-login.js'
import { choose } from './choose.js'

/** `provider auth login`: runs the provider's own login in this terminal, or a login method of its agent, and checks the result. */
export async function logIn(context: LocalContext): Promise<number | undefined> {
  const { args, client, home, io, options, out, terminal } = context
  const name = args.provider ?? ''
  const url = `/api/providers/${encodeURIComponent(name)}`
  const provider = (await client.request('GET', url)) as Provider
  if (!provider?.auth_status) throw new CliFault('protocol', `${url} does not report its login status`)
  const { login_command: login, status_command: check, home_policy: policy } = provider.auth_status
  const byAgent = login === undefined || options.method !== undefined
  const line = (byAgent ? provider.command : login) ?? ''
  const [program, ...words] = line.split(/\s+/).filter(Boolean)
  if (program === undefined) throw unavailable(provider, 'has no login command')
  const again = byAgent ? `svc provider auth login ${name}` : line
  if (terminal === undefined) throw new CliFault('terminal_missing', 'a login needs a terminal', { next: again })
  const file = await findExecutable(program, searchPath(io.env))
  if (file === undefined) {
    const next = provider.install_command ?? 'svc provider list'
    throw new CliFault('provider_cli_missing', `${program} is not on your PATH`, { next })
  }
  // Its processes must find the login in the environment in which they will run.
  const env = policy === 'isolated' ? isolated(io.env, join(home, 'providers', name)) : io.env
  if (byAgent) await byItsAgent(context, provider, { file, words, env })
  else {
    if (!out.json) out.line(out.color('dim', `$ ${line}`))
    const code = await ended(file, words, env)
    if (code !== 0) throw new CliFault('provider_login_failed', `${line} ended with ${code}`, { next: line })
  }
  if (check === undefined) {
    if (out.json) out.value({ provider: name, auth_status: provider.auth_status })
    else out.line(`${provider.display_name ?? name}: its login status is unknown; try it: svc run "Say hello"`)
    return undefined
  }
  const { auth_status: after } = (await client.request('POST', `${url}/auth/probe`)) as ProbeProviderReply
  if (out.json) out.value({ provider: name, auth_status: after })
  else
    out.line(
      `${provider.display_name ?? name}: ${after.state === 'ready' ? 'logged in' : (after.message ?? after.state)}`,
    )
  return after.state === 'ready' ? undefined : 1
}

function unavailable({ name, command }: Provider, why: string): CliFault {
  const variable = command === OWN_AGENT_PROGRAM ? 'OPENAI_API_KEY' : 'API_KEY'
  const next = `svc vault put vault:providers/${name}/${variable}`
  return new CliFault('provider_login_unavailable', `${name} ${why}`, { next })
}

/** Logs in with a method that the agent of a provider offers. */
async function byItsAgent(
  context: LocalContext,
  provider: Provider,
  { file, words, env }: { readonly file: string; readonly words: readonly string[]; readonly env: Environment },
): Promise<void> {
  const { io, options, out } = context
  const { name } = provider
  const next = `svc provider auth login ${name}`
  const agent = new AgentLogin(file, words, env, io.signal)
  try {
    const methods = await agent.methods()
    if (methods.length === 0) throw unavailable(provider, 'offers no way to log in')
    const wanted = methods.find(({ id }) => id === options.method)
    if (options.method !== undefined && !wanted) {
      const known = methods.map(({ id }) => id).join(', ')
      throw new CliFault(
        'provider_login_unavailable',
        `${name} has no login method ${options.method}; available: ${known}`,
        {
          next,
        },
      )
    }
    const texts = methods.map(({ name: title, description }) => (description ? `${title}: ${description}` : title))
    const at = wanted || methods.length === 1 ? 0 : await choose(context, 'How do you want to log in?', texts)
    const method = wanted ?? methods[at]
    if (method === undefined) return
    if (!out.json) out.line(out.color('dim', `${method.name} …`))
    if (method.terminal === undefined) return await agent.authenticate(method)
    agent.end()
    const code = await ended(file, [...words, ...method.terminal.args], { ...env, ...method.terminal.env })
    if (code !== 0) throw new Error(`it ended with ${code}`)
  } catch (error) {
    if (error instanceof CliFault) throw error
    throw new CliFault('provider_login_failed', `${name}: ${(error as Error).message}`, { next })
  } finally {
    agent.end()
  }
}

type Environment = LocalContext['io']['env']

function isolated(env: Environment, home: string): Environment {
  const below = (...parts: string[]) => join(home, ...parts)
  return {
    ...env,
    HOME: home,
    XDG_CONFIG_HOME: below('.config'),
    XDG_DATA_HOME: below('.local', 'share'),
    XDG_STATE_HOME: below('.local', 'state'),
    XDG_CACHE_HOME: below('.cache'),
  }
}

function ended(file: string, words: readonly string[], env: Environment): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, [...words], { stdio: 'inherit', env: { ...env } })
    child.once('error', reject)
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'a signal'))
  })
}
