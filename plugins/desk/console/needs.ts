import { Callers } from '../../../kernel/platform.js'
import { Host, type KernelOf, maybe } from '../../../kernel/plugin.js'
import { Vault } from '../../access/vault/api.js'
import { Tcp } from '../../platform/tcp/api.js'

/** APIs that the plugin requires. */
export const needs = { callers: Callers, host: Host, tcp: maybe(Tcp), vault: maybe(Vault) }
export type K = KernelOf<typeof needs>
