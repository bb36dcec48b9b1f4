/** A member of a JSON object that is omitted when empty. */
export const optionalMember = <K extends string, T>(
  name: K,
  value: T | null | undefined | '',
): { readonly [N in K]?: T } =>
  (value === null || value === undefined || value === '' ? {} : { [name]: value }) as { readonly [N in K]?: T }

/** Text of a JSON column; null when undefined or null. */
export const json = (value: unknown): string | null =>
  value === undefined || value === null ? null : JSON.stringify(value)
