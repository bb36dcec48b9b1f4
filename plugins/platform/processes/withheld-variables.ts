/**
 * Variables of the daemon that are passed to no other process, since they decrypt every secret in a copy of the home: the current
 * and the previous key of the vault.
 */
export const WITHHELD = ['SVC_VAULT_KEY', 'SVC_VAULT_KEY_PREVIOUS'] as const

/** Whether a variable is one of {@link WITHHELD}, whose value must not be passed on. */
export const isWithheld = (name: string): boolean => (WITHHELD as readonly string[]).includes(name)

/** An environment without withheld variables. */
export function withoutWithheld<T>(env: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isWithheld(name)))
}
