import { validateHeaderName, validateHeaderValue } from 'node:http'

/** Headers of a secret, `name=value` with commas between them, values percent-encoded as in `OTEL_EXPORTER_OTLP_HEADERS`. The text is in no error. */
export function headersIn(text: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const pair of text.split(',').map(part => part.trim())) {
    if (pair === '') continue
    const at = pair.indexOf('=')
    const [name, value] = [pair.slice(0, Math.max(at, 0)).trim().toLowerCase(), pair.slice(at + 1).trim()]
    try {
      validateHeaderName(name)
      const decoded = decodeURIComponent(value)
      validateHeaderValue(name, decoded)
      headers[name] = decoded
    } catch {
      throw new Error('the headers of the collector are no name=value with commas between them')
    }
  }
  return headers
}
