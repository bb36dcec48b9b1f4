import type { Plugin, Scope } from '../../../kernel/plugin.js'

/** Taps on stubbed services, by owner. */
export const stubTaps: string[] = []

/** Provides a token with something that can be called, read, iterated and tapped, and does nothing. */
export function stubOf(id: string): Plugin {
  const tap = ({ owner, scope }: { owner: string; scope: Scope }) => {
    stubTaps.push(owner)
    scope.defer('tap stub', () => stubTaps.splice(stubTaps.indexOf(owner), 1))
  }
  const anything: unknown = new Proxy(() => {}, {
    get: (_, key) => {
      if (key === 'tap') return tap
      if (key === 'then') return undefined
      if (key === 'length') return 0
      if (key === Symbol.iterator) return [][Symbol.iterator]
      if (key === Symbol.toPrimitive) return () => ''
      return anything
    },
    apply: () => anything,
  })
  const name = `stub-${id.replace('@', '-')}`
  return { name, version: '1', requires: {}, provides: { id }, surface: {}, apply: () => anything }
}
