import path from 'node:path'
import { columnsOf } from '../../../kernel/kit/annotations/show.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import type { CommandContext } from '../../../kernel/plugin.js'
import type { ApiKey } from '../../../schemas/daemon/auth.js'
import { TOKEN_FILE } from './api.js'

const MAX_BYTES = 4096

/** Runs `svc auth token` and `svc auth key …`, which read the operator token from the home. */
export async function run(context: CommandContext): Promise<void> {
  if (context.path === 'auth token') return printToken(context)
  const ask = await asOperator(context)
  if (context.path === 'auth key create') return createKey(context, ask)
  if (context.path === 'auth key list') return listKeys(context, ask)
  const { id = '' } = context.args
  const { message } = (await ask('DELETE', `/api/v0/auth/keys/${encodeURIComponent(id)}`)) as { message: string }
  context.out.line(message)
}

async function printToken(context: CommandContext): Promise<void> {
  if (context.options.rotate) await (await asOperator(context))('POST', '/api/v0/auth/rotate')
  context.out.value(await readToken(context))
}

type Ask = (method: string, url: string, body?: unknown) => Promise<unknown>

async function asOperator(context: CommandContext): Promise<Ask> {
  const headers = { authorization: `Bearer ${await readToken(context)}` }
  return (method, url, body) => context.client.request(method, url, body, { headers })
}

async function createKey({ args, out }: CommandContext, ask: Ask): Promise<void> {
  const body = args.name === undefined ? undefined : { name: args.name }
  const { data } = (await ask('POST', '/api/v0/auth/generate', body)) as { data: { id: string; api_key: string } }
  if (out.json) return out.value(data)
  out.id(data.api_key)
  out.value(data.api_key)
}

async function listKeys({ out }: CommandContext, ask: Ask): Promise<void> {
  const { data } = (await ask('GET', '/api/v0/auth/keys')) as { data: { keys: ApiKey[] } }
  if (out.json) return out.value(data)
  const columns = columnsOf<ApiKey>()(['id', 'name', 'created_at~ago', 'last_used~ago'])
  out.table(data.keys, columns, `There are no API keys. Create one: ${command('auth key create')}`)
}

async function readToken({ home, fault }: CommandContext): Promise<string> {
  const file = path.join(home, TOKEN_FILE)
  const bytes = await readRegularFile(file, { maxBytes: MAX_BYTES }).catch(error =>
    fault('operator_token_unreadable', `cannot read ${file}: ${error.message}`, 'run svc as the user of the daemon'),
  )
  if (bytes) return bytes.toString().trim()
  return fault('operator_token_missing', `there is no operator token in ${home}`, command('daemon start'))
}
