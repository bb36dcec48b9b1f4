import { validateHeaderName, validateHeaderValue } from 'node:http'

/**
 * Parses headers from a secret: `name=value`, separated by commas, values percent-encoded as in
 * `OTEL_EXPORTER_OTLP_HEADERS`. Errors do not contain the text.
 */
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
      throw new Error('the headers of the collector are not a comma-separated list of name=value')
    }
  }
  return headers
}
