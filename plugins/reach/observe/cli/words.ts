import path from 'node:path'
import type { CommandContext } from '../../../../kernel/plugin.js'

const BARS = '▁▂▃▄▅▆▇█'

/** A row of bars, scaled to the largest value; blank for zero. */
export function bars(values: readonly number[]): string {
  const most = Math.max(0, ...values)
  const bar = (value: number) =>
    value <= 0 ? ' ' : BARS[Math.min(BARS.length - 1, Math.floor((value / most) * BARS.length))]
  return values.map(bar).join('')
}

/** `1 run`, `2 runs`. */
export const many = (n: number, noun: string): string => `${grouped(n)} ${noun}${n === 1 ? '' : 's'}`

/** A number with thousands separators. */
export const grouped = (n: number): string => n.toLocaleString('en-US', { maximumFractionDigits: 2 })

/** The workspace given by `--in`; a path is relative to the caller's folder. */
export function workspaceIdOf({ options, cwd }: Pick<CommandContext, 'options' | 'cwd'>): string | undefined {
  if (options.in === undefined) return undefined
  const text = String(options.in)
  return text.startsWith('.') || text.includes('/') ? path.resolve(cwd, text) : text
}
