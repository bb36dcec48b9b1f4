import path from 'node:path'
import type { Provider } from './api.js'

/** Launchers that start a registry package by name. */
const LAUNCHERS = new Set(['npx', 'bunx', 'pnpx', 'uvx'])
/** Options of launchers with a value; for some of them the value is the package. */
const PACKAGE_OPTIONS = new Set(['-p', '--package', '--from'])
const VALUE_OPTIONS = new Set(['-c', '--call', '--python', '--with', '--index-url'])
/** Programs that run a script, whose path identifies its package. */
const RUNTIMES = new Set(['node', 'bun', 'deno'])

/** The program or package that a command line starts. */
type Started = { readonly program: string } | { readonly package: string } | undefined

/** The program or package behind `env NAME=value …` and launchers. */
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

/** The package that a launcher starts, without its version. */
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

/** The package whose folder below `node_modules` contains a script. */
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
