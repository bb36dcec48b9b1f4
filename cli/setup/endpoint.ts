import { wholeOf } from '../../kernel/kit/whole.js'
import { typedLine } from '../../plugins/work/session-commands/typed.js'
import { CliFault, exitCodes } from '../fault.js'
import type { LocalContext } from '../local.js'

/** Default addresses of local model servers. */
const localServers: Readonly<Record<string, string>> = {
  Ollama: 'http://127.0.0.1:11434/v1',
  'llama.cpp': 'http://127.0.0.1:8080/v1',
  vLLM: 'http://127.0.0.1:8000/v1',
  'LM Studio': 'http://127.0.0.1:1234/v1',
}
const localMs = 1000
const namedMs = 5000
const mostBytes = 1024 * 1024

/** An OpenAI-compatible endpoint for the agent of this package. */
export interface FoundEndpoint {
  readonly url: string
  /** The origin of the URL, for people. */
  readonly from: string
  /** Number of listed models, or the reason for which it is unknown. */
  readonly models: number | 'wants a key' | 'does not answer'
}

/**
 * The endpoint from `--endpoint`, from the settings, from OPENAI_BASE_URL, or of a responding local server; else a typed one, when
 * no other agent is available. Throws `endpoint_invalid` for an invalid URL.
 */
export async function chooseEndpoint(
  context: LocalContext,
  known: string | undefined,
  asks: boolean,
): Promise<FoundEndpoint | undefined> {
  const { options, io } = context
  const option = typeof options.endpoint === 'string' ? options.endpoint : undefined
  if (option !== undefined) return probe(checked(option), '--endpoint')
  if (known !== undefined) return probe(known, 'config.json')
  if (io.env.OPENAI_BASE_URL) return probe(checked(io.env.OPENAI_BASE_URL), 'OPENAI_BASE_URL')
  const local = Object.entries(localServers).map(async ([name, url]) => {
    const models = await modelsOf(url, localMs)
    return typeof models === 'number' && models > 0 ? [{ url, from: name, models }] : []
  })
  const [found] = (await Promise.all(local)).flat()
  if (found || !asks) return found
  for (;;) {
    const line = await typedLine(context, 'URL of an OpenAI-compatible endpoint, Enter for none: ')
    if (line === undefined || line.trim() === '') return undefined
    try {
      return await probe(checked(line.trim()), 'you')
    } catch (error) {
      context.out.line((error as Error).message)
    }
  }
}

/** Prints the endpoint of the agent, and the next step when it needs a key. */
export function tellEndpoint({ out }: LocalContext, { url, from, models }: FoundEndpoint): void {
  const answers = typeof models === 'number' ? `${models} model${models === 1 ? '' : 's'}` : models
  out.line(`${models === 'does not answer' ? '✗' : '✓'} svc-agent: ${url} (${from}; ${answers})`)
  if (models === 'wants a key') out.line('  Give it the key: svc vault put vault:providers/svc/OPENAI_API_KEY')
}

const probe = async (url: string, from: string): Promise<FoundEndpoint> => ({
  url,
  from,
  models: await modelsOf(url, namedMs),
})

/** Throws `endpoint_invalid`. */
function checked(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '')
    return text.replace(/\/+$/, '')
  throw new CliFault('endpoint_invalid', 'an endpoint is an http or https URL without a password', {
    exit: exitCodes.usage,
    next: 'svc init --endpoint http://127.0.0.1:11434/v1',
  })
}

async function modelsOf(url: string, ms: number): Promise<FoundEndpoint['models']> {
  try {
    const reply = await fetch(`${url}/models`, { redirect: 'error', signal: AbortSignal.timeout(ms) })
    if (reply.status === 401 || reply.status === 403) return 'wants a key'
    if (!reply.ok || reply.body === null) return 'does not answer'
    const bytes = await wholeOf(reply.body, mostBytes, () => new Error('too long'))
    const { data } = JSON.parse(bytes.toString()) as { data?: unknown }
    return Array.isArray(data) ? data.length : 'does not answer'
  } catch {
    return 'does not answer'
  }
}
