/** Maximum number of form fields read. */
const FIELDS = 1000

/**
 * The members of a delivery: those of a JSON object, regardless of its content type, or the fields of a form. A field `payload`
 * with a JSON object adds the members of that object, as sent by GitHub and Slack. Empty for any other text.
 */
export function membersOf(body: string, contentType: string | undefined): Readonly<Record<string, unknown>> {
  const members = objectOf(body)
  if (members !== undefined || !/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return members ?? {}
  const fields: Record<string, unknown> = {}
  for (const [name, value] of [...new URLSearchParams(body)].slice(0, FIELDS))
    Object.defineProperty(fields, name, { value, enumerable: true, configurable: true, writable: true })
  return { ...fields, ...(typeof fields.payload === 'string' ? objectOf(fields.payload) : {}) }
}

/** The members of a JSON object; undefined for any other text. */
export function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined
  } catch {
    return undefined
  }
}
