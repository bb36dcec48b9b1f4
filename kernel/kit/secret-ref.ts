import * as v from 'valibot'
import type { Awaitable } from '../contract/basics.js'
import { defineErrors } from '../contract/errors.js'
import type { PluginKernel } from '../contract/plugin-kernel.js'
import { registry } from '../contract/token.js'

/** A reference to a secret, written `scheme:rest`: `env:NAME` names a variable, other schemes belong to resolvers. */
export type SecretRef = { readonly scheme: string; readonly rest: string }

const REFERENCE = /^([a-z][a-z0-9_-]{0,31}):(\S{1,512})$/
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,255}$/

/** The parts of a reference; undefined for any other text. That may be a secret itself, so do not repeat it. */
export function parseSecretRef(reference: string): SecretRef | undefined {
  const [, scheme = '', rest = ''] = REFERENCE.exec(reference) ?? []
  if (scheme === '' || (scheme === 'env' && !VARIABLE.test(rest))) return undefined
  return { scheme, rest }
}

/**
 * The schema of a member that holds a reference, never a secret.
 * @param schemes the allowed schemes, each with the required prefix of its rest, or several: `{ env: '', keep: 'mail/' }`
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

/** Resolves the secrets of one scheme. */
export interface SecretResolver {
  readonly scheme: string
  /**
   * The secret, or undefined when there is none of that name. A thrown fault is passed on.
   * @param asker name of the plugin that needs the secret
   */
  readonly resolve: (rest: string, asker: string) => Awaitable<string | undefined>
  /** Explains a missing secret, if more can be said than that there is none. */
  readonly missing?: (rest: string) => { readonly why: string; readonly next: string }
}

/** The resolvers of all schemes, one each. */
export const SecretResolvers = registry<SecretResolver>(
  'secrets.resolvers@1',
  v.looseObject({ scheme: v.string(), resolve: v.function(), missing: v.optional(v.function()) }),
)

const CONFLICT = 'add one of them to plugins.disabled'
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
 * The secret of a reference; never log it or put it into an error.
 * @param what names the member that holds the reference, for errors: `TOKEN of the server git`
 * @throws Fault `secret_ref_invalid`, `secret_resolver_missing`, `secret_resolver_conflict`, `secret_missing`
 */
export async function resolveSecret(
  kernel: Pick<PluginKernel, 'collect' | 'name'>,
  reference: string,
  what: string,
): Promise<string> {
  const ref = parseSecretRef(reference)
  // The invalid reference may be the secret itself: it is not repeated.
  if (!ref) throw SecretErrors.secret_ref_invalid(`${what} is not a reference such as env:NAME`)
  const { scheme, rest } = ref
  const resolvers = kernel.collect(SecretResolvers).filter(({ entry }) => entry.scheme === scheme)
  const [resolver] = resolvers
  if (!resolver)
    throw SecretErrors.secret_resolver_missing(`${what} is ${reference}, but nothing resolves ${scheme} references yet`)
  // The first one would depend on the order of loading, and a secret could go to the wrong plugin.
  if (resolvers.length > 1) {
    const owners = resolvers.map(({ owner }) => owner).join(' and ')
    throw SecretErrors.secret_resolver_conflict(`${what} is ${reference}: ${owners} resolve ${scheme}:`)
  }
  const secret = await resolver.entry.resolve(rest, kernel.name)
  if (secret !== undefined && secret !== '') return secret
  const { why = 'there is no such secret', next } = resolver.entry.missing?.(rest) ?? {}
  throw SecretErrors.secret_missing(`${what} needs ${rest}: ${why}`, { next })
}
