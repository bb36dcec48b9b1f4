import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const SupportErrors = defineErrors({
  bundle_consent_required: {
    status: 400,
    message: 'a support bundle needs consent: `yes` must be true',
    next: command('support bundle'),
  },
  support_bundle_not_found: {
    status: 404,
    message: 'no such support bundle; bundles are kept for 24 hours',
    next: command('support bundle'),
  },
  support_bundle_not_ready: { status: 409, message: 'the support bundle is not ready' },
  support_queue_full: {
    status: 503,
    message: 'too many support bundles are being made; try again when one is done',
  },
})
