import * as v from 'valibot'
import type { Awaitable } from '../contract/basics.js'
import { defineErrors } from '../contract/errors.js'
import type { PluginKernel } from '../contract/plugin-kernel.js'
import { registry } from '../contract/token.js'

/** Where a secret lies, written `scheme:rest`: `env:NAME` names a variable, other schemes are those of resolvers. */
export type SecretRef = { readonly scheme: string; readonly rest: string }

const REFERENCE = /^([a-z][a-z0-9_-]{0,31}):(\S{1,512})$/
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/

/** The parts of a reference; undefined for a text that is none, which may be a secret itself: do not repeat it. */
export function parseSecretRef(reference: string): SecretRef | undefined {
  const [, scheme = '', rest = ''] = REFERENCE.exec(reference) ?? []
  if (scheme === '' || (scheme === 'env' && !VARIABLE.test(rest))) return undefined
  return { scheme, rest }
}

/**
 * The schema of a member that holds a reference, never a secret.
 * @param schemes those that it may have, each with what its rest begins with, or one of several: `{ env: '', keep: 'mail/' }`
 */
export function secretRef(schemes: Readonly<Record<string, string | readonly string[]>>) {
  const starts = new Map(Object.entries(schemes).map(([scheme, start]) => [scheme, [start].flat()]))
  const forms = [...starts].flatMap(([scheme, of]) =>
    scheme === 'env' ? 'env:NAME' : of.map(start => `${scheme}:${start}…`),
  )
  const isOne = (text: string) => {
    const { scheme = '', rest = '' } = parseSecretRef(text) ?? {}
    return starts.get(scheme)?.some(start => rest.startsWith(start) && rest.length > start.length) ?? false
  }
  return v.pipe(v.string(), v.check(isOne, `a reference: ${forms.join(' or ')}`))
}

/** Knows the secrets of one scheme. */
export interface SecretResolver {
  readonly scheme: string
  /**
   * The secret, or undefined when there is none of that name. A fault that it throws is handed on.
   * @param asker name of the plugin that asks
   */
  readonly resolve: (rest: string, asker: string) => Awaitable<string | undefined>
  /** Why there is none and what helps, where more can be said than that there is none. */
  readonly missing?: (rest: string) => { readonly why: string; readonly next: string }
}

/** The resolvers of all schemes, one each. */
export const SecretResolvers = registry<SecretResolver>(
  'secrets.resolvers@1',
  v.looseObject({ scheme: v.string(), resolve: v.function(), missing: v.optional(v.function()) }),
)

const CONFLICT = 'put one of them into plugins.disabled'
/** Errors of references to secrets. */
export const SecretErrors = defineErrors({
  secret_ref_invalid: { status: 422, message: 'this is not a secret reference' },
  secret_resolver_missing: {
    status: 422,
    message: 'no plugin resolves references of this scheme',
    next: 'use env:NAME and set it in the environment of the daemon',
  },
  secret_resolver_conflict: { status: 409, message: 'two plugins resolve this scheme', next: CONFLICT },
  secret_missing: { status: 422, message: 'there is no secret of this name' },
})

/**
 * The secret that a reference leads to; never logged, never in an error.
 * @param what names the member that holds the reference, for errors: `TOKEN of the server git`
 * @throws Fault `secret_ref_invalid`, `secret_resolver_missing`, `secret_resolver_conflict`, `secret_missing`
 */
export async function resolveSecret(
  kernel: Pick<PluginKernel, 'collect' | 'name'>,
  reference: string,
  what: string,
): Promise<string> {
  const ref = parseSecretRef(reference)
  // It may be the secret itself: it is not repeated.
  if (!ref) throw SecretErrors.secret_ref_invalid(`${what} is not a reference such as env:NAME`)
  const { scheme, rest } = ref
  const resolvers = kernel.collect(SecretResolvers).filter(({ entry }) => entry.scheme === scheme)
  const [resolver] = resolvers
  if (!resolver) throw SecretErrors.secret_resolver_missing(`${what} is ${reference}, and there is no ${scheme} yet`)
  // Whoever came first would depend on the order of loading, and a secret would go to somebody unforeseen.
  if (resolvers.length > 1) {
    const owners = resolvers.map(({ owner }) => owner).join(' and ')
    throw SecretErrors.secret_resolver_conflict(`${what} is ${reference}: ${owners} resolve ${scheme}:`)
  }
  const secret = await resolver.entry.resolve(rest, kernel.name)
  if (secret !== undefined && secret !== '') return secret
  const { why = 'there is no such secret', next } = resolver.entry.missing?.(rest) ?? {}
  throw SecretErrors.secret_missing(`${what} needs ${rest}: ${why}`, { next })
}
