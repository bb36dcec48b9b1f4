import { command } from '../../../kernel/kit/commands/command-line.js'
import type { StoredRecord } from '../../../kernel/plugin.js'
import type { BundleActivationRequest } from '../../../schemas/bundles.js'
import { BundleErrors } from './errors.js'
import type { ActivationSpec } from './kinds.js'
import type { Found } from './projection.js'

type Activation = StoredRecord<ActivationSpec>

export function exists({ id, version }: Pick<Activation, 'id' | 'version'>) {
  return BundleErrors.bundle_activation_exists(`this profile is active there already: ${id} at version ${version}`, {
    details: { activation: id },
    next: command('bundle get', id),
  })
}

export function outdated({ id, version }: Activation, expected: number) {
  return BundleErrors.bundle_version_conflict(
    `activation ${id} is at version ${version}, not ${expected}; read it again and repeat`,
    { next: command('bundle get', id) },
  )
}

export function unconfirmed({ bundle, profile }: Found, { scope, workspace }: BundleActivationRequest) {
  const where = scope === 'workspace' && workspace ? ['--scope', 'workspace', '--workspace', workspace] : []
  return BundleErrors.bundle_confirmation_required(undefined, {
    details: { network_requirement_digest: bundle.requirement },
    next: command(
      'bundle activate',
      '--extension',
      bundle.extension,
      '--bundle',
      bundle.name,
      '--profile',
      profile.name,
      ...where,
      '--confirm-network-requirement',
    ),
  })
}

export function unconfirmedUpdate({ id, version, spec }: Activation) {
  return BundleErrors.bundle_confirmation_required(
    'confirmation required: the extension requires live participation in the network, which is not confirmed for its current requirements',
    {
      details: { network_requirement_digest: spec.network_requirement_digest },
      next: command('bundle update', id, '--expected-version', version, '--confirm-network-requirement'),
    },
  )
}
