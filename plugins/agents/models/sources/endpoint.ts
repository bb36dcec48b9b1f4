import { parseJson } from '../../../../kernel/kit/text.js'
import { wholeOf } from '../../../../kernel/kit/whole.js'
import { type Clock, messageOf, within } from '../../../../kernel/plugin.js'
import { durationMs } from '../../../../schemas/duration.js'
import type { ProviderSettings } from '../../../../schemas/settings/entries.js'
import { factsOf, modelsIn } from './parse.js'
import type { FoundModel, ModelSource } from './source.js'

const MAX_BYTES = 1024 * 1024
const TIMEOUT_MS = 5000
const MAX_TIMEOUT_MS = 60_000

/** URL of an entry's list of models; undefined without one, or if discovery is disabled. */
export function endpointOf({ base_url: base, models }: ProviderSettings): URL | undefined {
  if (models?.discovery?.enabled === false) return undefined
  const text = models?.discovery?.endpoint || (base && `${base.replace(/\/+$/, '')}/models`)
  const url = text && URL.canParse(text) ? new URL(text) : undefined
  return url && (url.protocol === 'http:' || url.protocol === 'https:') ? url : undefined
}

/**
 * Source of the models of an OpenAI-compatible endpoint.
 * @param key its key; sent only over TLS or to this machine
 */
export function endpointSource(
  provider: string,
  url: URL,
  settings: ProviderSettings,
  key: () => Promise<string | undefined>,
  clock: Clock,
): ModelSource {
  const wanted = durationMs(settings.models?.discovery?.timeout ?? '') ?? TIMEOUT_MS
  const timeoutMs = Math.min(Math.max(wanted, 100), MAX_TIMEOUT_MS)
  return {
    id: `endpoint:${provider}`,
    kind: 'endpoint',
    provider,
    async read(signal) {
      const stop = new AbortController()
      const either = AbortSignal.any([signal, stop.signal])
      try {
        const secret = isPrivate(url) ? await key() : undefined
        const list = await within(clock, timeoutMs, readList(url, secret, either))
        return list.flatMap((entry): FoundModel[] => {
          const facts = factsOf(entry)
          return facts ? [{ provider, facts }] : []
        })
      } catch (error) {
        const late = /^no end within/.test(messageOf(error))
        throw new Error(`${url.origin}: ${late ? `no answer within ${timeoutMs} ms` : causeOf(error)}`, {
          cause: error,
        })
      } finally {
        stop.abort()
      }
    },
  }
}

/** Whether the request cannot be read in transit. */
const isPrivate = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)

async function readList(url: URL, key: string | undefined, signal: AbortSignal) {
  const headers = { accept: 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) }
  const response = await fetch(url, { redirect: 'error', credentials: 'omit', headers, signal })
  if (response.status === 401 || response.status === 403) throw new Error(`unauthorized (${response.status})`)
  if (!response.ok) throw new Error(`it answered ${response.status}`)
  const tooMuch = () => new Error(`its answer is larger than ${MAX_BYTES} bytes`)
  const text = response.body ? (await wholeOf(response.body, MAX_BYTES, tooMuch)).toString('utf8') : ''
  let value: unknown
  try {
    value = parseJson(text)
  } catch {
    throw new Error('its answer is not valid JSON')
  }
  const list = modelsIn(value)
  if (!list) throw new Error('its reply is not a list of models')
  return list
}

/** The cause has the details: `fetch failed` has none. */
function causeOf(error: unknown): string {
  const { cause } = error as { cause?: unknown }
  return cause instanceof Error ? messageOf(cause) : messageOf(error)
}
