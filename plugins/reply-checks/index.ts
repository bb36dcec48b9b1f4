import { definePlugin, Host } from '../../kernel/plugin.js'
import { checkReply } from './checks.js'

export default definePlugin({ name: 'reply-checks', version: '0.1.0', requires: { host: Host } }).surface({
  hooks: { reply: ({ needs }) => (needs.host.checkReplies ? [checkReply] : []) },
})
