import { createHash } from 'node:crypto'

/** What ids are derived for, by prefix. */
export const ID_PREFIXES = {
  bundle: 'bun',
  activation: 'act',
  agent: 'agt',
  'agent.soul': 'sol',
  'agent.heartbeat': 'hbt',
  'automation.job': 'job',
  'automation.trigger': 'trg',
  window_layout: 'lay',
  'bridge.instance': 'bri',
} as const

/** The id of a thing is made of what it is called, so that the same thing exists once. */
export function derivedId(what: keyof typeof ID_PREFIXES, ...parts: readonly string[]): string {
  const text = parts.map(part => part.trim()).join('\n')
  return `${ID_PREFIXES[what]}_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}
