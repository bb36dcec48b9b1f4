import type { HooksApi } from '../api.js'

/** The `self` of taps of plugins without a service. */
export interface Self {
  readonly needs: { readonly hooks: HooksApi }
}
/** {@link Self} with sessions. */
export interface WithSessions {
  readonly needs: { readonly hooks: HooksApi; readonly sessions: { get(id: string): SessionOf | undefined } }
}
type SessionOf = Parameters<HooksApi['tell']>[1]
