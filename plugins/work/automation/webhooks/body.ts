/** Fields of a form that are read. */
const FIELDS = 1000

/**
 * The members of a delivery: those of a JSON object, or the fields of a form. A field `payload` that has a JSON object adds the members of
 * that object, as GitHub and Slack send them. Empty for any other text.
 */
export function membersOf(body: string, contentType: string | undefined): Readonly<Record<string, unknown>> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return objectOf(body)
  const fields: Record<string, unknown> = {}
  for (const [name, value] of [...new URLSearchParams(body)].slice(0, FIELDS))
    Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true })
  return { ...fields, ...(typeof fields.payload === 'string' ? objectOf(fields.payload) : {}) }
}

/** The members of a JSON object; empty for any other text. */
function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : {}
  } catch {
    return {}
  }
}
