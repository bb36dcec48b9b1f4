import { parseSecretRef } from '../../../../kernel/kit/secret-ref.js'

/** The place of a slot of an instance in the vault. */
export const refOf = (id: string, name: string): string => `vault:bridges/${id}/${name}`

/** What {@link refOf} was made of; undefined for the place of something else. */
export function placeOf(ref: string): { readonly id: string; readonly name: string } | undefined {
  const { scheme, rest = '' } = parseSecretRef(ref) ?? {}
  const [namespace, id, name, ...more] = rest.split('/')
  if (scheme !== 'vault' || namespace !== 'bridges' || more.length > 0) return undefined
  return id === undefined || name === undefined ? undefined : { id, name }
}
