import type { HooksApi } from '../api.js'

/** What the taps here are bound to: a plugin without a service of its own. */
export interface Self {
  readonly needs: { readonly hooks: HooksApi }
}
/** The same with sessions. */
export interface WithSessions {
  readonly needs: { readonly hooks: HooksApi; readonly sessions: { get(id: string): SessionOf | undefined } }
}
type SessionOf = Parameters<HooksApi['tell']>[1]
