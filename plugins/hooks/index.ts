import { definePlugin } from '../../kernel/plugin.js'
import { HookKind } from './api.js'

/** The kind alone: records are checked, made canonical and kept; nothing projects them yet, and the status says so. */
export default definePlugin({
  name: 'hooks',
  version: '0.1.0',
  service: async () => class {},
}).surface({ kinds: [HookKind] })
