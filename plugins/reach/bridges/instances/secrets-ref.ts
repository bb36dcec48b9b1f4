import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'

/** Vault reference of an instance's slot. */
export const refOf = (id: string, name: string): string => `vault:bridges/${id}/${name}`

/** The instance and slot of a {@link refOf} reference; undefined for another reference. */
export function placeOf(ref: string): { readonly id: string; readonly name: string } | undefined {
  const { scheme, rest = '' } = parseSecretRef(ref) ?? {}
  const [namespace, id, name, ...more] = rest.split('/')
  if (scheme !== 'vault' || namespace !== 'bridges' || more.length > 0) return undefined
  return id === undefined || name === undefined ? undefined : { id, name }
}
