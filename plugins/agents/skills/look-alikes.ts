import { shown } from '../../../kernel/kit/text.js'
import type { Warning } from './candidate.js'

/** Confusable letters: those of Cyrillic and Greek that Unicode's `confusables.txt` maps to Latin letters. */
const LETTERS = new Map(
  Object.entries({
    ...{
      а: 'a',
      ԁ: 'd',
      е: 'e',
      һ: 'h',
      і: 'i',
      ј: 'j',
      ӏ: 'l',
      о: 'o',
      р: 'p',
      с: 'c',
      ѕ: 's',
      у: 'y',
      х: 'x',
      ԛ: 'q',
      ԝ: 'w',
    },
    ...{ г: 'r', к: 'k', п: 'n', в: 'b', т: 't', м: 'm', н: 'h', ь: 'b', ѵ: 'v' },
    ...{
      α: 'a',
      γ: 'y',
      ε: 'e',
      ι: 'i',
      κ: 'k',
      ν: 'v',
      ο: 'o',
      ρ: 'p',
      σ: 'o',
      τ: 't',
      υ: 'u',
      χ: 'x',
      ω: 'w',
      ϳ: 'j',
    },
    ...{ ı: 'i', ɡ: 'g', ɑ: 'a', '0': 'o', '1': 'l', '|': 'l' },
  }),
)

/** Most names are ASCII and need no further work; each check of a thousand skills compares all of them. */
const ASCII = /^[\x20-\x7e]*$/

/** Scripts with similar letters. */
const SCRIPTS = [
  ['Latin', /\p{Script=Latin}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
] as const

/** Skeleton of a name, equal for names that look alike; the method of UTS #39, with the letters above. */
export function skeletonOf(name: string): string {
  const plain = ASCII.test(name) ? name : name.normalize('NFKD').replace(/\p{M}/gu, '')
  const letters = plain.toLowerCase().replace(/[^a-z2-9-]/gu, letter => LETTERS.get(letter) ?? letter)
  return letters.replaceAll('rn', 'm').replaceAll('vv', 'w')
}

/** A warning for a name that mixes scripts with similar letters. */
export function mixedScripts(name: string): readonly Warning[] {
  if (ASCII.test(name)) return []
  const scripts = SCRIPTS.flatMap(([script, letters]) => (letters.test(name) ? [script] : []))
  if (scripts.length < 2) return []
  const message = `the name ${shown(name)} mixes letters of ${scripts.join(' and ')}, which look alike: ${spelledOut(name)}`
  return [{ pattern: 'mixed_scripts', severity: 'warning', message }]
}

/** Other names that look alike, by name. */
export function lookAlikes(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const bySkeleton = new Map<string, string[]>()
  for (const name of names) {
    const skeleton = skeletonOf(name)
    const same = bySkeleton.get(skeleton)
    if (same) same.push(name)
    else bySkeleton.set(skeleton, [name])
  }
  const alike = [...bySkeleton.values()].filter(({ length }) => length > 1)
  return new Map(alike.flatMap(same => same.map(name => [name, same.filter(other => other !== name)] as const)))
}

/** A name with non-ASCII letters as code points: `d\u{435}ploy`. */
const spelledOut = (name: string): string =>
  [...name].map(letter => (letter > '\x7e' ? `\\u{${letter.codePointAt(0)?.toString(16)}}` : letter)).join('')

/** A warning for a name that looks like another one. */
export const alikeWarning = (name: string, others: readonly string[]): Warning => ({
  pattern: 'looks_alike',
  severity: 'warning',
  message: `the name ${spelledOut(name)} looks like the name of another skill, ${others.slice(0, 3).map(spelledOut).join(', ')}`,
})
