import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Fault } from '../../../kernel/plugin.js'
import type { VaultHealth } from '../../../schemas/daemon/health.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import type { KeySource } from './keys.js'

/** Most secrets that are listed individually. */
const NAMED = 20

/** Why a secret cannot be opened. */
export type Damage = 'vault_secret_damaged' | 'vault_key_wrong'

/** The state of the vault. */
interface Known {
  readonly damaged: ReadonlyMap<string, Damage>
  readonly count: number
  readonly keySource: KeySource
}

/** Doctor items: the key, then each secret that cannot be opened. */
export function vaultItems(problem: Fault | undefined, { damaged, count, keySource }: Known): DiagnosticItem[] {
  const common = { category: 'vault', severity: 'error' } as const
  const items = [...damaged].slice(0, NAMED).map(([ref, code]) =>
    finding({
      ...common,
      id: `vault.secrets:${ref}`,
      code,
      title: `${ref} cannot be decrypted`,
      message: texts[code],
      suggested_command: command('vault put', ref),
    }),
  )
  if (damaged.size > NAMED)
    items.push(
      finding({
        ...common,
        id: 'vault.secrets:more',
        code: 'vault_secret_damaged',
        title: 'More secrets cannot be decrypted',
        message: `${damaged.size - NAMED} more secrets cannot be decrypted`,
        suggested_command: command('vault list'),
      }),
    )
  if (problem)
    items.unshift(
      finding({
        ...common,
        id: 'vault.key',
        code: problem.code,
        title: 'The vault key cannot be used',
        message: problem.next === undefined ? problem.message : `${problem.message}; ${problem.next}`,
      }),
    )
  if (items.length > 0) return items
  const message = `${count === 1 ? '1 secret' : `${count} secrets`}, encrypted with the key from the ${keySource}`
  return [finding({ ...common, severity: 'info', id: 'vault.secrets', code: 'vault_ok', title: 'Vault', message })]
}

const texts: Readonly<Record<Damage, string>> = {
  vault_secret_damaged: 'its record was changed or damaged; store its value again',
  vault_key_wrong:
    'it is encrypted with a key that the daemon does not have; restore that key, or store its value again',
}

/** The vault's part of the status member `health`; degraded while a secret is unusable. */
export function vaultHealth(
  problem: Fault | undefined,
  { damaged, count, keySource }: Known,
): { vault: VaultHealth; status?: 'degraded' } {
  const isWhole = problem === undefined && damaged.size === 0
  const vault: VaultHealth = {
    status: isWhole ? 'ok' : 'degraded',
    secrets: count,
    damaged: damaged.size,
    key_source: keySource,
    ...(problem ? { code: problem.code } : {}),
  }
  return isWhole ? { vault } : { vault, status: 'degraded' }
}
