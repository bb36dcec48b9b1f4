import { defineErrors } from '../../../../kernel/plugin.js'

export const StateErrors = defineErrors({
  extension_state_too_large: { status: 413, message: 'the extension exceeds its storage limit' },
})
