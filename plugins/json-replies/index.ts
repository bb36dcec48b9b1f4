import { definePlugin } from '../../kernel/plugin.js'
import { payloadOf } from './payload.js'

export default definePlugin({ name: 'json-replies', version: '0.1.0' }).surface({
  hooks: { encode: () => [payloadOf] },
})
