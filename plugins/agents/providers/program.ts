import path from 'node:path'
import type { Provider } from './api.js'

/** Programs that start a package of a registry, which they are given by name. */
const LAUNCHERS = new Set(['npx', 'bunx', 'pnpx', 'uvx'])
/** Options of launchers that are followed by a value; of some the value is the package. */
const PACKAGE_OPTIONS = new Set(['-p', '--package', '--from'])
const VALUE_OPTIONS = new Set(['-c', '--call', '--python', '--with', '--index-url'])
/** Programs that run a script, whose place says of which package it is. */
const RUNTIMES = new Set(['node', 'bun', 'deno'])

/** What a command line starts: a program by name, or a package. */
type Started = { readonly program: string } | { readonly package: string } | undefined

/** The program or package behind `env NAME=value …` and the programs that start others. */
function startedBy(argv: readonly string[]): Started {
  const [first = '', ...rest] = argv
  const program = path.basename(first)
  if (program === 'env') {
    const end = rest.findIndex(word => !/^\w+=/.test(word))
    return end < 0 || rest[end]?.startsWith('-') ? undefined : startedBy(rest.slice(end))
  }
  if (LAUNCHERS.has(program)) {
    const name = packageIn(rest)
    return name === undefined ? undefined : { package: name }
  }
  const script = RUNTIMES.has(program) ? rest.find(word => !word.startsWith('-')) : undefined
  const inside = script === undefined ? undefined : packageAround(script)
  if (inside !== undefined) return { package: inside }
  return program === '' ? undefined : { program }
}

/** The package that a launcher is told to start, without its version. */
function packageIn(words: readonly string[]): string | undefined {
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string
    const [, option, value] = /^(--?[\w-]+)=(.+)$/.exec(word) ?? []
    if (option !== undefined && PACKAGE_OPTIONS.has(option)) return unversioned(value as string)
    if (PACKAGE_OPTIONS.has(word)) return words[at + 1] === undefined ? undefined : unversioned(words[at + 1] as string)
    if (VALUE_OPTIONS.has(word)) at++
    else if (!word.startsWith('-')) return unversioned(word)
  }
  return undefined
}

/** `@scope/name@1.2` is `@scope/name`; `name==1.2` and `name[extra]` of Python are `name`. */
export const unversioned = (name: string) => /^(@[^/]+\/)?[^@=<>~![\s]+/.exec(name)?.[0] ?? name

/** The package in whose folder below `node_modules` a script is. */
function packageAround(script: string): string | undefined {
  const parts = script.split('/')
  const at = parts.lastIndexOf('node_modules')
  const [scope, name] = at < 0 ? [] : parts.slice(at + 1)
  if (scope === undefined || scope === '.bin') return undefined
  return scope.startsWith('@') ? name && `${scope}/${name}` : scope
}

/** The provider whose agent a command line starts. */
export function programOf(providers: readonly Provider[], argv: readonly string[]): Provider | undefined {
  const started = startedBy(argv)
  if (started === undefined) return undefined
  return providers.find(provider => {
    const own = startedBy(provider.argv)
    if ('package' in started)
      return (
        (own !== undefined && 'package' in own && own.package === started.package) ||
        provider.packages?.includes(started.package)
      )
    return (
      (own !== undefined && 'program' in own && own.program === started.program) ||
      provider.programs?.includes(started.program)
    )
  })
}
