import { definePlugin } from '../../kernel/plugin.js'
import { BridgeInstanceKind } from './api.js'

/** Bridge instances are stored, checked and listed; nothing runs them yet. */
export default definePlugin({ name: 'bridges', version: '0.1.0' }).surface({ kinds: [BridgeInstanceKind] })
