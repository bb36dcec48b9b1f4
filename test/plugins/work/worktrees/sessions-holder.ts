import { definePlugin } from '../../../../kernel/plugin.js'
import { Sessions, type SessionsApi } from '../../../../plugins/work/sessions/api.js'

/** A plugin that hands the API of sessions to a test, with each start of a kernel. */
export function sessionsHolder(take: (sessions: SessionsApi) => void) {
  class Holder {
    constructor(kernel: { readonly needs: { readonly sessions: SessionsApi } }) {
      take(kernel.needs.sessions)
    }
  }
  return definePlugin({
    name: 'test.holding',
    version: '1.0.0',
    requires: { sessions: Sessions },
    service: async () => Holder,
  }).surface({})
}
