import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors } from '../../../kernel/plugin.js'

export const BundleErrors = defineErrors({
  bundle_extension_not_found: { status: 404, message: 'no such extension is loaded', next: command('extension list') },
  bundle_not_found: { status: 404, message: 'no such bundle', next: command('bundle catalog') },
  bundle_profile_not_found: { status: 404, message: 'no such profile', next: command('bundle catalog') },
  bundle_activation_not_found: { status: 404, message: 'no such activation', next: command('bundle list') },
  bundle_activation_exists: {
    status: 409,
    message: 'this profile is active there already',
    next: command('bundle list'),
  },
  bundle_confirmation_required: {
    status: 409,
    message: 'the extension requires live participation in the network, which has to be confirmed',
  },
  bundle_version_conflict: {
    status: 409,
    message: 'the activation has another version; read it again and repeat',
  },
  bundle_agent_conflict: { status: 409, message: 'another agent that is visible there has this name' },
  bundle_record_taken: { status: 409, message: 'a record outside this activation has the id of one of its records' },
  bundle_in_use: { status: 409, message: 'activations depend on this extension', next: command('bundle list') },
  bundle_agent_missing: { status: 422, message: 'a job or trigger names an unknown agent' },
  bundle_agent_reserved: { status: 422, message: 'the name of an agent is reserved for the daemon' },
  bundle_trigger_webhook: {
    status: 422,
    message: 'a package cannot contain a webhook trigger, because it has no secret for it',
  },
  bundle_scope_invalid: { status: 422, message: 'scope workspace requires a workspace; scope global allows none' },
  bundle_invalid: { status: 422, message: 'the bundles of the extension are not valid' },
})
