import { type Clock, type Fault, messageOf } from '../../../../kernel/plugin.js'
import { InstallErrors, refused } from '../errors.js'
import { limits } from './limits.js'

/**
 * Bytes behind an http or https address: at most {@link limits.archiveBytes}, within {@link limits.downloadMs}, over at most
 * five redirects, none of them from https to http.
 * @throws Fault `extension_source_unreachable`, `extension_content_refused`
 */
export async function download(clock: Clock, url: string): Promise<Buffer> {
  const abort = new AbortController()
  const timer = clock.timeout(limits.downloadMs, () => abort.abort(new Error('it took too long')))
  try {
    const response = await follow(new URL(url), abort.signal)
    return await readBody(response)
  } catch (error) {
    if ((error as Fault).code?.startsWith?.('extension_')) throw error
    const cause = (error as { cause?: unknown }).cause ?? error
    throw unreachable(`${new URL(url).host}: ${messageOf(cause)}`)
  } finally {
    timer.cancel()
    abort.abort()
  }
}

async function follow(first: URL, signal: AbortSignal): Promise<Response> {
  let url = first
  for (let hop = 0; hop <= limits.redirects; hop++) {
    const response = await fetch(url, { redirect: 'manual', credentials: 'omit', signal })
    const location = response.headers.get('location')
    if (response.status < 300 || response.status >= 400 || location === null) {
      if (response.ok) return response
      throw unreachable(`${url.host} answers ${response.status}`)
    }
    await response.body?.cancel()
    const next = new URL(location, url)
    if (!mayLeadTo(first, next))
      throw unreachable(`${url.host} leads on to ${next.protocol}//${next.host}, which is not as safe`)
    url = next
  }
  throw unreachable(`${first.host} leads on and on`)
}

/** Whether an address may lead on to another: never to one that somebody on the way could change, where the first is not. */
export function mayLeadTo(first: URL, next: URL): boolean {
  return next.protocol === 'https:' || (next.protocol === 'http:' && first.protocol === 'http:')
}

async function readBody(response: Response): Promise<Buffer> {
  const tooLarge = () => refused('too_large', `the archive has more than ${limits.archiveBytes} bytes`)
  if (Number(response.headers.get('content-length')) > limits.archiveBytes) throw tooLarge()
  const chunks: Uint8Array[] = []
  let size = 0
  // With an encoding of its own the body would be unpacked on the way; what is counted are the bytes that come out.
  for await (const chunk of response.body ?? []) {
    size += chunk.length
    if (size > limits.archiveBytes) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function unreachable(what: string) {
  return InstallErrors.extension_source_unreachable(`the archive cannot be fetched: ${what}`)
}
