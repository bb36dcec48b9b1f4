import { resolveSecret } from '../../../kernel/kit/secret-ref.js'
import type { Actor, PluginKernel } from '../../../kernel/plugin.js'
import type { VaultApi } from '../../access/vault/api.js'
import { type Provider, ProviderErrors, type ProviderSecret } from './api.js'

type Asker = Pick<PluginKernel, 'collect' | 'name'>

/** Variables that can hold credentials, without those that affect how a process starts. */
const SLOT = /^(?!SVC_|LD_|DYLD_|NODE_|PATH$|HOME$)[A-Z_][A-Z0-9_]{0,127}$/

/**
 * Values of a provider's configured slots.
 * @throws Fault naming a missing required secret
 */
export async function configuredSlots(
  kernel: Asker,
  { name: provider, slots = [] }: Provider,
): Promise<Readonly<Record<string, string>>> {
  const values: Record<string, string> = {}
  for (const { name, ref, variable, required } of slots) {
    if (!SLOT.test(variable)) continue
    const secret = resolveSecret(kernel, ref, `the credential ${name} of the provider ${provider}`)
    const value = required ? await secret : await secret.catch(() => undefined)
    if (value !== undefined) values[variable] = value
  }
  return values
}

/**
 * Credentials of a provider: `vault:providers/<name>/<VARIABLE>` becomes that variable of its processes.
 * @throws Fault naming a secret that cannot be read: without it the provider would fail later with less information
 */
export async function slotValues(
  { name }: Provider,
  vault: VaultApi | undefined,
): Promise<Readonly<Record<string, string>>> {
  const values: Record<string, string> = {}
  const folder = `providers/${name}/`
  for (const { ref } of vault?.list(folder) ?? []) {
    const variable = ref.slice(ref.indexOf(folder) + folder.length)
    if (!SLOT.test(variable)) continue
    const value = await vault?.reveal(ref)
    if (value !== undefined) values[variable] = value
  }
  return values
}

/** Whether the secret of a reference is available now. */
export const isPresent = (kernel: Asker, ref: string): Promise<boolean> =>
  resolveSecret(kernel, ref, 'the slot').then(
    () => true,
    () => false,
  )

/**
 * Stores secrets of a provider, all or none. Resolves with a function that restores the previous ones.
 * @throws Fault `provider_secret_foreign`, `provider_vault_missing`, and those of the vault
 */
export async function storeSecrets(
  provider: string,
  secrets: readonly ProviderSecret[],
  vault: VaultApi | undefined,
  actor: Actor,
): Promise<() => Promise<void>> {
  const own = `vault:providers/${provider}/`
  if (!vault) throw ProviderErrors.provider_vault_missing()
  if (secrets.some(({ secret_ref: ref }) => !ref.startsWith(own)))
    throw ProviderErrors.provider_secret_foreign(`a secret_ref of this provider begins with ${own}`)
  const stored: { readonly ref: string; readonly before: string | undefined; readonly kind: string | undefined }[] = []
  const undo = async () => {
    // Newest first: a reference stored twice gets its original value back.
    for (const { ref, before, kind } of stored.splice(0).reverse()) {
      if (before === undefined) await vault.delete(ref, actor)
      else await vault.put(ref, before, { kind, allowShort: true, actor })
    }
  }
  try {
    for (const { secret_ref: ref, value, kind } of secrets) {
      const kindBefore = vault.list(ref.slice('vault:'.length)).find(one => one.ref === ref)?.kind
      const before = kindBefore === undefined ? undefined : await vault.reveal(ref)
      await vault.put(ref, value, { kind, actor })
      stored.push({ ref, before, kind: kindBefore })
    }
    return undo
  } catch (error) {
    await undo()
    throw error
  }
}
