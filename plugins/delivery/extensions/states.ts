import type { ExtensionStatus } from './api.js'

/** Outcome of reading a folder: `loaded` or `failed` for a first load, `changed` or `worse` after an earlier one. */
export type Outcome = 'same' | 'loaded' | 'failed' | 'changed' | 'worse'

/** Events in the life of an extension. */
export type Happening = 'enable' | 'disable' | 'register' | 'activate' | 'fail' | 'unload'

/** Transitions of the status; all others are invalid. */
export const transitions: Readonly<Record<ExtensionStatus, Partial<Record<Happening, ExtensionStatus>>>> = {
  /** The flag is off; nothing is loaded. */
  disabled: { enable: 'enabled' },
  /** The flag is on; nothing is loaded yet. */
  enabled: { disable: 'disabled', register: 'registered', fail: 'error' },
  /** Items are published; its code waits for a dependency, or its process is not ready. */
  registered: { disable: 'disabled', activate: 'active', fail: 'error', unload: 'enabled' },
  active: { disable: 'disabled', register: 'registered', fail: 'error', unload: 'enabled' },
  /** The last load failed, and no earlier generation runs. */
  error: { disable: 'disabled', register: 'registered', fail: 'error', unload: 'enabled' },
}

/** @throws Error for an invalid transition: a bug in the daemon */
export function next(status: ExtensionStatus, happening: Happening): ExtensionStatus {
  const to = transitions[status][happening]
  if (to === undefined) throw new Error(`an extension that is ${status} cannot ${happening}`)
  return to
}
