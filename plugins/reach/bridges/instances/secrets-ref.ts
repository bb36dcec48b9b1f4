/** The place of a slot of an instance in the vault. */
export const refOf = (id: string, name: string): string => `vault:bridges/${id}/${name}`
