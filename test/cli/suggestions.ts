import { fileURLToPath } from 'node:url'
import { sourcesBelow } from '../harness/source.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** Words behind the name of the program in a sentence about it; none of them is a command. */
const PROSE =
  /(^|[\s:(])svc (?=(?:are|asks|catches|decides|did|does|from|has|hears|is|knows|mails|notifies|puts|reads|runs|that|wrote)\b)/g

/** Literals of a source that are nothing but a command, placeholders filled in; and mentions of one in other texts. */
export function commandsIn(text: string): { whole: string[]; mentioned: string[] } {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '')
  const filled = code
    .replace(/(\w?)\$\{[^{}]*\}/g, (_, before: string) => before || 'x')
    .replace(/(--expected-version) x/g, '$1 1')
  // Other functions of that name make no command.
  const isOfKit = /\bcommand\b[^'"]*from '[^']*kit\/(?:commands\/command-line|index)\.js'/.test(code)
  const called = !isOfKit
    ? []
    : [...code.matchAll(/\bcommand\(\s*'([^']+)'((?:[^()]|\([^()]*\))*)\)/g)].map(([, path = '', words = '']) =>
        ['svc', path, ...wordsOf(words)].join(' '),
      )
  const literals = [...filled.matchAll(/`([^`]*)`|'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"/g)].map(
    ([, template, single, double]) => template ?? single ?? double ?? '',
  )
  const naming = literals
    .map(literal => literal.replace(PROSE, '$1the program '))
    .filter(literal => /(^|[\s:(])svc [a-z]/.test(literal))
  // `svc ${path}` is any command, and help is the command line's own.
  const whole = naming.filter(literal => /^svc (?!x\b|help\b)/.test(literal))
  const others = naming.filter(literal => !literal.startsWith('svc '))
  return {
    whole: [...called, ...whole.flatMap(literal => literal.split(' && '))],
    mentioned: others.flatMap(literal => literal.match(/(?<=^|[\s:(])svc [a-z]+/g) ?? []),
  }
}

/**
 * The words of a call of `command`, in whose place any stands: those that are written out as they are, `x` for the others. What is
 * spread are options, or nothing.
 */
function wordsOf(text: string): string[] {
  const words = text
    .split(/,(?![^(]*\))/)
    .map(word => word.trim())
    .filter(word => word !== '' && !word.startsWith('...'))
  const named = words.map(
    word => /^'([^']*)'$/.exec(word)?.[1] ?? /^placeholder\('([^']*)'\)$/.exec(word)?.[1]?.replace(/.*/, '<$&>') ?? 'x',
  )
  return named.map((word, at) => (named[at - 1] === '--expected-version' ? '1' : word))
}

/** What every source of the daemon and the command line suggests. */
export function suggestions(): { file: string; whole: string[]; mentioned: string[] }[] {
  return ['kernel', 'plugins', 'cli']
    .flatMap(folder => sourcesBelow(root, folder))
    .filter(({ file }) => file !== 'cli/commands/completion.ts') // scripts for shells
    .map(({ file, text }) => ({ file, ...commandsIn(text) }))
}
