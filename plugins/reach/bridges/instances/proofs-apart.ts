import { command, placeholder } from '../../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../../kernel/plugin.js'
import type { BoundSecret, BridgeProvider, Examined, VerifyCheck } from '../api.js'
import { managedOf } from './adapters.js'
import type { Instance } from './instances.js'

/** Results of checks by the adapter of a disabled bridge, which runs only for these checks. */
export interface ProofsApart {
  readonly configuration: VerifyCheck
  readonly process: VerifyCheck
  readonly transport: VerifyCheck
  /** Checks of the adapter itself. */
  readonly others: readonly VerifyCheck[]
}

/** Lets an adapter test a disabled bridge. Undefined if the adapter cannot. An invalid configuration is not tested. */
export async function proveApart(
  instance: Instance,
  configuration: VerifyCheck,
  provider: BridgeProvider | undefined,
  reveal: () => Promise<readonly BoundSecret[]>,
  signal: AbortSignal,
): Promise<ProofsApart | undefined> {
  if (!provider?.examine) return undefined
  const { id } = instance
  if (configuration.status === 'fail') {
    const remediation = `checked only after the configuration passes; fix it, then verify again: ${command('bridge verify', id)}`
    const skipped = (check: string): VerifyCheck => ({ check, status: 'skipped', remediation })
    return { configuration, process: skipped('process'), transport: skipped('transport'), others: [] }
  }
  try {
    const examined = await provider.examine(managedOf(instance, await reveal()), signal)
    const process: VerifyCheck = {
      check: 'process',
      status: 'pass',
      remediation: `it ran only for this check; the bridge is disabled; enable it: ${command('bridge enable', id)}`,
    }
    const refused = examined.state?.reason === 'tenant_config_invalid' && examined.state.status !== 'ready'
    return {
      configuration: refused ? refusedConfig(id, examined) : configuration,
      process,
      transport: transportOf(id, examined),
      others: examined.checks,
    }
  } catch (error) {
    const { extension } = provider
    const process: VerifyCheck = {
      check: 'process',
      status: 'fail',
      remediation: `the adapter could not be started (${messageOf(error)}); see its log: ${command('extension logs', extension)}`,
    }
    const transport: VerifyCheck = {
      check: 'transport',
      status: 'fail',
      remediation: `no connection, because the adapter could not be started; see its log: ${command('extension logs', extension)}`,
    }
    return { configuration, process, transport, others: [] }
  }
}

function refusedConfig(id: string, { state }: Examined): VerifyCheck {
  const why = state?.message ?? 'the adapter refuses the configuration'
  return {
    check: 'configuration',
    status: 'fail',
    remediation: `${why}: correct it in --provider-config of ${command('bridge update', id)}`,
  }
}

function transportOf(id: string, { state }: Examined): VerifyCheck {
  const check = 'transport'
  if (state?.status === 'ready') return { check, status: 'pass', remediation: '' }
  const again = command('bridge verify', id)
  if (!state || state.status === 'starting')
    return { check, status: 'fail', remediation: `the adapter did not connect in time; verify again: ${again}` }
  const why = state.message ?? `the adapter reported ${state.status}`
  if (state.status === 'auth_required') {
    const bind = command('bridge secret-bindings put', id, placeholder('slot'))
    return { check, status: 'fail', remediation: `${why}; bind the secret anew: ${bind}` }
  }
  const status = state.status === 'degraded' ? 'warn' : 'fail'
  return { check, status, remediation: `${why}; fix that, then verify again: ${again}` }
}
