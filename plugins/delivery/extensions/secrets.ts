import * as v from 'valibot'
import { parseSecretRef } from '../../../kernel/kit/secret-ref.js'
import type { RowOf } from '../../../kernel/kit/table.js'
import type { Actor, KernelOf } from '../../../kernel/plugin.js'
import type { ExtensionSecretsReply, PutExtensionSecretsBody } from '../../../schemas/extensions.js'
import { type VaultApi, vaultPath } from '../../access/vault/api.js'
import type { InstalledExtension } from './api.js'
import { ExtensionErrors } from './errors.js'
import { placeOf } from './identity.js'
import type { Instance } from './load/instance.js'
import { Reference } from './manifest/schema.js'
import type { needs } from './needs.js'
import { extensionSecrets, isOfLink, secretFolders, secretReference } from './secret-path.js'
import { bindings as sources } from './tables.js'
import { declaredEnv, manifestOf } from './wire.js'

/** Sources of the variables that extensions declare. Only references are stored here, never a value. */
export class Secrets {
  constructor(private readonly kernel: KernelOf<Pick<typeof needs, 'vault'>>) {}

  /** Names of variables and whether they have values; never a value. */
  list(instance: Instance): ExtensionSecretsReply {
    const { env } = this.kernel
    const names = declared(instance)
    const bindings = this.#bindings(instance)
    const stored = this.#stored(instance.name)
    const isThere = (reference: string) => {
      const { scheme, rest = '' } = parseSecretRef(reference) ?? {}
      return scheme === 'env' ? env[rest] !== undefined : stored.has(reference)
    }
    const isBound = (name: string) =>
      env[name] !== undefined ||
      stored.has(secretReference(instance, name)) ||
      bindings.some(binding => binding.env_name === name)
    return {
      declared_env: names,
      bound_env_keys: names.filter(isBound),
      bindings: bindings.map(({ env_name, reference, mcp_server, header_name }) => ({
        env_name,
        ...(mcp_server ? { mcp_server } : {}),
        ...(header_name ? { header_name } : {}),
        stale: !names.includes(env_name) || !isThere(reference),
      })),
    }
  }

  /**
   * Stores all bindings or none; values go to the vault one by one, so that a failure keeps those stored before it.
   * @throws Fault `extension_env_undeclared`, `extension_secret_foreign`, `vault_unavailable`, and those of the vault
   */
  async put(instance: Instance, { bindings }: PutExtensionSecretsBody, actor: Actor): Promise<ExtensionSecretsReply> {
    const names = declared(instance)
    for (const { env_name, value, vault_ref } of bindings) {
      const details = { env_name }
      if (!names.includes(env_name))
        throw ExtensionErrors.extension_env_undeclared(`${instance.name} declares no variable ${env_name}`, { details })
      if (typeof value === 'string') {
        this.#vault()
        continue
      }
      if (!v.is(Reference, vault_ref))
        throw ExtensionErrors.extension_env_undeclared(`${env_name} needs vault_ref, env:NAME or vault:REFERENCE`, {
          details,
        })
      const folders = secretFolders(instance.name)
      const isOwn = folders.some(folder => vaultPath(vault_ref)?.startsWith(folder))
      if (parseSecretRef(vault_ref)?.scheme === 'vault' && !isOwn)
        throw ExtensionErrors.extension_secret_foreign(
          `${vault_ref} is not below vault:${folders[0]}, and ${instance.name} must not use it`,
          { details },
        )
    }
    const bound: RowOf<typeof sources>[] = []
    for (const { env_name, value, vault_ref, mcp_server, header_name } of bindings) {
      const own = secretReference(instance, env_name, mcp_server)
      if (typeof value === 'string') await this.#vault().put(own, value, { actor })
      const reference = typeof value === 'string' ? own : (vault_ref ?? '')
      const { name } = instance
      const [workspace, server, header] = [placeOf(instance), mcp_server ?? '', header_name ?? '']
      bound.push({ name, workspace, env_name, reference, mcp_server: server, header_name: header })
    }
    await this.kernel.db.tx(t => {
      for (const binding of bound) sources.replace(t, binding)
    })
    return this.list(instance)
  }

  /** Deletes the stored values of a purged extension. */
  async purge(name: string): Promise<void> {
    await this.kernel.db.tx(t => {
      for (const path of extensionSecrets.paths(name)) this.kernel.needs.vault.current?.forget(t, path)
    })
  }

  /** Vault paths that belong to extensions which a developer has linked to a workspace. */
  ofWorkspace(id: string): string[] {
    const { current: vault } = this.kernel.needs.vault
    const all = ['extensions/', 'mcp/extensions/'].flatMap(folder => vault?.list(folder) ?? [])
    return all.flatMap(({ ref }) => vaultPath(ref) ?? []).filter(path => isOfLink(path, id))
  }

  #bindings(extension: Pick<InstalledExtension, 'name' | 'key'>) {
    return sources.all(this.kernel.db, { name: extension.name, workspace: placeOf(extension) }, 'ORDER BY env_name')
  }

  /** References of an extension that have a value in the vault. */
  #stored(name: string): ReadonlySet<string> {
    const { current: vault } = this.kernel.needs.vault
    return new Set(secretFolders(name).flatMap(folder => (vault?.list(folder) ?? []).map(({ ref }) => ref)))
  }

  /** @throws Fault `vault_unavailable` */
  #vault(): VaultApi {
    const { current } = this.kernel.needs.vault
    if (!current) throw ExtensionErrors.vault_unavailable()
    return current
  }

  /** Bound references of its process's environment by name: `env:…` or `vault:…`. */
  references(extension: Pick<InstalledExtension, 'name' | 'key'>): Readonly<Record<string, string>> {
    const own = this.#bindings(extension).filter(({ mcp_server }) => mcp_server === '')
    return Object.fromEntries(own.map(({ env_name, reference }) => [env_name, reference]))
  }

  /** @throws Fault `extension_binding_not_found` */
  async drop(instance: Instance, envName: string): Promise<void> {
    const { name } = instance
    const found = await this.kernel.db.tx(t =>
      sources.delete(t, { name, workspace: placeOf(instance), env_name: envName }),
    )
    if (found === 0) throw ExtensionErrors.extension_binding_not_found(`${name} has no source for ${envName}`)
  }
}

function declared(instance: Instance): string[] {
  const manifest = manifestOf(instance)
  return manifest ? declaredEnv(manifest) : []
}
