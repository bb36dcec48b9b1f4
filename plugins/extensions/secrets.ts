import * as v from 'valibot'
import type { PluginKernel } from '../../kernel/plugin.js'
import type { ExtensionSecretsReply, PutExtensionSecretsBody } from '../../schemas/extensions.js'
import type { InstalledExtension } from './api.js'
import { ExtensionErrors } from './errors.js'
import { placeOf } from './identity.js'
import type { Instance } from './load/instance.js'
import { Reference } from './manifest/schema.js'
import { BindingTable } from './tables.js'
import { declaredEnv, manifestOf, secretsToWire } from './wire.js'

/** Where the variables that extensions declare come from. A value is never kept here, only a reference to it. */
export class Secrets {
  readonly #table: BindingTable

  constructor(private readonly kernel: PluginKernel) {
    this.#table = new BindingTable(kernel.db)
  }

  list(instance: Instance): ExtensionSecretsReply {
    return secretsToWire(declared(instance), this.#table.list(instance.name, placeOf(instance)), this.kernel.env)
  }

  /** All of the bindings or none. @throws Fault `extension_env_undeclared`, `vault_unavailable` */
  async put(instance: Instance, { bindings }: PutExtensionSecretsBody): Promise<ExtensionSecretsReply> {
    const names = declared(instance)
    for (const { env_name, value, vault_ref } of bindings) {
      if (!names.includes(env_name)) {
        throw ExtensionErrors.extension_env_undeclared(`${instance.name} declares no variable ${env_name}`, {
          details: { env_name },
        })
      }
      if (typeof value === 'string') throw ExtensionErrors.vault_unavailable()
      if (!v.is(Reference, vault_ref)) {
        throw ExtensionErrors.extension_env_undeclared(`${env_name} needs vault_ref, env:NAME or vault:REFERENCE`, {
          details: { env_name },
        })
      }
    }
    await this.kernel.db.tx(t => {
      for (const { env_name, vault_ref, mcp_server = '', header_name = '' } of bindings) {
        const binding = { env_name, reference: vault_ref ?? '', mcp_server, header_name }
        this.#table.put(t, instance.name, placeOf(instance), binding)
      }
    })
    return this.list(instance)
  }

  /** What the environment of its process is bound to, by name: `env:` or `vault:` and where. */
  references(extension: Pick<InstalledExtension, 'name' | 'key'>): Readonly<Record<string, string>> {
    const own = this.#table.list(extension.name, placeOf(extension)).filter(({ mcp_server }) => mcp_server === '')
    return Object.fromEntries(own.map(({ env_name, reference }) => [env_name, reference]))
  }

  /** @throws Fault `extension_binding_not_found` */
  async drop(instance: Instance, envName: string): Promise<void> {
    const { name } = instance
    const found = await this.kernel.db.tx(t => this.#table.delete(t, name, placeOf(instance), envName))
    if (!found) throw ExtensionErrors.extension_binding_not_found(`${name} has nothing bound to ${envName}`)
  }
}

function declared(instance: Instance): string[] {
  const manifest = manifestOf(instance)
  return manifest ? declaredEnv(manifest) : []
}
