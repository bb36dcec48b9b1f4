import { createHash } from 'node:crypto'

/** Kinds of derived ids and their prefixes. */
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

/** Derives an id from names, so that the same thing has the same id in every run and exists once. */
export function derivedId(what: keyof typeof ID_PREFIXES, ...parts: readonly string[]): string {
  const text = parts.map(part => part.trim()).join('\n')
  return `${ID_PREFIXES[what]}_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
}
