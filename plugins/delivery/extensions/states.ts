import type { ExtensionStatus } from './api.js'

/** What came of looking at the folder again: it was loaded or failed to, or what was loaded or failed before changed or failed to. */
export type Outcome = 'same' | 'loaded' | 'failed' | 'changed' | 'worse'

/** What happens to an extension. */
export type Happening = 'enable' | 'disable' | 'register' | 'activate' | 'fail' | 'unload'

/** The status that follows each happening; anything else is not a transition. */
export const transitions: Readonly<Record<ExtensionStatus, Partial<Record<Happening, ExtensionStatus>>>> = {
  /** The flag is off; nothing of it is loaded. */
  disabled: { enable: 'enabled' },
  /** The flag is on, nothing of it is loaded yet. */
  enabled: { disable: 'disabled', register: 'registered', fail: 'error' },
  /** What it ships is registered; its code waits for something, or its process is not ready. */
  registered: { disable: 'disabled', activate: 'active', fail: 'error', unload: 'enabled' },
  active: { disable: 'disabled', register: 'registered', fail: 'error', unload: 'enabled' },
  /** The last load failed, and nothing earlier runs in its place. */
  error: { disable: 'disabled', register: 'registered', fail: 'error', unload: 'enabled' },
}

/** @throws Error when that cannot happen to it: a mistake of this program */
export function next(status: ExtensionStatus, happening: Happening): ExtensionStatus {
  const to = transitions[status][happening]
  if (to === undefined) throw new Error(`an extension that is ${status} cannot ${happening}`)
  return to
}
