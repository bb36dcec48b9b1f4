import * as v from 'valibot'
import type { EventType, Redact } from '../../../kernel/plugin.js'

/** Issues of members with a fixed list of values, which are public and therefore no secrets. */
const LISTED = new Set(['picklist', 'enum', 'literal', 'variant', 'union'])

/** A payload without registered values that still matches its schema: listed values stay. */
export function redacted<P>(type: EventType<P>, payload: P, redact: Pick<Redact, 'value'>): P {
  const safe = redact.value(payload)
  if (safe === payload) return payload
  const { issues = [] } = v.safeParse(type.payload, safe)
  for (const { type: wrong, path } of issues) {
    const { origin, key, input } = path?.at(-1) ?? {}
    const before = path?.reduce<unknown>((item, step) => Object(item)[step.key as string], payload)
    if (LISTED.has(wrong) && origin === 'value' && typeof before === 'string')
      Object.assign(input as object, { [key as string]: before })
  }
  return safe
}
