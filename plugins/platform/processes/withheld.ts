/**
 * Variables of the daemon that reach no other process: who has them can open every secret in a copy of the home.
 * The key of the vault, and the one before it.
 */
export const WITHHELD = ['SVC_VAULT_KEY', 'SVC_VAULT_KEY_PREVIOUS'] as const

/** Whether a variable is one of {@link WITHHELD}: nothing may be told its value. */
export const isWithheld = (name: string): boolean => (WITHHELD as readonly string[]).includes(name)

/** An environment without them, whoever made it. */
export function withoutWithheld<T>(env: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isWithheld(name)))
}
