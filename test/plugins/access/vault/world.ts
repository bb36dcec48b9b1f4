import { execFileSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { resolveSecret } from '../../../../kernel/kit/secret-ref.js'
import { maybe } from '../../../../kernel/plugin.js'
import { Vault } from '../../../../plugins/access/vault/api.js'
import { daemon, vault } from '../../../../plugins/index.js'
import { probe } from '../../../../testing/traces.js'
import { type BootOptions, boot, type TestKernel, temporaryFolder } from '../../../harness/kernel.js'

export interface VaultWorld extends TestKernel {
  readonly keyFile: string
  /** Status and body. */
  put(ref: string, value: string, more?: object): ReturnType<TestKernel['request']>
  /** The value as a plugin of that name resolves it; the code of the fault instead. */
  resolved(ref: string, asker?: string): Promise<string>
  /** `present` by reference. */
  present(): Promise<Record<string, boolean>>
  /** Codes of what doctor says about the vault. */
  doctor(): Promise<string[]>
  /** What plugins told: the vault as a plugin `probe` has it. */
  readonly inside: ReturnType<ReturnType<typeof probeOf>['kernel']>
  /** Ends the kernel; the home stays until `remove`. */
  remove(): Promise<void>
}

const probeOf = () => probe({ vault: maybe(Vault) })

/** A daemon with a vault; `home` is one that an earlier world left. */
export async function vaultWorld(options: Partial<BootOptions> = {}): Promise<VaultWorld> {
  const home = options.home ?? (await temporaryFolder('vault'))
  const looking = probeOf()
  const host = await boot({ plugins: [daemon, vault, looking.plugin], ...options, home })
  const request = host.request
  return {
    ...host,
    keyFile: path.join(home, 'vault.key'),
    inside: looking.kernel(),
    put: (ref, secret_value, more = {}) => request('PUT', '/api/vault/secrets', { ref, secret_value, ...more }),
    resolved: (ref, asker = 'mcp') =>
      resolveSecret({ collect: looking.kernel().collect, name: asker }, ref, 'what a test needs').catch(
        error => error.code,
      ),
    present: async () => {
      const { body } = await request('GET', '/api/vault/secrets')
      return Object.fromEntries(body.secrets.map((one: { ref: string; present: boolean }) => [one.ref, one.present]))
    },
    doctor: async () =>
      (await request('GET', '/api/doctor?only=vault')).body.items.map((item: { code: string }) => item.code),
    remove: () => rm(home, { recursive: true, force: true }),
  }
}

/** Runs SQL on the database of a home that no daemon has open, by the stock SQLite. */
export function sql(home: string, text: string): string {
  return execFileSync('sqlite3', [path.join(home, 'svc.db'), text], { encoding: 'utf8' }).trim()
}
